"""Fixes for agents: what would be changed, and the change itself when the server allows it and the preview's token is given.

A token stands for one plan, to the letter: what is applied is what was shown. It works once and for a short time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from gpuwhy import api
from gpuwhy.mcp.answers import remedy_by_name, remedy_in_full
from gpuwhy.mcp.framing import NOTICE, said, typed
from gpuwhy.mcp.paging import Row
from gpuwhy.remedies.applying.fixing import Choice, Tried, Trying, choices, planned, try_remedy
from gpuwhy.remedies.applying.plan import NotApplied, Plan
from gpuwhy.remedies.applying.planning import is_never_applied
from gpuwhy.remedies.applying.site import Site
from gpuwhy.reports.fix import name_of
from gpuwhy.targets import HostTarget, Target, TargetError

if TYPE_CHECKING:
    from gpuwhy.model.diagnosis import Diagnosis

LIFE = 900.0
"""Seconds for which a token works."""
MOST_TOKENS = 32


class TokenError(api.GpuwhyError):
    """A token is not, or no longer, one of a preview, or it is of another place."""


class _Proposal(msgspec.Struct, frozen=True):
    where: str
    choice: Choice
    diagnosis: Diagnosis
    made: float


class Proposals:
    """Previews, and the tokens by which they are carried out. ``clock`` gives seconds."""

    def __init__(self, allow_apply: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.allow_apply = allow_apply
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._by_token: dict[str, _Proposal] = {}

    def listed(self, diagnosis: Diagnosis) -> tuple[dict[str, Any], list[Row]]:
        """All remedies, those that are only explained marked as such."""
        rows: list[Row] = []
        for choice in choices(diagnosis):
            row = remedy_by_name(choice.number, choice.remedy)
            if is_never_applied(choice.remedy):
                row["explained_only"] = True
            rows.append(("remedies", row))
        return _head(diagnosis), rows

    def preview(self, diagnosis: Diagnosis, wanted: str, target: Target) -> tuple[dict[str, Any], list[Row]]:
        """What carrying out one remedy would change. Raises UnusableError for a remedy that there is not; TargetError."""
        choice = chosen(choices(diagnosis), wanted)
        head = {**_head(diagnosis), "remedy": remedy_in_full(choice.number, choice.remedy)}
        if not isinstance(target, HostTarget) or target.kind not in ("local", "ssh"):
            head["not_applied"] = {"why": "this is not a host that gpuwhy changes: the commands are for a person"}
            return head, []
        with Site(target) as site:
            for record in site.look().interrupted:
                raise api.UnreachableError(
                    f"change {record.id} on {target.name} was interrupted: it must be finished or undone first\n"
                    f"Ask the user to run: gpuwhy undo {target.name} {record.id}"
                )
            choice = planned(choice, diagnosis, site)
        plan = choice.plan
        if isinstance(plan, NotApplied):
            head["not_applied"] = {"why": said(plan.why), "by_hand": [typed(each) for each in plan.instead]}
            return head, []
        if not isinstance(plan, Plan):
            raise api.UnusableError(f"remedy {wanted} has no plan")
        del head["remedy"]["commands"]
        head["preview"] = _preview(plan)
        if self.allow_apply and not plan.is_in_place:
            head["apply_token"] = self._token(_Proposal(target.name, choice, diagnosis, self._clock()))
        return head, [("diff", {"path": said(each.path), "lines": [typed(line) for line in each.diff()]}) for each in plan.files]  # fmt: skip

    def apply(self, token: str, where: str, target: Target) -> dict[str, Any]:
        """Makes the change that was previewed, verifies it, takes it back where it does not help. Raises TokenError, TargetError."""
        proposal = self._by_token.pop(token, None) if self.allow_apply else None
        if proposal is None or self._clock() - proposal.made > LIFE:
            raise TokenError(
                "this apply_token is none, was used, or is too old\nCall propose_fix with where and remedy for a new preview and token."
            )
        if where != proposal.where or not hmac.compare_digest(token, self._sealed(token.partition(".")[0], proposal)):
            raise TokenError(
                f"this apply_token is of {proposal.where}, not of {where}\nPreview the change there first."
            )
        if not isinstance(target, HostTarget):
            raise TokenError(f"{where} is no host\nName the host of the preview.")
        with Site(target) as site:
            result = try_remedy(proposal.choice, proposal.diagnosis, site, Trying())
        return {"result": _result(result, where), "notice": NOTICE}

    def _token(self, proposal: _Proposal) -> str:
        now = self._clock()
        self._by_token = {token: each for token, each in self._by_token.items() if now - each.made <= LIFE}
        while len(self._by_token) >= MOST_TOKENS:
            del self._by_token[next(iter(self._by_token))]
        token = self._sealed(secrets.token_hex(8), proposal)
        self._by_token[token] = proposal
        return token

    def _sealed(self, nonce: str, proposal: _Proposal) -> str:
        """The nonce with what seals place and plan: a token of one is none of another."""
        plan = proposal.choice.plan
        content = msgspec.json.encode([nonce, proposal.where, plan.document() if isinstance(plan, Plan) else None])
        return f"{nonce}.{hmac.new(self._secret, content, hashlib.sha256).hexdigest()[:32]}"


def chosen(offered: tuple[Choice, ...], wanted: str) -> Choice:
    """The remedy with this number or name. Raises UnusableError."""
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 4 and 1 <= int(wanted) <= len(offered):
        return offered[int(wanted) - 1]
    named = [choice for choice in offered if name_of(choice) == wanted]
    if not named:
        listed = "; ".join(f"{each.number}. {name_of(each)}" for each in offered[:12]) or "none"
        raise api.UnusableError(f"there is no remedy {wanted[:80]!r}; there are: {listed}")
    return named[0]


def _head(diagnosis: Diagnosis) -> dict[str, Any]:
    head: dict[str, Any] = {"where": said(diagnosis.where), "notice": NOTICE}
    if diagnosis.incident.unit:
        head["unit"] = said(diagnosis.incident.unit)
    if diagnosis.findings:
        first = diagnosis.findings[0]
        head |= {"cause": first.cause, "certainty": first.certainty.value, "title": said(first.title)}
    return head


def _preview(plan: Plan) -> dict[str, Any]:
    preview: dict[str, Any] = {
        "title": said(plan.title),
        "files": [said(each.path) for each in plan.files],
        "commands": [typed(each) for each in plan.commands()],
        "restarts": said(plan.unit),
        "notes": [said(note) for note in plan.notes],
    }
    if plan.is_in_place:
        preview["is_in_place"] = True
    return {key: value for key, value in preview.items() if value}


def _result(result: Tried, where: str) -> dict[str, Any]:
    outcome, verification = result.outcome, result.verification
    told: dict[str, Any] = {
        "status": "refuted before anything was changed" if outcome is None else outcome.status,
        "is_in_force": result.is_in_force,
        "reached_rung": verification.reached,
        "unproven": list(verification.unproven),
    }
    if verification.refuted is not None:
        told["refuted"] = said(f"{verification.refuted.name}: {verification.refuted.words}")
    if outcome is not None:
        told |= {"reason": said(outcome.reason), "advice": said(outcome.advice)}
        if outcome.stability is not None:
            told["stability"] = said(outcome.stability.words)
        if outcome.record is not None and result.is_in_force:
            told["undo"] = f"gpuwhy undo {where} {outcome.record.id}"
    return {key: value for key, value in told.items() if value not in ("", [])}


def explained(error: TargetError) -> api.UnreachableError:
    """A host that did not let itself be looked at or changed."""
    return api.UnreachableError(str(error))
