"""Every remedy says how one sees that it has helped."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from scripts.score import CASES, _given_facts, read_cases

from gpuwhy.investigate import diagnose_log
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import Setting, prescribe


def remedies_of(text: str, setting: Setting | None = None) -> tuple[Remedy, ...]:
    return prescribe(diagnose_log(text.encode(), "x"), setting).findings[0].remedies


def test_no_remedy_of_any_case_is_without_a_check() -> None:
    for case in read_cases(CASES):
        for facts in (None, _given_facts(case)):
            diagnosis = prescribe(diagnose_log(case["report"].encode(), "report", facts))
            without = [
                (each.cause, remedy.name) for each in diagnosis.findings for remedy in each.remedies if not remedy.check
            ]
            assert without == [], case["id"]


def test_what_is_typed_is_proven_by_the_line_that_stays_away() -> None:
    killed = remedies_of("Killed\n")[0]
    assert killed.check == ("# start the service again: this must not come any more: Killed",)


def test_a_command_that_is_known_is_run_again() -> None:
    setting = Setting(kind="shell", command=("vllm", "serve", "m"))
    assert remedies_of("Killed\n", setting)[0].check == (
        "# run the command again: this must not come any more: Killed",
    )


@pytest.mark.parametrize(
    ("setting", "looks"),
    [
        (Setting(kind="systemd", host="root@gpu-host", unit="vllm.service"), "gpuwhy diagnose root@gpu-host --unit vllm.service"),
        (Setting(kind="systemd", unit="vllm.service"), "gpuwhy diagnose local --unit vllm.service"),
        (Setting(kind="docker", engine="podman", container="vllm"), "gpuwhy diagnose podman:vllm"),
    ],
)  # fmt: skip
def test_of_a_unit_and_a_container_gpuwhy_looks_again(setting: Setting, looks: str) -> None:
    assert remedies_of("Killed\n", setting)[0].check[-1] == looks


def test_a_hostile_line_stays_in_its_comment() -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. $(touch /tmp/x); `id`\x1b[31m\u2028' \"\n"
    for remedy in remedies_of(text):
        for line in remedy.check:
            assert line.isprintable()
            if line.startswith("#"):
                done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
                assert (done.stdout, done.stderr) == ("", "")
            else:
                assert shlex.split(line)
