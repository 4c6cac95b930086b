"""A change from its first byte to its end, or back: the only place where a record's state and the target both move.

The order is always the same: the record says what comes next and is on the disk; then it is done. So whoever finds
the record after a power cut knows the one step whose outcome is open, and every step can be done or taken back again.
"""

import time
from typing import Any, Dict, List, Optional

from gpuwhy.applier import services, steps
from gpuwhy.applier.history import (
    APPLIED,
    APPLYING,
    FAILED,
    IN_FORCE,
    INTERRUPTED,
    PREPARED,
    ROLLING_BACK,
    UNDONE,
    VERIFIED,
    History,
    Record,
    enter,
    summary,
)
from gpuwhy.applier.refusing import Refused
from gpuwhy.applier.speaking import Answer, Voice

WAITING, DOING, DONE, TAKEN_BACK = "waiting", "doing", "done", "taken back"

Request = Dict[str, Any]


class Changer:
    """Makes and takes back the changes of one target. Every method wants the lock held."""

    def __init__(self, history: History, voice: Voice) -> None:
        self._history = history
        self._voice = voice
        self._root = history.root

    def apply(self, request: Request) -> Answer:
        """The plan of the request, unless the target holds it already or an earlier change was interrupted."""
        plan = request["plan"]
        left = self._interrupted()
        if left is not None:
            return _interruption(left)
        steps.check(self._root, plan)
        if self._is_in_place(plan):
            return {"status": "unchanged", "reason": "everything that the plan would write is there already"}
        record = self._prepared(request, plan)
        return self._settled(record, request) if self._perform(record) else _ended(record)

    def finish(self, request: Request) -> Answer:
        """Goes on with a change that was interrupted, in the direction in which it went."""
        record = self._record(request["id"])
        if record["state"] == ROLLING_BACK:
            self._roll_back(record, "its interrupted undo was finished", bool(request.get("force")))
            return _ended(record)
        if record["state"] != APPLYING:
            raise Refused("change %d is %s: there is nothing to finish" % (record["id"], record["state"]))
        return self._settled(record, request) if self._perform(record) else _ended(record)

    def undo(self, request: Request) -> Answer:
        """Takes a change back: the one that is named, else the last that is in force."""
        record = self._record(request.get("id"))
        if record["state"] in (UNDONE, PREPARED):
            return {"status": "unchanged", "reason": "it is undone already", "record": summary(record)}
        later = self._later_on_same_paths(record)
        if later:
            raise Refused(
                "change %d wrote to the same file after change %d" % (later[-1]["id"], record["id"]),
                "Undo change %d first." % later[-1]["id"],
            )
        force = bool(request.get("force"))
        self._check_undo(record, force)
        self._roll_back(record, str(request.get("reason") or "undone on request"), force)
        return _ended(record)

    def conclude(self, request: Request) -> Answer:
        """Writes down what a verification showed of a change."""
        record = self._record(request["id"])
        record["verification"] = request.get("verification")
        if request.get("is_verified") and record["state"] in (APPLIED, VERIFIED):
            enter(record, VERIFIED)
        self._history.save(record)
        return _ended(record)

    def _prepared(self, request: Request, plan: Record) -> Record:
        for step in plan["steps"]:
            step["state"] = WAITING
        unit = plan.get("unit") or ""
        record: Record = {
            "format": 1,
            "id": 0,
            "gpuwhy": request.get("version", ""),
            "made": round(time.time(), 3),
            "title": plan.get("title", ""),
            "remedy": plan.get("remedy", {}),
            "unit": unit,
            "manager": plan.get("manager", "system"),
            "unit_before": services.properties(plan["manager"], unit) if unit else {},
            "steps": plan["steps"],
            "states": [],
        }
        enter(record, PREPARED)
        self._history.check_room(2 * len(repr(record)))
        self._history.number(record)
        return record

    def _perform(self, record: Record) -> bool:
        """Does what is left of the steps. False when one failed and all of it was taken back."""
        enter(record, APPLYING)
        for step in record["steps"]:
            if step["state"] == DONE:
                continue
            try:
                step["state"] = DOING
                self._history.save(record)
                steps.do(self._root, record, step)
            except (Refused, OSError) as error:
                reason = _words_of(error)
                self._voice.step(named(step), "failed", reason)
                self._roll_back(record, reason, force=False)
                return False
            step["state"] = DONE
            self._voice.step(named(step), "ok")
        enter(record, APPLIED)
        try:
            self._history.save(record)
        except Refused as error:
            self._roll_back(record, _words_of(error), force=False)
            return False
        return True

    def _settled(self, record: Record, request: Request) -> Answer:
        """Waits until the restarted unit is stable; rolls back where it is not, unless told to keep the change."""
        restart = next((step for step in record["steps"] if step["step"] == "restart"), None)
        settle = request.get("settle") or {}
        if restart is None or not settle:
            return _ended(record)
        grace = settle.get("grace")
        is_stable, words, seen = services.wait_until_stable(
            record["manager"],
            record["unit"],
            services.grace_for(record["unit_before"]) if grace is None else float(grace),
            float(settle.get("deadline", 600.0)),
            restart.get("invocation", ""),
            lambda told: self._voice.step("service", "ok", told),
        )
        if is_stable:
            is_stable, words = self._has_variables(settle.get("variables") or {}, seen, words)
        self._voice.step("stability", "ok" if is_stable else "failed", words)
        if not is_stable and not settle.get("keep"):
            self._roll_back(record, words, force=False)
        # also for who looks into the journal after the connection was lost
        record["stability"] = {"is_stable": is_stable, "words": words, "seen": seen}
        self._save_if_possible(record)
        answer = _ended(record)
        answer["stability"] = record["stability"]
        return answer

    def _has_variables(self, wanted: Dict[str, Any], seen: Dict[str, Any], words: str) -> "tuple[bool, str]":
        """Whether the running process was given the variables: another file may have the last word."""
        given = services.variables_of(seen["unit"].get("MainPID", ""))
        if given is None or not wanted:
            return True, words
        for name, value in sorted(wanted.items()):
            is_set = any(each.startswith(name + "=") for each in given)
            if (value is None and is_set) or (value is not None and "%s=%s" % (name, value) not in given):
                asked = "without %s" % name if value is None else "with %s=%s" % (name, value)
                return False, "the process does not run %s: something else that sets it has the last word" % asked
        return True, words

    def _roll_back(self, record: Record, reason: str, force: bool) -> None:
        """Takes back what was begun, last step first, and ends in ``undone``; in ``failed`` where that was not possible.

        The journal is kept as far as the disk lets it: taking back a file that we added needs no room, writing does.
        """
        enter(record, ROLLING_BACK, reason)
        self._save_if_possible(record)
        begun = [step for step in record["steps"] if step["state"] in (DOING, DONE)]
        try:
            for step in reversed(begun):
                if step["step"] in steps.OF_FILES or step["step"] == "run":
                    steps.take_back(self._root, step, force)
                    self._voice.step("back: " + named(step), "ok")
            for act in _service_acts(record, begun):
                services.perform(act, record["manager"], record["unit"])
                self._voice.step("back: %s %s" % (act, record["unit"]), "ok")
        except (Refused, OSError) as error:
            self._voice.step("back", "failed", _words_of(error))
            enter(record, FAILED, _words_of(error))
        else:
            for step in begun:
                step["state"] = TAKEN_BACK
            enter(record, UNDONE, reason)
        self._save_if_possible(record)

    def _save_if_possible(self, record: Record) -> None:
        try:
            self._history.save(record)
        except Refused as error:
            self._voice.step("journal", "failed", error.reason)

    def _check_undo(self, record: Record, force: bool) -> None:
        """Raises Refused before anything is taken back when a file was changed by hand since."""
        if force:
            return
        for step in record["steps"]:
            if step["step"] in ("write", "remove") and step["state"] in (DOING, DONE):
                steps.check_unchanged(self._root, step)

    def _is_in_place(self, plan: Record) -> bool:
        on_files = [step for step in plan["steps"] if step["step"] in steps.OF_FILES]
        others = [step for step in plan["steps"] if step["step"] == "run"]
        return bool(on_files) and not others and all(steps.is_done(self._root, step) for step in on_files)

    def _interrupted(self) -> Optional[Record]:
        """The change that an earlier run left half done; one that had not begun is closed on the way."""
        for record in self._history.records():
            if record["state"] == PREPARED:
                enter(record, UNDONE, "interrupted before its first step")
                self._history.save(record)
            if record["state"] in INTERRUPTED:
                return record
        return None

    def _record(self, number: Optional[int]) -> Record:
        records = self._history.records()
        if number is None:
            in_force = [record for record in records if record["state"] in IN_FORCE]
            if not in_force:
                raise Refused("no change of gpuwhy's is in force here", "`gpuwhy history` lists those there were.")
            return in_force[-1]
        for record in records:
            if record["id"] == number:
                if record["state"] == "unreadable":
                    raise Refused("the record of change %d cannot be read: %s" % (number, record["reason"]))
                return record
        raise Refused("there is no change %d here" % number, "`gpuwhy history` lists them.")

    def _later_on_same_paths(self, record: Record) -> List[Record]:
        paths = _written(record)
        return [
            later
            for later in self._history.records()
            if later["id"] > record["id"] and later["state"] in IN_FORCE and paths & _written(later)
        ]


def _words_of(error: Exception) -> str:
    """A refusal with its advice; the system's own error where it came unforeseen."""
    if isinstance(error, Refused):
        return "%s. %s" % (error.reason, error.advice) if error.advice else error.reason
    return str(error)


def named(step: Dict[str, Any]) -> str:
    """A step in a few words: ``write /etc/...``, ``restart``."""
    if step["step"] == "run":
        return "run " + " ".join(step["argv"])
    return " ".join([step["step"]] + ([step["path"]] if "path" in step else []))


def _service_acts(record: Record, begun: List[Dict[str, Any]]) -> List[str]:
    """What the unit needs once its files are back: loaded anew, and brought to where it was before."""
    acts = [step["step"] for step in record["steps"] if step["step"] in steps.OF_SERVICES]
    if "restart" in [step["step"] for step in begun]:
        was_off = record["unit_before"].get("ActiveState") in ("inactive", "deactivating")
        return [act if act != "restart" or not was_off else "stop" for act in acts]
    return [act for act in acts if act == "daemon-reload" and begun]


def _written(record: Record) -> "set[str]":
    return {step["path"] for step in record["steps"] if step["step"] in ("write", "remove", "move-aside")}


def _interruption(record: Record) -> Answer:
    return {
        "status": "interrupted",
        "reason": "change %d was interrupted while it was %s" % (record["id"], record["state"]),
        "record": summary(record),
    }


def _ended(record: Record) -> Answer:
    return {"status": record["state"], "reason": record.get("reason", ""), "record": summary(record)}
