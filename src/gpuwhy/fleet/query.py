"""Questions in SQL over a fleet's index: they only read, and end in time."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import msgspec

from gpuwhy.fleet.keeping import ANALYSED, state_of
from gpuwhy.fleet.store import INDEX, Store, StoreError

SECONDS = 20.0
MOST_ROWS = 100_000
_STEPS = 20_000
"""Instructions of SQLite between two looks at the clock."""
_LONGEST = 16 << 20
"""Bytes of one value: a query can build any length out of a short one."""
_LIMIT_LENGTH = 0
"""SQLITE_LIMIT_LENGTH, which the module of Python 3.10 does not name."""
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_FORBIDDEN = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "randomblob", "zeroblob"})


class QueryError(Exception):
    """A question that SQLite does not understand, that would change something, or that takes too long."""


class Answer(msgspec.Struct, frozen=True):
    """``rows`` are in the order of the query; ``is_cut`` tells that there were more than the limit."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool = False


def is_analysed(folder: str | Path) -> bool:
    """Whether the tables of the analysis speak of the folder as it is. Raises StoreError."""
    with Store(folder) as store:
        return store.run().get(ANALYSED) == state_of(store)


def query(folder: str | Path, sql: str, seconds: float = SECONDS, most: int = MOST_ROWS) -> Answer:
    """Runs one SELECT over the index of ``folder``; see docs/fleet-report.md for its tables.

    Nothing can be written: the file is opened for reading, and SQLite asks for leave for every kind of statement.
    Raises QueryError, and StoreError when it is no folder of a fleet.
    """
    index = Path(folder) / INDEX
    if not index.is_file():
        raise StoreError(f"{folder} is no folder of a fleet: it has no {INDEX} (gpuwhy fleet collect makes one)")
    try:
        connection = sqlite3.connect(f"{index.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise StoreError(f"{index} cannot be opened: {error}") from error
    try:
        return _answered(connection, sql, seconds, most)
    finally:
        connection.close()


def _answered(connection: sqlite3.Connection, sql: str, seconds: float, most: int) -> Answer:
    until = time.monotonic() + seconds
    denied: list[str] = []
    connection.set_authorizer(lambda action, first, second, *_: _may(action, first, second, denied))
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    set_limit = getattr(connection, "setlimit", None)
    if set_limit is not None:
        # from Python 3.11 on
        set_limit(_LIMIT_LENGTH, _LONGEST)
    try:
        cursor = connection.execute(sql)
        if cursor.description is None:
            raise QueryError("this is no question: write SELECT ... FROM fact, for example")
        rows = cursor.fetchmany(most + 1)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        raise QueryError(_why(error, denied, seconds)) from error
    columns = tuple(str(each[0]) for each in cursor.description)
    return Answer(columns, tuple(map(tuple, rows[:most])), len(rows) > most)


def _may(action: int, first: str | None, second: str | None, denied: list[str]) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in _FORBIDDEN):
        return sqlite3.SQLITE_OK
    denied.append(second or first or "")
    return sqlite3.SQLITE_DENY


def _why(error: Exception, denied: list[str], seconds: float) -> str:
    text = str(error)
    if "interrupted" in text:
        return f"no answer within {seconds:g} s; ask for less (LIMIT), or allow more with --timeout"
    if denied or "not authorized" in text or "readonly" in text:
        return f"only questions are allowed, nothing that changes or opens a file: {text}"
    if "no such table" in text or "no such column" in text:
        return f"{text}; the tables are in docs/fleet-report.md: node, fact, deviation, finding, member, pool, failure, run"
    return text
