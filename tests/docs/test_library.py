"""The Python that README and the page of the interface show runs as it stands."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import blocks_of

import gpuwhy

ROOT = Path(__file__).resolve().parents[2]


def test_the_library_example_names_the_cause() -> None:
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    ended = subprocess.run([sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[0] == "toolkit-too-old-for-arch flashinfer likely"


def _examples_of_the_page() -> list[str]:
    """The indented blocks of docs/api.md: all that it shows is Python."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    return ["\n".join(line[4:] for line in block.lines) for block in blocks_of(page) if block.kind == "indented"]


def test_the_interface_page_is_python_that_runs(tmp_path: Path) -> None:
    """As one program, top to bottom, as a reader would type it; the examples of a host and a fleet have a test of their own."""
    (tmp_path / "crash.log").write_bytes((ROOT / "tests" / "data" / "logs" / "sglang.log").read_bytes())
    runnable = [each for each in _examples_of_the_page() if "root@" not in each and "Fleet" not in each]
    assert len(runnable) == 2
    ended = subprocess.run([sys.executable, "-c", "\n".join(runnable)], cwd=tmp_path, capture_output=True, text=True, check=True)  # fmt: skip
    assert json.loads(ended.stdout)["findings"][0]["cause"] == "toolkit-too-old-for-arch"


def test_the_interface_pages_first_example_runs_on_what_is_at_hand(tmp_path: Path) -> None:
    """The host is replaced by a log: what is done with the answer stays to the letter."""
    (tmp_path / "crash.log").write_bytes((ROOT / "tests" / "data" / "logs" / "sglang.log").read_bytes())
    [example] = [each for each in _examples_of_the_page() if "root@" in each]
    asked = example.replace('"root@gpu-host", unit="sglang.service"', '"crash.log"')
    assert asked != example
    ended = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("toolkit-too-old-for-arch ")


def test_what_the_interface_page_calls_is_there() -> None:
    """Keywords of the table and of the fleet's example, as the functions take them."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    called = re.findall(r"^\| `(\w+)\(([^`]*)\)`", page, re.MULTILINE)
    assert {name for name, _ in called} == {"diagnose", "outcome_of", "collect", "check", "inspect", "trace", "Fleet"}
    for name, arguments in called:
        taken = inspect.signature(getattr(gpuwhy, name)).parameters
        for keyword in re.findall(r"(\w+)=", arguments):
            assert keyword in taken, f"{name}({keyword}=)"
    [fleets] = [each for each in _examples_of_the_page() if "Fleet" in each]
    for method in re.findall(r"\bfleet\.(\w+)\(", fleets) + re.findall(r"\bFleet\.(\w+)\(", fleets):
        assert callable(getattr(gpuwhy.Fleet, method))
