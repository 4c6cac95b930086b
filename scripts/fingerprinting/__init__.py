"""Parts of make_fingerprints: choose releases, read wheels, find the lines that a traceback can show, encode them."""
