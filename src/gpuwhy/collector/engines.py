"""Asking docker, podman, nerdctl or kubectl: as the account's own configuration has it, read-only, with a deadline."""

import json
import os
import pwd
import re
import sys
from typing import Any, Dict, List, Optional

from gpuwhy.collector import commands
from gpuwhy.collector.probing import Absent, Denied, Failed, Notes, TimedOut
from gpuwhy.collector.user_managers import AS_OWNER

ENGINES = ("docker", "podman", "nerdctl")

KUBERNETES = "k8s"

NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}\Z")

DENIED = re.compile(r"permission denied|Forbidden|cannot (?:get|list|create) resource", re.IGNORECASE)

ABSENT = re.compile(
    r"no such (?:container|object)|no container with name or id|\(NotFound\)|not found in the pod", re.IGNORECASE
)

NOISE = re.compile(r"^(?:E\d{4} |I\d{4} |W\d{4} |WARN|time=\S{0,60} level=(?:warning|info))")
"""What clients print before their last word: kubectl's own log, podman's warnings."""


ERROR = re.compile(r"^(?:Error|Unable to|The connection|Cannot|permission denied)", re.IGNORECASE)
"""How the sentence begins that says why; what follows it may be a page of advice."""


class Container:
    """Which container is examined, and how its engine is asked. For a pod ``inner`` is the container in it.

    ``account`` owns the containers of a rootless podman: its units run as it, and nobody else's podman knows them.
    """

    def __init__(
        self, engine: str, name: str, namespace: str = "", inner: str = "", found_by: str = "", account: str = ""
    ) -> None:
        self.engine = engine
        self.name = name
        self.namespace = namespace
        self.inner = inner
        self.found_by = found_by
        self.account = account

    @property
    def client(self) -> str:
        return "kubectl" if self.engine == KUBERNETES else self.engine

    @property
    def subject(self) -> str:
        """Whose the facts are: ``container:docker:vllm``, ``container:k8s:ns/pod/name``."""
        parts = [part for part in (self.namespace, self.name, self.inner) if part]
        return "container:%s:%s" % (self.engine, "/".join(parts))

    def scope(self) -> List[str]:
        """kubectl's options that say where the pod is."""
        return ["--namespace", self.namespace] if self.namespace else []

    def executing(self, words: List[str]) -> List[str]:
        """The client's arguments that run ``words`` inside, with their standard input."""
        if self.engine == KUBERNETES:
            which = ["--container", self.inner] if self.inner else []
            return ["exec", "-i", self.name] + self.scope() + which + ["--"] + words
        return ["exec", "-i", self.name] + words


def requested(request: Dict[str, Any]) -> Optional[Container]:
    """The container that the request names. Raises Failed for one that cannot be."""
    asked = request.get("container")
    if not isinstance(asked, dict):
        return None
    engine, name = str(asked.get("engine") or ""), str(asked.get("name") or "")
    namespace, inner = str(asked.get("namespace") or ""), str(asked.get("container") or "")
    optional = [each for each in (namespace, inner) if each]
    if engine not in ENGINES + (KUBERNETES,) or not all(NAME.match(each) for each in [name] + optional):
        raise Failed("%r is not the name of a container" % name[:100])
    return Container(engine, name, namespace, inner)


class Client:
    """How an engine's client is started: the words before its own arguments, and its environment."""

    def __init__(self, container: Container) -> None:
        """Raises Absent where there is no such client."""
        self.words = [find(container.client)]
        self.environment = environment()
        owner = _other_owner(container)
        if owner is not None:
            python = sys.executable or "/usr/bin/python3"
            ids = [str(owner.pw_uid), str(owner.pw_gid)]
            self.words = [python, "-I", "-S", "-B", "-c", "import os;os.chdir('/');" + AS_OWNER] + ids + self.words
            self.environment = {
                "PATH": ":".join(commands.DIRECTORIES),
                "LC_ALL": "C",
                "HOME": owner.pw_dir,
                "USER": owner.pw_name,
                "XDG_RUNTIME_DIR": "/run/user/%d" % owner.pw_uid,
            }


def _other_owner(container: Container) -> Optional[pwd.struct_passwd]:
    """The account that root becomes to see its containers; None where that is not needed."""
    if container.engine != "podman" or not container.account or os.geteuid() != 0:
        return None
    try:
        name = container.account
        entry = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
    except (KeyError, OverflowError):
        return None
    return entry if entry.pw_uid else None


def environment() -> Dict[str, str]:
    """That of the account: DOCKER_HOST, KUBECONFIG, and the PATH on which kubectl finds what logs in for it."""
    variables = {
        key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "PYTHONPATH", "PYTHONHOME")
    }
    variables.update({"LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"})
    variables["PATH"] = ":".join([variables.get("PATH") or os.defpath] + list(commands.DIRECTORIES))
    return variables


def find(client: str) -> str:
    """The client that the account itself would start: one that is installed for it alone knows its engine. Raises Absent."""
    own = [folder for folder in os.environ.get("PATH", "").split(":") if folder.startswith("/")]
    path = commands.find(client, own + list(commands.DIRECTORIES))
    if path is None:
        raise Absent("there is no %s on this host" % client)
    return path


def ask(container: Container, arguments: List[str], notes: Notes, timeout: float = 4.0) -> str:
    """What the engine's client prints. Raises Absent, Denied, TimedOut, Failed with its own words."""
    client = Client(container)
    words = client.words + arguments
    output = commands.run(words[0], words[1:], timeout=timeout, environment=client.environment)
    notes.source(" ".join([container.client] + arguments)[:300])
    if output.status == 0:
        return output.out
    raise outcome(output.err or output.out, "%s ended with status %d" % (container.client, output.status))


def ask_json(container: Container, arguments: List[str], notes: Notes, timeout: float = 4.0) -> Any:
    """As :func:`ask`, for a client that prints JSON."""
    try:
        return json.loads(ask(container, arguments, notes, timeout))
    except (ValueError, RecursionError) as error:
        raise Failed("%s %s did not print JSON: %s" % (container.client, arguments[0], error))


def outcome(words: str, otherwise: str) -> Exception:
    """The outcome that a client's error output stands for."""
    said = last_words(words) or otherwise
    if DENIED.search(said):
        return Denied(said)
    if ABSENT.search(said):
        return Absent(said)
    if re.search(r"timed out|deadline exceeded|i/o timeout", said, re.IGNORECASE):
        return TimedOut(said)
    return Failed(said)


def last_words(words: str) -> str:
    """The lines of an error output that are no noise, in one line; all of them where there is nothing else."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    plain = [line for line in lines if not NOISE.match(line)] or lines[-1:]
    first = next((at for at, line in enumerate(plain) if ERROR.match(line)), max(0, len(plain) - 3))
    return " ".join(plain[first : first + 3])[:500]


def mapping(value: Any) -> Dict[str, Any]:
    """``value`` where it is a mapping, else an empty one: an engine of another release may leave a part out."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> List[Any]:
    return value if isinstance(value, list) else []


def number(value: Any) -> Optional[int]:
    """A whole number, None for anything else (a bool is none)."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
