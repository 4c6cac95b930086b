"""The site of docs/: what `make docs` adds to the pages as they stand in the repository."""
