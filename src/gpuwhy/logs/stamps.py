"""Times as logs print them -> seconds since the epoch. Without a time zone they are read as UTC."""

from __future__ import annotations

import functools
import time

from gpuwhy.logs.patterns import Pattern

ISO = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
"""``2026-11-29 10:07:46``, ``2026-11-29T10:07:46.123456+02:00``, ``2026/11/29 10:07:46,123``"""
SYSLOG = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
CTIME = (
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d \d{4}"
)

_ISO = Pattern(r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))? ?(Z|UTC|[+-]\d\d:?\d\d)?$")
_MONTHS = {
    name: at
    for at, name in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
}
DAY = 86400.0
_DAYS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS_TO_1970 = 1969 * 365 + 1969 // 4 - 1969 // 100 + 1969 // 400


@functools.lru_cache(maxsize=4096)
def from_iso(stamp: str) -> float | None:
    """Seconds for a stamp that matches ISO; None when no such day or time exists."""
    found = _ISO.match(stamp)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    seconds = _seconds(year, month, day, hour, minute, second)
    if seconds is None:
        return None
    fraction, zone = found.group(7), found.group(8)
    if fraction:
        seconds += int(fraction) / 10 ** len(fraction)
    if zone and zone[0] in "+-":
        offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        seconds -= offset if zone[0] == "+" else -offset
    return seconds


@functools.lru_cache(maxsize=4096)
def from_ctime(stamp: str) -> float | None:
    """``Thu Aug 27 00:39:44 2026``"""
    _, month, day, clock, year = stamp.split()
    return _seconds(int(year), _MONTHS[month], int(day), *_clock(clock))


@functools.lru_cache(maxsize=4096)
def from_syslog(stamp: str, reference: float) -> float | None:
    """``Feb 24 09:28:18``: the year is the one that ends nearest before ``reference``."""
    month, day, clock = stamp.split()
    whole, _, fraction = clock.partition(".")
    return _without_year(_MONTHS[month], int(day), _clock(whole), reference, fraction)


@functools.lru_cache(maxsize=4096)
def from_month_day(stamp: str, reference: float) -> float | None:
    """``08-03 17:45:41``: the year is the one that ends nearest before ``reference``."""
    return _without_year(int(stamp[0:2]), int(stamp[3:5]), _clock(stamp[6:14]), reference)


def today() -> float:
    """The reference for stamps without a year when nothing better is known."""
    return time.time()


def _clock(text: str) -> tuple[int, int, int]:
    hour, minute, second = text.split(":")
    return int(hour), int(minute), int(second)


def _without_year(
    month: int, day: int, clock: tuple[int, int, int], reference: float, fraction: str = ""
) -> float | None:
    year = time.gmtime(reference).tm_year
    for candidate in (year, year - 1, year - 2, year - 3, year - 4):  # 29 February may be four years back
        seconds = _seconds(candidate, month, day, *clock)
        if seconds is not None and seconds <= reference + DAY:
            return seconds + (int(fraction) / 10 ** len(fraction) if fraction else 0.0)
    return None


def _seconds(year: int, month: int, day: int, hour: int, minute: int, second: int) -> float | None:
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not (1970 <= year < 3000 and 1 <= month <= 12 and 1 <= day <= _DAYS[month] + (is_leap and month == 2)):
        return None
    if hour > 23 or minute > 59 or second > 60:
        return None
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400 - _DAYS_TO_1970
    days += sum(_DAYS[1:month]) + (is_leap and month > 2) + day - 1
    return float(((days * 24 + hour) * 60 + minute) * 60 + second)
