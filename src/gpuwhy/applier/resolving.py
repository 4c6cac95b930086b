"""What an installer would do to a Python environment, asked of its own resolver; and the way back. Nothing is installed."""

import json
import os
import re
import shutil
import tempfile
from typing import Any, Dict, List, Optional, Tuple

from gpuwhy.applier import commands
from gpuwhy.applier.refusing import Refused
from gpuwhy.applier.speaking import Answer

DEADLINE = 600.0
"""Seconds: a resolver may have to fetch the metadata of gigabytes of wheels."""

MOST_PACKAGES = 200

_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,100}[A-Za-z0-9])?$")
_REQUIREMENT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,100}(?:[=<>!~]{1,2}[A-Za-z0-9.*+!_-]{1,60}(?:,[=<>!~]{1,2}[A-Za-z0-9.*+!_-]{1,60})*)?$")  # fmt: skip
_OF_UV = re.compile(r"^ ?([+-]) ([A-Za-z0-9._-]{1,100})==(\S{1,80})")

Change = Dict[str, Optional[str]]


def resolve(request: Dict[str, Any]) -> Answer:
    """``changes``: each package with its version ``before`` and ``after`` (null: not there). Raises Refused.

    ``python`` is the interpreter of the environment, ``requirements`` what is asked for, ``no_deps`` whether nothing
    else may move, ``removes`` whether they are taken out, ``uv`` whether uv made the environment.
    """
    python, wanted = str(request["python"]), [str(each) for each in request["requirements"]]
    if not os.path.isabs(python) or not os.access(python, os.X_OK):
        raise Refused("%s is no interpreter that can be run" % python)
    if not wanted or not all(_REQUIREMENT.match(each) for each in wanted):
        raise Refused("%s cannot be given to an installer" % ", ".join(wanted)[:200])
    installer = _Uv(python) if request.get("uv") else _Pip(python)
    installed = installer.installed()
    if request.get("removes"):
        changes: List[Change] = [
            {"name": each, "before": installed.get(_plain(each)), "after": None} for each in wanted
        ]
        changes = [each for each in changes if each["before"]]
    else:
        after = installer.resolved(wanted, bool(request.get("no_deps")))
        changes = [{"name": name, "before": installed.get(_plain(name)), "after": version} for name, version in after]
        changes = [each for each in changes if each["before"] != each["after"]]
    if len(changes) > MOST_PACKAGES:
        raise Refused("%d packages would change: that is another environment, not a remedy" % len(changes))
    back = ["%s==%s" % (each["name"], each["before"]) for each in changes if each["before"]]
    unreachable = installer.unreachable(back) if back else ""
    return {"status": "ok", "changes": changes, "installer": installer.words, "no_way_back": unreachable}


class _Pip:
    def __init__(self, python: str) -> None:
        self.words = [python, "-m", "pip"]

    def installed(self) -> Dict[str, str]:
        status, output = commands.run(
            [*self.words, "list", "--disable-pip-version-check", "--no-input", "--format=freeze"], 60.0, keeps=1 << 20
        )
        if status:
            raise Refused("pip does not list what is installed: %s" % output[-300:])
        pairs = (line.partition("==") for line in output.splitlines())
        return {_plain(name): version for name, sign, version in pairs if sign}

    def resolved(self, wanted: List[str], is_alone: bool) -> List[Tuple[str, str]]:
        folder = tempfile.mkdtemp(prefix="gpuwhy-resolve-")
        try:
            report = os.path.join(folder, "report.json")
            options = ["--dry-run", "--report", report, "--only-binary=:all:"] + (["--no-deps"] if is_alone else [])
            status, output = commands.run([*self.words, *_QUIET, "install", *options, *wanted], DEADLINE)
            if status:
                raise Refused("pip cannot resolve %s: %s" % (" ".join(wanted), output[-600:]))
            with open(report, encoding="utf-8") as stream:
                found = json.load(stream)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        listed = [(str(each["metadata"]["name"]), str(each["metadata"]["version"])) for each in found["install"]]
        return [pair for pair in listed if _NAME.match(pair[0])]

    def unreachable(self, pins: List[str]) -> str:
        """Why the installed versions could not be fetched again; ``""`` when they could."""
        options = ["--dry-run", "--no-deps", "--ignore-installed", "--only-binary=:all:"]
        status, output = commands.run([*self.words, *_QUIET, "install", *options, *pins], DEADLINE)
        return output[-400:] if status else ""


class _Uv:
    def __init__(self, python: str) -> None:
        self._python = python
        self.words = ["uv", "pip"]

    def installed(self) -> Dict[str, str]:
        status, output = commands.run(
            [*self.words, "list", "--python", self._python, "--format=json"], 60.0, keeps=1 << 20
        )
        if status:
            raise Refused("uv does not list what is installed: %s" % output[-300:])
        try:
            listed = json.loads(output[output.index("[") :])
            return {_plain(str(each["name"])): str(each["version"]) for each in listed}
        except (ValueError, KeyError, TypeError):
            raise Refused("uv's list of what is installed cannot be read")

    def resolved(self, wanted: List[str], is_alone: bool) -> List[Tuple[str, str]]:
        options = ["--no-deps"] if is_alone else []
        argv = [*self.words, "install", "--dry-run", "--python", self._python, *options, *wanted]
        status, output = commands.run(argv, DEADLINE, keeps=1 << 18)
        if status:
            raise Refused("uv cannot resolve %s: %s" % (" ".join(wanted), output[-600:]))
        found = (_OF_UV.match(line) for line in output.splitlines())
        return [(each.group(2), each.group(3)) for each in found if each and each.group(1) == "+"]

    def unreachable(self, pins: List[str]) -> str:
        argv = [*self.words, "install", "--dry-run", "--no-deps", "--reinstall", "--python", self._python, *pins]
        status, output = commands.run(argv, DEADLINE)
        return output[-400:] if status else ""


_QUIET = ("--disable-pip-version-check", "--no-input", "--quiet")


def _plain(name: str) -> str:
    """Names of packages are equal whatever their case and separators."""
    return re.sub(r"[-_.]+", "-", name).lower()
