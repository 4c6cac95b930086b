"""``gpuwhy cause`` and ``gpuwhy causes``, ``--help``, and ``collect`` on what cannot be collected from."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import LOGS, gpuwhy

from gpuwhy.causes import catalogue


def test_causes_lists_each_by_family() -> None:
    done = gpuwhy("causes")
    assert done.status == 0
    assert {line.split()[0] for line in done.out.splitlines() if line.startswith("  ")} == set(catalogue())
    assert "Toolchain" in done.out.splitlines()


def test_causes_as_json() -> None:
    entries = json.loads(gpuwhy("causes", "--format", "json").out)
    assert {entry["id"] for entry in entries} == set(catalogue())
    assert all(entry["family"] and entry["summary"] for entry in entries)


def test_every_cause_is_documented_for_users() -> None:
    for entry in catalogue().values():
        text = entry.documentation
        for heading in ("How it shows itself", "Why it happens", "How to be sure", "What helps"):
            assert heading in text, (entry.id, heading)
        assert len(entry.summary) < 160, entry.id


def test_cause_prints_the_documentation() -> None:
    done = gpuwhy("cause", "toolkit-too-old-for-arch")
    assert done.status == 0
    assert done.out.startswith("toolkit-too-old-for-arch  (Toolchain)\n")
    assert "What helps" in done.out


def test_an_unknown_cause_names_those_that_may_be_meant() -> None:
    done = gpuwhy("cause", "toolkit-to-old-for-arch")
    assert (done.status, done.out) == (2, "")
    assert "did you mean toolkit-too-old-for-arch" in done.err
    assert gpuwhy("cause", "\x1b[31mx").err.count("\x1b") == 0


def test_help_names_every_command() -> None:
    done = gpuwhy("--help")
    assert done.status == 0
    for command in ("diagnose", "collect", "cause", "causes"):
        assert command in done.out
        assert gpuwhy(command, "--help").status == 0


def test_nothing_is_collected_from_a_file(tmp_path: Path) -> None:
    snapshot = tmp_path / "a.gpuwhy"
    done = gpuwhy("collect", str(LOGS / "sglang.log"), "-o", str(snapshot))
    assert (done.status, done.out) == (2, "")
    assert not snapshot.exists()
