"""A private room for a trial: a temporary folder that is removed, and processes with limits that are ended."""

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Type

from gpuwhy.applier.refusing import Refused
from gpuwhy.verifier import within
from gpuwhy.verifier.service import Service

CACHES = {
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "CUDA_CACHE_PATH": "cuda",
    "DG_JIT_CACHE_DIR": "deep_gemm",
    "TILELANG_CACHE_DIR": "tilelang",
    "VLLM_CACHE_ROOT": "vllm",
    "SGLANG_CACHE_DIR": "sglang",
    "XDG_CACHE_HOME": "cache",
}
"""What a trial must not write to: the caches of the service. Each gets a folder of the room instead."""

LARGEST_FILE = 4 << 30
MOST_OUTPUT = 4000


class Trial:
    """One process that was started in the room, and what came of it."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: str) -> None:
        self.process = process
        self.folder = folder

    def ended(self, until: float) -> Dict[str, Any]:
        """``status`` is ``returned``, ``raised``, ``died`` (with ``signal`` or ``code``) or ``timed out``."""
        begun = time.monotonic()
        try:
            self.process.wait(timeout=max(0.1, until - begun))
        except subprocess.TimeoutExpired:
            self.end()
            return {"status": "timed out", "output": self._output()}
        self.end()
        try:
            answer = json.loads(
                _plain_bytes(os.path.join(self.folder, "answer.json"), 1 << 20).decode("utf-8", "replace")
            )
        except (OSError, ValueError):
            answer = {"status": "died"}
        if not isinstance(answer, dict):
            answer = {"status": "died"}
        code = self.process.returncode
        if answer["status"] == "died":
            answer["signal" if code < 0 else "code"] = abs(code)
        answer["output"] = self._output()
        return answer

    def end(self) -> None:
        """Nothing that the process started outlives it."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        self.process.wait()

    def _output(self) -> str:
        try:
            return _plain_bytes(os.path.join(self.folder, "output"), MOST_OUTPUT).decode("utf-8", "replace")
        except OSError:
            return ""


def _plain_bytes(path: str, most: int) -> bytes:
    """The end of a file that a process of the service's user may have replaced meanwhile: no link is followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError("%s is no file" % path)
        stream.seek(max(0, found.st_size - most))
        return stream.read(most)


class Room:
    """Use it as a context manager: at its end every process of it is ended and its folder removed."""

    def __init__(self, service: Service, memory: int) -> None:
        """``memory``: the most bytes that a process of it may have for itself."""
        self._service = service
        self._memory = memory
        self._trials: List[Trial] = []
        self.path = tempfile.mkdtemp(prefix="gpuwhy-trial-")
        # it stays ours: the service's user may pass through it, and place nothing in it
        os.chmod(self.path, 0o711)

    def __enter__(self) -> "Room":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        for trial in self._trials:
            trial.end()
        shutil.rmtree(self.path, ignore_errors=True)

    def start(self, name: str, request: Dict[str, Any], changes: Dict[str, Optional[str]], keeps: Sequence[str] = ()) -> Trial:  # fmt: skip
        """Starts :mod:`gpuwhy.verifier.within` in the service's interpreter, with the change, in a folder of its own.

        ``keeps`` are caches that it shares with the service, because the trial is about them.
        """
        folder = os.path.join(self.path, name)
        os.mkdir(folder, 0o700)
        files = {"within.py": source_of(within.__name__), "request.json": json.dumps(request)}
        for file, text in files.items():
            with open(os.path.join(folder, file), "w", encoding="utf-8") as stream:
                stream.write(text)
        environment = self._environment(folder, changes, keeps)
        argv = [self._service.interpreter, os.path.join(folder, "within.py")]
        with open(os.path.join(folder, "output"), "wb") as output:
            account = self._service.account
            if account is not None:
                for path in (*(os.path.join(folder, file) for file in files), folder):
                    os.chown(path, account.pw_uid, account.pw_gid)
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=folder,
                    env=environment,
                    preexec_fn=self._enter,
                    start_new_session=True,
                )
            except (OSError, subprocess.SubprocessError) as error:
                raise Refused("%s could not be started: %s" % (argv[0], getattr(error, "strerror", None) or error))
        trial = Trial(process, folder)
        self._trials.append(trial)
        return trial

    def _environment(self, folder: str, changes: Dict[str, Optional[str]], keeps: Sequence[str]) -> Dict[str, str]:
        environment = self._service.with_changes(changes)
        for variable, name in CACHES.items():
            if variable not in changes and variable not in keeps:
                environment[variable] = os.path.join(folder, name)
        environment["TMPDIR"] = folder
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        environment["PYTHONFAULTHANDLER"] = "1"
        return environment

    def _enter(self) -> None:
        """In the child, before the interpreter runs."""
        for kind, most in ((resource.RLIMIT_DATA, self._memory), (resource.RLIMIT_FSIZE, LARGEST_FILE), (resource.RLIMIT_CORE, 0)):  # fmt: skip
            _, hard = resource.getrlimit(kind)
            limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (limit, limit))
        account = self._service.account
        if account is not None:
            os.initgroups(account.pw_name, account.pw_gid)
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)


def source_of(module: str) -> str:
    """The text of a module of ours, from the disk or from the program that carries it."""
    from importlib.util import find_spec

    spec = find_spec(module)
    loader: Any = spec.loader if spec is not None else None
    text = loader.get_source(module) if loader is not None else None
    if not text:
        raise Refused("the text of %s is not carried" % module)
    return str(text)
