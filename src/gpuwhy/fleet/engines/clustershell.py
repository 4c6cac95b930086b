"""ClusterShell over the user's OpenSSH: node sets, groups and, with a topology file, trees of gateways."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpuwhy.fleet.engines.interface import Ended, FleetError, Pace, Payload, Watcher
from gpuwhy.fleet.engines.words import of_ssh
from gpuwhy.fleet.inventory import InventoryHost
from gpuwhy.fleet.ssh_config import config_of, without_config, written
from gpuwhy.fleet.store import TIMED_OUT
from gpuwhy.targets.ssh import ALIVE_INTERVAL, CONNECT_TIMEOUT, OPTIONS_VARIABLE

_USER = re.compile(r"^([A-Za-z_][\w.-]{0,62})@(.{1,65536})\Z", re.DOTALL)

_NODE = re.compile(r"^[\w:][\w.:%-]{0,254}\Z")
"""What may stand as a destination on ssh's command line: never an option."""

_GATEWAY_LOST = os.EX_PROTOCOL


class ClusterShell:
    """``asked`` is a node set as ClusterShell takes it (``gpu[001-512]``, ``@rack3``, ``@*``), with one user before it if need be.

    ``topology`` names ClusterShell's topology file; without it the user's own is taken, where there is one. ``hosts`` are
    those of an inventory: they are taken as they are, in place of ``asked``.
    """

    name = "clustershell"

    def __init__(self, asked: str, topology: str = "", hosts: Sequence[InventoryHost] = ()) -> None:
        """Raises FleetError without ClusterShell."""
        self._library = _library()
        user = _USER.match(asked)
        self._user, self._asked = (user[1], user[2]) if user and not hosts else ("", asked)
        self._topology = topology
        self._hosts = tuple(hosts)

    def nodes(self) -> list[str]:
        try:
            found = [host.name for host in self._hosts] or [str(node) for node in self._library["NodeSet"](self._asked)]
        except self._library["NodeSetException"] as error:
            raise FleetError(
                f"{self._asked!r} is no set of nodes: {error}",
                "As ClusterShell writes it: gpu[001-064], gpu1,gpu2, @group; user@ before all of it. Groups: nodeset -L",
            ) from error
        if not found:
            raise FleetError(f"{self._asked!r} holds no nodes", "Groups and what they hold: nodeset -LL")
        for node in found:
            if not _NODE.match(node):
                raise FleetError(f"{node!r} is no name of a host")
        return found

    def run(self, nodes: Sequence[str], payload: Payload, pace: Pace, watcher: Watcher) -> None:
        # its warnings are about nodes that will be rows here
        logging.getLogger("ClusterShell").addHandler(logging.NullHandler())
        task = self._library["task_self"]()
        given = os.environ.get(OPTIONS_VARIABLE, "")
        config = written(config_of(self._hosts, given)) if self._hosts else None
        try:
            self._configure(task, pace, given if config is None else f"{without_config(given)} -F {config}")
            handler = _handler(self._library, watcher)
            if pace.rate > 0:
                _Starting(self._library, task, nodes, payload, pace.rate, handler).schedule()
            else:
                _start(task, self._library["NodeSet"].fromlist(nodes), payload, handler)
            task.run()
            handler.close(nodes)
        except self._library["TopologyError"] as error:
            raise FleetError(f"the topology cannot be used: {error}", "man topology.conf; --topology FILE names another") from error  # fmt: skip
        finally:
            if config is not None:
                config.unlink(missing_ok=True)
            # the user's interrupt too ends every ssh that still runs
            self._library["task_terminate"]()

    def _configure(self, task: Any, pace: Pace, given: str) -> None:
        for stream in ("stdout_msgtree", "stderr_msgtree"):
            task.set_default(stream, False)
        task.set_info("fanout", pace.concurrency)
        task.set_info("connect_timeout", CONNECT_TIMEOUT)
        if self._user:
            task.set_info("ssh_user", self._user)
        # the user's own come first: of two the first counts for ssh
        alive = f"-oServerAliveInterval={ALIVE_INTERVAL} -oServerAliveCountMax=2 -oLogLevel=ERROR"
        task.set_info("ssh_options", f"{given} {alive}")
        if self._topology:
            task.load_topology(self._topology)


def _start(task: Any, nodes: Any, payload: Payload, handler: Any) -> None:
    command = f"exec sh -c '{payload.line}'"
    worker = task.shell(
        command, nodes=nodes, handler=handler, timeout=payload.limit, stderr=True, stdin=True, tree=None
    )
    # in one piece: every node then shares the same bytes until they are sent
    worker.write(payload.stdin)
    worker.set_write_eof()


class _Starting:
    """Begins one node after the other, ``rate`` of them in a second."""

    def __init__(
        self, library: Mapping[str, Any], task: Any, nodes: Sequence[str], payload: Payload, rate: float, handler: Any
    ) -> None:
        self._library, self._task, self._payload, self._handler = library, task, payload, handler
        self._left = list(reversed(nodes))
        self._interval = 1.0 / rate

    def schedule(self) -> None:
        starting = self

        class Tick(self._library["EventHandler"]):  # type: ignore[misc, name-defined]
            def ev_timer(self, timer: Any) -> None:
                starting.begin_next()
                if not starting._left:
                    timer.invalidate()

        self.begin_next()
        if self._left:
            self._task.timer(self._interval, handler=Tick(), interval=self._interval)

    def begin_next(self) -> None:
        if self._left:
            _start(self._task, self._library["NodeSet"](self._left.pop()), self._payload, self._handler)


def _handler(library: Mapping[str, Any], watcher: Watcher) -> Any:
    """ClusterShell's events of all nodes as those of a Watcher; of a class that exists only where ClusterShell is."""

    class Handler(library["EventHandler"]):  # type: ignore[valid-type, misc, name-defined]
        def __init__(self) -> None:
            self.output: dict[str, list[bytes]] = {}
            self.errors: dict[str, list[bytes]] = {}
            self.done: set[str] = set()

        def ev_pickup(self, worker: Any, node: str) -> None:  # noqa: ARG002 - ClusterShell's signature
            watcher.started(str(node))

        def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:  # noqa: ARG002
            kept = self.output if sname == "stdout" else self.errors
            lines = kept.setdefault(str(node), [])
            if sname == "stdout" or len(lines) < 100:
                lines.append(bytes(msg))

        def ev_hup(self, worker: Any, node: str, rc: int | None) -> None:  # noqa: ARG002
            self.finish(str(node), rc, False)

        def ev_close(self, worker: Any, timedout: bool) -> None:
            if timedout:
                for node in list(worker.iter_keys_timeout()):
                    self.finish(str(node), None, True)

        def finish(self, node: str, status: int | None, is_over: bool) -> None:
            if node in self.done:
                return
            self.done.add(node)
            output = b"\n".join(self.output.pop(node, []))
            errors = b"\n".join(self.errors.pop(node, [])).decode("utf-8", "replace")
            if is_over and not errors:
                watcher.ended(Ended(node, output, TIMED_OUT, "no answer in time"))
            else:
                watcher.ended(Ended(node, output, *_judged(node, status, errors)))

        def close(self, nodes: Sequence[str]) -> None:
            """Those of which no event came: a gateway that was lost may take them along in silence."""
            for node in nodes:
                self.finish(node, _GATEWAY_LOST, False)

    return Handler()


def _judged(node: str, status: int | None, errors: str) -> tuple[str, str]:
    if status == _GATEWAY_LOST and not errors:
        return "unreachable", "its gateway was lost or could not be used"
    return of_ssh(node, status, errors)


def _library() -> dict[str, Any]:
    """What is used of ClusterShell: imported where it is needed, as it is an extra."""
    try:
        from ClusterShell.Event import EventHandler
        from ClusterShell.NodeSet import NodeSet, NodeSetException
        from ClusterShell.Task import task_self, task_terminate
        from ClusterShell.Topology import TopologyError
    except ImportError as error:
        raise FleetError(
            "collecting over SSH from many nodes needs ClusterShell, which is not installed here",
            "Install it with: pip install 'gpuwhy[fleet]'",
        ) from error
    return {
        "EventHandler": EventHandler,
        "NodeSet": NodeSet,
        "NodeSetException": NodeSetException,
        "TopologyError": TopologyError,
        "task_self": task_self,
        "task_terminate": task_terminate,
    }
