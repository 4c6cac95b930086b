"""Many nodes, as a folder of their snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuwhy.api.checking import check
from gpuwhy.api.diagnosing import diagnose
from gpuwhy.api.errors import UnusableError
from gpuwhy.api.places import PROBES, TIMEOUT

if TYPE_CHECKING:
    from gpuwhy.fleet.collecting import OnNode
    from gpuwhy.fleet.query import Answer as QueryAnswer
    from gpuwhy.fleet.store import Node
    from gpuwhy.investigate.checks.results import Forecast
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.model.fleet import FleetReport
    from gpuwhy.snapshot import Snapshot


class Fleet:
    """A folder of ``gpuwhy fleet collect``: one snapshot a node, and what became of the nodes that gave none."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.nodes()

    @classmethod
    def collect(
        cls,
        nodes: str,
        folder: str | Path,
        *,
        unit: str = "",
        concurrency: int = 64,
        rate: float = 0.0,
        sudo: bool = False,
        deadline: float = PROBES,
        timeout: float = TIMEOUT,
        resume: bool = False,
        on_node: OnNode | None = None,
        **engine: Any,
    ) -> Fleet:
        """Collects ``nodes`` (``"gpu[001-064]"``) into ``folder``; ``resume`` goes on with what is missing or failed.

        ``engine`` takes the fields of :class:`gpuwhy.fleet.choosing.Choice` (``slurm=True``, ``ray="auto"``, ``inventory=FILE``). ``on_node``
        is told of each node as it begins and ends. A node that fails is a row with its reason, never an error.
        """
        from gpuwhy.fleet.choosing import Choice, engine_of
        from gpuwhy.fleet.collecting import Asked, collect_fleet
        from gpuwhy.fleet.engines.interface import FleetError, Pace
        from gpuwhy.fleet.store import Store, StoreError

        try:
            chosen = engine_of(Choice(nodes=nodes, **engine))
            with Store(folder, create=True) as store:
                asked = Asked(unit, deadline, timeout, sudo)
                collect_fleet(chosen, store, asked, Pace(concurrency, rate), resume, on_node)
        except (FleetError, StoreError, TypeError) as error:
            raise UnusableError(str(error)) from error
        return cls(folder)

    def nodes(self, *statuses: str) -> tuple[Node, ...]:
        """The nodes in the order of their names; all, or those with one of ``statuses`` (``ok``, ``partial``, ``refused`` ...)."""
        from gpuwhy.fleet.store import Store, StoreError

        try:
            with Store(self.folder) as store:
                return tuple(store.nodes(*statuses))
        except StoreError as error:
            raise UnusableError(str(error)) from error

    def diagnose(self, node: str, **asked: Any) -> Diagnosis:
        """As :func:`diagnose`, of the snapshot of one node."""
        return diagnose(self._file(node), **asked)

    def check(self, node: str, **asked: Any) -> Forecast:
        """As :func:`check`, of the snapshot of one node."""
        return check(self._file(node), **asked)

    def snapshot(self, node: str) -> Snapshot:
        """The snapshot of one node."""
        from gpuwhy.snapshot import SnapshotError, read

        try:
            return read(self._file(node))
        except SnapshotError as error:
            raise UnusableError(str(error)) from error

    def report(self) -> FleetReport:
        """What is alike and what is different among the nodes, as ``gpuwhy fleet report`` shows it."""
        from gpuwhy.fleet.analysing import analyse
        from gpuwhy.fleet.store import StoreError

        try:
            return analyse(self.folder)
        except StoreError as error:
            raise UnusableError(str(error)) from error

    def query(self, sql: str, *, timeout: float = 20.0, limit: int = 100_000) -> QueryAnswer:
        """The answer to a question in SQL, of ``gpuwhy fleet query``'s tables; what was not analysed yet is analysed first."""
        from gpuwhy.fleet.query import QueryError, is_analysed, query
        from gpuwhy.fleet.store import StoreError

        try:
            if not is_analysed(self.folder):
                self.report()
            return query(self.folder, sql, timeout, limit)
        except (StoreError, QueryError) as error:
            raise UnusableError(str(error)) from error

    def _file(self, name: str) -> Path:
        named = {node.name: node for node in self.nodes()}
        node = named.get(name)
        if node is None:
            raise UnusableError(f"{self.folder} has no node {name}; it has {', '.join(list(named)[:8])}")
        if not node.file:
            raise UnusableError(f"{name} gave no snapshot: {node.status}: {node.reason}")
        return self.folder / node.file
