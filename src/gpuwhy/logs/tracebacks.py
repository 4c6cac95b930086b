"""Python tracebacks: frames, messages, chains and groups, whole or with their head or tail cut off.

    Traceback (most recent call last):
      File "/opt/x/flashinfer/jit/core.py", line 108, in check_cuda_arch
        raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")
    RuntimeError: FlashInfer requires GPUs with sm75 or higher

gives one chain of one exception with one frame. The lines must be those of one stream (:mod:`gpuwhy.logs.streams`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from gpuwhy.logs.patterns import Pattern
from gpuwhy.model.event import Frame, LogLine, RaisedException, Span

HEAD = "Traceback (most recent call last)"
GROUP_HEAD = "Exception Group " + HEAD
MAX_DEPTH = 8
"""Groups in groups deeper than this are read as text of the message."""
MAX_FRAMES = 2000
MAX_MESSAGE_LINES = 400
MAX_CODE_LINES = 60

_FRAME = Pattern(
    r"(?P<indent>\s*)(?:File \"(?P<path>[^\"]{1,1000})\", (?:line (?P<line>\d{1,9})(?:,? in (?P<function>.{1,500}))?|in (?P<bare>.{1,500}))"
    r"|(?P<ipython>(?:/|~/|[A-Z]:\\)[^\s:]{1,500}\.py)(?::(?P<ipyline>\d{1,9}))? in (?P<ipyfunction>[\w<>.]{1,200}(?:\([^)]{0,500}\))?))\s*$"
)
_CHAINS = {
    "During handling of the above exception, another exception occurred": "during",
    "The above exception was the direct cause of the following exception": "cause",
}
_EXCEPTION = Pattern(
    r"\s*(?:E\s+)?(?P<type>[A-Za-z_][\w.]{0,200}(?:\((?:[a-z_]\w{0,60}\.){0,8}[A-Z]\w{0,100}\))?)(?::(?: (?P<message>.*)|\s*)|\s*)$",
    re.DOTALL,
)
_MARGIN = Pattern(r"\s*[|+](?: |$)")
_IN_GROUP = Pattern(r"\s{0,40}(?:\||\+-)")
_GROUP_RULE = Pattern(r"\s*\+[-+]{2,}(?: (?:\d+|\.\.\.) -+)?\s*$|\s*\+-\+-+ (?:\d+|\.\.\.) -+\s*$")
_CUT = Pattern(r"\s*(?:\.{3}|…|\[\.{3}\]|\(\.{3}\)|<snip>|\[snip\]|\[truncated\]|\.{3} *\d+ more.*)\s*$", re.IGNORECASE)
_REPEATED = Pattern(r"\s*\[Previous line repeated \d+ more times?\]\s*$")
_CARETS = Pattern(r"\s*[~^]+[~^ ]*$")
_NAMED_LIKE_EXCEPTION = Pattern(
    r"(?:[A-Za-z_]\w*\.)*_?[A-Z]\w*(?:Error(?:\((?:[a-z_]\w{0,60}\.){0,8}[A-Z]\w{0,100}\))?|Exception|Warning|Interrupt|Exit|Failure|Timeout|Fault|Failed|Cancelled|ExceptionGroup|NotFound|Denied|Unavailable|Refused)$"
    r"|(?:[A-Za-z_]\w*\.)+[A-Z]\w+$|Exception$|ExceptionGroup$|StopIteration$|StopAsyncIteration$|Empty$|Full$|SystemExit$"
)
_FRESH = Pattern(
    r"\$ |# \w|>>> |exit (?:status|code)\b|rc[ =:]\d|\+ \w+ |Process \S+:$|\(.{1,40}\) [$#] |={5,}|-{20,}$"
    r"|Exception in thread |Exception ignored |Task exception was never retrieved|Traceback|Fatal Python error"
    r"|command terminated|Killed$|Aborted|Segmentation fault|Bus error|terminate called|make(?:\[\d+\])?: |gmake(?:\[\d+\])?: "
)
"""What is never the continuation of a message: prompts, exit statuses, rulers, what a shell says."""


class Traceback(msgspec.Struct, frozen=True):
    """A chain read from the lines at ``positions`` (indexes into the stream).

    ``quoted`` are the positions of frames and of the code they quote: no event of its own stands there.
    """

    exceptions: tuple[RaisedException, ...]
    first: int
    last: int
    quoted: frozenset[int]
    owned: frozenset[int]
    """Positions of heads, chain sentences and exception lines."""


def is_frame(text: str) -> bool:
    """Whether ``text`` is the line of a frame."""
    return ('File "' in text or " in " in text) and _FRAME.match(text[:2000]) is not None


def is_ignored(lines: Sequence[LogLine], head: int) -> bool:
    """Whether the line above says that the exception whose traceback begins at ``lines[head]`` stopped nothing.

    The first is Python's own, the second xFormers', which goes on without Triton.
    """
    return head > 0 and lines[head - 1].text.startswith(("Exception ignored ", "A matching Triton is not available"))


def is_chain(text: str) -> bool:
    """Whether ``text`` is the sentence between two exceptions of a chain."""
    return text.strip().rstrip(":") in _CHAINS


def is_exception_name(name: str) -> bool:
    """Whether a dotted name is one that exceptions have."""
    return _NAMED_LIKE_EXCEPTION.match(name) is not None


def starts(text: str) -> bool:
    """Whether a traceback can start here: at its head, or at a frame when the head was cut off."""
    return HEAD in text or is_chain(text) or is_frame(text) or is_frame(_MARGIN.sub("", text, count=1))


def read(lines: Sequence[LogLine], at: int, log: str) -> Traceback | None:
    """The chain that starts at ``lines[at]``; None when nothing of one is there."""
    reader = _Reader(lines, log)
    blocks: list[RaisedException] = []
    link = ""
    here = at
    last = at
    while here < len(lines):
        text = lines[here].text
        if is_chain(text):
            link = _CHAINS[text.strip().rstrip(":")]
            reader.owned.add(here)
            last = here
            here = reader.skip_blank(here + 1)
            continue
        if not starts(text):
            break
        if GROUP_HEAD in text:
            carried, end = reader.group(here, link)
            blocks.extend(carried)
        else:
            block, end = reader.block(here, link)
            if block is None:
                break
            blocks.append(block)
        link = ""
        last = end - 1
        here = reader.skip_blank(end)
        if here >= len(lines) or not is_chain(lines[here].text):
            break
    if not blocks:
        return None
    return Traceback(tuple(blocks), at, last, frozenset(reader.quoted), frozenset(reader.owned))


def read_message(lines: Sequence[LogLine], at: int) -> int:
    """The position after the message whose first line is ``lines[at]``."""
    first = lines[at]
    shape = (first.level, len(first.raw) > len(first.text))
    end = at + 1
    while end < len(lines) and end - at < MAX_MESSAGE_LINES:
        line = lines[end]
        text = line.text
        if (line.level, len(line.raw) > len(text)) != shape:
            break
        if not text.strip():
            if not lines[end - 1].text.rstrip().endswith(":"):
                break
            following = _next_filled(lines, end)
            if following is None:
                break
            end = following
            continue
        if HEAD in text or is_chain(text) or is_frame(text) or _FRESH.match(text) or _CUT.match(text):
            break
        if starts_exception(text) and not lines[end - 1].text.rstrip().endswith(","):
            break
        end += 1
    return end


def starts_exception(text: str) -> bool:
    """Whether a line at the left margin is the first one of an exception's message."""
    if text[:1] in (" ", "\t", ""):
        return False
    colon = text.find(":")
    name = text[:colon] if colon > 0 else text.strip()
    return len(name) < 200 and " " not in name and is_exception_name(name)


def _without_margin(line: LogLine) -> LogLine:
    return msgspec.structs.replace(line, text=_MARGIN.sub("", line.text, count=1))


def _next_filled(lines: Sequence[LogLine], at: int) -> int | None:
    for here in range(at, min(at + 4, len(lines))):
        if lines[here].text.strip():
            return here
    return None


class _Reader:
    """Reads blocks out of one stream and remembers which of its lines they took."""

    def __init__(self, lines: Sequence[LogLine], log: str, depth: int = 0) -> None:
        self.lines = lines
        self.log = log
        self.depth = depth
        self.quoted: set[int] = set()
        self.owned: set[int] = set()

    def skip_blank(self, at: int) -> int:
        while at < len(self.lines) and not self.lines[at].text.strip():
            at += 1
        return at

    def _text(self, at: int) -> str:
        return self.lines[at].text

    def group(self, at: int, link: str) -> tuple[list[RaisedException], int]:
        """An exception group: what it carries was raised before it and comes first.

        Its lines have a margin of bars, and a rule with a number before each exception that it carries.
        """
        end = at + 1
        while end < len(self.lines) and _IN_GROUP.match(self.lines[end].text):
            end += 1
        parts: list[list[int]] = [[at]]
        for here in range(at + 1, end):
            if _GROUP_RULE.match(self.lines[here].text):
                parts.append([])
                self.owned.add(here)
            else:
                parts[-1].append(here)
        own = self._part(parts[0], link)
        carried = [block for part in parts[1:] for block in self._part(part, "")]
        closing = [msgspec.structs.replace(block, link=block.link or "cause") for block in own] if carried else own
        return [*carried, *closing], end

    def _part(self, positions: Sequence[int], link: str) -> list[RaisedException]:
        """The exceptions in some lines of a group, read without their margin."""
        if not positions or self.depth >= MAX_DEPTH:
            return []
        lines = [_without_margin(self.lines[at]) for at in positions]
        inner = _Reader(lines, self.log, self.depth + 1)
        blocks: list[RaisedException] = []
        if starts(lines[0].text):
            block, _ = inner.block(0, link)
            blocks = [block] if block is not None else []
        else:
            raised = _EXCEPTION.match(lines[0].text)
            if raised is not None:
                message = "\n".join([raised["message"] or "", *(line.text for line in lines[1:])]).strip()
                blocks = [RaisedException(raised["type"], message, (), link, inner._span(0, len(lines) - 1))]
                inner.owned.add(0)
        self.quoted |= {positions[at] for at in inner.quoted}
        self.owned |= {positions[at] for at in inner.owned}
        return blocks

    def block(self, at: int, link: str) -> tuple[RaisedException | None, int]:
        """One exception: its head (if it has one), frames, code, and message."""
        first = at
        head = self.lines[at].text
        if HEAD in head:
            self.owned.add(at)
            at += 1
        frames: list[Frame] = []
        indent = 0
        code = 0
        while at < len(self.lines) and len(frames) < MAX_FRAMES:
            text = self._text(at)
            found = _FRAME.match(text[:2000])
            if found is not None:
                frames.append(_frame(found))
                indent = len(found["indent"])
                code = 0
                self.quoted.add(at)
            elif not text.strip():
                following = self._next_in_traceback(at, indent)
                if following is None:
                    break
                at = following
                continue
            elif _CUT.match(text) or _REPEATED.match(text) or (_CARETS.match(text) and frames):
                self.quoted.add(at)
            elif frames and code < MAX_CODE_LINES and self._is_code(text, indent):
                if not frames[-1].code:
                    frames[-1] = msgspec.structs.replace(frames[-1], code=text.strip())
                code += 1
                self.quoted.add(at)
            else:
                break
            at += 1
        raised = _EXCEPTION.match(self._text(at)) if at < len(self.lines) else None
        if raised is not None and (frames or HEAD in head) and self._is_exception(raised, at, indent):
            end = read_message(self.lines, at)
            self.owned.add(at)
            message = "\n".join([raised["message"] or "", *(self._text(n) for n in range(at + 1, end))]).strip()
            block = RaisedException(raised["type"], message, tuple(frames), link, self._span(first, end - 1))
        elif frames:
            end = at
            block = RaisedException("", "", tuple(frames), link, self._span(first, at - 1))
        else:
            return None, at
        return block, end

    def _is_code(self, text: str, indent: int) -> bool:
        own = len(text) - len(text.lstrip())
        if own > indent:
            return True
        if indent == 0:  # a paste that lost all indentation
            return not starts_exception(text) and HEAD not in text
        return False

    def _is_exception(self, raised: re.Match[str], at: int, indent: int) -> bool:
        text = self._text(at)
        own = len(text) - len(text.lstrip())
        if is_exception_name(raised["type"]):
            return True
        return own < max(indent, 1) and raised["type"][:1].isalpha() and ":" in text and " " not in raised["type"]

    def _next_in_traceback(self, at: int, indent: int) -> int | None:
        """The next line after blank ones, when it still belongs to this block (pastes double their line ends)."""
        following = _next_filled(self.lines, at)
        if following is None:
            return None
        text = self._text(following)
        if _FRAME.match(text[:2000]) or starts_exception(text):
            return following
        return following if text[:1] == " " and (self._is_code(text, indent) or _CARETS.match(text)) else None

    def _span(self, first: int, last: int) -> Span:
        return Span(self.log, self.lines[first].number, self.lines[max(first, last)].number)


def _frame(found: re.Match[str]) -> Frame:
    if found["ipython"]:
        line = found["ipyline"]
        return Frame(found["ipython"], int(line) if line else None, found["ipyfunction"].partition("(")[0])
    line = found["line"]
    return Frame(found["path"], int(line) if line else None, (found["function"] or found["bare"] or "").strip())
