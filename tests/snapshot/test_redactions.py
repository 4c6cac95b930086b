"""What was taken out is told by place, and never by content."""

from __future__ import annotations

from gpuwhy import snapshot
from gpuwhy.snapshot import Probe, Snapshot, Subject
from gpuwhy.snapshot.redactions import redactions_of


def test_equal_secrets_are_one_entry_with_all_their_places() -> None:
    careless = Snapshot(
        target=Subject("ssh", "host"),
        started=0,
        probes=(
            Probe(name="environment", status="ok", value={"variables": {"HF_TOKEN": "correct-horse"}}),
            Probe(name="journal", status="ok", value={"entries": [[1, "login with correct-horse failed"]]}),
            Probe(name="unit", status="ok", value={"lines": ["--api-key battery-staple --port 1"]}),
        ),
    )
    found = redactions_of(snapshot.decode(snapshot.encode(careless)))
    assert [each.token for each in found] == ["<redacted:1>", "<redacted:2>"]
    assert found[0].places == (
        "environment: variables.HF_TOKEN",
        "journal: entries[0][1] (login with <redacted:1> failed)",
    )
    assert found[1].places == ("unit: lines[0] (--api-key <redacted:2> --port 1)",)


def test_nothing_taken_out_is_no_entry() -> None:
    assert redactions_of(Snapshot(target=Subject("ssh", "host"), started=0)) == ()
