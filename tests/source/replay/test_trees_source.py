"""The replay over the tracer's trees: modules that come one by one, and files that cannot be replayed."""

from __future__ import annotations

import re

import pytest

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.source import FedRoot, Trees
from gpuwhy.source.replay import NeedsFact, NotModelled, Raised, Returned, TreesSource, replay
from gpuwhy.source.replay.trees_source import MAX_CHARACTERS

FILES = {
    "pkg/__init__.py": "",
    "pkg/a.py": "from pkg.b import Thing\ndef go():\n    return Thing().value\n",
    "pkg/b.py": "from pkg.sub import c\nclass Thing:\n    value = c.VALUE\n",
    "pkg/sub/__init__.py": "",
    "pkg/sub/c.py": "VALUE = 3\n",
}


def fed(*paths: str) -> tuple[FedRoot, TreesSource]:
    root = FedRoot("pkg", listing=FILES)
    root.feed({path: FILES[path].encode() for path in paths})
    return root, TreesSource(Trees({"pkg": root}, lambda name: name == "pkg"), {"pkg": "/opt/venv"})


def test_a_module_that_has_not_come_is_named_and_wanted() -> None:
    root, source = fed("pkg/a.py")
    assert not isinstance(replay(source, "pkg.a:go", {}).outcome, Returned)
    assert source.missed == ("pkg.b",)
    assert "pkg/b.py" in root.wanted


def test_it_decides_when_everything_has_come() -> None:
    root, source = fed("pkg/a.py")
    rounds = 0
    while (result := replay(source, "pkg.a:go", {})) and source.missed and rounds < 6:
        rounds += 1
        root.feed({path: FILES[path].encode() for path in root.wanted})
        source.refresh()
    assert result.outcome == Returned("3")
    assert 1 < rounds < 6
    assert not source.missed


def test_where_a_file_stands_on_the_target() -> None:
    _, source = fed("pkg/sub/__init__.py")
    found = source.find("pkg.sub")
    assert found is not None
    assert (found.path, found.shown, found.is_package) == ("/opt/venv/pkg/sub/__init__.py", "pkg/sub/__init__.py", True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def go():\n    return 1\n\ndef broken(:\n    pass\n", "invalid syntax"),
        ("x = 1\n" * (MAX_CHARACTERS // 6 + 1), f"more than {MAX_CHARACTERS} characters"),
        ("x = " + "(" * 5000 + ")" * 5000 + "\ndef go():\n    return 1\n", "too many nested parentheses"),
    ],
    ids=["broken", "long", "deep"],
)
def test_a_file_that_is_not_wholly_understood_is_not_replayed(text: str, reason: str) -> None:
    root, source = fed()
    root.feed({"pkg/a.py": text.encode()})
    outcome = replay(source, "pkg.a:go", {}).outcome
    assert isinstance(outcome, NotModelled)
    assert outcome.what == "the source of pkg.a"
    assert reason in source.refused["pkg/a.py"]


@pytest.mark.parametrize(
    "body",
    ["return hidden_1", "return 'x hidden_1'", "return f'{1}hidden_1'", "x = {'hidden_1': 1}\n    return x", "return hidden_1()"],
)  # fmt: skip
def test_what_was_taken_out_decides_nothing(body: str) -> None:
    root = FedRoot("pkg")
    text = f"def go():\n    try:\n        {body.replace(chr(10), chr(10) + '    ')}\n    except Exception:\n        return 2\n"
    root.feed({"pkg/a.py": text.encode()})
    source = TreesSource(Trees({"pkg": root}, lambda name: name == "pkg"), cut=re.compile(r"\bhidden_\d"))
    assert isinstance(replay(source, "pkg.a:go", {}).outcome, NotModelled)


def test_a_deep_file_in_which_something_was_taken_out_is_not_replayed() -> None:
    root = FedRoot("pkg")
    root.feed({"pkg/a.py": f"x = hidden_1 + {' + '.join('1' * 700)}\ndef go():\n    return 1\n".encode()})
    source = TreesSource(Trees({"pkg": root}, lambda name: name == "pkg"), cut=re.compile(r"\bhidden_\d"))
    assert isinstance(replay(source, "pkg.a:go", {}).outcome, NotModelled)
    assert source.refused == {"pkg/a.py": "a very deep expression"}


def test_a_variable_that_is_set_and_not_known_is_needed() -> None:
    root = FedRoot("pkg")
    root.feed(
        {
            "pkg/a.py": b"import os\ndef go():\n    return os.environ.get('SECRET')\ndef all():\n    return os.environ.copy()\n"
        }
    )
    source = TreesSource(Trees({"pkg": root}, lambda name: name == "pkg"))
    complete = {"environment_complete": Fact("environment_complete", True, Evidence("seen"))}
    assert replay(source, "pkg.a:go", Facts(complete)).outcome == Returned("None")
    hidden = Facts(complete, {"env.SECRET": Unknown("not collected")})
    for entry in ("pkg.a:go", "pkg.a:all"):
        assert isinstance(replay(source, entry, hidden).outcome, NeedsFact)


def test_seconds_end_a_replay() -> None:
    root = FedRoot("pkg")
    root.feed({"pkg/a.py": b"def go():\n    n = 0\n    while True:\n        n += 1\n    raise RuntimeError\n"})
    source = TreesSource(Trees({"pkg": root}, lambda name: name == "pkg"))
    outcome = replay(source, "pkg.a:go", {}, seconds=0.05).outcome
    assert isinstance(outcome, NotModelled)
    assert outcome.what == "what takes more than 0.05 s"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"gpus": ["0: A (9.0)"], "torch_cuda": "12.8", "driver_cuda": "12.4"}, Returned("True")),
        ({"gpus": [], "torch_cuda": "12.8", "driver_cuda": "12.4"}, Returned("False")),
        ({"gpus": ["0: A (9.0)"], "torch_cuda": "13.0", "driver_cuda": "12.4"}, NeedsFact),
        ({"gpus": ["0: A (9.0)"], "torch_cuda": "12.8"}, NeedsFact),
        ({"external": {"torch.cuda.is_available": {"raises": "RuntimeError"}}}, Raised),
    ],
)
def test_whether_a_gpu_is_available_takes_a_driver_for_it(facts: dict[str, object], expected: object) -> None:
    root = FedRoot("pkg")
    root.feed({"pkg/a.py": b"import torch\ndef go():\n    return torch.cuda.is_available()\n"})
    source = TreesSource(Trees({"pkg": root}, lambda name: name == "pkg"))
    outcome = replay(source, "pkg.a:go", {"env": {"CUDA_VISIBLE_DEVICES": None}, **facts}).outcome
    assert outcome == expected or (isinstance(expected, type) and isinstance(outcome, expected)), outcome
