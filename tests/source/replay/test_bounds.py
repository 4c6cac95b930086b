"""Source that is built to exhaust its interpreter ends soon, and the replay says why."""

from __future__ import annotations

import textwrap
import time

import pytest
from tests.source.replay.texts import Texts

from gpuwhy.source.replay import NotModelled, replay

HOSTILE = {
    "text that doubles": "s = 'x'\n    while True: s += s",
    "list that doubles": "s = [0]\n    while True: s.extend(s)",
    "hoard of lists": "l = []\n    while True: l.append([0] * 90000)",
    "hoard of texts": "d = {}\n    while True: d[len(d)] = 'x' * 100000",
    "shared parts compared": "t = u = ()\n    for i in range(60): t = (t, t); u = (u, u)\n    return t == (u, 1)",
    "shared parts hashed": "t = (1,)\n    for i in range(60): t = (t, t)\n    return {t}",
    "nested parts hashed": "t = ()\n    for i in range(9000): t = (t,)\n    return {t: 1}",
    "nested parts in dict": "t = ()\n    for i in range(9000): t = (t,)\n    return dict([(t, 1)])",
    "power": "return 10 ** 10 ** 8",
    "shift": "return 1 << 10 ** 9",
    "product": "x = 3\n    while True: x = x * x",
    "repeated text": "return 'x' * 10 ** 10",
    "long range": "return list(range(10 ** 10))",
    "search in a range": "return 5.5 in range(10 ** 10)",
    "bytes": "return bytes(10 ** 10)",
    "wide %": "return '%1000000000d' % 1",
    "wide f": "return f'{1:1000000000}'",
    "wide format": "return '{:>1000000000}'.format(1)",
    "computed width": "return '%*d' % (10 ** 9, 1)",
    "wide ljust": "return 'a'.ljust(10 ** 10)",
    "long replace": "return ('a' * 100000).replace('a', 'b' * 100000)",
    "long join": "return ('x' * 100000).join(['y'] * 100000)",
    "long repr": "return repr(['x' * 100000] * 100000)",
    "repeats in repeats": "import re; return re.match('(a+)+$', 'a' * 40 + 'b')",
    "choices in repeats": "import re; return re.match('(?:a|a)*b', 'a' * 40)",
    "many optional": "import re; return re.match('a?' * 30 + 'a' * 30, 'a' * 29 + 'b')",
    "compiled": "import re; return re.compile('(a*)*b').match('a' * 40)",
    "many searches": "import re\n    while True: re.search('a.*b.*c', 'ab' * 100)",
    "own recursion": "return f()",
    "endless counting": "import itertools; return list(itertools.count())",
    "slow search": "l = list(range(90000))\n    while True: -1 in l",
    "reduce": "import functools; return functools.reduce(lambda a, b: a + a, range(100), 'x')",
    "itself inside": "l = []; l.append(l); m = []; m.append(m); return l == m",
    "endless hash": "class A:\n        def __hash__(self):\n            while True: pass\n    return {A()}",
    "endless equality": "class A:\n        def __eq__(self, o): return self == o\n    return A() == A()",
    "endless attributes": "class A:\n        def __getattr__(self, n): return getattr(self, n + 'x')\n    return A().q",
    "chain": f"return {'+'.join(['1'] * 900)}",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_code_ends_soon(body: str) -> None:
    started = time.process_time()
    outcome = replay(Texts(m=f"def f():\n    {body}\n"), "m:f", {}).outcome
    assert isinstance(outcome, NotModelled), outcome
    assert time.process_time() - started < 8


@pytest.mark.parametrize(
    "text", ["return 5\n", "break\n", "def f():\n    break\n", "raise\n", "del f\n", "x: int\nx\n"]
)
def test_misplaced_statements_do_not_break_the_replay(text: str) -> None:
    assert replay(Texts(m=textwrap.dedent(text)), "m:f()", {}).outcome


def test_the_trail_of_a_long_replay_is_cut_and_says_so() -> None:
    text = "import logging\ndef f():\n    for i in range(5000): logging.info('%d', i)\n"
    result = replay(Texts(m=text), "m:f", {})
    assert result.trail_cut
    assert len(result.trail) == 2000
