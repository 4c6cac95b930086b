"""Parts of make_switches: which wheels are read, and what their source declares."""
