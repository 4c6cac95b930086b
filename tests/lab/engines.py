"""Container engines of our own for tests: a real dockerd with its own socket and data, and podman with its own storage.

Both are Debian's. Nothing of an engine that this machine runs is touched. The image is the lab host's root folder, which has
a shell and python3. Containers have no network: a machine without the rights for bridges can run them too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.lab.gpu_host import LAB, ROOT, wait_for
from tests.lab.unhurried import UNHURRIED

IMAGE = "gpuwhy-lab:base"
LOGS = ROOT / "tests" / "data" / "logs"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{folder}/storage"
runroot = "{folder}/run"
"""

# hybrid control groups: runc, not crun; and no CAP_SYS_RESOURCE: limits can only be lowered
CONTAINERS = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
netns = "none"
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
"""


@dataclass(frozen=True)
class Ended:
    """A gpuwhy command that ended."""

    status: int
    text: str
    errors: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.text)
        return document

    @property
    def causes(self) -> list[str]:
        return [each["cause"] for each in self.document["findings"]]

    @property
    def facts(self) -> dict[str, Any]:
        return {each["key"]: each["value"] for each in self.document["facts"]}


@dataclass(frozen=True)
class Engine:
    """A container engine. `variables` are what its client, and gpuwhy, need in order to find it."""

    name: str
    variables: Mapping[str, str]

    def run(self, *arguments: str, check: bool = True) -> str:
        """Runs the client, and returns what it printed."""
        done = subprocess.run(
            [f"/usr/bin/{self.name}", *arguments],
            env={**os.environ, **self.variables, "PATH": PATH},
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )
        if check and done.returncode:
            raise AssertionError(f"{self.name} {arguments} ended with {done.returncode}\n{done.stderr}")
        return done.stdout

    def start(self, name: str, words: Sequence[str], *options: str) -> None:
        """Starts a container in the background; the test logs lie under /logs in it."""
        mount = f"{LOGS}:/logs:ro"
        self.run("run", "--detach", "--name", name, "--network", "none", "--volume", mount, *options, IMAGE, *words)

    def state(self, name: str) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.run("container", "inspect", name))[0]["State"]
        return state

    def wait_until_ended(self, name: str) -> None:
        wait_for(lambda: self.state(name)["Status"] == "exited", 60, f"{name} has ended")

    def gpuwhy(self, *arguments: str, **variables: str) -> Ended:
        """Runs this checkout's gpuwhy as a user of this engine would."""
        done = subprocess.run(
            [sys.executable, *UNHURRIED, *arguments],
            env={**os.environ, **self.variables, "PATH": PATH, **variables},
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def diagnose(self, *arguments: str, **variables: str) -> Ended:
        return self.gpuwhy("diagnose", *arguments, "--format", "json", **variables)


def import_image(engine: Engine) -> None:
    """Makes the image from the lab host's root folder, unless it is there."""
    if IMAGE in engine.run("images", "--format", "{{.Repository}}:{{.Tag}}").replace("localhost/", "").split():
        return
    packed = subprocess.Popen(
        ["tar", "--directory", str(LAB / "host"), "--exclude=./proc", "--exclude=./sys", "-c", "."],
        stdout=subprocess.PIPE,
    )
    subprocess.run(
        [f"/usr/bin/{engine.name}", "import", "-", IMAGE],
        env={**os.environ, **engine.variables, "PATH": PATH},
        check=True,
        capture_output=True,
        stdin=packed.stdout,
        timeout=300,
    )
    assert packed.wait() == 0


@contextmanager
def docker() -> Iterator[Engine]:
    """A dockerd of our own; its containers end with it."""
    folder = LAB / "docker"
    folder.mkdir(exist_ok=True)
    socket = folder / "docker.sock"
    engine = Engine("docker", {"DOCKER_HOST": f"unix://{socket}"})
    options = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"]
    places = ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/run", "--pidfile", f"{folder}/docker.pid"]
    with (folder / "dockerd.log").open("wb") as output:
        daemon = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "--", "/usr/sbin/dockerd", "-H", f"unix://{socket}", *places, *options],
            env={**os.environ, "PATH": PATH},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(lambda: _answers(engine, daemon), 60, f"dockerd answers; see {folder}/dockerd.log")
        _remove_all(engine)
        import_image(engine)
        yield engine
        _remove_all(engine)
    finally:
        daemon.terminate()
        try:
            daemon.wait(timeout=30)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait(timeout=10)


@contextmanager
def podman() -> Iterator[Engine]:
    """podman with a storage and settings of its own."""
    folder = LAB / "podman"
    folder.mkdir(exist_ok=True)
    (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
    (folder / "containers.conf").write_text(CONTAINERS)
    variables = {
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "CONTAINERS_CONF": str(folder / "containers.conf"),
    }
    engine = Engine("podman", variables)
    _remove_all(engine)
    import_image(engine)
    try:
        yield engine
    finally:
        _remove_all(engine)
        # podman mounts the folder of its layers on itself and leaves it so: nobody could remove the checkout
        subprocess.run(["umount", str(folder / "storage" / "overlay")], stderr=subprocess.DEVNULL, check=False)


def _answers(engine: Engine, daemon: subprocess.Popen[bytes]) -> bool:
    if daemon.poll() is not None:
        raise RuntimeError(f"dockerd ended with {daemon.returncode}")
    return bool(engine.run("version", "--format", "{{.Server.Version}}", check=False).strip())


def _remove_all(engine: Engine) -> None:
    names = engine.run("ps", "--all", "--quiet").split()
    if names:
        engine.run("rm", "--force", *names)


def files_of(engine: Engine, name: str) -> str:
    """What a container has written so far, as the engine lists it."""
    return engine.run("diff", name)


def processes_of(engine: Engine, name: str) -> list[str]:
    """The commands that run in a container."""
    return sorted(engine.run("top", name, "-eo", "pid,args").splitlines()[1:])
