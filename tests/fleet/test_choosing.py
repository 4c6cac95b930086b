"""Which engine is meant, and what does not go together."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpuwhy.fleet.choosing import Choice, engine_of
from gpuwhy.fleet.engines.interface import FleetError


def test_node_sets_are_those_of_clustershell() -> None:
    engine = engine_of(Choice(nodes="root@gpu[001-003,010],login"))
    assert engine.name == "clustershell"
    assert engine.nodes() == ["gpu001", "gpu002", "gpu003", "gpu010", "login"]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice(), "no nodes are named"),
        (Choice(nodes="gpu[1-"), "no set of nodes"),
        (Choice(nodes="-oProxyCommand=sh"), "no name of a host"),
        (Choice(nodes="a", slurm=True, ray="auto"), "more than one engine"),
        (Choice(nodes="a", engine="clustershell", partition="gpu"), "more than one engine"),
        (Choice(inventory="hosts", ray="auto"), "over SSH"),
        (Choice(partition="gpu", job="7"), "both named"),
        (Choice(inventory="/nonexistent/hosts"), "cannot be read"),
    ],
)
def test_what_cannot_be_is_said(choice: Choice, said: str) -> None:
    with pytest.raises(FleetError, match=said):
        engine_of(choice).nodes()


def test_without_slurm_its_engine_says_where_to_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FleetError, match="no srun"):
        engine_of(Choice(slurm=True))
    for words in ({"partition": "a;b"}, {"job": "--x"}, {"slurm": True, "nodes": "$(x)"}):
        with pytest.raises(FleetError, match="no name of"):
            engine_of(Choice(**words))


def test_a_missing_extra_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ClusterShell.Event", None)
    with pytest.raises(FleetError, match=r"pip install 'gpuwhy\[fleet\]'"):
        engine_of(Choice(nodes="a"))


def test_a_python_without_ray_is_named() -> None:
    with pytest.raises(FleetError, match=r"--ray-python(.|\n)*pip install 'gpuwhy\[ray\]'"):
        engine_of(Choice(ray="127.0.0.1:1", ray_python=sys.executable)).nodes()
    with pytest.raises(FleetError, match="cannot be started"):
        engine_of(Choice(ray="auto", ray_python="/nonexistent/python")).nodes()
