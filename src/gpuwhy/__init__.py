"""gpuwhy finds out why a GPU inference service crashed or will not start, and what the smallest fix is."""

__version__ = "0.1.0"
__all__ = ["__version__"]
