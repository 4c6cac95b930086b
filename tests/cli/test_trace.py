"""``gpuwhy trace`` as a person and a program use it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from gpuwhy.cli.show import command as show
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


LOG = """\
Failed to probe: probing is off
Traceback (most recent call last):
  File "/opt/other/lib/python3.12/site-packages/engine/core.py", line 27, in check
    raise RuntimeError("no device is new enough")
RuntimeError: no device is new enough
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


def error_of(*arguments: str | Path) -> str:
    """What is said of arguments that cannot be used, or of a target that cannot be reached."""
    result = run(*arguments)
    assert result.return_value in (2, 3), (result.output, result.exception)
    return result.output


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


def shown(saved: Path, *more: str) -> str:
    """What ``gpuwhy show`` makes of a saved answer."""
    return CliRunner().invoke(show, [str(saved), *more], standalone_mode=False).output


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["engine.core:check"], "trace"),
        (["engine/core.py:27"], "trace"),
        (["engine.core:missing"], "trace"),
        (["--log", "LOG"], "trace"),
        (["--reads", "PROBE_OFF", "engine"], "reads"),
        (["--import", "engine.core:chek"], "moved"),
        (["--import", "engine.gone"], "moved"),
        (["--lines", "--log", "LOG", "--follow", "engine"], "places"),
        (["--replay", "engine.core:check"], "replay"),
        (["--replay", "engine.core:check", "--facts", "FACTS"], "replay"),
    ],
)
@pytest.mark.parametrize("where", [["--venv", "VENV"], ["--on", "local", "--venv", "VENV"]], ids=["here", "target"])
def test_json_keeps_to_its_schema(
    site: Path, tmp_path: Path, arguments: list[str], kind: str, where: list[str]
) -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs" / "trace.schema.json").read_text())
    (tmp_path / "crash.log").write_text(LOG)
    (tmp_path / "facts.yaml").write_text("env: {PROBE_OFF: '1'}\n")
    given = {"VENV": site, "LOG": tmp_path / "crash.log", "FACTS": tmp_path / "facts.yaml"}
    result = run(*[given.get(each, each) for each in (*arguments, *where)], "--format", "json")
    document = json.loads(result.output)
    jsonschema.validate(document, schema)
    assert set(document) == {"schema_version", "gpuwhy_version", kind}
    saved = tmp_path / "answer.json"
    saved.write_text(result.output)
    asked = [given.get(each, each) for each in (*arguments, *where)]
    assert shown(saved, "--format", "json") == result.output
    for form in ("text", "html"):  # what was fetched the first time is at hand the second
        told, again = (re.sub(r"trips to the target: .*", "", each) for each in (run(*asked, "--format", form).output, shown(saved, "--format", form)))  # fmt: skip
        assert again == told


def test_a_document_that_is_none_of_the_alternatives_is_refused() -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs" / "trace.schema.json").read_text())
    for broken in ({}, {"schema_version": "0.2", "gpuwhy_version": "1", "moved": {}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)


def test_names_like_one_that_is_missing(site: Path) -> None:
    result = run("--import", "engine.core:chek", "--venv", site, "--format", "json")
    assert json.loads(result.output)["moved"]["nearest"] == ["check"]


# where the service runs: this machine stands for the target, reached as any other


@pytest.mark.parametrize("words", [["local", "engine.core:check"], ["engine.core:check", "--on", "local"]])
def test_packages_of_a_target_are_traced_there(site: Path, words: list[str]) -> None:
    text = output(*words, "--venv", site)
    for part in (
        "not context.found",
        "hides RuntimeError: probing is off",
        "PROBE_OFF",
        "fetched: 1 of its 2 files",
    ):
        assert part in text
    assert "1 kept from before" in output(*words, "--venv", site)


def test_the_other_questions_of_a_target(site: Path) -> None:
    assert "No reachable read of OTHER in engine 2.1" in output("local", "engine", "--reads", "OTHER", "--venv", site)
    assert "engine 2.1 reads PROBE_OFF" in output("local", "engine", "--reads", "PROBE_OFF", "--venv", site)
    assert "names like it there: check" in run("local", "--import", "engine.core:chek", "--venv", site).output


def test_what_is_where_and_what_is_the_question(site: Path) -> None:
    assert "name what to search" in error_of("engine.core:check")
    assert "too many words" in error_of("local", "engine.core:check", "more", "--venv", site)
    assert "too many words" in error_of("a:b", "c:d", "--source", site)
    assert "docker" in error_of("docker:nothing-of-this-name")
    assert "no such" in error_of("./missing.gpuwhy").lower()


def test_a_log_is_no_place_to_search(tmp_path: Path) -> None:
    (tmp_path / "crash.log").write_text(LOG)
    assert "no snapshot" in error_of(tmp_path / "crash.log")


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


def test_who_sends_a_signal_and_who_silences_a_log_line(site: Path) -> None:
    engine = site / "lib" / "python3.12" / "site-packages" / "engine"
    (engine / "stopping.py").write_text("import os, signal\n\n\ndef stop(pid):\n    os.kill(pid, signal.SIGKILL)\n")
    asked = CliRunner().invoke(command, ["SIGKILL", "--follow", "engine", "--venv", str(site)])
    assert asked.exit_code == 0, asked.output
    assert "os.kill(pid, signal.SIGKILL)" in asked.output
    assert "engine/stopping.py:5" in asked.output

    silenced = CODE.replace("class Context", "logging.getLogger('engine').setLevel(logging.ERROR)\n\n\nclass Context")
    (engine / "core.py").write_text(silenced)
    asked = CliRunner().invoke(command, ["engine.core:check", "--follow", "engine", "--venv", str(site)])
    assert "has raised the logger's level: its absence proves nothing" in asked.output
