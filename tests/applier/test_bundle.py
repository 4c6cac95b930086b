"""What is sent is the applier and the redaction, and runs on every Python since 3.6."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwhy.applier import bundle

SOURCES = Path(bundle.__file__).parents[1]
SENT = [
    path
    for package in bundle.PACKAGES
    for path in sorted((SOURCES / package).glob("*.py"))
    if path.stem not in bundle.NOT_SENT
]


def test_the_program_holds_every_file_and_no_other_part_of_ours() -> None:
    text = bundle.program()
    compile(text, "program", "exec")
    assert len(text) < 150_000
    for path in SENT:
        package = f"gpuwhy.{path.parent.name}"
        assert f"'{package if path.stem == '__init__' else f'{package}.{path.stem}'}': " in text
    assert "msgspec" not in text


@pytest.mark.parametrize("path", SENT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_that_is_sent_imports_the_standard_library_and_its_siblings_only(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
        for name in names:
            own = name.startswith(("gpuwhy.applier", "gpuwhy.redaction"))
            assert own or name.split(".")[0] in sys.stdlib_module_names, name


def test_every_file_that_is_sent_is_python_3_6() -> None:
    vermin = Path(sys.executable).parent / "vermin"
    command = [str(vermin), "--target=3.6-", "--no-tips", "--violations", *map(str, SENT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
