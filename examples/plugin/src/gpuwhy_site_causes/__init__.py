"""Causes that only exist at this site."""
