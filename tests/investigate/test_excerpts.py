"""What a snapshot kept of files answers as the target did."""

from __future__ import annotations

from gpuwhy.investigate.target import Excerpts
from gpuwhy.snapshot import Snapshot, Subject
from gpuwhy.snapshot.document import Excerpt
from gpuwhy.targets import Ask


def test_two_parts_of_one_file_are_two_answers() -> None:
    excerpts = (
        Excerpt("bytes", "/a.so", "ok", "head", offset=0, length=16),
        Excerpt("bytes", "/a.so", "ok", "tail", offset=4096, length=16),
    )
    kept = Excerpts(Snapshot(target=Subject("ssh", "gpu-host"), started=0.0, excerpts=excerpts))
    asks = [Ask("bytes", "/a.so", offset=4096, length=16), Ask("bytes", "/a.so", offset=0, length=16)]
    assert [reply.value for reply in kept.ask([*asks, Ask("bytes", "/a.so", offset=0, length=32)])] == [
        "tail",
        "head",
        None,
    ]
