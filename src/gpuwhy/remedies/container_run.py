"""The words of a ``docker run`` line: what belongs to the container's start, where its image is, what runs inside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

ENGINES = frozenset({"docker", "podman", "nerdctl"})
OPTIONS = frozenset(
    {"--shm-size", "--gpus", "--ipc", "--ulimit", "--cap-add", "--privileged", "--network", "--pids-limit", "--memory",
     "--runtime", "--security-opt", "--entrypoint", "--user", "--volume", "--mount", "--pid", "--init", "--env", "--add-host",
     "--dns", "--group-add", "--cgroupns", "--publish", "--rm", "--name", "--restart", "--cpuset-cpus", "--memory-swap"}
)  # fmt: skip
"""Options that belong to ``docker run``, not to the engine inside."""
_REPEATABLE = frozenset(
    {"--ulimit", "--cap-add", "--security-opt", "--volume", "--mount", "--env", "--device", "--add-host", "--group-add",
     "--publish", "--dns"}
)  # fmt: skip
"""Options that may stand several times: another one is added, the first part of its value says which one it replaces."""
_WITHOUT_VALUE = frozenset(
    {"--detach", "--interactive", "--tty", "--rm", "--init", "--privileged", "--read-only", "--no-healthcheck",
     "--oom-kill-disable", "--publish-all", "--sig-proxy", "--disable-content-trust", "--quiet", "--replace", "--tls-verify",
     "--env-host", "--http-proxy", "--no-hosts", "--no-hostname", "--read-only-tmpfs", "--rmi", "--passwd", "--help",
     "--use-api-socket"}
)  # fmt: skip
_SHORT_WITHOUT_VALUE = frozenset("ditPq")
_SHORT = {"-e": "--env", "-v": "--volume", "-p": "--publish", "-u": "--user", "-m": "--memory", "-d": "--detach"}
_GLOBAL_WITH_VALUE = frozenset(
    {"--context", "-c", "--host", "-H", "--log-level", "-l", "--config", "--namespace", "-n"}
)
_NOT_FOR_A_TRY = frozenset({"--detach", "--name", "--publish", "--restart", "--rm", "--entrypoint"})


def is_option_of_run(option: str, value: str) -> bool:
    """True for an option of the container's start; ``--device`` is one only when it names a device file."""
    return option in OPTIONS or (option == "--device" and value.startswith("/dev/"))


class ContainerRun(msgspec.Struct, frozen=True):
    """A ``run`` line by its words: indices of the engine's word, of ``run``, and of the image's name."""

    words: tuple[str, ...]
    engine_at: int
    run_at: int
    image_at: int

    @property
    def engine(self) -> str:
        """``docker``, or with its path and the words before it: ``sudo docker``."""
        return PurePosixPath(self.words[self.engine_at]).name

    @property
    def image(self) -> str:
        return self.words[self.image_at]

    @property
    def name(self) -> str:
        """The name that the line gives the container; ``""`` when it gives none."""
        at = self._position("--name")
        return "" if at is None else _value_at(self.words, at)

    @property
    def is_removed(self) -> bool:
        """Whether the container goes away by itself when it ends."""
        return self._position("--rm") is not None

    @property
    def inner(self) -> tuple[str, ...]:
        """The words after the image: what runs inside, or arguments of the image's own entry point."""
        return self.words[self.image_at + 1 :]

    def with_option(self, option: str, value: str) -> tuple[str, ...]:
        """The line with an option of ``run`` set: in place of what it replaces, else before the image."""
        added = (option, value) if value else (option,)
        at = self._position(option, value.partition("=")[0] if option in _REPEATABLE else None)
        if at is None:
            end = self._options_end
            return (*self.words[:end], *added, *self.words[end:])
        return (*self.words[:at], *added, *self.words[at + _extent(self.words, at) :])

    def without_option(self, option: str) -> tuple[str, ...]:
        """The line without an option of ``run``."""
        return self._without(self._position(option))

    def without_variable(self, name: str) -> tuple[str, ...]:
        """The line without ``-e NAME=...``; with ``-e NAME=`` when it had none, as the image then sets it."""
        at = self._position("--env", name)
        return self.with_option("--env", f"{name}=") if at is None else self._without(at)

    def variable(self, name: str) -> str | None:
        """What the line sets a variable to; None when it does not, or takes it from outside."""
        at = self._position("--env", name)
        if at is None:
            return None
        _, assigned, value = _value_at(self.words, at).partition("=")
        return value if assigned else None

    def option(self, option: str) -> str | None:
        """The value of an option of ``run``, ``""`` for a switch; None when the line does not have it."""
        at = self._position(option)
        return None if at is None else _value_at(self.words, at)

    def span_of(self, option: str, value: str) -> tuple[int, int] | None:
        """First and last word that :meth:`with_option` would replace; None when it would add."""
        at = self._position(option, value.partition("=")[0] if option in _REPEATABLE else None)
        return None if at is None else (at, at + _extent(self.words, at) - 1)

    def for_a_try(self, command: str) -> tuple[str, ...]:
        """The same container, started under no name to run one shell command and be gone."""
        kept = [*self.words[: self.run_at + 1], "--rm", "--entrypoint", "sh"]
        for at in self._option_positions():
            if set(self.words[at][1:]) <= _SHORT_WITHOUT_VALUE:
                kept += ["-i"] if "i" in self.words[at] else []
            elif _option_of(self.words[at]) not in _NOT_FOR_A_TRY:
                kept += self.words[at : at + _extent(self.words, at)]
        return (*kept, self.image, "-c", command)

    @property
    def _options_end(self) -> int:
        """Where one more option may stand: before the image, and before a ``--`` in front of it."""
        return self.image_at - (self.words[self.image_at - 1] == "--")

    def _without(self, at: int | None) -> tuple[str, ...]:
        if at is None:
            return self.words
        return (*self.words[:at], *self.words[at + _extent(self.words, at) :])

    def _position(self, option: str, key: str | None = None) -> int | None:
        """The last place of an option, of one with several values that whose value begins with ``key``."""
        found = None
        for at in self._option_positions():
            if _option_of(self.words[at]) == option and (
                key is None or _value_at(self.words, at).partition("=")[0] == key
            ):
                found = at
        return found

    def _option_positions(self) -> list[int]:
        positions, at = [], self.run_at + 1
        while at < self._options_end:
            positions.append(at)
            at += _extent(self.words, at)
        return positions


def read_run(words: Sequence[str], engine_at: int = 0) -> ContainerRun | None:
    """A line whose word ``engine_at`` names a container engine; None when it is no ``run`` line with an image.

    >>> read_run(("docker", "run", "--gpus", "all", "-it", "vllm/vllm-openai:latest", "--model", "m")).image
    'vllm/vllm-openai:latest'
    """
    if engine_at >= len(words) or PurePosixPath(words[engine_at]).name not in ENGINES:
        return None
    run_at = _run_word(words, engine_at + 1)
    if run_at is None:
        return None
    at = run_at + 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--":
            at += 1
            break
        at += _extent(words, at)
    return ContainerRun(tuple(words), engine_at, run_at, at) if at < len(words) else None


def _run_word(words: Sequence[str], at: int) -> int | None:
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GLOBAL_WITH_VALUE else 1
    if at < len(words) and words[at] == "container":
        at += 1
    return at if at < len(words) and words[at] == "run" else None


def _extent(words: Sequence[str], at: int) -> int:
    """How many words an option of ``run`` takes."""
    word = words[at]
    if word.startswith("--"):
        return 1 if "=" in word or word in _WITHOUT_VALUE else 2
    for place, letter in enumerate(word[1:], 2):  # a cluster such as -itd, or -p8000:8000
        if letter not in _SHORT_WITHOUT_VALUE:
            return 2 if place == len(word) else 1
    return 1


def _option_of(word: str) -> str:
    """The long name of an option's word: ``-eA=1`` is ``--env``. A cluster of switches counts as its first."""
    if word.startswith("--"):
        return word.partition("=")[0]
    return _SHORT.get(word[:2], word[:2])


def _value_at(words: Sequence[str], at: int) -> str:
    word = words[at]
    if word.startswith("--"):
        _, joined, value = word.partition("=")
        return value if joined else (words[at + 1] if _extent(words, at) == 2 and at + 1 < len(words) else "")
    if _extent(words, at) == 2:
        return words[at + 1] if at + 1 < len(words) else ""
    return word[2:].removeprefix("=")
