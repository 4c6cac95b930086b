"""Messages of a localised C library, shell, compiler, assembler, linker and make, in English.

k.c:1:10: schwerwiegender Fehler: no.h: Datei oder Verzeichnis nicht gefunden
/usr/bin/ld: no se puede encontrar -lcuda: No existe el fichero o el directorio
script: ligne 3 :  7887 Erreur de segmentation  ./server
bash: nvcc: コマンドが見つかりません

become ``k.c:1:10: fatal error: no.h: No such file or directory`` and so on, so that the other readers know them. The
texts are those of the programs' own catalogues (``tongues.json`` says which), keyed by the English message.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import msgspec

from gpuwhy.logs.patterns import Pattern

LONGEST = 2000
SHORTEST = 6
"""A shorter word of Latin letters keeps the marks around it: ``] Erro `` does not stand in every line with an error."""
_WORD = r"([^\s'\"`«»„“”]{1,300})"
"""What a message names: a file, a command, an option, a number."""
_CORE = r"(?P<core>\s{0,3}[(（][^()（）]{1,60}[)）])?"
_MARKS = " :：«»„“”\"'`[].,。\u00a0"


class _Catalogues(msgspec.Struct, frozen=True):
    """``messages`` and ``signals``: what each English text is called elsewhere; ``%s`` stands for a name or a number."""

    source: str
    messages: dict[str, list[str]]
    signals: dict[str, list[str]]
    core_dumped: list[str] = msgspec.field(name="core dumped")
    line: list[str]


def _read() -> _Catalogues:
    return msgspec.json.decode(Path(__file__).with_name("tongues.json").read_bytes(), type=_Catalogues)


def _literal(text: str) -> str:
    """The longest part of a message that stands in every line that has it."""
    part = max(text.split("%s"), key=lambda part: len(part.strip(_MARKS)))
    bare = part.strip(_MARKS)
    return part if bare.isascii() and len(bare) < SHORTEST else bare


_CATALOGUES = _read()
LITERALS = tuple(
    dict.fromkeys(
        _literal(text) for texts in (*_CATALOGUES.messages.values(), *_CATALOGUES.signals.values()) for text in texts
    )
)


class _Rule(msgspec.Struct, frozen=True):
    literal: str
    pattern: Pattern
    english: str
    """For ``re.sub``: names and numbers come from the groups."""


@functools.cache
def _messages() -> tuple[_Rule, ...]:
    """Longest first: ``Too many open files in system`` before ``Too many open files``."""
    pairs = [(text, english) for english, texts in _CATALOGUES.messages.items() for text in texts]
    return tuple(_rule(text, english) for text, english in sorted(pairs, key=lambda pair: -len(pair[0])))


def _rule(text: str, english: str) -> _Rule:
    parts = [re.escape(part).replace(r"\ ", "[ \u00a0]{1,2}") for part in text.rstrip(".").split("%s")]
    numbers = iter(range(1, english.count("%s") + 1))
    if text.endswith("\uff1a"):  # a full-width colon has its space within
        english += " "
    return _Rule(
        _literal(text),
        Pattern(_WORD.join(parts) + (r"\.?" if text.endswith(".") else "")),
        re.sub("%s", lambda _: rf"\g<{next(numbers)}>", english.replace("\\", "\\\\")),
    )


@functools.cache
def _signals() -> tuple[tuple[str, Pattern], ...]:
    """What a shell prints when a program ends: alone in its line, behind the script's line and the process's number."""
    rules = []
    for english, texts in _CATALOGUES.signals.items():
        either = "|".join(re.escape(text.rstrip(".")) for text in sorted(texts, key=len, reverse=True))
        head = "^(?:\\S.{0,120}?[\\s\uff1a]{1,4}\\d{1,10}\\s{1,6})?"
        rules.append((english, Pattern(rf"{head}(?:{either})\.?{_CORE}(?P<rest>\s.{{0,400}})?$")))
    return tuple(rules)


def english(text: str) -> str:
    """``text`` with the messages that are known in English; unchanged when it has none."""
    shown = text[:LONGEST]
    if shown.isascii():
        return _in_english(shown, text) if any(literal in shown for literal in LITERALS) else text
    return _in_english(shown, text)


def _in_english(shown: str, text: str) -> str:
    for name, pattern in _signals():
        found = pattern.search(shown)
        if found is not None:
            core = " (core dumped)" if found["core"] else ""
            return f"{name}{core}{found['rest'] or ''}"
    known = shown
    for rule in _messages():
        if rule.literal in known:
            known = rule.pattern.sub(rule.english, known)
    if known == shown:
        return text
    return known.replace("\uff1a", ": ").replace(" : ", ": ").replace(":  ", ": ") + text[LONGEST:]
