"""Lines that a container runtime cut into records of at most 16 KiB, put together again.

2026-11-30T07:42:28.371772502+00:00 stdout P argument list:        containerd, CRI-O and podman: P until the F
2026-11-30T07:42:28.374421797+00:00 stdout F  end of list
{"log":"argument list: xx","stream":"stdout","time":"..."}         docker json-file: until a text ends with a newline
{"log":"xx end of list\\n","stream":"stdout","time":"..."}

Standard output and standard error are cut apart, and their records may alternate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuwhy.logs import stamps
from gpuwhy.logs.columns import SAMPLE
from gpuwhy.logs.patterns import Pattern

MAX_WHOLE = 32 << 10
"""Characters of a line's beginning that are put together; of a longer one only the last record is kept behind them."""
_CRI = Pattern(
    rf"(?P<pod>\[pod/[a-z0-9./-]{{1,320}}\] )?{stamps.ISO} (?P<stream>stdout|stderr) (?P<tag>[FP])(?::[\w-]{{1,40}})? ?"
)
_LONGEST_PREFIX = 400


def whole_lines(raws: Sequence[str]) -> list[tuple[int, str]] | None:
    """Each line with its number, cut ones joined under the number of their first record; None when none can be cut."""
    sample = raws[:SAMPLE]
    if any(" std" in raw[:_LONGEST_PREFIX] and _CRI.match(raw[:_LONGEST_PREFIX]) for raw in sample):
        return _joined(raws, _cri_record, _one_cri_line)
    if any(raw.startswith('{"log":"') for raw in sample):
        return _joined(raws, _docker_record, _one_docker_record)
    return None


def output_of(raw: str) -> str:
    """``stdout`` or ``stderr``, behind its pod's name where that is told; empty when no runtime wrote it to the line."""
    found = _cri_record(raw) or _docker_record(raw)
    return found[0] if found is not None else ""


def _joined(
    raws: Sequence[str],
    record: Callable[[str], tuple[str, bool] | None],
    one_line: Callable[[list[str]], str],
) -> list[tuple[int, str]]:
    """``record`` tells the stream of a record and whether it ends its line."""
    lines: list[tuple[int, str]] = []
    begun: dict[str, tuple[int, list[str]]] = {}
    for number, raw in enumerate(raws, 1):
        found = record(raw)
        if found is None or (found[1] and found[0] not in begun):
            lines.append((number, raw))
            continue
        stream, is_end = found
        if stream not in begun:
            begun[stream] = (len(lines), [])
            lines.append((number, raw))
        at, parts = begun[stream]
        if sum(map(len, parts)) > MAX_WHOLE:
            parts.pop()
        parts.append(raw)
        if is_end:
            lines[at] = (lines[at][0], one_line(parts))
            del begun[stream]
    for at, parts in begun.values():
        lines[at] = (lines[at][0], one_line(parts))
    return lines


def _cri_record(raw: str) -> tuple[str, bool] | None:
    if " std" not in raw[:_LONGEST_PREFIX]:
        return None
    found = _CRI.match(raw[:_LONGEST_PREFIX])
    return (f"{found['pod'] or ''}{found['stream']}", found["tag"] == "F") if found is not None else None


def _one_cri_line(parts: list[str]) -> str:
    rest = [part[found.end() :] for part in parts[1:] if (found := _CRI.match(part[:_LONGEST_PREFIX])) is not None]
    return "".join([parts[0], *rest])


def _docker_record(raw: str) -> tuple[str, bool] | None:
    if not raw.startswith('{"log":"'):
        return None
    end = raw.rfind('","stream":"')
    return (raw[end + 12 : end + 18], raw.endswith("\\n", 0, end)) if end > 0 else None


def _one_docker_record(parts: list[str]) -> str:
    """The records as one: the texts joined, all else from the last."""
    texts = [part[8 : part.rfind('","stream":"')] for part in parts]
    return "".join(['{"log":"', *texts, parts[-1][parts[-1].rfind('","stream":"') :]])
