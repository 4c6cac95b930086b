"""The document that a collection brings home: its schema, its file format, and the facts and logs that it holds."""

from gpuwhy.snapshot.collecting import Session, collect
from gpuwhy.snapshot.denials import denials
from gpuwhy.snapshot.document import SCHEMA_VERSION, Excerpt, Probe, Snapshot, Subject
from gpuwhy.snapshot.facts import facts_of
from gpuwhy.snapshot.file import SnapshotError, decode, encode, is_snapshot, read, write
from gpuwhy.snapshot.given import GivenFacts, read_given
from gpuwhy.snapshot.logs import failing_services, journal_entries, kernel_entries, service_logs

__all__ = [
    "SCHEMA_VERSION",
    "Excerpt",
    "GivenFacts",
    "Probe",
    "Session",
    "Snapshot",
    "SnapshotError",
    "Subject",
    "collect",
    "decode",
    "denials",
    "encode",
    "facts_of",
    "failing_services",
    "is_snapshot",
    "journal_entries",
    "kernel_entries",
    "read",
    "read_given",
    "service_logs",
    "write",
]
