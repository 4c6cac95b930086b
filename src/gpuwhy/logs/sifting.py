"""One pass over a log of any size, in constant memory: the lines that may matter, with what stands around them.

A gigabyte of a server's log is access lines, progress bars and statistics. The pass works on blocks of megabytes, not
on lines: one multi-pattern search for every literal that an event, a stated fact or a cause can begin with, and only
lines that hold one are looked at. A line that differs from earlier ones in its (hexadecimal) digits only is kept a limited number of
times in each life of the service. The beginning and the end of the log are kept whole.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import ahocorasick_rs

BLOCK = 2 << 20
"""Bytes searched at once."""
HEAD = 1 << 20
TAIL = 1 << 20
"""Bytes kept whole of the beginning (versions, arguments) and of the end (the death, exit codes)."""
MAX_RAW = 64 << 10
"""Bytes kept of one line: its two ends."""
LINE_COST = 400
"""What keeping a line costs beside its bytes."""
EARLY, LATE, FIRSTS = 20 << 20, 28 << 20, 6 << 20
"""Budgets in bytes: what was found first, what was found last, and first occurrences of what lies between."""
LIKE_LINES, LIKE_SEVERE_LINES = 24, 400
"""How often lines that differ in digits only are kept within one life; the second for those that tell of an error.

Eight ranks print the same frames eight times, and one traceback can hold a recursive frame fifty times."""
BEFORE, AFTER = 2, 4
BEFORE_SEVERE, AFTER_SEVERE, AFTER_START = 8, 24, 80
FRESH = 64
"""So many times a line of an error keeps wide surroundings; they repeat, too."""
SHAPE_BYTES = 400
SAID_BYTES = 24
MAX_SHAPES = 200_000
DULL = 2_000
"""After so many repeated lines a literal's context is taken for dull."""
WORTH_LEARNING = 150_000
"""Repeated lines that cost as much as a new automaton does."""
MOST_DULL, LONGEST_DULL = 60, 80
LIKE_LITERAL = 4_000
"""After so many lines of one literal within one life only those are kept that say something new behind it."""
_HEXADECIMAL = b"0123456789abcdefABCDEF"
_SEVERE = re.compile(
    rb"(?i)error|traceback|exception|file \\?\"|fatal|critical|panic|abort|segfault|signal \d|killed|oom|xid|nccl warn|assert|fail|terminat|refused|no such|not found|cannot|unsupported|watchdog|timeout|timed out"
)
_STARTS = (
    b"server_args=serverargs(",
    b"vllm api server version",
    b"tensorrt-llm version",
    b"tensorrt llm version",
    b"systemd[1]: started",
    b"systemd[1]: starting",
    b"scheduled restart job",
    b"started server process",
)
"""A new life of a service begins: its lines are counted anew, and its arguments follow."""
_WORDS = re.compile(rb"[^0-9\r\n]+")


class Sifted(msgspec.Struct, frozen=True):
    """What was kept of a log: the lines as bytes without their ends, and the number of each in the whole log."""

    lines: tuple[bytes, ...]
    numbers: tuple[int, ...]
    total_lines: int
    total_bytes: int
    notes: tuple[str, ...] = ()


def sift(blocks: Iterable[bytes], literals: Iterable[str], separator: bytes = b"\n") -> Sifted:
    """The lines of a stream that hold one of ``literals`` (upper and lower case alike), and their surroundings.

    ``separator`` is what ends a line; a journal in the export format has an empty line after each record.
    """
    sieve = _Sieve(literals, separator)
    for block in _whole_lines(blocks, separator, sieve):
        sieve.pass_over(block)
    return sieve.sifted()


def _whole_lines(blocks: Iterable[bytes], separator: bytes, sieve: _Sieve) -> Iterator[bytes]:
    """Blocks cut at line ends. Of a line longer than a block the middle is let go as it comes in."""
    rest: list[bytes] = []
    size = 0
    for piece in _of_block_size(blocks):
        sieve.total_bytes += len(piece)
        cut = piece.rfind(separator)
        if cut < 0:
            rest.append(piece)
            size += len(piece)
            if size > 2 * BLOCK:
                rest = [_shortened(b"".join(rest), BLOCK)]
                size = len(rest[0])
            continue
        cut += len(separator)
        yield b"".join([*rest, piece[:cut]])
        rest, size = [piece[cut:]], len(piece) - cut
    last = b"".join(rest)
    if last.strip():
        yield last + separator


def _of_block_size(blocks: Iterable[bytes]) -> Iterator[bytes]:
    gathered: list[bytes] = []
    size = 0
    for block in blocks:
        gathered.append(block)
        size += len(block)
        if size >= BLOCK:
            yield b"".join(gathered)
            gathered, size = [], 0
    if size:
        yield b"".join(gathered)


def _shortened(raw: bytes, longest: int = MAX_RAW) -> bytes:
    return raw if len(raw) <= longest else raw[: longest // 2] + b" [...] " + raw[-longest // 2 :]


class _Sieve:
    """The state of the pass."""

    def __init__(self, literals: Iterable[str], separator: bytes) -> None:
        self._patterns = sorted({*_STARTS, *_fewest({each for literal in literals for each in _variants(literal)})})
        self._starts = frozenset(map(self._patterns.index, _STARTS))
        self._worth = len(self._patterns)
        self._automaton = _automaton(self._patterns)
        self._folded_of = [0] * self._worth
        self._separator = separator
        self.total_bytes = 0
        self._next_number = 1
        self._kept = _Shelf()
        self._after = 0
        self._counts: dict[int, int] = {}
        """How many more lines of a shape are kept in this life."""
        self._severe: dict[int, bool] = {}
        self._of_literal = [0] * self._worth
        self._is_worn = False
        self._folded = 0
        self._learn_at = WORTH_LEARNING
        self._head_left = HEAD
        self._before: list[tuple[int, bytes]] = []
        self._recent: deque[tuple[int, bytes]] = deque()
        self._recent_size = 0

    def pass_over(self, block: bytes) -> None:
        """Look through a block of whole lines."""
        end_mark = self._separator
        counted_to, number = 0, self._next_number
        done = self._take_owed(block)
        last_end = done
        counts = self._counts
        find, rfind, count, length = block.find, block.rfind, block.count, len(block)
        of_literal, severe, starts = self._of_literal, self._severe, self._starts
        lowered = block.lower()
        worth = self._worth
        for literal, begin, _ in self._automaton.find_matches_as_indexes(lowered):
            if literal >= worth or begin < last_end:
                continue
            start = rfind(end_mark, 0, begin + 1)
            start = start + len(end_mark) if start >= 0 else 0
            end = find(end_mark, max(begin + 1, start))
            if end < 0:
                end = length
            last_end = end
            shape = hash(block[start : min(end, start + SHAPE_BYTES)].translate(None, _HEXADECIMAL))
            left = counts.get(shape, -1)
            if left < 0 and of_literal[literal] >= LIKE_LITERAL:
                # ids of any alphabet make such lines differ: what follows the literal tells them apart
                shape = hash(block[begin : min(end, begin + SAID_BYTES)].translate(None, _HEXADECIMAL))
                left = counts.get(shape, -1)
            if left == 0:
                self._folded += 1
                self._is_worn = True
                self._folded_of[literal] += 1
                if self._folded_of[literal] >= DULL:
                    self._folded_of[literal] = 0
                    self._learn(lowered[begin : begin + LONGEST_DULL], self._patterns[literal])
                continue
            is_new = left < 0
            is_severe = severe.get(shape)
            if is_severe is None:
                is_severe = severe[shape] = _SEVERE.search(block, start, min(end, start + 4096)) is not None
            counts[shape] = (LIKE_SEVERE_LINES if is_severe else LIKE_LINES) if is_new else left - 1
            of_literal[literal] += 1
            is_start = literal in starts
            if is_start and self._is_worn:
                self._forget_shapes()
                counts, of_literal = self._counts, self._of_literal
            self._is_worn |= is_severe
            is_telling = is_severe and (is_new or left > LIKE_SEVERE_LINES - FRESH)
            before = BEFORE_SEVERE if is_telling else BEFORE
            first = self._beginning(block, done, start, before)
            if first == 0 and done == 0:
                self._take_before(before, count(end_mark, 0, start))
            number += count(end_mark, counted_to, first)
            counted_to = first
            after = AFTER_START if is_start else AFTER_SEVERE if is_telling else AFTER
            done = self._take(block, first, end, after, number, is_new)
            last_end = max(last_end, done if after == 0 else end)
        if len(counts) > MAX_SHAPES:
            self._forget_shapes()
        if len(severe) > MAX_SHAPES:
            severe.clear()
        if len(self._patterns) > len(self._folded_of) and self._folded >= self._learn_at:
            self._learn_at = self._folded + WORTH_LEARNING
            self._automaton = _automaton(self._patterns)
            self._folded_of.extend([0] * (len(self._patterns) - len(self._folded_of)))
        self._next_number = number + count(end_mark, counted_to)
        self._remember_end(block, done)

    def _learn(self, text: bytes, literal: bytes) -> None:
        """Know the words that follow a literal in lines that are only repeated: a hit there is not looked at again."""
        found = _WORDS.match(text)
        longer = found.group() if found is not None else b""
        is_new = len(longer) > len(literal) + 2 and longer not in self._patterns[self._worth :]
        if is_new and len(self._patterns) < self._worth + MOST_DULL:
            self._patterns.append(longer)

    def _forget_shapes(self) -> None:
        self._counts = {}
        self._of_literal = [0] * len(self._of_literal)
        self._is_worn = False

    def _take_owed(self, block: bytes) -> int:
        """What still belongs to the last line of interest of the block before, or to the head of the log."""
        if self._head_left > 0:
            if self._head_left >= len(block):
                end = len(block)
            else:
                cut = block.find(self._separator, self._head_left)
                end = len(block) if cut < 0 else cut + len(self._separator)
            self._head_left -= end
            self._shelve(block[:end], self._next_number)
            return end
        if not self._after:
            return 0
        return self._take(block, 0, 0, self._after - 1, self._next_number)

    def _take(self, block: bytes, first: int, end: int, after: int, number: int, is_new: bool = False) -> int:
        """Keep ``block[first:end]`` and ``after`` lines more; where the kept part ends. What the block lacks is owed."""
        width = len(self._separator)
        taken, stop = -1, end
        if first > end:  # some of it was kept already, for a line before
            taken, stop = block.count(self._separator, end, first) - 1, first
        while taken < after and stop < len(block):
            following = block.find(self._separator, stop)
            stop = len(block) if following < 0 else following + width
            taken += 1
        self._after = max(0, after - taken) if stop == len(block) else 0
        if stop <= first:  # a line that was kept already, for what stands before it
            return first
        self._shelve(block[first:stop], number, is_new)
        return stop

    def _shelve(self, part: bytes, number: int, is_new: bool = False) -> None:
        if not part:
            return
        width = len(self._separator)
        lines = (part[:-width] if part.endswith(self._separator) else part).split(self._separator)
        for at, line in enumerate(lines, number):
            self._kept.add(at, _shortened(line), is_new)

    def _beginning(self, block: bytes, done: int, start: int, lines: int) -> int:
        """Where the ``lines`` lines before ``start`` begin, not before ``done``."""
        first = start
        for _ in range(lines):
            if first <= done:
                return done
            found = block.rfind(self._separator, done, max(done, first - len(self._separator)))
            first = done if found < 0 else found + len(self._separator)
        return max(first, done)

    def _take_before(self, lines: int, own: int) -> None:
        """The lines before the first one of a block stand at the end of the block before."""
        for number, line in self._before[len(self._before) - max(0, lines - own) :] if lines > own else ():
            self._kept.add(number, line, False)

    def _remember_end(self, block: bytes, done: int) -> None:
        self._recent.append((self._next_number, block))
        self._recent_size += len(block)
        while len(self._recent) > 1 and self._recent_size - len(self._recent[0][1]) >= TAIL:
            self._recent_size -= len(self._recent.popleft()[1])
        begin = self._beginning(block, done, len(block), BEFORE_SEVERE)
        width = len(self._separator)
        part = block[begin:]
        lines = (part[:-width] if part.endswith(self._separator) else part).split(self._separator) if part else []
        first = self._next_number - len(lines)
        self._before = [(at, _shortened(line)) for at, line in enumerate(lines, first)]

    def sifted(self) -> Sifted:
        """All that was kept, in the order of the log."""
        kept = self._kept.lines()
        left = TAIL
        for next_number, block in reversed(self._recent):
            begin = block.find(self._separator, max(0, len(block) - left)) if left < len(block) else 0
            part = block[begin if begin == 0 else begin + len(self._separator) :]
            width = len(self._separator)
            lines = (part[:-width] if part.endswith(self._separator) else part).split(self._separator) if part else []
            for at, line in enumerate(lines, next_number - len(lines)):
                kept.setdefault(at, _shortened(line))
            left -= len(block)
            if left <= 0:
                break
        numbers = sorted(kept)
        total = self._next_number - 1
        return Sifted(
            tuple(kept[number] for number in numbers),
            tuple(numbers),
            total,
            self.total_bytes,
            self._notes(len(numbers), total),
        )

    def _notes(self, kept: int, total: int) -> tuple[str, ...]:
        what = "lines" if self._separator == b"\n" else "records"
        notes = [
            f"{self.total_bytes >> 20} MiB, {total} {what}: searched whole, {kept} {what} read closely (those that can matter, what stands around them, both ends)"
        ]
        if self._folded:
            notes.append(f"{self._folded} {what} repeat others in all but their numbers and were not read again")
        if self._kept.dropped:
            notes.append(
                f"{self._kept.dropped} {what} in the middle, of kinds seen before and after, were more than can be kept"
            )
        return tuple(notes)


class _Shelf:
    """Kept lines under three budgets: the first ones, the last ones, and from between the first of each kind."""

    def __init__(self) -> None:
        self._early: list[tuple[int, bytes]] = []
        self._late: deque[tuple[int, bytes, bool]] = deque()
        self._firsts: list[tuple[int, bytes]] = []
        self._early_left, self._late_left, self._firsts_left = EARLY, LATE, FIRSTS
        self.dropped = 0

    def add(self, number: int, line: bytes, is_new: bool) -> None:
        cost = len(line) + LINE_COST
        if self._early_left > 0:
            self._early_left -= cost
            self._early.append((number, line))
            return
        self._late.append((number, line, is_new))
        self._late_left -= cost
        while self._late_left < 0:
            old_number, old, was_new = self._late.popleft()
            self._late_left += len(old) + LINE_COST
            if was_new and self._firsts_left > 0:
                self._firsts_left -= len(old) + LINE_COST
                self._firsts.append((old_number, old))
            else:
                self.dropped += 1

    def lines(self) -> dict[int, bytes]:
        kept = dict(self._early)
        kept.update(self._firsts)
        kept.update((number, line) for number, line, _ in self._late)
        return kept


def _fewest(literals: set[bytes]) -> list[bytes]:
    """``literals`` without those that hold another one: where they stand, that stands too. A small automaton stays in
    the processor's cache."""
    import ahocorasick_rs

    ordered = sorted(literals)
    automaton = ahocorasick_rs.BytesAhoCorasick(ordered)
    return [
        literal
        for literal in ordered
        if all(
            end - begin == len(literal)
            for _, begin, end in automaton.find_matches_as_indexes(literal, overlapping=True)
        )
    ]


def _automaton(patterns: list[bytes]) -> ahocorasick_rs.BytesAhoCorasick:
    import ahocorasick_rs

    return ahocorasick_rs.BytesAhoCorasick(
        patterns,
        matchkind=ahocorasick_rs.MatchKind.LeftmostLongest,
        implementation=ahocorasick_rs.Implementation.DFA,
    )


def _variants(literal: str) -> Iterator[bytes]:
    """A literal as it stands in a log, and as it stands inside a JSON string."""
    plain = literal.lower()
    yield plain.encode("utf-8")
    if '"' in plain or "\\" in plain:
        yield plain.replace("\\", "\\\\").replace('"', '\\"').encode("utf-8")
