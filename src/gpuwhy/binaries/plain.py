"""The readers' answers as plain values, as JSON holds them."""

from typing import Any


def plain(value: Any) -> Any:
    """A tuple with names as a mapping, any other as a list, all the way down."""
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
