"""The kinds of step a plan can have, and for each: whether it may be done, how it is done, how it is taken back.

    {"step": "folder", "path": P, "mode": 493}                  a folder of ours, when it is not there
    {"step": "write", "path": P, "content": TEXT, "mode": 420, "before": SHA256 or "absent"}
    {"step": "remove", "path": P, "before": SHA256}             a file that gpuwhy wrote
    {"step": "move-aside", "path": P, "to": P2}                 a cache: renamed beside itself, not deleted
    {"step": "run", "argv": [...], "undo": [...], "deadline": S, "folder": P, "environment": {...}}
    {"step": "daemon-reload" | "reset-failed" | "restart"}      of the one unit that the plan names, no other

Doing a step again, or taking it back again, after an interruption gives the same result as doing it once.
"""

import errno
import os
from typing import Any, Dict, List

from gpuwhy.applier import commands, files, services
from gpuwhy.applier.history import Record
from gpuwhy.applier.paths import Folder, nearest_folder, open_folder, open_inner, split
from gpuwhy.applier.refusing import Missing, Refused, refused_by
from gpuwhy.redaction import Redactor

Step = Dict[str, Any]

OF_FILES = ("folder", "write", "remove", "move-aside")
OF_SERVICES = ("daemon-reload", "reset-failed", "restart")
KINDS = (*OF_FILES, *OF_SERVICES, "run")

MOST_STEPS = 100

AFTER = ".after"
"""Ends the name of what was made anew in the place of something moved aside, once that is taken back."""


def check(root: str, plan: Record) -> None:
    """Raises Refused unless every step may be done here; notes in each what it would replace. Changes nothing."""
    steps = plan.get("steps")
    if not isinstance(steps, list) or not 0 < len(steps) <= MOST_STEPS:
        raise Refused("the plan has no steps")
    if any(step.get("step") in OF_SERVICES for step in steps):
        services.check_name(str(plan.get("unit")))
    paths = [step["path"] for step in steps if "path" in step]
    if len(paths) != len(set(paths)):
        raise Refused("the plan changes one path twice")
    for step in steps:
        _check_step(root, step)


def do(root: str, plan: Record, step: Step) -> None:
    """Does a checked step. Raises Refused."""
    kind = step["step"]
    if kind == "folder":
        _make_folder(root, step)
    elif kind in ("write", "remove"):
        _become(root, step, wanted(step), expected=step["replaces"])
    elif kind == "move-aside":
        _move(root, step, step["path"], step["to"])
    elif kind == "run":
        _run(step, step["argv"])
    else:
        if kind == "restart":
            step["invocation"] = services.properties(plan["manager"], plan["unit"]).get("InvocationID", "")
        services.perform(kind, plan["manager"], plan["unit"])


def take_back(root: str, step: Step, force: bool) -> None:
    """Takes a step back, done or half done. Raises Refused: for a file that somebody changed since, unless ``force``."""
    kind = step["step"]
    if kind == "folder":
        _remove_folder(root, step)
    elif kind in ("write", "remove"):
        _take_back_file(root, step, force)
    elif kind == "move-aside":
        _move_back(root, step)
    elif kind == "run" and step.get("undo"):
        _run(step, step["undo"])


def wanted(step: Step) -> files.State:
    """What the step's file is afterwards."""
    if step["step"] == "remove":
        return dict(files.ABSENT)
    data = step["content"].encode("utf-8")
    return {
        "is": "file",
        "bytes": files.encoded(data),
        "sha256": files.digest(data),
        "mode": step["mode"],
        "uid": step.get("uid", os.geteuid()),
        "gid": step.get("gid", os.getegid()),
    }


def is_done(root: str, step: Step) -> bool:
    """Whether a step on files finds the target as it would leave it."""
    try:
        folder, name = split(step["path"])
        with open_folder(root, folder, step.get("owners", ())) as opened:
            if step["step"] == "folder":
                return opened.state(name) is not None
            if step["step"] == "move-aside":
                return opened.state(name) is None
            return files.is_same(files.read(opened, name), wanted(step))
    except Missing:
        return step["step"] in ("remove", "move-aside")


def check_unchanged(root: str, step: Step) -> None:
    """Raises Refused when the step's file is neither as the step left it nor as it was before."""
    folder, name = split(step["path"])
    try:
        with open_folder(root, folder, step.get("owners", ())) as opened:
            current = files.read(opened, name)
    except Missing:
        current = dict(files.ABSENT)
    if not files.is_same(current, wanted(step)) and not files.is_same(current, step["replaces"]):
        raise _changed_by_hand(step, current)


def looks_secret(text: str) -> bool:
    """Whether a text holds what must not be copied into a file of ours or into the journal."""
    return Redactor().text(text) != text


def _check_step(root: str, step: Step) -> None:
    kind = step.get("step")
    if kind not in KINDS:
        raise Refused("the plan has a step of an unknown kind: %r" % str(kind)[:60])
    if kind in OF_FILES:
        folder, name = split(step["path"])
        with nearest_folder(root, folder, step.get("owners", ())) as nearest:
            _check_in(nearest, folder, name, step)
    elif kind == "run":
        words = [*step["argv"], *step.get("undo", ())]
        if not step["argv"] or not all(isinstance(word, str) and "\0" not in word for word in words):
            raise Refused("a command of the plan is no list of words")
        if looks_secret("\n".join(words)):
            raise Refused("a command of the plan holds what looks like a secret")


def _check_in(nearest: Folder, folder: str, name: str, step: Step) -> None:
    """``nearest`` is the step's folder, or what is there of the way to it."""
    is_there = nearest.path == folder
    found = nearest.state(name) if is_there else None
    if step["step"] == "folder":
        step["replaces"] = {"is": "absent" if found is None else "folder"}
        if found is not None:
            with open_inner(nearest, name, step.get("owners", ())):
                return
        files.check_room(nearest, 0)
    elif step["step"] == "move-aside":
        step["replaces"] = {"is": "absent" if found is None else "something"}
        to_folder, to_name = split(step["to"])
        if to_folder != folder or (is_there and nearest.state(to_name) is not None):
            raise Refused("%s is not free to take what is moved aside" % step["to"])
        files.check_room(nearest, 0)
    else:
        step["replaces"] = files.read(nearest, name) if is_there else dict(files.ABSENT)
        _check_content(step)
        files.check_room(nearest, len(step.get("content", "")) * 2)


def _check_content(step: Step) -> None:
    replaces, path = step["replaces"], step["path"]
    if replaces["is"] == "file" and files.is_same(replaces, wanted(step)):
        return
    before = replaces.get("sha256", "absent")
    if before != step["before"]:
        raise Refused("%s was changed since the preview was made" % path, "Run the command again for a new preview.")
    if step["step"] == "write" and looks_secret(step["content"]):
        raise Refused("what would be written to %s holds what looks like a secret" % path, "Make this change by hand.")
    if replaces["is"] == "file" and looks_secret(files.content_of(replaces).decode("utf-8", "replace")):
        raise Refused(
            "%s holds what looks like a secret, and its old content would be copied into the journal" % path,
            "Make this change by hand, or move the secret into a file of its own (EnvironmentFile=, LoadCredential=).",
        )


def _become(root: str, step: Step, state: files.State, expected: files.State) -> None:
    folder, name = split(step["path"])
    with open_folder(root, folder, step.get("owners", ())) as opened:
        current = files.read(opened, name)
        if files.is_same(current, state):
            return
        if not files.is_same(current, expected):
            raise Refused("%s was changed by somebody else meanwhile" % step["path"])
        files.replace(opened, name, state)


def _take_back_file(root: str, step: Step, force: bool) -> None:
    folder, name = split(step["path"])
    try:
        opened = open_folder(root, folder, step.get("owners", ()))
    except Missing:
        if step["replaces"]["is"] == "absent":
            return
        raise
    with opened:
        files.clear_leftovers(opened, name)
        current = files.read(opened, name)
        if files.is_same(current, step["replaces"]):
            return
        if not files.is_same(current, wanted(step)):
            if not force:
                raise _changed_by_hand(step, current)
            if current["is"] == "file":
                # nothing of anybody's work is lost: the file stays beside, under a name that systemd does not read
                files.replace(opened, name + ".edited", current)
        files.replace(opened, name, step["replaces"])


def _changed_by_hand(step: Step, current: files.State) -> Refused:
    import difflib

    def lines(state: files.State) -> List[str]:
        return files.content_of(state).decode("utf-8", "replace").splitlines() if state["is"] == "file" else []

    refused = Refused(
        "%s was changed by hand after gpuwhy wrote it" % step["path"],
        "Take it back all the same with --force: what is there now is then kept beside it, in a file that ends in .edited.",
    )
    differences = difflib.unified_diff(lines(wanted(step)), lines(current), "as gpuwhy wrote it", "as it is now", lineterm="")  # fmt: skip
    refused.detail["diff"] = list(differences)[:200]
    return refused


def _make_folder(root: str, step: Step) -> None:
    folder, name = split(step["path"])
    with open_folder(root, folder, step.get("owners", ())) as opened:
        if opened.state(name) is not None:
            return
        try:
            os.mkdir(name, step["mode"], dir_fd=opened.descriptor)
            opened.sync()
        except OSError as error:
            raise refused_by(error, "create", step["path"])


def _remove_folder(root: str, step: Step) -> None:
    """A folder that the change made goes when nothing of others is in it."""
    if step["replaces"]["is"] != "absent":
        return
    try:
        folder, name = split(step["path"])
        with open_folder(root, folder, step.get("owners", ())) as opened:
            os.rmdir(name, dir_fd=opened.descriptor)
            opened.sync()
    except Missing:
        return
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise refused_by(error, "remove", step["path"])


def _move(root: str, step: Step, source: str, target: str) -> None:
    folder, name = split(source)
    _, to_name = split(target)
    with open_folder(root, folder, step.get("owners", ())) as opened:
        if opened.state(name) is None or opened.state(to_name) is not None:
            return
        try:
            os.rename(name, to_name, src_dir_fd=opened.descriptor, dst_dir_fd=opened.descriptor)
            opened.sync()
        except OSError as error:
            raise refused_by(error, "move", source)


def _move_back(root: str, step: Step) -> None:
    """What was made anew meanwhile is moved aside in its turn, so that neither is lost."""
    folder, name = split(step["path"])
    _, aside = split(step["to"])
    with open_folder(root, folder, step.get("owners", ())) as opened:
        if opened.state(aside) is None:
            return
        if opened.state(name) is not None:
            _move(root, step, step["path"], step["to"] + AFTER)
        _move(root, step, step["to"], step["path"])


def _run(step: Step, argv: List[str]) -> None:
    status, output = commands.run(
        argv, float(step.get("deadline", 60.0)), step.get("folder", "/"), step.get("environment")
    )
    step["output"] = Redactor().text(output)
    if status:
        raise Refused("%s ended with status %d: %s" % (" ".join(argv[:4]), status, step["output"][-600:]))
