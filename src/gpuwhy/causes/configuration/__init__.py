"""Causes in the model's files and in the configuration: what was asked for, and what the release or the hub allows."""
