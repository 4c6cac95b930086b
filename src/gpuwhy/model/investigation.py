"""The record of the questions asked: where each looked and how far, what it found or did not, what that changed."""

from __future__ import annotations

import msgspec


class Step(msgspec.Struct, frozen=True):
    """One question. ``outcome`` is ``ok``, ``absent``, ``denied``, ``timed out`` or ``failed``; ``duration`` in seconds.

    ``where`` says where it looked and how far, ``found`` what it found or did not, ``changed`` what that did to the
    answer, ``assumes`` what the answer rests on without having been seen.
    """

    question: str
    where: str
    outcome: str
    found: str = ""
    changed: str = ""
    assumes: str = ""
    duration: float | None = None


class Investigation(msgspec.Struct, frozen=True):
    """The steps in the order taken, and what stayed open."""

    steps: tuple[Step, ...] = ()
    open_questions: tuple[str, ...] = ()
