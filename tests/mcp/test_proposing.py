"""A change is made only when the server allows it, with the token of a preview, once, and to the letter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.applier.scratch import Scratch

from gpuwhy.investigate import diagnose_log
from gpuwhy.mcp.allowing import allowed
from gpuwhy.mcp.answering import Desk, Manner
from gpuwhy.mcp.proposing import LIFE, Proposals, TokenError
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.remedies import prescribe
from gpuwhy.remedies.applying.site import Site
from gpuwhy.targets import HostTarget
from gpuwhy.targets.local import LocalTarget

LOGS = Path(__file__).parents[1] / "data" / "logs"
UNIT = "serve.service"
REMEDY = "FLASHINFER_CUDA_ARCH_LIST=12.0a"
DROP_IN = f"etc/systemd/system/{UNIT}.d/50-gpuwhy-FLASHINFER_CUDA_ARCH_LIST.conf"


@pytest.fixture(scope="module")
def seed() -> Diagnosis:
    """The seed incident, as if it had been this machine's."""
    diagnosis = diagnose_log((LOGS / "sglang.log").read_bytes(), "local")
    incident = msgspec.structs.replace(diagnosis.incident, unit=UNIT)
    return msgspec.structs.replace(diagnosis, incident=incident)


@pytest.fixture
def scratch(tmp_path: Path, seed: Diagnosis, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    """A scratch root in the place of this machine's own, with the seed incident's service in it."""
    made = Scratch(tmp_path)
    (made.systemd / "cure").write_text(REMEDY)
    monkeypatch.setenv("PATH", f"{made.systemd}/bin:{os.environ['PATH']}")
    real = Site.__init__

    def on_scratch(site: Site, target: HostTarget) -> None:
        real(site, target, root=str(made.root))

    monkeypatch.setattr(Site, "__init__", on_scratch)
    # nothing answers on the port that the service names: it is not waited for
    monkeypatch.setattr("gpuwhy.remedies.verifying.service.is_server", lambda _: False)
    monkeypatch.setattr("gpuwhy.remedies.verifying.service.SHORT", 0.2)
    monkeypatch.setattr("gpuwhy.investigate.target.investigate", lambda *_, **__: seed)
    return made


def desk(tmp_path: Path, allow_apply: bool) -> Desk:
    return Desk(allowed([], [tmp_path]), Manner(allow_apply=allow_apply, budget=20_000))


def proposed(at: Desk, **arguments: Any) -> dict[str, Any]:
    reply = at.call("propose_fix", {"where": "local", **arguments})
    assert not reply.is_error, reply.text
    return reply.document


def test_without_a_remedy_all_are_listed(scratch: Scratch, tmp_path: Path) -> None:
    listed = proposed(desk(tmp_path, False))["remedies"]
    assert [each["number"] for each in listed] == list(range(1, len(listed) + 1))
    assert any(each.get("explained_only") for each in listed)


def test_a_preview_shows_the_file_and_changes_nothing(scratch: Scratch, tmp_path: Path) -> None:
    shown = proposed(desk(tmp_path, False), remedy=REMEDY)
    assert shown["preview"]["restarts"] == UNIT
    assert f'+Environment="{REMEDY}"' in shown["diff"][0]["lines"]
    assert "apply_token" not in shown
    assert not (scratch.root / DROP_IN).exists()


def test_without_leave_no_token_helps(scratch: Scratch, tmp_path: Path) -> None:
    token = proposed(desk(tmp_path, True), remedy=REMEDY)["apply_token"]
    assert desk(tmp_path, False).call("propose_fix", {"where": "local", "apply_token": token}).is_error
    assert not (scratch.root / DROP_IN).exists()


def test_with_leave_and_the_token_the_change_is_made_once(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuwhy.remedies.applying.fixing import Trying

    monkeypatch.setattr("gpuwhy.mcp.proposing.Trying", lambda: Trying(grace=0.3, deadline=5.0))
    at = desk(tmp_path, True)
    token = proposed(at, remedy=REMEDY)["apply_token"]
    result = proposed(at, apply_token=token)["result"]
    assert result["is_in_force"] is True
    assert result["undo"].startswith("gpuwhy undo local ")
    assert (scratch.root / DROP_IN).exists()
    again = at.call("propose_fix", {"where": "local", "apply_token": token})
    assert again.is_error
    assert "was used" in again.document["error"]


def test_a_made_up_token_changes_nothing(scratch: Scratch, tmp_path: Path) -> None:
    at = desk(tmp_path, True)
    token = proposed(at, remedy=REMEDY)["apply_token"]
    for wrong in ("x", token[:-1] + ("0" if token[-1] != "0" else "1"), token.upper()):
        assert at.call("propose_fix", {"where": "local", "apply_token": wrong}).is_error
    assert not (scratch.root / DROP_IN).exists()


def test_a_token_is_of_one_place_and_grows_old(scratch: Scratch, seed: Diagnosis) -> None:
    now = [0.0]
    proposals = Proposals(allow_apply=True, clock=lambda: now[0])
    diagnosis, target = prescribe(seed), LocalTarget()
    head, _ = proposals.preview(diagnosis, REMEDY, target)
    with pytest.raises(TokenError, match="of local, not of other"):
        proposals.apply(head["apply_token"], "other", target)
    head, _ = proposals.preview(diagnosis, REMEDY, target)
    now[0] = LIFE + 1
    with pytest.raises(TokenError, match="too old"):
        proposals.apply(head["apply_token"], "local", target)
    assert not (scratch.root / DROP_IN).exists()


def test_what_is_only_explained_gives_no_token(scratch: Scratch, tmp_path: Path) -> None:
    at = desk(tmp_path, True)
    (number, *_) = [each["number"] for each in proposed(at)["remedies"] if each.get("explained_only")]
    shown = proposed(at, remedy=str(number))
    assert shown["not_applied"]["why"]
    assert "apply_token" not in shown
