"""The case a cause is asked to judge: an incident, the facts, and where the declared signs were found."""

from __future__ import annotations

import bisect
from collections.abc import Iterator

import msgspec

from gpuwhy.causes._component import WEAK, built_by_pip, first_component
from gpuwhy.model.event import Event, Frame, Log, LogLine
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.finding import Missing
from gpuwhy.model.incident import Incident


class Match(msgspec.Struct, frozen=True):
    """A sign found in a line. ``groups`` holds the named groups of its pattern (those that took part).

    ``event`` is the event the line belongs to, None for a line that no event claims. ``is_code`` marks a source line
    that a traceback quotes: it shows what the program could say, not that it said it.
    """

    sign: str
    line: LogLine
    place: Place
    groups: dict[str, str]
    event: Event | None = None
    is_code: bool = False

    @property
    def text(self) -> str:
        return self.line.text.strip()

    def group(self, name: str) -> str | None:
        """The named group, None when it took no part."""
        return self.groups.get(name)

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames of the event's exceptions, the first raised exception first."""
        if self.event is None:
            return ()
        return tuple(frame for block in self.event.exceptions for frame in block.frames)


MOST_LINES = 1_500
"""Lines that a cause may look through freely; of a longer log those at its ends and around its events are taken."""
AROUND_EVENT = 40
AT_THE_ENDS = 250


class Case:
    """What a cause judges. Immutable for the cause that is given it."""

    __slots__ = ("_matches", "_telling", "facts", "incident")

    def __init__(
        self,
        incident: Incident,
        facts: Facts,
        matches: dict[str, tuple[Match, ...]],
        telling: tuple[tuple[Log, LogLine], ...] | None = None,
    ) -> None:
        self.incident = incident
        self.facts = facts
        self._matches = matches
        self._telling = telling

    def lines(self) -> tuple[tuple[Log, LogLine], ...]:
        """The lines that can tell of the surroundings (a command, a container, a list of GPUs), each with its log.

        All of a short log; of a long one its beginning, its end and what stands around its events: to look through
        everything is what declared signs are for.
        """
        if self._telling is None:
            self._telling = telling_lines(self.incident)
        return self._telling

    def found(self, *signs: str) -> Match | None:
        """The best match of the first of these signs that was found: outside quoted code before inside, then earliest."""
        for sign in signs:
            matches = self._matches.get(sign)
            if matches:
                return matches[0]
        return None

    def all(self, *signs: str) -> tuple[Match, ...]:
        """Every match of these signs, best first within each."""
        return tuple(match for sign in signs for match in self._matches.get(sign, ()))

    def evidence(self, match: Match, statement: str) -> Evidence:
        """Evidence that quotes the matched line."""
        return Evidence(statement, match.text, match.place)

    def fact(self, key: str) -> Fact | Unknown:
        return self.facts.get(key)

    def fact_evidence(self, key: str, statement: str = "") -> Evidence | None:
        """The evidence of a known fact, with ``statement`` in place of its own when given."""
        fact = self.facts.get(key)
        if isinstance(fact, Unknown):
            return None
        return msgspec.structs.replace(fact.evidence, statement=statement) if statement else fact.evidence

    def missing(self, key: str, why: str = "", command: str = "") -> Missing | None:
        """What to ask for when ``key`` is unknown; None when it is known."""
        fact = self.facts.get(key)
        if isinstance(fact, Fact):
            return None
        return Missing(key, command or fact.command or COMMANDS.get(key.split(".")[0], ""), why or fact.why)

    @property
    def engine(self) -> str:
        """``sglang``, ``vllm`` ... as far as the log or the start command tells; ``""`` when it does not."""
        return self.incident.engine

    def explains(self, *matches: Match | None) -> tuple[int, ...]:
        """The ids of the events these matches belong to, and of those that only echo the primary one among them."""
        own = {match.event.id for match in matches if match is not None and match.event is not None}
        if self.incident.primary in own:
            own |= {event.id for event in self.incident.events if event.is_echo}
        return tuple(sorted(own))

    def component_near(self, match: Match | None, default: str | None = None) -> str | None:
        """The component in which a match sits.

        Looks at the matched line, at the innermost frames of its event, then at the lines around it (build logs
        print the file they compile and the package they build); ``default`` when none of them names a component.
        """
        if match is None:
            return default
        component = first_component(self._texts_near(match))
        if component in WEAK and self._compiles_with_headers_of_torch(match):
            component = built_by_pip(line.text for line in self.lines_around(match, 600, 60)) or component
        return default if component is None else self._product_around(component, match)

    def _compiles_with_headers_of_torch(self, match: Match) -> bool:
        """Whether the compiler speaks of torch's headers: every extension includes them, whoever builds it."""
        return any("/torch/include/" in line.text[:1000] for line in (match.line, *self.lines_around(match, 60, 25)))

    def _product_around(self, component: str, match: Match) -> str:
        """The product that carries the component under its own name, when the lines around the match name it."""
        carriers = CARRIERS.get(component, ())
        if carriers:
            near = " ".join(line.text[:500].lower() for line in self.lines_around(match, 200, 60))
            for name, product in carriers:
                if name in near:
                    return product
        return component

    def _texts_near(self, match: Match) -> Iterator[tuple[str, bool]]:
        yield match.text, True
        for frame in reversed(match.frames):
            yield frame.path, False
        around = self.lines_around(match, before=60, after=25)
        for line in around:
            yield line.text, False
        for line in around:
            yield line.text, True

    def lines_around(self, match: Match, before: int = 10, after: int = 10) -> tuple[LogLine, ...]:
        """Lines of the same log near the match, nearest first."""
        log = next((log for log in self.incident.logs if log.name == match.place.path), None)
        if log is None and self.incident.logs:
            log = next((log for log in self.incident.logs if match.line in log.lines), None)
        if log is None:
            return ()
        at = match.line.number
        begin = bisect.bisect_left(log.lines, at - before, key=_number)
        end = bisect.bisect_right(log.lines, at + after, begin, key=_number)
        near = [line for line in log.lines[begin:end] if line.number != at]
        return tuple(sorted(near, key=lambda line: abs(line.number - at)))

    def frame_in(self, match: Match, *path_parts: str) -> Frame | None:
        """The innermost frame of the match's event whose path contains one of ``path_parts``."""
        for frame in reversed(match.frames):
            if any(part in frame.path for part in path_parts):
                return frame
        return None


def telling_lines(incident: Incident) -> tuple[tuple[Log, LogLine], ...]:
    """See :meth:`Case.lines`; the same for every cause that judges the incident."""
    return tuple((log, line) for log in incident.logs for line in _telling_lines_of(log, incident))


def _telling_lines_of(log: Log, incident: Incident) -> Iterator[LogLine]:
    if len(log.lines) <= MOST_LINES:
        yield from log.lines
        return
    wanted = [(0, AT_THE_ENDS), (len(log.lines) - AT_THE_ENDS, len(log.lines))]
    room = MOST_LINES - 2 * AT_THE_ENDS
    first = incident.primary_event
    events = ([first] if first is not None else []) + [event for event in incident.events if event is not first]
    for event in events:
        if event.span.log != log.name or room <= 0:
            continue
        begin = bisect.bisect_left(log.lines, event.span.first - AROUND_EVENT, key=_number)
        end = min(bisect.bisect_right(log.lines, event.span.last + AROUND_EVENT, begin, key=_number), begin + room)
        wanted.append((begin, end))
        room -= end - begin
    done = 0
    for begin, end in sorted(wanted):
        yield from log.lines[max(begin, done) : end]
        done = max(done, end)


def _number(line: LogLine) -> int:
    return line.number


CARRIERS = {
    "llama.cpp": (
        ("llama-cpp-python", "llama-cpp-python"),
        ("llama_cpp_python", "llama-cpp-python"),
        ("whisper.cpp", "whisper.cpp"),
        ("stable-diffusion.cpp", "stable-diffusion.cpp"),
        ("llama-box", "llama-box"),
        ("ollama", "ollama"),
        ("ml/backend/ggml/", "ollama"),
        ("llama runner ", "ollama"),
        ("localai", "localai"),
        ("koboldcpp", "koboldcpp"),
        ("ctransformers", "ctransformers"),
        ("ktransformers", "ktransformers"),
        ("gpt4all", "gpt4all"),
    ),
    "flash-attn": (("building wheel for xformers", "xformers"), ("failed to build xformers", "xformers")),
}
"""Products that build or bundle a component under their own name: the text that names them, and their name."""

COMMANDS = {
    "gpu": "nvidia-smi --query-gpu=index,name,compute_cap --format=csv",
    "cc": "nvidia-smi --query-gpu=index,name,compute_cap --format=csv",
    "gpus": "nvidia-smi --query-gpu=index,name,compute_cap --format=csv",
    "cuda_toolkit": "nvcc --version",
    "driver": "cat /proc/driver/nvidia/version",
    "packages": "python -m pip list",
    "env": "tr '\\0' '\\n' < /proc/PID/environ",
    "torch": "python -c 'import torch; print(torch.__version__, torch.version.cuda)'",
    "torch_cuda": "python -c 'import torch; print(torch.version.cuda)'",
    "torch_arch_list": "python -c 'import torch; print(torch.cuda.get_arch_list())'",
    "other_toolkits": "ls -d /usr/local/cuda*/bin/nvcc",
    "kernel_log": "journalctl -k -b",
    "gcc": "gcc --version",
}
"""How a person gets a fact, by the first part of its key."""


def inferred(statement: str) -> Evidence:
    """A link of the usual mechanism that nobody saw here."""
    return Evidence(statement, standing=Standing.INFERRED)


def derived(statement: str, provenance: str) -> Evidence:
    """What follows from facts and measured data; ``provenance`` says how the data was measured."""
    return Evidence(statement, provenance, Place("knowledge"), Standing.DERIVED)
