"""Attributes that no class declares: filled from classes that declare a path, or looked up in a table of functions."""

from __future__ import annotations

import pytest
from tests.source.asking import all_steps, names, switch, traced_in

from gpuwhy.source.tracing import Question

BAG = """
    class Bag:
        def put(self, name, value):
            object.__setattr__(self, name, value)
    class Context:
        def bag(self, name) -> Bag:
            return self.bags[name]
    CONTEXT = Context()
    def get_exec() -> Bag:
        return CONTEXT.bag("exec")
"""
FIELDS = """
    from typing import Annotated
    class Kernel:
        PATH = "exec.kernel"
        backend: str = None
    class Other:
        PATH = "exec.other"
        backend: str = None
"""
ARGS = """
    import argparse
    from pkg.fields import Kernel
    COLLECTED = [Kernel]
    def add(parser: argparse.ArgumentParser):
        parser.add_argument("--backend", choices=["one", "two"], default="one")
"""
USE = """
    from pkg.bag import get_exec
    def f():
        if get_exec().kernel.backend == "one":
            raise ValueError
"""
FILES = {"bag.py": BAG, "fields.py": FIELDS, "args.py": ARGS, "m.py": USE}


def test_an_attribute_leads_to_the_class_that_declares_its_path() -> None:
    answer = traced_in(FILES, Question(symbol="pkg.m:f"))
    projected = [step for step in all_steps(answer) if step.kind == "projection"]
    assert [step.text for step in projected] == ["exec.kernel.backend: filled from Kernel, which declares this path"]
    assert [step.text for step in projected[0].steps] == ["pkg.fields:Kernel.backend"]
    flag = switch(answer, "flag", "--backend")
    assert not flag.is_by_name
    assert flag.accepts == ("one", "two")
    assert "Kernel is collected at pkg/args.py:4" in flag.note


def test_the_option_of_a_class_that_is_not_collected_is_not_its_own() -> None:
    files = {**FILES, "args.py": ARGS.replace("COLLECTED = [Kernel]", "OTHER: list[Kernel] = []")}
    assert names(traced_in(files, Question(symbol="pkg.m:f")), "flag") == set()


@pytest.mark.parametrize(
    "changed",
    [
        {"fields.py": FIELDS.replace('"exec.other"', '"exec.kernel"')},
        {"fields.py": FIELDS.replace('"exec.kernel"', '"exec.another"')},
        {"bag.py": BAG.replace("object.__setattr__(self, name, value)", "pass")},
    ],
    ids=["two classes of this path", "none", "nothing is filled"],
)
def test_a_path_that_is_not_declared_once_is_no_proof(changed: dict[str, str]) -> None:
    answer = traced_in({**FILES, **changed}, Question(symbol="pkg.m:f"))
    assert not [step for step in all_steps(answer) if step.kind == "projection"]
    assert all(each.is_by_name for each in answer.switches if each.kind == "flag")


@pytest.mark.parametrize("entry", ['"has_a_kernel"', "common.has_a_kernel"])
def test_an_object_that_looks_names_up_in_a_table_of_functions(entry: str) -> None:
    files = {
        "common.py": "import os\ndef has_a_kernel():\n    return os.environ.get('HAS_KERNEL')\ndef not_meant():\n    return os.environ.get('NOT_MEANT')\n",
        "platform.py": f"from pkg import common\nPROBES = {{'has_kernel': {entry}, 'other': 'not_meant'}}\nclass Platform:\n    def __getattr__(self, name):\n        probe = PROBES[name]\n        return getattr(common, probe)()\nPLATFORM = Platform()\ndef get_platform() -> Platform:\n    return PLATFORM\n",
        "m.py": "from pkg.platform import get_platform\ndef f():\n    if get_platform().has_kernel:\n        raise ValueError\n",
    }  # fmt: skip
    answer = traced_in(files, Question(symbol="pkg.m:f"))
    assert names(answer, "environment") == {"HAS_KERNEL"}
    assert not switch(answer, "environment", "HAS_KERNEL").is_by_name
