"""Environment variables through wrappers, descriptors and tables; reads that are not there; names that moved."""

from __future__ import annotations

import textwrap

import pytest
from tests.source.asking import cache, opened, package, roots, traced_in
from tests.source.reads import LISTED, measured, places

from gpuwhy.source.absence import reads_of
from gpuwhy.source.environment import Environment
from gpuwhy.source.moved import missing_symbol, where_is
from gpuwhy.source.resolving import Resolver
from gpuwhy.source.tracing import Question

ENGINE_LIKE = {
    "envs.py": """
        import os
        def with_choices(name, default, choices):
            def get():
                value = os.getenv(name, default)
                if value not in choices:
                    raise ValueError(name)
                return value
            return get
        TABLE = {"A_DIRECT": lambda: os.environ.get("A_DIRECT", "1") == "1", "A_CHOICE": with_choices("A_CHOICE", "x", ["x", "y"])}
        def __getattr__(name):
            if name in TABLE:
                return TABLE[name]()
            raise AttributeError(name)
    """,
    "environ.py": """
        import os
        class Field:
            def __init__(self, default):
                self.default = default
            def __set_name__(self, owner, name):
                self.name = name
            def get(self):
                return os.environ.get(self.name, self.default)
        class Flag(Field):
            def get(self):
                return super().get() in ("1", "true")
        class Envs:
            B_FLAG = Flag("0")
        envs = Envs()
    """,
    "wrapped.py": """
        from os import getenv as look
        import os as system
        PREFIX = "C_"
        def flag(name, default="false"):
            return look(name, default).lower() in ("1", "true")
        def outer(name):
            return flag(name)
        for key in ("C_LOOP_ONE", "C_LOOP_TWO"):
            system.environ.setdefault(key, "1")
        def first(*names, default=None):
            for each in names:
                if look(each):
                    return look(each)
            return default
        def any_of(names):
            def get():
                return any(flag(name) for name in names)
            return get
        def listed():
            several: tuple[str, ...] = ("D_LISTED", "D_OTHER")
            return first(*several)
    """,
    "m.py": """
        from pkg import envs
        from pkg.environ import envs as fields
        from pkg.wrapped import any_of, first, flag, listed, outer, PREFIX
        def f(name):
            if envs.A_DIRECT and envs.A_CHOICE == "y" and fields.B_FLAG.get() and flag(PREFIX + "ONE") and outer("C_TWO"):
                raise ValueError
        def g():
            if first("D_ONE", "D_TWO", default=1) and any_of(["D_THREE", "D_FOUR"])() and listed():
                raise ValueError
    """,
}  # fmt: skip


def test_every_way_to_read_a_variable_reaches_the_guard() -> None:
    answer = traced_in(ENGINE_LIKE, Question(symbol="pkg.m:f"))
    assert {each.name for each in answer.switches if each.kind == "environment"} == {"A_DIRECT", "A_CHOICE", "B_FLAG", "C_ONE", "C_TWO"}  # fmt: skip


def test_a_wrapper_that_is_given_several_names() -> None:
    answer = traced_in(ENGINE_LIKE, Question(symbol="pkg.m:g"))
    names = {each.name for each in answer.switches if each.kind == "environment"}
    assert names == {"D_ONE", "D_TWO", "D_THREE", "D_FOUR", "D_LISTED", "D_OTHER"}


def test_the_catalogue_of_a_tree() -> None:
    touches = Environment(Resolver(opened(ENGINE_LIKE))).catalogue()
    found = {name: touch.kind for touch in touches for name in touch.names}
    several = {"D_ONE", "D_TWO", "D_THREE", "D_FOUR", "D_LISTED", "D_OTHER"}
    assert found.keys() == {"A_DIRECT", "A_CHOICE", "B_FLAG", "C_ONE", "C_TWO", "C_LOOP_ONE", "C_LOOP_TWO", *several}
    assert found["B_FLAG"] == "declared"
    assert found["C_LOOP_ONE"] == "setdefault"


def test_absence_says_what_limits_it() -> None:
    files = {
        "__init__.py": "from pkg import used\n",
        "used.py": "import os, importlib\ndef f(key):\n    return os.environ[key.strip()]\nCOPY = os.environ.copy()\nimportlib.import_module('x')\n",
        "unused.py": "import os\nA = os.environ.get('SECRET_SWITCH')\n",
        "said.py": "# SECRET_SWITCH is not read\n",
    }
    found = reads_of(package(files), "SECRET_SWITCH", "pkg")
    assert found.is_absent
    assert (found.files, found.reachable) == (4, 2)
    assert {(each.kind, each.spot.path, each.is_reachable) for each in found.occurrences} == {("read", "pkg/unused.py", False), ("other", "pkg/said.py", False)}  # fmt: skip
    assert [(each.spot.path, each.spot.line) for each in found.dynamic_reads] == [("pkg/used.py", 3)]
    assert len(found.whole_environment) == 1
    told = " ".join(found.caveats)
    for word in ("does not import", "not a constant", "whole environment", "at run time", "only Python files"):
        assert word in told


def test_a_read_is_no_absence() -> None:
    assert not reads_of(package({"__init__.py": "import os\nX = os.getenv('GIVEN')\n"}), "GIVEN", "pkg").is_absent


def test_flashinfer_does_not_read_the_variable_of_torch() -> None:
    found = reads_of(roots("flashinfer-python==0.6.18.post1"), "TORCH_CUDA_ARCH_LIST", "flashinfer", cache())
    assert found.is_absent
    assert found.reachable == 503
    reads = [each for each in found.occurrences if each.kind == "read"]
    assert [(each.spot.path.rpartition("/")[2], each.is_reachable) for each in reads] == [("pytorch.py", False)]
    # the one key that is no constant where it is read is one of a list of constants where it comes from
    assert not [each for each in found.dynamic_reads if each.is_reachable]


@pytest.mark.parametrize(("release", "package", "listed"), LISTED, ids=[listed for _, _, listed in LISTED])
def test_the_reads_of_a_release_against_the_list_of_another_scanner(release: str, package: str, listed: str) -> None:
    found = measured(release, package, listed)
    assert found.recall >= 0.97
    assert found.precision >= 0.98
    # what is missed is exactly what the list has wrong
    assert [(each.name, each.path, each.line) for each in found.missed] == [(each.name, each.path, each.line) for each in sorted(places(f"{listed}.wrong.txt"))]  # fmt: skip
    # a placeholder of a base class, which every platform replaces
    assert {each.name for each in found.doubtful} <= {"VLLM_DEVICE_CONTROL_ENV_VAR_PLACEHOLDER"}


def test_a_name_that_moved() -> None:
    new = package({"__init__.py": "", "a.py": "def other(): pass\n", "deep/b.py": "import sys\nif sys.version_info > (3, 9):\n    def wanted(): pass\n", "deep/__init__.py": ""})  # fmt: skip
    old = package({"a.py": "def wanted(): pass\n"})
    found = where_is(new, "pkg.a", "wanted", {"0.9": old})
    assert found.is_module_there
    assert not found.here
    assert [(each.dotted, each.kind) for each in found.elsewhere] == [("pkg.deep.b.wanted", "function")]
    assert [each.text for each in found.elsewhere[0].requires] == ["sys.version_info > (3, 9)"]
    assert [each.dotted for each in found.earlier] == ["0.9:pkg.a.wanted"]


def test_a_name_that_is_handed_on_is_there() -> None:
    there = package(
        {
            "__init__.py": "from .common import *\nif sys.platform == 'linux':\n    from .linux import *\n",
            "common.py": "def wanted(): pass\ndef _private(): pass\ndef listed(): pass\n",
            "linux.py": "__all__ = ['listed']\ndef listed(): pass\ndef hidden(): pass\n",
            "lazy.py": "_TABLE = {'late': lambda: 1}\ndef __getattr__(name):\n    if name in _TABLE:\n        return _TABLE[name]()\n    if name == 'later':\n        return 2\n    raise AttributeError(name)\n",
            "one.py": "from pkg.two import *\n",
            "two.py": "from pkg.one import *\n",
        }
    )
    (found,) = where_is(there, "pkg", "wanted").here
    assert (found.dotted, found.kind, found.spot.path) == ("pkg.wanted", "function", "pkg/common.py")
    assert not where_is(there, "pkg", "_private").here
    assert not where_is(there, "pkg", "hidden").here
    assert [[each.text for each in found.requires] for found in where_is(there, "pkg", "listed").here] == [[], ["sys.platform == 'linux'"]]  # fmt: skip
    assert [found.kind for name in ("late", "later") for found in where_is(there, "pkg.lazy", name).here] == ["made by __getattr__"] * 2  # fmt: skip
    assert not where_is(there, "pkg.lazy", "never").here
    assert [found.kind for found in where_is(there, "pkg", "lazy").here] == ["module"]
    assert not where_is(there, "pkg.one", "wanted").here


def test_a_name_that_no_text_spells_is_not_called_absent() -> None:
    there = package(
        {
            "__init__.py": "import typing\nif typing.TYPE_CHECKING:\n    from pkg.llm import LLM\nfrom pkg._C import *\nTABLE = {'LLM': '.llm:LLM'}\ndef __getattr__(name):\n    return TABLE[name].split(':')\n",
            "llm.py": "class LLM: pass\nfor name in dir(other):\n    globals()[name] = 1\n",
            "types.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.llm import LLM\n",
        }
    )
    assert [(each.kind, each.spot.line) for each in where_is(there, "pkg", "LLM").here] == [("made by __getattr__", 5)]
    assert where_is(there, "pkg", "float8").open_ends == (
        "pkg._C, whose names pkg takes over by import *, was not searched",
        "pkg has a __getattr__ that makes names when they are asked for",
    )
    assert where_is(there, "pkg.llm", "x").open_ends == ("pkg.llm makes names at run time by globals()",)
    only_types = where_is(there, "pkg.types", "LLM")
    assert (only_types.here, only_types.open_ends) == ((), ())


def test_a_name_that_was_renamed_and_a_module_that_is_gone() -> None:
    new = package({"a.py": "def sample_top_k(): pass\n", "kernels.py": ""})
    assert where_is(new, "pkg.a", "sample_topk").nearest == ("sample_top_k",)
    gone = where_is(new, "pkg.kernel", "")
    assert not gone.is_module_there
    assert gone.nearest == ("pkg.kernels",)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("cannot import name 'a' from 'p.q' (/x/p/q.py)", ("p.q", "a")),
        ("cannot import name 'a' from partially initialized module 'p.q' (most likely due to a circular import)", ("p.q", "a")),
        ("module 'p.q' has no attribute 'a'", ("p.q", "a")),
        ("No module named 'p.q'", ("p.q", "")),
        ("something else", None),
    ],
)  # fmt: skip
def test_what_an_error_says_is_missing(message: str, expected: tuple[str, str] | None) -> None:
    assert missing_symbol(message) == expected


def test_flags_of_argparse_click_and_annotated_fields() -> None:
    files = {"m.py": textwrap.dedent("""
        import argparse, click, os
        from dataclasses import dataclass
        from typing import Annotated
        CHOICES = ["one", "two"]
        @dataclass
        class ServerArgs:
            kind: str = "one"
            level: Annotated[int, Arg(choices=["1", "2"])] = 1
            hidden: Annotated[int, Arg(no_cli=True)] = 3
        def add(parser: argparse.ArgumentParser):
            CHOICES.append("three")
            parser.add_argument("--the-kind", dest="kind", choices=CHOICES, default=ServerArgs.kind)
        def f(args: ServerArgs):
            if args.kind == "two" and args.level > 1 and args.hidden:
                raise ValueError
    """)}  # fmt: skip
    answer = traced_in(files, Question(symbol="pkg.m:f"))
    flags = {each.name: (each.default, each.accepts) for each in answer.switches if each.kind == "flag"}
    assert flags == {"--the-kind": ("one", ("one", "two", "three")), "--level": ("1", ("1", "2"))}
    assert "ServerArgs.hidden" in {each.name for each in answer.switches if each.kind == "field"}


def test_files_that_come_one_by_one_from_another_machine() -> None:
    from gpuwhy.model.event import Frame, RaisedException
    from gpuwhy.source.roots import FedRoot
    from gpuwhy.source.tracing import trace

    there = roots("flashinfer-python==0.6.18.post1")["flashinfer"]
    root = FedRoot("flashinfer", "0.6.18.post1", [file.path for file in there.files()])
    code = 'raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")'
    frame = Frame("/opt/x/site-packages/flashinfer/jit/core.py", 109, "check_cuda_arch", code)
    question = Question(
        raised=RaisedException("RuntimeError", "FlashInfer requires GPUs with sm75 or higher", (frame,))
    )
    fetched: list[str] = []
    for _ in range(12):
        answer = trace({"flashinfer": root}, question)
        if not answer.scope.wanted:
            break
        fetched += answer.scope.wanted
        root.feed({path: there.read(path) for path in answer.scope.wanted})
    assert {each.name for each in answer.switches if each.kind == "environment"} >= {
        "CUDA_HOME",
        "FLASHINFER_CUDA_ARCH_LIST",
    }
    assert any("SM 12.x requires" in hidden.message.shown for swallow in answer.swallowed for hidden in swallow.hides)
    assert not answer.scope.packages[0].is_complete
    assert len(fetched) < 30


def test_packages_that_were_not_searched_are_counted_the_telling_ones_first() -> None:
    others = "".join(f"import a{number}\n" for number in range(20))
    calls = "".join(f"a{number}.run()\n" for number in range(20))
    there = package({"__init__.py": f"{others}import torch\n{calls}torch.run(os.environ)\n"})
    (caveat,) = [each for each in reads_of(there, "X", "pkg").caveats if "were not searched" in each]
    assert "searched: torch, a0, a1, " in caveat
    assert caveat.endswith(" and 9 more")
