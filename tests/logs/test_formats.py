"""Real samples of every log format: each tells of the same small service that dies of the same exception.

They were written by the programs themselves: torchrun with gloo, Ray, Docker, podman, docker-compose, journalctl, Python's
logging and its relatives, pino and winston. Only paths and host names were changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.logs import find_events, find_incidents, read_bytes
from gpuwhy.model.event import Event, Log, LogLine, Process

FORMATS = Path(__file__).parents[1] / "data" / "logs" / "formats"
RAISED = "RuntimeError: FlashInfer requires GPUs with sm75 or higher"
LOADED = [("/opt/serve.py", 21, "load")]


def read(name: str) -> Log:
    return read_bytes((FORMATS / f"{name}.log").read_bytes(), name)


def raised(log: Log) -> list[Event]:
    """A line of the same stream that follows an exception is taken for the rest of its message."""
    return [event for event in find_events(log) if event.text.split("\n")[0] == RAISED]


def frames(event: Event) -> list[tuple[str, int | None, str]]:
    return [(frame.path, frame.line, frame.function) for frame in event.exceptions[-1].frames]


def saying(log: Log, text: str) -> LogLine:
    return next(line for line in log.lines if line.text == text)


SAMPLES = sorted(FORMATS.iterdir())
OF_NODE = ("pino", "winston")
OTHERS = ("python_layouts", "structlog_logfmt")
"""Many logs in one; one without an exception."""


@pytest.mark.parametrize(
    "path", [path for path in SAMPLES if path.stem not in (*OF_NODE, *OTHERS)], ids=lambda path: path.stem
)
def test_every_sample_is_read_without_its_prefixes(path: Path) -> None:
    log = read(path.stem)
    assert any(line.text == RAISED for line in log.lines)
    assert any(frames(event) for event in raised(log))


JOURNALS = [path.stem for path in sorted(FORMATS.glob("journal_*.log")) if path.stem != "journal_cat"]


@pytest.mark.parametrize("name", JOURNALS)
def test_journal(name: str) -> None:
    log = read(name)
    service = ("sglang.service", "agent.service") if name == "journal_with_unit" else ("sglang", "agent")
    starts = saying(log, "engine starts")
    assert starts.process == Process("TP0", 2101, 0, "gpu-host")
    assert starts.time == pytest.approx(1795946866.0, abs=1)
    assert {line.process for line in log.lines if line.text == RAISED} == {
        Process(service[1], 2200, None, "gpu-host"),
        Process(service[0], 2101, None, "gpu-host"),
    }
    assert frames(raised(Log(log.name, log.kind, log.lines[:8]))[0]) == LOADED
    kernel = next(line for line in log.lines if line.text.startswith("NVRM: Xid"))
    assert kernel.process == Process("kernel", None, None, "gpu-host")


def test_a_verbose_journal_keeps_units_and_the_numbers_of_its_lines() -> None:
    log = read("journal_verbose")
    line = saying(log, "shutting down")
    assert (line.unit, line.number, line.raw) == ("sglang.service", 143, "    MESSAGE=shutting down")


def test_ranks_of_torchrun() -> None:
    log = read("torchrun")
    (rank1,) = raised(log)
    assert rank1.process == Process("rank1", None, 1)
    assert [frame[2] for frame in frames(rank1)] == ["<module>", "main", "load"]
    (rank0,) = [event for event in find_events(log) if event.text == "ValueError: no kernel image for rank 0"]
    assert rank0.process == Process("rank0", None, 0)


def test_ranks_of_torchrun_that_tees() -> None:
    (rank1,) = raised(read("torchrun_tee"))
    assert rank1.process == Process("rank1", None, 1)
    assert [frame[2] for frame in frames(rank1)] == ["<module>", "main", "load"]


def test_what_ray_folded_is_the_same_exception_again() -> None:
    log = read("ray")
    assert saying(log, "from inside").process == Process("RayWorkerWrapper", 10756)
    assert saying(log, "Started a local Ray instance.").level == "info"
    assert all("repeated 2x" not in line.text and "deduplicates" not in line.text for line in log.lines)
    of_workers = [event for event in raised(log) if event.process is not None]
    assert [(event.process, event.span.first) for event in of_workers] == [(Process("RayWorkerWrapper", 10756), 7)]
    assert {place.line for place in of_workers[0].repeats} >= {37}


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [("docker_json_file", 4, 7), ("podman_k8s_file", 7, 10)],
)
def test_containers(name: str, first: int, last: int) -> None:
    log = read(name)
    whole = next(line for line in log.lines if line.text.startswith("argument list: x"))
    assert whole.text == "argument list: " + "x" * 20000 + " end of list"
    assert whole.number == 2
    assert saying(log, "engine starts").process == Process("TP0", None, 0)
    (event,) = raised(log)
    assert event.text == RAISED  # what follows it went to standard output
    assert (frames(event), event.span.first, event.span.last) == (LOADED, first, last)


def test_docker_logs_with_times() -> None:
    log = read("docker_logs_timestamps")
    assert saying(log, "engine starts").process == Process("TP0", None, 0)
    assert frames(raised(log)[0]) == LOADED


@pytest.mark.parametrize("name", ["compose_v1", "compose_v1_timestamps"])
def test_compose_services_are_told_apart(name: str) -> None:
    log = read(name)
    assert {line.process for line in log.lines if line.text == "engine starts"} == {
        Process("TP0", None, 0, "vllm_1"),
        Process("TP0", None, 0, "sglang-router_1"),
    }
    assert {line.process for line in log.lines if line.text == RAISED} == {
        Process("vllm_1"),
        Process("sglang-router_1"),
    }


def layouts() -> list[tuple[str, str]]:
    parts = (FORMATS / "python_layouts.log").read_text().split("#### ")[1:]
    return [(layout, log) for layout, _, log in (part.partition("\n") for part in parts)]


BROKEN = "%(asctime)s.%(msecs)03d"  # milliseconds twice: common, and no time that can be trusted


@pytest.mark.parametrize(("layout", "text"), [part for part in layouts() if BROKEN not in part[0]])
def test_python_layouts(layout: str, text: str) -> None:
    log = read_bytes(text.encode(), "x")
    starts = log.lines[0]
    assert starts.text.removeprefix("vllm.engine: ") == "engine starts"
    assert starts.level == "info"
    assert (starts.time is None) == ("asctime" not in layout)
    assert log.lines[-1].level == "warning"
    if "%(process)d" in layout:
        assert starts.process == Process("", 10408)
    (event,) = raised(log)
    assert [frame[2] for frame in frames(event)] == ["<module>", "load"]


@pytest.mark.parametrize(
    ("name", "process"),
    [
        ("loguru", None),
        ("structlog", None),
        ("structlog_json", None),
        ("structlog_tracebacks", None),
        ("rich", None),
        ("loguru_json", "pid"),
        ("python_json_logger", "pid"),
    ],
)
def test_python_loggers(name: str, process: str | None) -> None:
    log = read(name)
    starts = log.lines[0]
    assert starts.text.split("  ")[0] == "engine starts"
    assert (starts.level, log.lines[-1].level) == ("info", "warning")
    assert starts.time == pytest.approx(1796024476, abs=600)
    assert (starts.process is not None and starts.process.pid is not None) == (process == "pid")
    (event,) = raised(log)
    assert [frame[2] for frame in frames(event)] == ["<module>", "load"]


def test_words_that_rich_moved_to_the_next_line_are_moved_back() -> None:
    log = read("rich")
    assert log.lines[-1].text == (
        "shutting down because of something that takes so many words that the console wraps the line, being narrow"
    )
    assert frames(raised(log)[0])[0] == ("/opt/app/serve.py", 16, "<module>")


def test_logfmt_of_structlog() -> None:
    starts, ends = read("structlog_logfmt").lines
    assert (starts.text, starts.level, ends.level) == ("engine starts rank=3", "info", "warning")


@pytest.mark.parametrize(("name", "process"), [("pino", Process("", 10411, None, "gpu-host")), ("winston", None)])
def test_node_loggers(name: str, process: Process | None) -> None:
    log = read(name)
    assert (log.lines[0].text, log.lines[0].level, log.lines[0].process) == ("engine starts", "info", process)
    assert (log.lines[-1].text, log.lines[-1].level) == ("shutting down", "warning")
    stack = saying(log, "Error: FlashInfer requires GPUs with sm75 or higher")
    assert stack.level == "error"


@pytest.mark.parametrize(
    "path", [path for path in SAMPLES if path.stem != "structlog_logfmt"], ids=lambda path: path.stem
)
def test_a_sample_makes_an_incident(path: Path) -> None:
    assert find_incidents([read(path.stem)]).events
