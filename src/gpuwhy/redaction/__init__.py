"""Takes secrets out of text and documents, consistently: one secret, one token. Standard library only, Python >= 3.6."""

from gpuwhy.redaction.redactor import Redactor

__all__ = ["Redactor"]
