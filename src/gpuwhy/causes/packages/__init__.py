"""Packages that do not belong together, libraries that are absent or damaged, and what could not be fetched."""
