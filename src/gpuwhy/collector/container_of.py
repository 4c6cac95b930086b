"""Which container is examined: the one that was named, or the one that the failing unit runs.

ExecStart=/usr/bin/docker run --rm --name vllm --gpus all vllm/vllm-openai:v0.10.0 --model ...
ExecStart=/usr/bin/podman run --name=systemd-vllm --cidfile=/run/vllm.cid ...               a quadlet
ExecStart=/usr/bin/docker start --attach vllm
ExecStart=/usr/bin/docker compose --project-directory /srv/vllm up
"""

import os
import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

from gpuwhy.collector.engines import ENGINES, NAME, Container, ask, requested
from gpuwhy.collector.launching import SHELLS
from gpuwhy.collector.probing import Absent, Notes, NoValue, Request, first_of
from gpuwhy.collector.process import arguments
from gpuwhy.collector.reading import try_line, try_text
from gpuwhy.collector.unit import split


def container_of(
    request: Request, notes: Notes, unit: Optional[Dict[str, Any]], candidates: Optional[List[Dict[str, Any]]]
) -> Container:
    """Raises Absent when nothing leads to a container."""
    named = requested(request)
    if named is not None:
        return named
    first = (candidates or [{}])[0]
    kind, _, word = str(first.get("kind") or "").partition(" ")
    if word == "container" and kind in ENGINES and NAME.match(str(first.get("name") or "")):
        return Container(kind, str(first["name"]))
    if unit is None:
        raise Absent("no container was named, and there is no unit that could run one")
    found = of_unit(unit, notes)
    if found is None:
        raise Absent("%s runs no container" % unit["name"])
    return found


def of_unit(unit: Dict[str, Any], notes: Notes) -> Optional[Container]:
    """The container that a unit starts: by its start command, else by podman's label, else by what runs in its cgroup."""
    for command in unit.get("commands") or []:
        words = engine_words(command)
        if words:
            found = _by_command(words, unit, notes)
            if found is not None:
                return found
    return _by_label(unit, notes) or _by_cgroup(unit)


def engine_words(command: Sequence[str]) -> List[str]:
    """The words of the engine's client within a start command, the client first: past ``env``, ``sh -c`` and start scripts."""
    words = [str(word) for word in command]
    if not words:
        return []
    first = words[0].lstrip("@-:+!")
    if os.path.basename(first) in SHELLS:
        inline = next((at for at, word in enumerate(words) if re.match(r"^-[a-z]*c$", word)), None)
        text = " ".join(words[inline + 1 :]) if inline is not None else _script(words[1] if len(words) > 1 else "")
        return _in_text(text)
    return _client(words) or _in_text(_script(first))


def _client(words: List[str]) -> List[str]:
    """From the engine's client on, where it stands among the first words: behind ``env A=b``, ``exec``, ``nice``."""
    for at, word in enumerate(words[:12]):
        name = os.path.basename(word.lstrip("@-:+!"))
        if name in ENGINES:
            return [name] + words[at + 1 :]
        if name in ("docker-compose", "podman-compose"):
            return [name.partition("-")[0], "compose"] + words[at + 1 :]
    return []


def _in_text(text: str) -> List[str]:
    """The last command of a shell text that starts a container: what comes before it clears away and pulls."""
    found: List[str] = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.lstrip().startswith("#"):
            continue
        for part in re.split(r"&&|\|\||[;|()]", line[:8000]):
            words = _client(split(part))
            if words and _subcommand(words)[0] in ("run", "start", "compose"):
                found = words
    return found


def _script(path: str) -> str:
    text = try_text(path, 1 << 16) if path.startswith("/") else None
    return text if text is not None and text.startswith("#!") and "\0" not in text else ""


def _subcommand(words: List[str]) -> Tuple[str, int]:
    """``run`` and where it stands: behind the client's own options."""
    for at, word in enumerate(words[1:], 1):
        if word in ("run", "start", "compose", "create", "exec", "play", "kube", "restart"):
            return word, at
    return "", 0


def _by_command(words: List[str], unit: Dict[str, Any], notes: Notes) -> Optional[Container]:
    engine = words[0]
    verb, at = _subcommand(words)
    rest = words[at + 1 :]
    if verb in ("run", "create"):
        return _of_run(engine, rest, unit, notes)
    if verb in ("start", "restart"):
        names = [word for word in rest if not word.startswith("-") and NAME.match(word)]
        return _container(engine, names[-1], unit, "%s starts it" % unit["name"]) if names else None
    if verb == "compose":
        return _of_compose(engine, rest, unit, notes)
    return None


def _of_run(engine: str, words: List[str], unit: Dict[str, Any], notes: Notes) -> Optional[Container]:
    by = "%s runs it" % unit["name"]
    name = option(words, "--name")
    if name and NAME.match(name):
        return _container(engine, name, unit, by)
    file = option(words, "--cidfile")
    identity = (try_line(file) or "") if file and file.startswith("/") else ""
    if re.match(r"^[0-9a-f]{12,64}$", identity):
        return _container(engine, identity, unit, by)
    # without a name the engine makes one up: the newest container of an image that the command names
    for line in _listed(engine, ["--format", "{{.Names}}\t{{.Image}}"], unit, notes):
        found, _, image = line.partition("\t")
        if image and image in words and NAME.match(found):
            return _container(engine, found, unit, "%s, by its image %s" % (by, image))
    return None


def _of_compose(engine: str, words: List[str], unit: Dict[str, Any], notes: Notes) -> Optional[Container]:
    """The container of the project that does not run, else its first."""
    project = option(words, "--project-name") or option(words, "-p")
    file = option(words, "--file") or option(words, "-f")
    folder = option(words, "--project-directory") or (os.path.dirname(file) if file and file.startswith("/") else None)
    folder = folder or str(first_of(unit.get("properties"), "WorkingDirectory", "")).lstrip("!-")
    if project:
        label = "com.docker.compose.project=" + project
    elif folder:
        label = "com.docker.compose.project.working_dir=" + os.path.normpath(folder)
    else:
        return None
    lines = _listed(engine, ["--filter", "label=" + label, "--format", "{{.Names}}\t{{.Status}}"], unit, notes)
    found = [line.partition("\t") for line in lines if NAME.match(line.partition("\t")[0])]
    ended = [name for name, _, status in found if not status.startswith("Up") and "Exited (0)" not in status]
    chosen = ended or [name for name, _, _ in found]
    by = "%s starts its compose project (%s)" % (unit["name"], ", ".join(name for name, _, _ in found[:10]))
    return _container(engine, chosen[0], unit, by) if chosen else None


def _by_label(unit: Dict[str, Any], notes: Notes) -> Optional[Container]:
    """podman writes the unit's name on containers that it makes for systemd."""
    text = " ".join(str(each.get("text")) for each in unit.get("files") or [])
    if "podman" not in text and "podman" not in " ".join(word for line in unit.get("commands") or [] for word in line):
        return None
    options = ["--filter", "label=PODMAN_SYSTEMD_UNIT=%s" % unit["name"], "--format", "{{.Names}}"]
    lines = _listed("podman", options, unit, notes)
    names = [line for line in lines if NAME.match(line)]
    return _container("podman", names[0], unit, "its label names %s" % unit["name"]) if names else None


def _by_cgroup(unit: Dict[str, Any]) -> Optional[Container]:
    """podman's monitor, or docker's client, among the processes of the unit."""
    group = str(first_of(unit.get("properties"), "ControlGroup", ""))
    if not group.startswith("/") or ".." in group:
        return None
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"):
        for pid in (try_text(root + group + "/cgroup.procs", 1 << 16) or "").split()[:200]:
            words = arguments(int(pid)) if pid.isdigit() else []
            if words and os.path.basename(words[0]) == "conmon":
                name = option(words, "-n") or option(words, "-c") or ""
                if NAME.match(name):
                    return _container("podman", name, unit, "its monitor runs in %s" % unit["name"])
    return None


def option(words: Sequence[str], name: str) -> Optional[str]:
    """The value of an option, as ``--name value`` or ``--name=value``."""
    for at, word in enumerate(words):
        if word == name and at + 1 < len(words):
            return words[at + 1]
        if word.startswith(name + "="):
            return word[len(name) + 1 :]
    return None


def _listed(engine: str, options: List[str], unit: Dict[str, Any], notes: Notes) -> List[str]:
    """Lines of ``ps --all``, the newest container first; none where the engine cannot be asked."""
    try:
        return ask(_container(engine, "", unit), ["ps", "--all", "--no-trunc"] + options, notes, 3.0).splitlines()[:200]
    except NoValue as why:
        notes.remark("%s: %s" % (engine, why.reason))
        return []


def _container(engine: str, name: str, unit: Dict[str, Any], found_by: str = "") -> Container:
    """A container that a unit runs: one of the account that the unit runs as."""
    account = str(first_of(unit.get("properties"), "User", ""))
    return Container(engine, name, found_by=found_by, account=account)
