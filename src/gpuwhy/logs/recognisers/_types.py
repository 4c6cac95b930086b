"""What a recogniser says about a line."""

from __future__ import annotations

import msgspec


class Recognised(msgspec.Struct, frozen=True, omit_defaults=True):
    """The kind and details of an event (see :class:`gpuwhy.model.event.Event`), without its place.

    ``takes_more`` says that following lines can belong to the message.
    """

    kind: str
    tool: str = ""
    detail: dict[str, str] = {}
    is_echo: bool = False
    is_fatal: bool = False
    unit: str = ""
    takes_more: bool = False
