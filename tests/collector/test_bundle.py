"""What is sent is the collector, the redaction and the readers of binaries, and runs on every Python since 3.6."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwhy.collector import bundle
from gpuwhy.targets.pipe import framed

SOURCES = Path(bundle.__file__).parents[1]
SENT = [
    path
    for package in bundle.PACKAGES
    for path in sorted((SOURCES / package).glob("*.py"))
    if path.stem not in bundle.NOT_SENT
]
MOST_BYTES_SENT = 150_000


def test_the_program_holds_every_file_and_no_other_part_of_ours() -> None:
    text = bundle.program()
    compile(text, "program", "exec")
    assert len(framed(text)) < MOST_BYTES_SENT
    for path in SENT:
        assert repr(bundle.lean(path.read_text())) in text
    assert "msgspec" not in text


@pytest.mark.parametrize("path", SENT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_is_left_out_of_a_file_is_only_said_to_its_reader(path: Path) -> None:
    whole, lean = path.read_text(), bundle.lean(path.read_text())
    assert statements(lean) == statements(whole)
    assert lean.count("\n") == whole.count("\n"), "lines stay where they are"


def statements(text: str) -> str:
    """The program without strings that stand alone, with the line of each statement."""

    class Silent(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.Expr:
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                return ast.Expr(ast.Constant(""))
            return node

    return ast.dump(Silent().visit(ast.parse(text)))


@pytest.mark.parametrize("path", SENT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_that_is_sent_imports_the_standard_library_and_its_siblings_only(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
        for name in names:
            own = name.startswith(("gpuwhy.collector", "gpuwhy.redaction", "gpuwhy.binaries"))
            assert own or name.split(".")[0] in sys.stdlib_module_names, name


def test_every_file_that_is_sent_is_python_3_6() -> None:
    vermin = [
        str(Path(sys.executable).parent / "vermin"),
        "--target=3.6-",
        "--no-tips",
        "--violations",
        *map(str, SENT),
    ]
    done = subprocess.run(vermin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
