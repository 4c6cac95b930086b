"""A scratch root with a stand-in for systemd, and the applier run on it as the real process that it is on a target."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.patience import AT_MOST

from gpuwhy.applier.bundle import program
from gpuwhy.targets.pipe import BOOTSTRAP, framed

UNIT = "serve.service"
FOLDER = f"/etc/systemd/system/{UNIT}.d"
DROP_IN = f"{FOLDER}/50-gpuwhy-ARCH_LIST.conf"
VALUES = f"{FOLDER}/50-gpuwhy-ARCH_LIST.env"
HISTORY = "/var/lib/gpuwhy/history"
CURE = "ARCH_LIST=12.0a"

SYSTEMCTL = """\
#!/bin/sh
# Stands in for systemd: what daemon-reload has read decides how the next start goes.
here={here}
echo "$@" >> $here/calls
invocation() {{ echo $(( $(cat $here/number) + 1 )) > $here/number; cat $here/number; }}
put() {{ printf 'LoadState=loaded\\nActiveState=%s\\nSubState=%s\\nResult=%s\\nNRestarts=0\\nMainPID=%s\\nType=simple\\nExecMainStatus=%s\\nInvocationID=%s\\nFragmentPath=/etc/systemd/system/serve.service\\n' "$@" > $here/properties; }}
case " $* " in
*" show "*) cat $here/properties; echo DropInPaths=$(cd {root} && ls .{folder}/*.conf 2>/dev/null | sed 's/^[.]//') ;;
*" daemon-reload "*) rm -rf $here/loaded; cp -r {root}{folder} $here/loaded 2>/dev/null || mkdir -p $here/loaded ;;
*" stop "*) put inactive dead success 0 0 "$(invocation)" ;;
*" restart "*)
    if grep -qrF "$(cat $here/cure)" $here/loaded 2>/dev/null
    then put active running success $$ 0 "$(invocation)"
    else put failed failed exit-code 0 1 "$(invocation)"
    fi ;;
esac
"""

DEADLY = """\
import os, signal, subprocess, sys
left, count = {point}, 0
def deadly(where, name):
    real = getattr(where, name)
    def call(*given, **named):
        global count
        count += 1
        if left and count == left:
            {act}
        if left and count > left and {stays}:
            {act}
        return real(*given, **named)
    setattr(where, name, call)
for name in ('open', 'rename', 'fsync', 'unlink', 'mkdir', 'rmdir', 'fchmod', 'listdir'):
    deadly(os, name)
deadly(subprocess, 'Popen')
leave = os._exit
def tell(status):
    if count:
        os.write(2, b'%d' % count)
    leave(status)
os._exit = tell
"""
"""Does ``act`` at the process's N-th call to the system; with N = 0 it tells at its end how many there were."""

KILL = "os.kill(os.getpid(), signal.SIGKILL)"
FULL = "if name in ('open', 'mkdir', 'fsync', 'rename') and (name != 'open' or given[1] & os.O_CREAT): raise OSError(28, 'No space left on device')"


class Scratch:
    """One root folder, one unit, one stand-in systemd."""

    def __init__(self, folder: Path) -> None:
        self.python = sys.executable
        self.prelude = ""
        self.root = folder / "root"
        self.systemd = folder / "systemd"
        for each in (self.root / "etc/systemd/system", self.root / "var/lib", self.systemd / "bin"):
            each.mkdir(parents=True)
        os.chmod(folder, 0o755)
        unit = self.root / f"etc/systemd/system/{UNIT}"
        unit.write_text("[Service]\nExecStart=/opt/serve --port 1\n")
        systemctl = self.systemd / "bin/systemctl"
        systemctl.write_text(SYSTEMCTL.format(here=self.systemd, root=self.root, folder=FOLDER))
        systemctl.chmod(0o755)
        (self.systemd / "cure").write_text(CURE)
        (self.systemd / "number").write_text("0")
        self.systemctl("restart", UNIT)
        self.systemctl_calls()

    def systemctl(self, *arguments: str) -> None:
        subprocess.run([self.systemd / "bin/systemctl", *arguments], check=True, capture_output=True)

    def systemctl_calls(self) -> list[str]:
        """The calls since this was last asked, without those that only look."""
        calls = (self.systemd / "calls").read_text().splitlines()
        (self.systemd / "calls").write_text("")
        return [call for call in calls if not call.startswith("show")]

    def shell(self, line: str) -> None:
        """A command line as a person would paste it."""
        subprocess.run(["sh", "-c", line], check=True, capture_output=True)

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def text(self, path: str) -> str | None:
        return self.path(path).read_text() if self.path(path).exists() else None

    def write(self, path: str, text: str) -> None:
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_text(text)

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """Every file and folder below the root but the history: mode and content."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = "/" + str(path.relative_to(self.root))
            if not name.startswith("/var/lib/gpuwhy"):
                content = os.readlink(path).encode() if path.is_symlink() else b""
                found[name] = (path.lstat().st_mode, path.read_bytes() if path.is_file() else content)
        return found

    def start(self, *requests: dict[str, Any], point: int | None = None, act: str = KILL) -> subprocess.Popen[bytes]:
        """The applier with these requests on its input; with ``point``, ``act`` happens to it there and from then on."""
        prelude = self.prelude if point is None else DEADLY.format(point=point, act=act, stays=act != KILL)
        process = subprocess.Popen(
            [self.python, "-I", "-S", "-c", prelude + BOOTSTRAP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PATH": f"{self.systemd}/bin:{os.environ['PATH']}"},
        )
        lines = b"".join(json.dumps({"root": str(self.root), **each}).encode() + b"\n" for each in requests)
        assert process.stdin is not None
        process.stdin.write(framed(program()) + lines)
        process.stdin.close()
        process.stdin = None
        return process

    def ask(self, **request: Any) -> dict[str, Any]:
        """The end of the answer to one request."""
        return self.conversation(request)[-1]

    def conversation(self, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        """The ends of the answers to several."""
        output, errors = self.start(*requests).communicate(timeout=AT_MOST)
        assert not errors, errors.decode()
        lines = [json.loads(line) for line in output.splitlines()]
        return [line["end"] for line in lines if "end" in line]

    def calls_of(self, **request: Any) -> int:
        """How many calls to the system a request makes: the points at which it can be killed."""
        _, errors = self.start(request, point=0).communicate(timeout=AT_MOST)
        return int(errors)

    def killed(self, point: int, **request: Any) -> bool:
        """Runs a request and kills it at a point. False when it came to its end before."""
        process = self.start(request, point=point)
        process.communicate(timeout=AT_MOST)
        return process.returncode == 128 + 9

    def interrupt(self, made: dict[str, Any]) -> dict[str, Any]:
        """Applies a plan and is killed in the middle of it: what the journal then says is interrupted."""
        point = 60  # it looks at everything before it changes anything
        while not (left := self.ask(do="look")["interrupted"]):
            point += 7
            assert self.killed(point, do="apply", plan=made)
        found: dict[str, Any] = left[0]
        return found

    def on_a_disk_full_from(self, point: int, **request: Any) -> dict[str, Any]:
        """The answer of a run in which, from a point on, the disk takes nothing more."""
        output, errors = self.start(request, point=point, act=FULL).communicate(timeout=AT_MOST)
        assert not errors.strip(b"0123456789"), errors.decode()
        lines = [json.loads(line) for line in output.splitlines()]
        return next(line["end"] for line in lines if "end" in line)

    def records(self) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = self.ask(do="history")["records"]
        return records


def plan(content: str = f'[Service]\nEnvironment="{CURE}"\n', before: str = "absent") -> dict[str, Any]:
    """One drop-in and what makes it take effect."""
    return {
        "title": "ARCH_LIST=12.0a",
        "unit": UNIT,
        "manager": "system",
        "steps": [
            {"step": "folder", "path": FOLDER, "mode": 0o755},
            {"step": "write", "path": DROP_IN, "content": content, "mode": 0o644, "before": before},
            *service_steps(),
        ],
    }


def plan_of_two_files() -> dict[str, Any]:
    """A file with the variable, and the drop-in that names it: in force only when both are there."""
    made = plan(f"[Service]\nEnvironmentFile={VALUES}\n")
    made["steps"].insert(1, {"step": "write", "path": VALUES, "content": f'ARCH_LIST="12.0a" # {CURE}\n', "mode": 0o644, "before": "absent"})  # fmt: skip
    return made


def service_steps() -> list[dict[str, Any]]:
    return [{"step": "daemon-reload"}, {"step": "reset-failed"}, {"step": "restart"}]
