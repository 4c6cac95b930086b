"""The answers of a collector that many nodes run at once, as lines which every engine carries unharmed.

    gpuwhy:eNqqVipLLSrOzM9TslJQKkvMKU1VqgUAAAD//w==

One zlib stream, flushed after each answer, in Base64, cut into short lines: what srun marks by task, ClusterShell splits,
a login script precedes or a lost connection cuts is still read up to there.
"""

import base64
import zlib
from typing import List

MARK = b"gpuwhy:"

LINE = 720
"""Characters of Base64 in a line, a multiple of four: Slurm carries lines of at most 1024 bytes whole."""

LONG_LINE = 60000
"""Where lines of any length come through: ClusterShell spends its time on every line, not on every byte."""


class Framer(object):
    """Packs answers in the order in which they are given."""

    def __init__(self, line: int = LINE) -> None:
        self._stream = zlib.compressobj(6)
        self._line = max(4, line // 4 * 4)

    def pack(self, answer: bytes) -> bytes:
        """The lines that bring ``answer`` home, whatever comes after them."""
        return self._lines(self._stream.compress(answer) + self._stream.flush(zlib.Z_SYNC_FLUSH))

    def finish(self) -> bytes:
        """The lines that say that nothing was lost."""
        return self._lines(self._stream.flush(zlib.Z_FINISH))

    def _lines(self, packed: bytes) -> bytes:
        text = base64.b64encode(packed)
        starts = range(0, len(text), self._line)
        lines: List[bytes] = [MARK + text[at : at + self._line] + b"\n" for at in starts]
        return b"".join(lines)
