"""Ray: one task a node, pinned to it, in the cluster that vLLM or another engine runs in."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import as_file, files
from typing import Any

import msgspec

from gpuwhy.fleet.engines.interface import Ended, FleetError, Pace, Payload, Watcher
from gpuwhy.fleet.engines.words import of_task
from gpuwhy.fleet.store import FAILED, TIMED_OUT, UNREACHABLE

_MARK = b"gpuwhy-ray "


class RayNode(msgspec.Struct, frozen=True):
    """A node as Ray has it; ``reason`` is why it is not alive any more."""

    name: str
    id: str
    address: str = ""
    is_alive: bool = True
    reason: str = ""


class Ray:
    """``asked`` are names of nodes (by comma), all by default; ``address`` as ``ray.init`` takes it; ``python`` has its Ray.

    Ray speaks only to its own release, run by the same minor release of Python: so a program of the cluster's Python
    does that part, and gpuwhy itself needs no Ray.
    """

    name = "ray"

    def __init__(self, asked: str = "", address: str = "auto", python: str = "") -> None:
        self._asked = [name for name in asked.split(",") if name]
        self._address, self._python = address, python or sys.executable
        self._known: dict[str, RayNode] = {}

    def nodes(self) -> list[str]:
        for document in self._driven({"address": self._address}):
            self._learn(document)
        missing = [name for name in self._asked if name not in self._known and not self._by_address(name)]
        if missing:
            raise FleetError(
                f"Ray has no node {missing[0]!r}", f"It has: {', '.join(list(self._known)[:20])} (ray list nodes)"
            )
        if self._asked:
            return list(dict.fromkeys(self._by_address(name) or name for name in self._asked))
        # of one host Ray may remember several that died: they are of interest where none lives in its place
        return list(self._known)

    def run(self, nodes: Sequence[str], payload: Payload, pace: Pace, watcher: Watcher) -> None:
        open_ = set(nodes)
        request = {
            "address": self._address,
            "nodes": list(nodes),
            "line": payload.line,
            "stdin": base64.b64encode(payload.stdin).decode(),
            "limit": payload.limit,
            "concurrency": pace.concurrency,
            "rate": pace.rate,
        }
        for document in self._driven(request):
            if "nodes" in document:
                self._learn(document)
                for node in sorted(open_):
                    if not self._is_alive(node):
                        open_.discard(node)
                        watcher.ended(Ended(node, b"", UNREACHABLE, self._lost(node)))
            elif document.get("started") in open_:
                watcher.started(str(document["started"]))
            elif document.get("ended") in open_:
                node = str(document["ended"])
                open_.discard(node)
                watcher.ended(_ended(node, document))
        for node in sorted(open_):
            watcher.ended(Ended(node, b"", FAILED, "the program that speaks to Ray ended before it told of this node"))

    def _learn(self, document: Mapping[str, Any]) -> None:
        if "nodes" in document:
            found = msgspec.convert(document["nodes"], list[RayNode])
            self._known = {node.name: node for node in found}

    def _by_address(self, address: str) -> str:
        return next((node.name for node in self._known.values() if node.address == address), "")

    def _is_alive(self, name: str) -> bool:
        return name in self._known and self._known[name].is_alive

    def _lost(self, name: str) -> str:
        known = self._known.get(name)
        return f"Ray has lost it{f': {known.reason}' if known is not None and known.reason else ''}"

    def _driven(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """What the program in the cluster's Python says. Raises FleetError."""
        with (
            as_file(files("gpuwhy.fleet.engines").joinpath("ray_driver.py")) as program,
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as errors,
        ):
            stdin.write(msgspec.json.encode(request) + b"\n")
            stdin.seek(0)
            # without -P the folder of this module would come first, and hide the real ray
            loaded = (
                "import runpy,sys;sys.path=[p for p in sys.path if p];runpy.run_path(sys.argv[1],run_name='__main__')"
            )
            environment = {**os.environ, "RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0"}
            try:
                process = subprocess.Popen(
                    [self._python, "-c", loaded, str(program)], stdin=stdin, stdout=subprocess.PIPE, stderr=errors, env=environment
                )  # fmt: skip
            except OSError as error:
                raise FleetError(f"{self._python} cannot be started: {error.strerror}", "--ray-python PATH names the Python of the cluster") from error  # fmt: skip
            has_said = False
            try:
                for line in process.stdout or ():
                    if not line.startswith(_MARK):
                        continue
                    document = msgspec.json.decode(line[len(_MARK) :])
                    if document.get("failure") and "ended" not in document:
                        raise self._failed(document)
                    has_said = True
                    yield document
            finally:
                process.terminate()
                if process.stdout is not None:
                    process.stdout.close()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if not has_said:
                errors.seek(0)
                words = errors.read().decode("utf-8", "replace").strip().splitlines()
                raise FleetError(
                    f"Ray at {self._address} could not be asked: {words[-1][:300] if words else 'no answer'}"
                )

    def _failed(self, document: Mapping[str, Any]) -> FleetError:
        message = " ".join(str(document.get("message", "")).split())[:500]
        if document["failure"] == "import":
            return FleetError(
                f"{self._python} has no Ray ({message})",
                "--ray-python PATH names the Python of the cluster (its release of Ray is needed); or: pip install 'gpuwhy[ray]'",
            )
        return FleetError(
            f"Ray at {self._address} cannot be used: {message}",
            "On a node of the cluster: --ray auto; from elsewhere: --ray ray://HEAD:10001. The Ray and the minor release of\n"
            "Python have to be the cluster's: --ray-python PATH",
        )


def _ended(node: str, document: Mapping[str, Any]) -> Ended:
    output = base64.b64decode(document.get("output") or "")
    if document.get("failure"):
        return Ended(node, output, FAILED, "its task failed: " + " ".join(str(document["failure"]).split())[:500])
    if document.get("is_over") or not isinstance(document.get("status"), int):
        return Ended(node, output, TIMED_OUT, "no answer in time")
    return Ended(node, output, *of_task(document["status"], str(document.get("errors", ""))))
