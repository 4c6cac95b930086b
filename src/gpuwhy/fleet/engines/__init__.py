"""What runs the collector on many nodes: one small adapter for each engine that clusters already have."""
