"""``gpuwhy trace`` as a person and a program use it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gpuwhy.cli.trace import command

CODE = """\
import logging
import os

log = logging.getLogger(__name__)


class Context:
    def __init__(self):
        self.found = set()
        try:
            self.found.add(probe())
        except Exception as error:
            log.warning("Failed to probe: %s", error)


def probe():
    if os.environ.get("PROBE_OFF"):
        raise RuntimeError("probing is off")
    return 1


context = Context()


def check():
    if not context.found:
        raise RuntimeError("no device is new enough")
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "venv" / "lib" / "python3.12" / "site-packages"
    (folder / "engine").mkdir(parents=True)
    (folder / "engine" / "__init__.py").write_text("from engine import core\n")
    (folder / "engine" / "core.py").write_text(CODE)
    (folder / "engine-2.1.dist-info").mkdir()
    return tmp_path / "venv"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments], standalone_mode=False)


def output(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.return_value == 0, (result.output, result.exception)
    return result.output


@pytest.mark.parametrize("question", ["engine/core.py:27", "engine.core:check"])
def test_a_place_and_a_symbol(site: Path, question: str) -> None:
    text = output(question, "--venv", site)
    assert text.index("no device is new enough") < text.index("Swallowed on the way") < text.index("What reaches it")
    for part in ("not context.found", "context.found is empty or None or False: always reached", "Failed to probe: {}", "hides RuntimeError: probing is off", "PROBE_OFF", "engine 2.1: 2 files"):  # fmt: skip
        assert part in text


def test_the_traceback_of_a_log(site: Path, tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_text(
        "Traceback (most recent call last):\n"
        '  File "/opt/other/lib/python3.12/site-packages/engine/core.py", line 25, in check\n'
        '    raise RuntimeError("no device is new enough")\n'
        "RuntimeError: no device is new enough\n"
    )
    text = output("--log", log, "--venv", site)
    assert "line 25 of the traceback is line 27 here" in text
    assert "PROBE_OFF" in text


def test_json_keeps_to_its_schema(site: Path) -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs" / "trace.schema.json").read_text())
    for arguments in (["engine.core:check"], ["--reads", "PROBE_OFF", "engine"], ["--import", "engine.core:chek"]):
        result = run(*arguments, "--venv", site, "--format", "json")
        document = json.loads(result.output)
        jsonschema.validate(document, schema)
    assert document["moved"]["nearest"] == ["check"]


def test_whether_a_variable_is_read(site: Path) -> None:
    assert "engine 2.1 reads PROBE_OFF" in output("--reads", "PROBE_OFF", "engine", "--venv", site)
    assert "No reachable read of OTHER in engine 2.1" in output("--reads", "OTHER", "engine", "--venv", site)


def test_an_answer_in_a_file(site: Path, tmp_path: Path) -> None:
    assert output("engine.core:check", "--venv", site, "-o", tmp_path / "answer.txt") == ""
    assert "no device is new enough" in (tmp_path / "answer.txt").read_text()


def test_no_answer_is_exit_status_1(site: Path) -> None:
    result = run("engine.core:missing", "--venv", site)
    assert result.return_value == 1
    assert "no such function" in result.output


@pytest.mark.parametrize(
    "arguments",
    [["engine.core:check"], ["nonsense", "--venv", "VENV"], ["a:b", "--venv", "/nowhere"], ["--log", "/nowhere", "--venv", "VENV"], ["--reads", "X", "other", "--venv", "VENV"]],
)  # fmt: skip
def test_what_cannot_be_used_is_exit_status_2(site: Path, arguments: list[str]) -> None:
    result = run(*[str(site) if each == "VENV" else each for each in arguments])
    assert result.return_value == 2
    assert "Traceback" not in result.output


def test_text_of_the_source_cannot_move_the_cursor(site: Path) -> None:
    file = site / "lib" / "python3.12" / "site-packages" / "engine" / "core.py"
    file.write_text(CODE.replace("no device", "\x1b[2J\u202eno device"))
    assert "\x1b" not in output("engine.core:check", "--venv", site)
