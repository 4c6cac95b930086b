"""Distributed: ranks that cannot meet, agree, divide the model or reach each other's memory, and ports that are taken."""
