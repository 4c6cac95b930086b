"""What a replay says of small modules: facts in, outcome and trail out."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.source.replay.texts import Texts

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.source.replay import (
    Branch,
    FolderSource,
    NeedsFact,
    NotModelled,
    Place,
    Raised,
    Replay,
    Returned,
    replay,
)

COMPLETE = {"environment_complete": True}


def run(text: str, facts: dict[str, Any] | None = None, /, *, entry: str = "f", **more: str) -> Replay:
    texts = {name: textwrap.dedent(each) for name, each in {"m": text, **more}.items()}
    return replay(Texts(**texts), f"m:{entry}", facts or {})


def value(text: str, facts: dict[str, Any] | None = None, /, **more: str) -> str:
    outcome = run(text, facts, **more).outcome
    assert isinstance(outcome, Returned), outcome
    return outcome.value


def needed(text: str, facts: dict[str, Any] | None = None) -> str:
    outcome = run(text, facts).outcome
    assert isinstance(outcome, NeedsFact), outcome
    return outcome.key


def unknown(text: str, facts: dict[str, Any] | None = None) -> str:
    outcome = run(text, facts).outcome
    assert isinstance(outcome, NotModelled), outcome
    return outcome.what


VARIABLE = """
    import os
    def f():
        return os.environ.get("A", "unset")
"""


def test_a_variable_is_answered_by_its_fact() -> None:
    assert value(VARIABLE, {"env.A": "1"}) == "'1'"
    assert value(VARIABLE, {"env": {"A": "1"}}) == "'1'"
    assert value(VARIABLE, {"env.A": None}) == "'unset'"
    assert value(VARIABLE, {"env.A": ""}) == "''"


def test_a_variable_without_a_fact_is_needed_unless_all_are_known() -> None:
    assert needed(VARIABLE) == "env.A"
    assert value(VARIABLE, COMPLETE) == "'unset'"


def test_facts_of_a_case_are_taken_as_they_are() -> None:
    facts = Facts({"env.A": Fact("env.A", "2", Evidence("given", "facts.yaml"))})
    assert replay(Texts(m=textwrap.dedent(VARIABLE)), "m:f", facts).outcome == Returned("'2'")


def test_the_environment_that_the_code_writes_is_read_again() -> None:
    text = """
        import os
        os.environ.setdefault("A", "own")
        def f():
            os.environ["B"] = "x"
            return os.environ["A"], os.getenv("B"), "B" in os.environ
    """
    assert value(text, {"env.A": None}) == "('own', 'x', True)"


NVCC = """
    import subprocess
    def f():
        return subprocess.check_output(["/opt/cuda/bin/nvcc", "--version"], text=True).split("release ")[1][:4]
"""


@pytest.mark.parametrize(
    "facts",
    [
        {"cuda_toolkit": "12.8"},
        {"cuda_toolkit": "12.8", "cuda_home": "/opt/cuda"},
        {"other_toolkits./opt/cuda": "12.8", "cuda_toolkit": "12.4"},
        {"other_toolkits": {"/opt/cuda": "12.8"}},
        {"toolkit_resolved.m": "12.8", "cuda_toolkit": "12.4"},
        {"commands./opt/cuda/bin/nvcc --version": "tools, release 12.8, V12.8.93"},
    ],
)
def test_the_toolkit_in_a_folder_answers_for_its_nvcc(facts: dict[str, Any]) -> None:
    assert value(NVCC, facts) == "'12.8'"


def test_a_toolkit_that_is_absent_cannot_be_started() -> None:
    outcome = run(NVCC, {"cuda_toolkit": None}).outcome
    assert isinstance(outcome, Raised)
    assert (outcome.type, outcome.place) == ("FileNotFoundError", Place("m.py", 4, "f"))
    assert outcome.message == "[Errno 2] No such file or directory: '/opt/cuda/bin/nvcc'"


def test_the_version_of_one_toolkit_is_not_taken_for_another() -> None:
    facts = {"cuda_toolkit": "12.8", "cuda_home": "/usr/local/cuda"}
    assert needed(NVCC, facts) == "other_toolkits./opt/cuda"


def test_the_missing_fact_comes_with_the_command_that_gets_it() -> None:
    outcome = run(NVCC).outcome
    assert outcome == NeedsFact("cuda_toolkit", Place("m.py", 4, "f"), "/opt/cuda/bin/nvcc --version")


def test_other_commands_are_answered_in_full() -> None:
    text = """
        import subprocess
        def f():
            done = subprocess.run(["gcc", "-dumpversion"], capture_output=True)
            return done.returncode, done.stdout.decode().strip(), done.stderr
    """
    assert value(text, {"commands.gcc -dumpversion": "13\n"}) == "(0, '13', b'')"
    assert value(text, {"commands.gcc -dumpversion": {"returncode": 1, "stderr": "no"}}) == "(1, '', b'no')"
    assert needed(text) == "commands.gcc -dumpversion"


def test_the_program_on_the_path_and_files_are_answered() -> None:
    text = """
        import os, shutil
        from pathlib import Path
        def f():
            found = shutil.which("nvcc")
            return found, os.path.exists("/usr/local/cuda"), Path("/etc/x").exists()
    """
    facts = {"nvcc_path": "/opt/bin/nvcc", "files./usr/local/cuda": "directory", "files./etc/x": None}
    assert value(text, facts) == "('/opt/bin/nvcc', True, False)"
    assert needed(text, {"nvcc_path": None}) == "files./usr/local/cuda"


def test_the_content_of_a_file_is_answered() -> None:
    text = """
        def f():
            from pathlib import Path
            try:
                return Path("/etc/os").read_text()
            except OSError as error:
                return str(error)
    """
    assert value(text, {"files./etc/os": {"content": "Ubuntu"}}) == "'Ubuntu'"
    assert "No such file" in value(text, {"files./etc/os": None})
    assert needed(text, {"files./etc/os": "file"}).startswith("files./etc/os")


TORCH = """
    import torch
    def f():
        return [torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())], torch.version.cuda
"""


def test_gpus_and_versions_answer_for_torch() -> None:
    facts = {"gpus": ["0: B200 (10.0)", "1: RTX (sm_12.0)"], "torch_cuda": "12.9", "env.CUDA_VISIBLE_DEVICES": None}
    assert value(TORCH, facts) == "([(10, 0), (12, 0)], '12.9')"
    assert value(TORCH, {**facts, "env.CUDA_VISIBLE_DEVICES": "1"}) == "([(12, 0)], '12.9')"
    assert value(TORCH, {**facts, "env.CUDA_VISIBLE_DEVICES": ""}) == "([], '12.9')"


def test_what_torch_would_say_is_not_guessed() -> None:
    assert needed(TORCH) == "gpus"
    assert needed(TORCH, {"gpus": ["0: B200 (10.0)"]}) == "env.CUDA_VISIBLE_DEVICES"
    assert needed(TORCH, {"gpus": ["0: B200"], **COMPLETE}) == "cc"
    assert needed(TORCH, {"gpus": ["0: B200", "1: B200"], **COMPLETE}).startswith("gpus")
    assert needed(TORCH, {"gpus": ["0: B200 (10.0)"], **COMPLETE}) == "torch_cuda"
    assert needed("import torch\ndef f():\n    return torch.cuda.is_available() + 1\n") == (
        "external.torch.cuda.is_available()"
    )


def test_a_fact_wins_over_the_source_of_the_package() -> None:
    source = {"torch": "", "torch__version": "cuda = '11.8'\n"}
    assert (
        value("import torch\ndef f():\n    return torch.version.cuda\n", {"torch_cuda": "13.0"}, **source) == "'13.0'"
    )


def test_a_fact_may_state_an_exception_or_an_object_of_the_source() -> None:
    text = """
        import torch
        class Pair:
            def __init__(self, a): self.a = a
        def f():
            try:
                torch.cuda.init()
            except RuntimeError as error:
                return str(error), torch.pair().a
    """
    facts = {
        "external.torch.cuda.init": {"raises": "RuntimeError", "message": "no driver"},
        "external.torch.pair": {"expression": "m:Pair(5)"},
    }
    assert value(text, facts) == "('no driver', 5)"


def test_versions_of_packages_are_answered_and_compared_as_versions() -> None:
    text = """
        from importlib.metadata import PackageNotFoundError, version
        from packaging.version import Version, parse
        def f():
            try:
                return Version(version("flashinfer_python")) >= parse("0.6.12")
            except PackageNotFoundError as error:
                return str(error)
    """
    assert value(text, {"packages.flashinfer-python": "0.6.9"}) == "False"
    assert value(text, {"packages.flashinfer_python": "0.6.12.post1"}) == "True"
    assert "flashinfer_python" in value(text, {"packages.flashinfer-python": None})
    assert needed(text) == "packages.flashinfer_python"


SWALLOWED = """
    import logging
    logger = logging.getLogger(__name__)
    found = set()
    def look():
        raise RuntimeError("too old")
    try:
        found.add(look())
    except Exception as e:
        logger.warning("Failed: %s", e)
    def f():
        if not found:
            raise ValueError("nothing found")
"""


def test_the_trail_ties_the_swallowed_exception_to_its_line_and_to_the_guard() -> None:
    result = run(SWALLOWED)
    assert result.outcome == Raised("ValueError", "nothing found", Place("m.py", 13, "f"), (Place("m.py", 13, "f"),))
    (caught,) = result.caught()
    assert (caught.type, caught.message) == ("RuntimeError", "too old")
    assert (caught.raised_at, caught.place) == (Place("m.py", 6, "look"), Place("m.py", 9, "<module>"))
    (line,) = result.log_lines()
    assert (line.level, line.logger, line.message, line.place.line) == ("warning", "m", "Failed: too old", 10)
    assert Branch("not found", True, Place("m.py", 12, "f")) in result.trail
    assert result.modules == ("m",)


def test_facts_that_were_used_are_named() -> None:
    (used,) = run(VARIABLE, {"env.A": "1"}).facts_used()
    assert (used.what, used.key, used.value, used.place) == ("$A", "env.A", "'1'", Place("m.py", 4, "f"))


def test_an_exception_at_import_is_the_outcome() -> None:
    outcome = run("x = int('a')\ndef f():\n    return 1\n").outcome
    assert isinstance(outcome, Raised)
    assert outcome.place == Place("m.py", 1, "<module>")


def test_module_code_that_cannot_be_decided_is_passed_over_until_it_is_needed() -> None:
    text = """
        import torch
        dtype = torch.finfo(torch.float8).max
        limit = 3
        def f():
            return limit
        def g():
            return dtype + 1
    """
    result = run(text)
    assert result.outcome == Returned("3")
    assert any("external.torch.finfo" in step.what for step in result.assumed())
    needs = run(text, entry="g").outcome
    assert isinstance(needs, NeedsFact)
    assert needs.key.startswith("external.torch.finfo")
    assert needs.place.line == 3


def test_what_a_passed_over_statement_may_have_changed_is_unknown_too() -> None:
    text = """
        import other
        names = ["a"]
        other.register(names)
        def f():
            return names
    """
    assert needed(text).startswith("external.other.register")


def test_an_import_that_may_fail_decides_so_it_needs_a_fact() -> None:
    text = """
        try:
            import pynvml
            has = True
        except ImportError:
            has = False
        def f():
            return has
    """
    assert needed(text) == "modules.pynvml"
    assert value(text, {"modules.pynvml": True}) == "True"
    assert value(text, {"modules.pynvml": False}) == "False"
    assert value(text, {"packages.pynvml": None}) == "False"


def test_modules_of_the_package_are_followed_when_needed() -> None:
    result = run(
        "from m2 import limit, other\nimport m3\ndef f():\n    return limit() + 1\n",
        m2="from m3 import base\nother = 1\ndef limit():\n    return base\n",
        m3="base = 4\n",
    )
    assert result.outcome == Returned("5")
    assert result.modules == ("m", "m2", "m3")


def test_a_package_binds_its_submodule_unless_its_code_says_otherwise() -> None:
    files = {"p": "from p.a import x as a\n", "p__a": "x = 7\ny = 8\n", "p__b": "z = 9\n"}
    assert value("from p import a, b\ndef f():\n    return a, b.z\n", None, **files) == "(7, 9)"


def test_a_module_that_computes_its_attributes_is_asked() -> None:
    lazy = "import os\ntable = {'A': lambda: int(os.environ['A'])}\ndef __getattr__(name):\n    return table[name]()\n"
    assert value("import envs\ndef f():\n    return envs.A\n", {"env.A": "6"}, envs=lazy) == "6"


def test_a_name_that_a_module_lacks_is_an_import_error() -> None:
    text = "def f():\n    from p import missing\n"
    outcome = run(text, p="x = 1\n").outcome
    assert isinstance(outcome, Raised)
    assert outcome.type == "ImportError"


def test_a_circle_of_imports_is_not_decided() -> None:
    texts = {"p": "from q import y\nx = y\n", "q": "from p import x\ny = x\n"}
    assert isinstance(
        run("import p\ndef f():\n    return p.x\n", None, p=texts["p"], q=texts["q"]).outcome, NotModelled
    )


def test_a_cached_function_runs_once() -> None:
    text = """
        import functools, logging
        @functools.lru_cache(maxsize=None)
        def g(x):
            logging.info("asked %d", x)
            return x
        def f():
            return g(1), g(1), g(2)
    """
    assert [line.message for line in run(text).log_lines()] == ["asked 1", "asked 2"]


def test_arguments_and_call_expressions() -> None:
    source = Texts(m="def f(a, b=2):\n    return [a, b]\n")
    assert replay(source, "m:f", {}, arguments=["x"]).outcome == Returned("['x', 2]")
    assert replay(source, "m:f(1, b=3)", {}).outcome == Returned("[1, 3]")
    assert replay(source, "m:", {}).outcome == Returned("None")
    with pytest.raises(ValueError, match="not an expression"):
        replay(source, "m:f(", {})


def test_a_module_without_source_is_named() -> None:
    assert replay(Texts(), "m:f", {}).outcome == NotModelled("the source of m", Place("", 0))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("return eval('1')", "eval"),
        ("import os; return os.system('id')", "os.system"),
        ("yield 1", "generator"),
        ("return ().__class__.__bases__", "__bases__"),
        ("return '{0.__class__}'.format(1)", "attributes"),
        ("return open('/etc/passwd').read()", "open"),
        ("import sys; return sys.modules", "sys.modules"),
        ("import random; return random.random()", "random"),
        ("import time; return time.time()", "time.time"),
        ("return object()", "address"),
        ("return hash('a')", "hash"),
        ("return 257 is 257", "is between equal"),
    ],
)
def test_what_is_not_modelled_is_named(body: str, what: str) -> None:
    text = f"def f():\n    {body}\n"
    outcome = run(text).outcome
    if isinstance(outcome, Returned):
        # the value itself has no text, and none is made up
        assert outcome.value == "?"
        return
    assert isinstance(outcome, NotModelled), outcome
    assert what in outcome.what


def test_a_file_that_cannot_be_read_is_not_there(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("x = 1\n")
    site = tmp_path / "site"
    site.mkdir()
    (site / "broken.py").write_text("def f(:\n")
    (site / "link.py").symlink_to(outside)
    (site / "nested.py").write_text("x = " + "(" * 3000 + ")" * 3000)
    (site / "good.py").write_text("def f():\n    return __file__\n")
    source = FolderSource([site])
    assert [source.find(name) for name in ("broken", "link", "nested", "absent", "../x", "")] == [None] * 6
    assert replay(source, "good:f", {}).outcome == Returned(repr(str(site / "good.py")))


@pytest.mark.parametrize(
    "text",
    [
        "import functools\n@functools.cache\ndef g(): return 1\ndef f(): return g.cache_info().currsize",
        "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 1\ndef f(): return A.__dataclass_fields__",
        "import typing\nclass P(typing.Protocol):\n    x: int\nclass A:\n    x = 1\ndef f(): return isinstance(A(), P)",
        "import typing\nclass P(typing.NamedTuple):\n    x: int\ndef f(): return hasattr(P(1), '_asdict')",
        "import abc\nclass A(abc.ABC):\n    pass\ndef f(): return hasattr(A, 'register')",
        "from outside import *\ndef f(): return helper(1)",
        "import outside\ndef g(): pass\ng.table = outside.table() + 1\ndef f(): return g.table",
        "import outside\nclass A: pass\nfor n in outside.names(): setattr(A, n, 1)\ndef f(): return A().x",
        "import q\ndef f(): return hasattr(q, 'x')",
        "from importlib.util import find_spec\ndef f(): return find_spec('q').loader",
    ],
)
def test_an_attribute_that_the_replay_cannot_see_is_not_called_absent(text: str) -> None:
    outcome = run(text, q="from outside import *\n").outcome
    assert isinstance(outcome, (NotModelled, NeedsFact)), outcome


def test_a_compiled_module_of_a_package_has_no_source_and_may_be_there() -> None:
    files = {"p": "", "p__a": ""}
    text = "def f():\n    from p import _C\n    return 1\n"
    assert run(text, **files).outcome == NeedsFact(
        "modules.p._C",
        Place("m.py", 2, "f"),
        "python -c 'import importlib.util as u; print(u.find_spec(\"p._C\"))'",
    )
    assert run(text, {"modules.p._C": True}, **files).outcome == Returned("1")
    assert isinstance(run(text, {"modules.p._C": False}, **files).outcome, Raised)


REGISTRY = """
    known = set()
    def register(name):
        known.add(name)
    def get(name):
        if name not in known:
            raise ValueError(name)
        return name
"""


def test_a_registry_that_other_modules_fill_at_import_does_not_fail_an_import() -> None:
    text = "import registry\nname = registry.get('a')\ndef f():\n    return 1\ndef g():\n    return name\n"
    registry = textwrap.dedent(REGISTRY)
    assert run(text, registry=registry).outcome == Returned("1")
    needs = run(text, entry="g", registry=registry).outcome
    assert isinstance(needs, NotModelled)
    assert "registry.known" in needs.what


def test_what_a_call_reads_of_its_module_is_named_as_assumed() -> None:
    result = run("import registry\ndef f():\n    return registry.get('a')\n", registry=textwrap.dedent(REGISTRY))
    assert isinstance(result.outcome, Raised)
    assert [step.what for step in result.assumed()] == ["registry.known holds what the replayed code put there"]
