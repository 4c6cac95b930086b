"""Trees as they come: newer syntax, broken and huge files, links in circles, texts built to exhaust a parser."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.source.asking import package, traced_in

from gpuwhy.source.cache import Cache
from gpuwhy.source.facts import encoded, facts_of, read
from gpuwhy.source.parsing import MAX_PARSED, decoded, parse
from gpuwhy.source.roots import FolderRoot, UnreadableError, packages_in
from gpuwhy.source.tracing import Question, trace

GOOD = 'def f(a):\n    if a:\n        raise ValueError("no")\n'
BROKEN = {
    "newer syntax": "def g[T](x: T):\n    return x\n\n" + GOOD + "\ndef h(:\n    pass\n",
    "half a file": GOOD + "\ndef g(a):\n    return [1, 2\n",
    "a merge conflict": GOOD + "\n<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> other\n",
    "tabs and blanks": GOOD + "\ndef g():\n\tif 1:\n        return 2\n",
    "no Python": GOOD + "\nthis is $ not % python\n",
    "a text that does not end": GOOD + '\nx = """never\n',
    "python 2": GOOD + "\nprint 'hello'\nexec 'x'\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_the_readable_part_is_traced_and_the_rest_is_named(text: str) -> None:
    answer = traced_in({"m.py": text}, Question(symbol="pkg.m:f"))
    assert answer.guard is not None, answer.problem
    assert [each.text for each in answer.guard.requires] == ["a"]
    assert answer.guard.spot.line == text[: text.index("raise ValueError")].count("\n") + 1
    assert answer.scope.packages[0].not_understood


HOSTILE = {
    "brackets": "(" * 50_000,
    "closed brackets": "x = " + "[" * 3000 + "]" * 3000,
    "signs": "x = " + "-" * 100_000 + "1",
    "attributes": "x" + ".a" * 50_000,
    "calls": "f" + "()" * 50_000,
    "sums": "x = " + " + ".join(["1"] * 20_000),
    "lambdas": "x = " + "lambda: " * 5000 + "1",
    "nested blocks": "".join(" " * depth + "if 1:\n" for depth in range(200)) + " " * 200 + "pass",
    "nested functions": "".join(" " * depth + "def f():\n" for depth in range(90)) + " " * 90 + "pass",
    "null bytes": "x = 1\0\n",
    "lone surrogates": "x = '\ud800'",
    "no new line, form feeds": "\f\fdef f():\f\n\f    return 1\f",
    "only a backslash": "\\",
    "comparisons": "x = " + " < ".join("a" * 3000),
    "else ifs": "if a:\n pass\n" + "elif a:\n pass\n" * 3000,
    "subscripts": "x" + "[0]" * 30_000,
    "formatted texts": "x = f'" + "{a}" * 5000 + "'",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_nothing_crashes_or_hangs(text: str) -> None:
    started = time.process_time()
    source = text.encode("utf-8", "surrogatepass")
    parsed = parse(decoded(source))
    facts = facts_of(parsed, decoded(source).split("\n"))
    assert read(encoded(facts)) == facts
    files = {"m.py": text.encode("utf-8", "replace").decode(), "n.py": "from pkg.m import x, f\ndef g():\n    if x or f():\n        raise ValueError\n"}  # fmt: skip
    answer = traced_in(files, Question(symbol="pkg.n:g"))
    assert answer.guard is not None
    assert time.process_time() - started < 20


NAMES = tuple(f"n{number}" for number in range(24))
_ALL = [(one, other) for one in NAMES for other in NAMES if one != other]
WEBS = {
    "names of a module": "import os\n" + "".join(f"{one} = {other}\n" for one, other in _ALL) + "def f():\n    if os.environ[n0]:\n        raise ValueError\n",
    "names of a function": "import os\ndef f(c):\n" + "".join(f"    if c: {one} = {other}\n" for one, other in _ALL) + "    if os.environ[n0]:\n        raise ValueError\n",
    "loggers": "".join(f"{one} = {other}\n" for one, other in _ALL) + "n5.setLevel(40)\ndef f():\n    try:\n        x = open('a')\n    except Exception as e:\n        n0.warning('cannot %s', e)\n        x = 0\n    if x:\n        raise ValueError\n",
    "attributes that are started": "import multiprocessing as mp\nclass A:\n    def __init__(self):\n" + "".join(f"        self.{one} = self.{other}\n" for one, other in _ALL) + "    def go(self):\n        mp.Process(target=self.n0).start()\ndef f(p):\n    if p.recv():\n        raise ValueError\n",
    "functions that are started": "import multiprocessing as mp\n" + "".join(f"def {one}(p, q=1):\n" + "".join(f"    {other}(p, q)\n" for other in NAMES) + "    mp.Process(target=p).start()\n" for one in NAMES) + "def f(p):\n    if p.recv():\n        raise ValueError\n",
    "functions that give each other back": "class B:\n    def put(self, name, v):\n        setattr(self, name, v)\n" + "".join(f"def {one}() -> B:\n" + "".join(f"    if c:\n        return {other}()\n" for other in NAMES) for one in NAMES) + "def f():\n    if n0().x.y:\n        raise ValueError\n",
    "functions that raise": "".join(f"def {one}():\n" + "".join(f"    {other}()\n" for other in NAMES) + "    raise ValueError('x')\n" for one in NAMES) + "def f():\n    x = 0\n    try:\n        x = n0()\n    except ValueError:\n        pass\n    if x:\n        raise KeyError\n",
    "functions that read variables": "import os\n" + "".join(f"def {one}(k, d=0):\n" + "".join(f"    {other}(k)\n" for other in NAMES) + "    return os.environ.get(k)\n" for one in NAMES) + "def f():\n    if n0('A_B'):\n        raise ValueError\n",
    "classes of each other": "".join(f"class {one}({', '.join(NAMES)}):\n    v = 1\n" for one in NAMES) + "def f(x: n0):\n    if x.v and x.w:\n        raise ValueError\n",
    "a long line of classes": "class C0: pass\n" + "".join(f"class C{number + 1}(C{number}):\n    def m(self):\n        return self.a{number}\n" for number in range(1500)) + "def f(x: C1500):\n    if x.m() and x.zzz:\n        raise ValueError\n",
    "thousands of branches": "def g(a):\n    if a == 0:\n        return 0\n" + "".join(f"    elif a == {number}:\n        return h{number}(a)\n" for number in range(1, 3000)) + "def f(a):\n    if g(a):\n        raise ValueError\n",
    "a table of itself": "T = {" + ",".join(f"'k{number}': T['k{number + 1}']" for number in range(3000)) + "}\nclass P:\n    def __getattr__(self, n):\n        return T[n]()\nP0 = P()\ndef f():\n    if P0.k1:\n        raise ValueError\n",
    "writers of a file": "class S:\n    def __init__(self):\n        self.a_path = 1\n" + "".join(f"    def w{number}(self):\n        self.a_path.write_text('x')\n        self.w{number + 1}()\n" for number in range(600)) + "def f(s: S):\n    if s.a_path:\n        raise ValueError\n",
}  # fmt: skip


@pytest.mark.parametrize("text", WEBS.values(), ids=WEBS.keys())
def test_what_refers_to_all_others_is_followed_within_bounds(text: str) -> None:
    started = time.process_time()
    answer = traced_in({"m.py": text}, Question(symbol="pkg.m:f"))
    assert answer.guard is not None, answer.problem
    assert time.process_time() - started < 20


def test_signals_whose_handlers_send_all_others() -> None:
    handlers = "".join(f"def {one}(s, fr):\n" + "".join(f"    os.kill(1, signal.SIG{other.upper()})\n" for other in NAMES) + f"signal.signal(signal.SIG{one.upper()}, {one})\n" for one in NAMES)  # fmt: skip
    started = time.process_time()
    assert traced_in({"m.py": "import os, signal\n" + handlers}, Question(place="pkg/m.py:4")).origin
    assert time.process_time() - started < 20


def survive() -> None:
    """Run by the test below in a process of its own, with little memory and a small stack."""
    for text in (*HOSTILE.values(), *BROKEN.values(), *WEBS.values()):
        source = text.encode("utf-8", "surrogatepass")
        facts_of(parse(decoded(source)), decoded(source).split("\n"))
        traced_in({"m.py": source.decode("utf-8", "replace")}, Question(symbol="pkg.m:f"))
    print("survived")


def test_little_memory_and_a_small_stack_are_enough() -> None:
    """A quarter of what a shell gives as stack, and a fifth of a gigabyte: no crash of the interpreter, no lack of memory."""
    run = "from tests.source.test_robust import survive; survive()"
    limited = ["sh", "-c", 'ulimit -s 2048; ulimit -v 262144; exec "$@"', "sh", sys.executable, "-c", run]
    done = subprocess.run(limited, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert (done.returncode, done.stdout.strip()) == (0, "survived"), done.stderr[-2000:]


def test_where_the_parser_does_not_say_what_is_too_deep_the_other_blocks_are_kept() -> None:
    deep = (
        "@cached\n@other\ndef deep(a):\n    if a == 0:\n        return 0\n" + "    elif a:\n        return 1\n" * 3000
    )
    answer = traced_in({"m.py": GOOD + deep + "def g(a):\n    if a:\n        f(a)\n"}, Question(symbol="pkg.m:f"))
    assert answer.guard is not None
    (told,) = answer.scope.packages[0].not_understood
    first = GOOD.count("\n") + 1
    assert f"lines {first}-{first + deep.count(chr(10)) - 1}" in told


def test_a_generated_module_of_five_megabytes() -> None:
    table = (
        "TABLE = {\n" + "".join(f'    "key_{number}": ({number}, "{"x" * 60}"),\n' for number in range(60_000)) + "}\n"
    )
    assert len(table) > MAX_PARSED
    started = time.process_time()
    answer = traced_in({"m.py": table + GOOD}, Question(symbol="pkg.m:f"))
    assert answer.guard is not None
    assert time.process_time() - started < 10
    assert "long tables" in answer.scope.packages[0].not_understood[0]


def test_links_in_a_circle_and_out_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "site" / "pkg").mkdir(parents=True)
    (tmp_path / "outside.py").write_text("SECRET = 1\n")
    (tmp_path / "site" / "pkg" / "m.py").write_text(GOOD)
    os.symlink("..", tmp_path / "site" / "pkg" / "circle")
    os.symlink(tmp_path / "outside.py", tmp_path / "site" / "pkg" / "out.py")
    os.symlink("m.py", tmp_path / "site" / "pkg" / "inside.py")
    os.symlink("lost", tmp_path / "site" / "pkg" / "broken.py")
    root = FolderRoot(tmp_path / "site", "pkg")
    assert [file.path for file in root.files()] == ["pkg/inside.py", "pkg/m.py"]
    assert sorted(each.partition(":")[0] for each in root.left_out) == ["pkg/broken.py", "pkg/circle", "pkg/out.py"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    os.mkfifo(tmp_path / "pkg" / "pipe.py")
    root = FolderRoot(tmp_path, "pkg")
    assert root.files() == ()
    assert root.left_out == ("pkg/pipe.py: no plain file",)


def test_a_file_that_vanished(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "m.py").write_text(GOOD)
    root = FolderRoot(tmp_path, "pkg")
    assert len(root.files()) == 1
    (tmp_path / "pkg" / "m.py").unlink()
    with pytest.raises(UnreadableError):
        root.read("pkg/m.py")
    answer = trace({"pkg": root}, Question(place="pkg/m.py:3"))
    assert answer.problem


def test_names_that_shadow_the_standard_library() -> None:
    files = {"os.py": "environ = {}\n", "m.py": "from pkg import os\nimport os as real\ndef f():\n    if os.environ.get('A') or real.environ.get('B'):\n        raise ValueError\n"}  # fmt: skip
    answer = traced_in(files, Question(symbol="pkg.m:f"))
    assert [each.name for each in answer.switches if each.kind == "environment"] == ["B"]


def test_modules_that_import_from_each_other_in_a_circle() -> None:
    files = {"a.py": "from pkg.b import x\nfrom pkg.b import *\n", "b.py": "from pkg.a import x\nfrom pkg.a import *\n", "m.py": "from pkg.a import x, y\ndef f():\n    if x or y:\n        raise ValueError\n"}  # fmt: skip
    assert traced_in(files, Question(symbol="pkg.m:f")).guard is not None


def test_classes_and_functions_that_go_round() -> None:
    files = {"m.py": "class A(B):\n    x = property(lambda self: self.x)\nclass B(A):\n    def y(self):\n        return self.y()\ndef g():\n    return g()\ndef f(a: 'A'):\n    if a.x or a.y() or g():\n        raise ValueError\n"}  # fmt: skip
    assert traced_in(files, Question(symbol="pkg.m:f")).guard is not None


def test_an_answer_with_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.write_text("a file where the folder should be")
    answer = trace(package({"m.py": GOOD}), Question(symbol="pkg.m:f"), Cache(folder))
    assert answer.guard is not None


def test_a_cache_whose_content_was_damaged(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    question = Question(symbol="pkg.m:f")
    first = trace(package({"m.py": GOOD}), question, cache)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:7])
    assert trace(package({"m.py": GOOD}), question, Cache(tmp_path)) == first


def test_the_cache_saves_the_work(tmp_path: Path) -> None:
    (tmp_path / "site" / "pkg").mkdir(parents=True)
    (tmp_path / "site" / "pkg" / "m.py").write_text(GOOD)
    question = Question(symbol="pkg.m:f")
    cold = trace(packages_in(tmp_path / "site"), question, Cache(tmp_path / "cache"))
    kept = {file: file.stat().st_mtime_ns for file in (tmp_path / "cache").rglob("*") if file.is_file()}
    assert kept
    assert trace(packages_in(tmp_path / "site"), question, Cache(tmp_path / "cache")) == cold
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "cache").rglob("*") if file.is_file()} == kept
    (tmp_path / "site" / "pkg" / "m.py").write_text(GOOD.replace("if a", "if not a"))
    changed = trace(packages_in(tmp_path / "site"), question, Cache(tmp_path / "cache"))
    assert changed.guard is not None
    assert [each.text for each in changed.guard.requires] == ["not a"]
