"""One module for each kind of wheel that is measured; `scripts.measure_toolchains` is their command line."""
