"""The readers run on a target's own Python, so they are plain Python 3.6 and import nothing of ours but each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwhy import binaries

FILES = sorted(Path(binaries.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_the_standard_library_and_siblings_are_imported(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names)
        if isinstance(node, ast.ImportFrom) and not node.level:
            assert (node.module or "").split(".")[0] in sys.stdlib_module_names
        if isinstance(node, ast.ImportFrom):
            assert node.level < 2


def test_every_file_is_python_3_6() -> None:
    vermin = Path(sys.executable).parent / "vermin"
    done = subprocess.run(
        [str(vermin), "--target=3.6-", "--no-tips", "--violations", *map(str, FILES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
