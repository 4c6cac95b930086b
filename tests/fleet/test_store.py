"""The folder of a fleet: whole at every moment, and readable whatever the nodes are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.fleet.store import INDEX, Node, Store, StoreError, file_name
from gpuwhy.snapshot import Snapshot
from gpuwhy.snapshot.document import Probe, Subject


def snapshot(name: str, status: str = "ok") -> Snapshot:
    return Snapshot(
        schema_version="0.1",
        gpuwhy_version="0",
        target=Subject("ssh", name),
        started=0.0,
        duration=1.0,
        is_complete=True,
        probes=(Probe(name="memory", status=status, value={"total": 1}),),
    )


def test_a_node_is_found_again_with_its_snapshot(tmp_path: Path) -> None:
    with Store(tmp_path / "fleet", create=True) as store:
        store.keep(Node(name="gpu001", status="ok", seconds=1.5, bytes=7, engine="slurm"), snapshot("gpu001"))
        store.keep(Node(name="gpu002", status="unreachable", reason="no way to it"))
    with Store(tmp_path / "fleet") as store:
        first, second = store.nodes()
        assert (first.name, first.file, first.seconds) == ("gpu001", "nodes/gpu001.gpuwhy", 1.5)
        assert (second.status, second.file) == ("unreachable", "")
        assert [(node.name, kept.target.name) for node, kept in store.snapshots()] == [("gpu001", "gpu001")]
        assert [node.name for node in store.nodes("unreachable")] == ["gpu002"]


def test_a_later_answer_replaces_the_row_and_the_snapshot(tmp_path: Path) -> None:
    with Store(tmp_path, create=True) as store:
        store.keep(Node(name="a", status="ok"), snapshot("a"))
        row = store.keep(Node(name="a", status="timed out", reason="silent"))
        assert row.file == ""
        assert [node.status for node in store.nodes()] == ["timed out"]
    assert list((tmp_path / "nodes").iterdir()) == []


def test_the_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    with Store(tmp_path / "fleet", create=True) as store:
        store.keep(Node(name="a", status="ok"), snapshot("a"))
    for path in (tmp_path / "fleet" / "nodes", tmp_path / "fleet" / "nodes" / "a.gpuwhy"):
        assert path.stat().st_mode & 0o077 == 0


def test_what_is_known_of_the_run_is_kept(tmp_path: Path) -> None:
    with Store(tmp_path, create=True) as store:
        store.note_run({"engine": "ray", "nodes": "3"})
        store.note_run({"ended": "now"})
        assert store.run() == {"ended": "now", "engine": "ray", "nodes": "3"}


@pytest.mark.parametrize("name", ["../../etc/passwd", ".", "..", "a/b", "x\0y", "ünïcode", "r" * 5000, "%41", "A", ""])
def test_no_name_leaves_the_folder_or_is_mistaken_for_another(name: str) -> None:
    file = file_name(name)
    assert "/" not in file
    assert not file.startswith(".") or name == ""
    assert len(file.encode()) <= 220
    assert file.isascii()
    assert file != file_name(name + "!")


def test_another_folder_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"no {INDEX}"):
        Store(tmp_path)
    (tmp_path / INDEX).write_bytes(b"not a database at all, but long enough to look like one\n" * 40)
    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path)
