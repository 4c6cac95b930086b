"""``gpuwhy show``: a snapshot can be read before it is sent."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import gpuwhy

from gpuwhy.snapshot import Snapshot, write
from gpuwhy.snapshot.document import Denial, Probe, Subject

SNAPSHOT = str(Path(__file__).parents[1] / "data" / "snapshots" / "schema-0.1.json")


def test_the_overview_names_the_target_and_every_probe_with_its_outcome() -> None:
    done = gpuwhy("show", SNAPSHOT)
    assert done.status == 0, done.err
    assert done.out.startswith("gpu-host (ssh, unit sglang.service)\ntaken 2026-11-29 ")
    assert "memory               timed out" in done.out
    assert "no answer in 5.0 s" in done.out
    assert "1 secret taken out" in done.out
    assert "read     /opt/venv/lib/python3.11/site-packages/flashinfer/jit/core.py lines 100-120 (ok)" in done.out


def test_redactions_are_counted_and_placed() -> None:
    done = gpuwhy("show", SNAPSHOT, "--redactions")
    assert done.status == 0, done.err
    assert done.out == ("1 replacement of 1 secret: by name 1\n\n<redacted:1>\n  environment: variables.HF_TOKEN\n")


def test_one_probe_and_the_whole_come_as_json() -> None:
    probe = json.loads(gpuwhy("show", SNAPSHOT, "--probe", "gpus").out)
    assert probe["value"]["driver"] == "580.95.05"
    whole = json.loads(gpuwhy("show", SNAPSHOT, "--format", "json").out)
    assert whole["target"]["name"] == "gpu-host"


def test_what_cannot_be_shown_is_said() -> None:
    done = gpuwhy("show", SNAPSHOT, "--probe", "colour")
    assert done.status == 2
    assert "has no probe colour; it has disks, driver" in done.err
    assert gpuwhy("show", "/nowhere.gpuwhy").status == 2
    assert gpuwhy("show", __file__).status == 2


def test_a_copy_for_the_public_has_no_names(tmp_path: Path) -> None:
    public = str(tmp_path / "public.gpuwhy")
    assert gpuwhy("show", SNAPSHOT, "--redact", "hosts", "--output", public).status == 0
    done = gpuwhy("show", public)
    assert done.out.startswith("host-1 (ssh")
    assert "gpu-host" not in gpuwhy("show", public, "--format", "json").out
    refused = gpuwhy("show", SNAPSHOT, "--redact", "colours")
    assert refused.status == 2
    assert "choose of hosts, ips, users, paths, or all" in refused.err


def test_a_collection_for_the_public_has_no_names_either(tmp_path: Path) -> None:
    public = str(tmp_path / "public.gpuwhy")
    done = gpuwhy("collect", "local", "--redact", "all", "--output", public)
    assert done.status == 0, done.err
    assert "names replaced" in done.err
    assert gpuwhy("collect", "local", "--redact", "x", "--output", public).status == 2


def test_what_the_account_could_not_read_is_listed_with_the_ways_to_it(tmp_path: Path) -> None:
    hidden = Denial("/dev/kmsg: Operation not permitted", ("sudo sysctl kernel.dmesg_restrict=0", "--sudo"))
    denied = Probe(name="kernel_log", status="denied", reason=hidden.what, denied=(hidden,))
    file = tmp_path / "host.gpuwhy"
    write(Snapshot(target=Subject("ssh", "gpu-host"), started=1795946290.0, probes=(denied,)), file)
    told = gpuwhy("show", str(file)).out
    assert "what the account of the collection could not read:" in told
    assert "it would be by `sudo sysctl kernel.dmesg_restrict=0` or gpuwhy with --sudo" in told
    assert "could not read" not in gpuwhy("show", SNAPSHOT).out
