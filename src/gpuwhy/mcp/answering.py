"""Answers a call of a tool, without any SDK: arguments in, one document out, or an error that says what to do next."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gpuwhy import api
from gpuwhy.mcp.allowing import Allowed, NotAllowedError
from gpuwhy.mcp.framing import said
from gpuwhy.mcp.paging import Pages, Row, UnknownCursorError
from gpuwhy.mcp.tools import (
    ApplyArguments,
    CauseArguments,
    CheckArguments,
    CollectArguments,
    DiagnoseArguments,
    InspectArguments,
    Name,
    ProposeArguments,
    TraceArguments,
    tools,
)

if TYPE_CHECKING:
    from gpuwhy.mcp.proposing import Proposals
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.model.fact import Facts

BUDGET = 3600
"""Bytes of an answer as JSON, about a thousand tokens of a model. A client is sent them twice: as text, and as a structure."""
MOST_TEXT = 4 << 20
_FRESH = 300.0
"""Seconds for which propose_fix takes the diagnosis that diagnose has just shown, so that its numbers are those."""
_SNAPSHOT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}\.gpuwhy")


class Reply(msgspec.Struct, frozen=True):
    """What a call comes to. An error has ``error`` and ``next``: what was wrong, and what to do."""

    document: dict[str, Any]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The document for a client that takes only text."""
        return msgspec.json.encode(self.document).decode()


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How whoever started the server wants it to look: with which rights, how long, how much at once, and whether it may change."""

    sudo: bool = False
    timeout: float = api.TIMEOUT
    budget: int = BUDGET
    allow_apply: bool = False


class Desk:
    """Answers calls, one at a time: the rest waits, as a host is not to be looked at twice at once."""

    def __init__(self, allowed: Allowed, manner: Manner | None = None) -> None:
        self.manner = manner or Manner()
        self.tools = {tool.name: tool for tool in tools(self.manner.allow_apply)}
        self._allowed = allowed
        self._pages = Pages(self.manner.budget)
        self._proposals: Proposals | None = None
        self._shown: dict[tuple[str, str], tuple[float, Diagnosis]] = {}
        self._lock = threading.Lock()
        self._verbs: dict[Name, Callable[[Any], dict[str, Any]]] = {
            "diagnose": self._diagnose,
            "collect": self._collect,
            "check": self._check,
            "inspect": self._inspect,
            "trace": self._trace,
            "cause": self._cause,
            "propose_fix": self._propose_fix,
        }

    def call(self, name: str, arguments: dict[str, Any] | None) -> Reply:
        """The answer of a tool. Whatever goes wrong is an answer too."""
        tool = next((each for each in self.tools.values() if each.name == name), None)
        if tool is None:
            return _error(f"there is no tool {name[:40]!r}", f"Use one of {', '.join(self.tools)}.")
        try:
            given = msgspec.convert(arguments or {}, tool.arguments, strict=False)
        except msgspec.ValidationError as error:
            known = ", ".join(tool.arguments.__struct_fields__)
            return _error(f"{name}: {error}", f"Its arguments are {known}.")
        try:
            with self._lock:
                document = self._pages.next(name, given.cursor) if given.cursor else self._verbs[tool.name](given)
        except UnknownCursorError:
            return _error("this cursor is not known any more, or was used", f"Call {name} again without cursor.")
        except NotAllowedError as error:
            return _error(*_parted(error, "Name something else, or ask the user."))
        except api.UnreachableError as error:
            return _error(*_parted(error, "Ask the user whether the host is up and `ssh` to it works without a password; or diagnose a log or snapshot file."))  # fmt: skip
        except api.GpuwhyError as error:
            return _error(*_parted(error, f"Correct the arguments of {name}."))
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the connection
            return _error(f"gpuwhy failed: {type(error).__name__}: {error}", "This is a fault of gpuwhy: try another tool, and tell the user.")  # fmt: skip
        return Reply(document)

    def _diagnose(self, given: DiagnoseArguments) -> dict[str, Any]:
        from gpuwhy.mcp.answers import diagnosis_head, diagnosis_rows

        if given.text and given.where:
            raise api.UnusableError("give where or text, not both\nFurther logs go into logs, as files.")
        if len(given.text) > MOST_TEXT:
            raise api.UnusableError(
                f"text has more than {MOST_TEXT} characters\nSave it as a file and name that in where."
            )
        where: api.Where = api.LogText(given.text, "text") if given.text else self._place(given.where, given.via)
        facts, doubts = _facts(given.facts)
        found = api.diagnose(
            where,
            unit=given.unit,
            logs=self._allowed.files(given.logs),
            facts=facts,
            pid=given.pid,
            via=given.via,
            sudo=self.manner.sudo,
            timeout=self.manner.timeout,
        )
        outcome = api.outcome_of(found)
        if isinstance(where, str) and not given.via:
            self._shown[(where, given.unit)] = (time.monotonic(), found)
        head = diagnosis_head(found, outcome) | doubts | _next_of(found)
        return self._answer("diagnose", head, diagnosis_rows(found))

    def _collect(self, given: CollectArguments) -> dict[str, Any]:
        from gpuwhy.snapshot import SnapshotError, write

        if not _SNAPSHOT_NAME.fullmatch(given.save_as):
            raise api.UnusableError("save_as must be a plain file name that ends in .gpuwhy\nFor example host.gpuwhy.")
        path = self._allowed.file(given.save_as)
        if path.exists():
            raise api.UnusableError(
                f"{given.save_as} is there already, and nothing is overwritten\nChoose another name."
            )
        snapshot = api.collect(
            self._place(given.where, given.via),
            unit=given.unit,
            via=given.via,
            sudo=self.manner.sudo,
            timeout=self.manner.timeout,
        )
        try:
            write(snapshot, path)
        except (SnapshotError, OSError) as error:
            raise api.UnusableError(f"{given.save_as} cannot be written: {error}") from error
        counts: dict[str, int] = {}
        for probe in snapshot.probes:
            counts[probe.status] = counts.get(probe.status, 0) + 1
        head = {
            "file": given.save_as,
            "probes": counts,
            "secrets_removed": sum(snapshot.redacted.values()),
            "next": f"diagnose, check or trace with where={given.save_as}",
        }
        missed = [each for each in snapshot.probes if each.status not in ("ok", "absent")]
        return self._pages.first("collect", head, [("not_examined", said(f"{each.name}: {each.status}: {each.reason}")) for each in missed])  # fmt: skip

    def _check(self, given: CheckArguments) -> dict[str, Any]:
        from gpuwhy.mcp.answers import forecast_head, forecast_rows

        facts, doubts = _facts(given.facts)
        found = api.check(
            self._place(given.where, given.via) if given.where else None,
            gpus=given.gpus,
            driver=given.driver,
            cuda=given.cuda,
            packages=given.packages,
            env=given.env,
            requirements=str(self._allowed.file(given.requirements)) if given.requirements else "",
            facts=facts,
            unit=given.unit,
            via=given.via,
            sudo=self.manner.sudo,
            timeout=self.manner.timeout,
        )
        return self._answer("check", forecast_head(found) | doubts, forecast_rows(found))

    def _inspect(self, given: InspectArguments) -> dict[str, Any]:
        from gpuwhy.mcp.answers import inspection_head, inspection_rows

        found = api.inspect(
            self._allowed.files(given.paths),
            gpu=given.gpu,
            driver=given.driver,
            kernel=given.kernel,
            needs=given.needs,
        )
        return self._answer("inspect", inspection_head(found), inspection_rows(found))

    def _trace(self, given: TraceArguments) -> dict[str, Any]:
        from gpuwhy.mcp.answers import trace_answer

        if not given.where and not given.venv:
            raise api.UnusableError(
                "name where the packages are\nGive where (a host, container or snapshot), or venv (a Python environment here)."
            )
        found = api.trace(
            given.question,
            where=self._place(given.where, given.via) if given.where else None,
            unit=given.unit,
            log=self._allowed.file(given.log) if given.log else None,
            # an environment at WHERE is a path there, of a place that is allowed
            venvs=([given.venv] if given.where else [self._allowed.file(given.venv)]) if given.venv else (),
            reads=given.reads,
            via=given.via,
            sudo=self.manner.sudo,
            timeout=self.manner.timeout,
        )
        return self._answer("trace", *trace_answer(found))

    def _cause(self, given: CauseArguments) -> dict[str, Any]:
        from gpuwhy.causes import catalogue
        from gpuwhy.mcp.answers import catalogue_rows, cause_rows

        if not given.id:
            return self._pages.first("cause", {}, catalogue_rows(list(catalogue().values())))
        entry = catalogue().get(given.id)
        if entry is None:
            import difflib

            close = ", ".join(difflib.get_close_matches(given.id, catalogue(), 3, 0.4))
            raise api.UnusableError(f"no cause is called {given.id[:60]}\n" + (f"Did you mean {close}?" if close else "Call cause without id for the list."))  # fmt: skip
        return self._pages.first("cause", {"id": entry.id, "family": entry.family}, cause_rows(entry.documentation))

    def _propose_fix(self, given: ProposeArguments) -> dict[str, Any]:
        from gpuwhy.mcp.proposing import Proposals, explained
        from gpuwhy.targets import TargetError

        if self._proposals is None:
            self._proposals = Proposals(self.manner.allow_apply)
        where = self._place(given.where, "")
        target = api.target_of(where, sudo=self.manner.sudo)
        try:
            if isinstance(given, ApplyArguments) and given.apply_token:
                # what was seen before the change is no longer so
                self._shown.clear()
                return self._answer("propose_fix", self._proposals.apply(given.apply_token, where, target), ())
            diagnosis = self._known(where, given.unit)
            if not diagnosis.findings or not diagnosis.findings[0].remedies:
                raise api.UnusableError(
                    f"{where}: no remedy is known\ndiagnose tells what was seen, and what to find out next."
                )
            if not given.remedy:
                return self._answer("propose_fix", *self._proposals.listed(diagnosis))
            return self._answer("propose_fix", *self._proposals.preview(diagnosis, given.remedy, target))
        except TargetError as error:
            raise explained(error) from error

    def _answer(self, tool: str, head: dict[str, Any], rows: Iterable[Row]) -> dict[str, Any]:
        folder = self._allowed.folders[0]
        named = ((section, _named_from(folder, value)) for section, value in rows)
        return self._pages.first(tool, _named_from(folder, head), named)

    def _known(self, where: str, unit: str) -> Diagnosis:
        """The diagnosis that was just shown, else a new one."""
        made, found = self._shown.get((where, unit), (0.0, None))
        if found is not None and time.monotonic() - made <= _FRESH:
            return found
        found = api.diagnose(where, unit=unit, sudo=self.manner.sudo, timeout=self.manner.timeout)
        self._shown = {(where, unit): (time.monotonic(), found)}
        return found

    def _place(self, where: str, via: str) -> str:
        if not where:
            raise api.UnusableError(
                f"name what to examine, in where (diagnose also takes text)\nName a file below {self._allowed.folders[0]}, or one of: {', '.join(self._allowed.places)}."
            )
        return self._allowed.place(where, via)


def _next_of(diagnosis: Diagnosis) -> dict[str, str]:
    """What an agent does with this diagnosis."""
    if not diagnosis.findings:
        return {}
    first = diagnosis.findings[0]
    fix = "propose_fix with the same where and unit, and the number of a remedy" if first.remedies else ""
    if first.certainty.value != "proven" and first.missing:
        told = "Not proven: the facts in `missing` (run their commands, or ask) would tell; diagnose again with them as facts"
        return {"next": f"{told}. Else {fix}." if fix else f"{told}."}
    return {"next": f"{fix}."} if fix else {}


def _named_from(folder: Path, value: Any) -> Any:
    """Files of the working folder as the agent names them, where an answer says what was read."""
    if isinstance(value, dict):
        prefix = f"{folder}/"
        return {key: each.removeprefix(prefix) if key in ("where", "at") and isinstance(each, str) else _named_from(folder, each) for key, each in value.items()}  # fmt: skip
    return [_named_from(folder, each) for each in value] if isinstance(value, list) else value


def _facts(given: dict[str, Any]) -> tuple[Facts | None, dict[str, Any]]:
    """The facts, and for the head of the answer what is odd about them: a key that nothing asks for."""
    if not given:
        return None, {}
    warnings: list[str] = []
    facts = api.facts_of(given, warnings.append)
    return facts, {"doubtful_facts": [said(each) for each in warnings[:8]]} if warnings else {}


def _parted(error: api.GpuwhyError, otherwise: str) -> tuple[str, str]:
    """What was wrong, and what to do: the last line of a message that has several."""
    what, _, advice = str(error).strip().rpartition("\n")
    return (what.replace("\n", " "), advice) if what else (advice, otherwise)


def _error(what: str, then: str) -> Reply:
    return Reply({"error": said(what), "next": said(then)}, is_error=True)


def working_folder(named: tuple[Path, ...]) -> tuple[Path, ...]:
    """The folders that were named, else the one that the server was started in."""
    return named or (Path.cwd(),)
