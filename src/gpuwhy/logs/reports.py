"""Bug reports: Markdown, quotes and HTML around a pasted log. Line numbers stay those of the report."""

from __future__ import annotations

import re

from gpuwhy.logs.patterns import Pattern

_SAMPLE = 256 << 10
_FENCE = Pattern(r"\s{0,12}(?:```|~~~)")
_SIGNS = Pattern(
    r"^\s{0,3}(?:```|~~~)|^#{2,5} \S|<(?:details|summary|br|pre|code)\b[^>\n]{0,80}>|^&gt; |^<(?:p|div|td)>",
    re.MULTILINE | re.IGNORECASE,
)
_TAGS = Pattern(
    r"</?(?:details|summary|pre|code|p|div|span|b|i|em|strong|kbd|ul|ol|li|table|tr|td|th|img|a|sub|sup|hr)\b[^>\n]{0,200}>",
    re.IGNORECASE,
)
_BREAK = Pattern(r"<br\s{0,4}/?>", re.IGNORECASE)
_COMMENT = Pattern(r"<!--.*?-->")
_ENTITY = Pattern(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,6});")
_QUOTE = Pattern(r"(?:\s{0,3}>(?: |$))+|\s{0,3}>+ ?")
_QUOTE_ENTITIES = Pattern(r"(?: {0,3}&gt;){1,8} ?")
_ESCAPED = Pattern(r"\\([_*\[\]<>#|])")
_TICKED = Pattern(r"\s*(`{1,2})([^`]+)\1\s*$")
_QUOTED = ("&gt;", " &gt;", "  &gt;")
_INDENTS = ("    ", "\t")
ESCAPES = 3
"""So many ``\\_`` are an editor's work; fewer can be a path of Windows."""
QUOTED_RUN = 3
"""So many lines in a row that begin with ``>`` are a quote; fewer can be a shell's prompt."""


def is_report(text: str) -> bool:
    """Whether ``text`` is wrapped in Markdown or HTML rather than being a bare log."""
    sample = text[:_SAMPLE]
    return _SIGNS.search(sample) is not None or _quoted_lines(sample.split("\n")) > 0


def unwrapped(text: str) -> str:
    """``text`` without its wrapping. Every line stays on its line."""
    lines = text.split("\n")
    if "&gt;" in text:
        lines = [_QUOTE_ENTITIES.sub(_entities, line, count=1) if line.startswith(_QUOTED) else line for line in lines]
    if _quoted_lines(lines):
        lines = _without_quotes(lines)
    if "<" in text:
        lines = [_without_tags(line) if "<" in line else line for line in lines]
    if "&" in text:
        lines = [_ENTITY.sub(_entity, line) if "&" in line else line for line in lines]
    lines = _without_fences(lines, text.count("\\_") >= ESCAPES)
    if "`" in text:
        lines = [_TICKED.sub(r"\2", line) if "`" in line else line for line in lines]
    return "\n".join(lines)


def dedented(text: str) -> str:
    """``text`` without the indentation that all of its lines share."""
    lines = text.split("\n")
    if not text.startswith((" ", "\n", "\t")):
        return text
    return "\n".join(_dedented(lines))


def _entities(found: re.Match[str]) -> str:
    return found.group().replace("&gt;", ">")


def _entity(found: re.Match[str]) -> str:
    import html  # two thousand names that most reports do not need

    character = html.unescape(found.group())
    return " " if character == "\xa0" else character if character.isprintable() else found.group()


def _quoted_lines(lines: list[str]) -> int:
    """How many lines stand in runs of quoted ones."""
    quoted = run = 0
    for line in lines:
        if line.lstrip(" ").startswith(">"):
            run += 1
            if run >= QUOTED_RUN:
                quoted += QUOTED_RUN if run == QUOTED_RUN else 1
        else:
            run = 0
    return quoted


def _without_quotes(lines: list[str]) -> list[str]:
    result = list(lines)
    start = 0
    for at in range(len(lines) + 1):
        if at < len(lines) and lines[at].lstrip(" ").startswith(">"):
            continue
        if at - start >= QUOTED_RUN:
            for inside in range(start, at):
                result[inside] = _QUOTE.sub("", lines[inside], count=1)
        start = at + 1
    return result


def _without_tags(line: str) -> str:
    return _TAGS.sub("", _COMMENT.sub("", _BREAK.sub("", line)))


def _without_fences(lines: list[str], is_escaped: bool) -> list[str]:
    """Fence lines become empty; what stands between two of them loses its common indentation.

    Outside them so do blocks that are indented as code, and, where ``is_escaped``, editors put backslashes before
    Markdown's own characters.
    """
    result: list[str] = []
    outside: list[str] = []

    def end_outside() -> None:
        plain = [_ESCAPED.sub(r"\1", line) for line in outside] if is_escaped else outside
        result.extend(_without_indented_blocks(plain))
        outside.clear()

    inside: list[str] | None = None
    for line in lines:
        if _FENCE.match(line) and not _closes_on_same_line(line):
            if inside is not None:
                result.extend(_dedented(inside))
                inside = None
            else:
                end_outside()
                inside = []
            result.append("")
        elif inside is not None:
            inside.append(line)
        else:
            outside.append(line)
    end_outside()
    if inside is not None:
        result.extend(inside)
    return result


def _without_indented_blocks(lines: list[str]) -> list[str]:
    """Four blanks or a tab behind an empty line make code of some lines in Markdown."""
    result = list(lines)
    begin = 0
    while begin < len(lines):
        end = begin
        while end < len(lines) and (lines[end].startswith(_INDENTS) or (end > begin and not lines[end].strip())):
            end += 1
        filled = sum(bool(line.strip()) for line in lines[begin:end])
        is_apart = begin == 0 or not lines[begin - 1].strip()
        if filled >= QUOTED_RUN and is_apart and not _is_inside_code(lines, begin):
            result[begin:end] = _dedented(lines[begin:end])
        begin = max(end, begin + 1)
    return result


def _is_inside_code(lines: list[str], at: int) -> bool:
    """Whether the line before, empty ones aside, is indented as well: the code of a traceback with doubled line ends."""
    before = next((line for line in reversed(lines[max(0, at - 4) : at]) if line.strip()), "")
    return before.startswith(" ")


def _closes_on_same_line(line: str) -> bool:
    stripped = line.strip()
    return len(stripped) > 6 and stripped.endswith(("```", "~~~"))


def _dedented(lines: list[str]) -> list[str]:
    filled = [line for line in lines if line.strip()]
    blank = "\t" if filled and all(line.startswith("\t") for line in filled) else " "
    shared = min((len(line) - len(line.lstrip(blank)) for line in filled), default=0)
    return [line[shared:] for line in lines] if shared else lines
