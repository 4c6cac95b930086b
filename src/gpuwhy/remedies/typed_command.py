"""A start command as a person types it: read into words, changed, and written so that it can be pasted again.

Command texts come from logs and reports. A text that is only part of a command, or that starts no known kind of
program, is not repeated: the remedy then says in words what to change.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from gpuwhy.remedies.command_line import with_option, without_option
from gpuwhy.remedies.container_run import ENGINES, ContainerRun, read_run

LONGEST = 16_000
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}=")
_REDIRECTION = re.compile(r"(?<=\s)[0-9&]?>{1,2}\s{0,4}(?:&\s{0,4}\d|[\w./~$-]{1,400})|(?<=\s)<\s{0,4}/dev/null")
_ELLIPSIS = re.compile(r"(?:^|[\s\"'])(?:\.{3,}|…|\[\.\.\.\])")
_PLACEHOLDER = re.compile(r"\.{3,}|…|<[A-Za-z][^<>]{0,80}>|[()<>|&;]")
"""What stands in the place of words that the writer left out, or is shell syntax outside of any quotes."""
_SUBSTITUTION = re.compile(r"\$\((?!pwd\))|`")
"""A command inside the command: what it gave is not known, and it is not run a second time."""
_BEFORE = {
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C"}),
    "env": frozenset({"-u", "-C"}),
    "nohup": frozenset[str](),
    "time": frozenset[str](),
    "exec": frozenset[str](),
    "numactl": frozenset[str](),
    "stdbuf": frozenset[str](),
    "setsid": frozenset[str](),
    "taskset": frozenset({"-c"}),
    "nice": frozenset({"-n"}),
    "timeout": frozenset({"-k", "-s"}),
}
"""Programs that start another one, with those of their options that take a word."""
_STARTS_SERVICES = re.compile(
    r"vllm|sglang|python(?:3(?:\.\d{1,2})?)?|torchrun|accelerate|deepspeed|mpirun|mpiexec|srun|ray|docker|podman|nerdctl"
    r"|llama-(?:server|cli|bench|swap)|server|ollama|trtllm-[a-z]{1,20}|tritonserver|lmdeploy|text-generation-launcher|uv|uvicorn"
    r"|lmcache_vllm|(?:ba|da|z)?sh|[\w.+-]{1,80}\.sh"
)
_SHELLS = re.compile(r"(?:ba|da|z)?sh")
_SCRIPT = re.compile(r"[\w./~+-]{1,400}\.sh")
_EXPANDED = re.compile(
    r"(?:~(?=/))?(?:[A-Za-z0-9_@%+=:,./-]|\$[A-Za-z_][A-Za-z0-9_]{0,80}|\$\{[A-Za-z_][A-Za-z0-9_]{0,80}\}|\$\(pwd\)){1,2000}"
)
"""A word whose only special parts are a home and variables, which the person meant to be expanded."""


class TypedCommand(msgspec.Struct, frozen=True):
    """One simple command: all its words, where its program stands, and the assignments before it (``A=1 vllm ...``)."""

    words: tuple[str, ...]
    program_at: int

    @property
    def program(self) -> str:
        return PurePosixPath(self.words[self.program_at]).name

    @property
    def run(self) -> ContainerRun | None:
        """Its ``docker run``, when it is one."""
        return read_run(self.words, self.program_at) if self.program in ENGINES else None

    @property
    def hands_on_to(self) -> str:
        """The script or the shell line that starts the engine; ``""`` when the engine's options stand in the command."""
        run = self.run
        inner = run.inner if run is not None else self.words[self.program_at :]
        first = PurePosixPath(inner[0]).name if inner else ""
        if run is not None and _SHELLS.fullmatch(PurePosixPath(run.option("--entrypoint") or "").name):
            return "the shell line"
        if _SHELLS.fullmatch(first):
            script = next((word for word in inner[1:] if not word.startswith("-")), "")
            return script if _SCRIPT.fullmatch(script) else "the shell line"
        return inner[0] if first.endswith(".sh") else ""

    def variable(self, name: str) -> str | None:
        """What the command itself sets a variable to, before the program or for the container."""
        run = self.run
        if run is not None:
            return run.variable(name)
        at = self._assignment(name)
        return None if at is None else self.words[at].partition("=")[2]

    def with_variable(self, name: str, value: str) -> TypedCommand:
        """With a variable set before the program, where one is set there already or nothing else does it."""
        at = self._assignment(name)
        if at is None:
            return self._changed((f"{name}={value}", *self.words))
        return self._changed((*self.words[:at], f"{name}={value}", *self.words[at + 1 :]))

    def without_variable(self, name: str) -> TypedCommand:
        at = self._assignment(name)
        return self if at is None else self._changed((*self.words[:at], *self.words[at + 1 :]))

    def with_engine_option(self, option: str, value: str) -> TypedCommand:
        """With an option of the engine: after the program's own words, or the image's name."""
        return self._changed(with_option(self.words, option, value, self.engine_start))

    def without_engine_option(self, option: str) -> TypedCommand:
        return self._changed(without_option(self.words, option, self.engine_start))

    def text(self) -> str:
        """The command to paste."""
        return " ".join(
            _assignment_typed(word) if at < self.program_at and _ASSIGNMENT.match(word) else typed(word)
            for at, word in enumerate(self.words)
        )

    @property
    def engine_start(self) -> int:
        """The first word that can be an option of the engine: after the program, or after the image."""
        run = self.run
        return self.program_at + 1 if run is None else run.image_at + 1

    def _assignment(self, name: str) -> int | None:
        return next((at for at in range(self.program_at) if self.words[at].startswith(f"{name}=")), None)

    def _changed(self, words: Sequence[str]) -> TypedCommand:
        return TypedCommand(tuple(words), _program_at(words) or 0)


def typed(word: str) -> str:
    """A word as it is typed: quoted, unless a home or a variable in it was meant to be expanded."""
    if ("$" in word or word.startswith("~/")) and _EXPANDED.fullmatch(word):
        return f'"{word}"' if "$" in word and not word.startswith("~") else word
    return shlex.quote(word)


def _assignment_typed(word: str) -> str:
    name, _, value = word.partition("=")
    return f"{name}={typed(value) if value else ''}"


def words_of(text: str) -> tuple[str, ...]:
    """The words of a command's text as a shell splits them; split at blanks when its quotes do not close."""
    joined = re.sub(r"\\\r?\n", " ", text[:LONGEST])
    try:
        return tuple(shlex.split(joined))
    except ValueError:
        return tuple(joined.split())


def read_command(text: str) -> TypedCommand | None:
    """The command in ``text`` that starts the service; None when there is none, or not all of it.

    Of several commands (``cd x && export A=1 && vllm serve m 2>&1 | tee log``) the one that starts a service is taken,
    without redirections.

    >>> read_command("CUDA_VISIBLE_DEVICES=0 vllm serve m > log 2>&1 &").words
    ('CUDA_VISIBLE_DEVICES=0', 'vllm', 'serve', 'm')
    """
    if len(text) > LONGEST or _ELLIPSIS.search(text):
        return None
    joined = re.sub(r"\\\r?\n", " ", text.strip()).replace("\n", " ; ")
    lexer = shlex.shlex(_REDIRECTION.sub(" ", joined), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    try:
        for token in lexer:
            if token and set(token) <= set("();<>|&"):
                if set(token) & set("()<>"):
                    return None
                commands.append([])
            else:
                commands[-1].append(token)
    except ValueError:
        return None
    return next((found for words in commands if (found := read_words(words)) is not None), None)


def read_words(words: Sequence[str]) -> TypedCommand | None:
    """A command from its words (of a process, say); None when it starts no known kind of program."""
    at = _program_at(words)
    if at is None or not _STARTS_SERVICES.fullmatch(PurePosixPath(words[at]).name):
        return None
    is_whole = not any(
        _PLACEHOLDER.match(word) or _SUBSTITUTION.search(word) or not word.isprintable() for word in words
    )
    return TypedCommand(tuple(words), at) if is_whole and len(words) > 1 else None


def _program_at(words: Sequence[str]) -> int | None:
    """Where the program stands, after assignments and programs such as ``sudo`` and ``nohup`` with their options."""
    at = 0
    while at < len(words):
        if _ASSIGNMENT.match(words[at]):
            at += 1
            continue
        with_word = _BEFORE.get(PurePosixPath(words[at]).name)
        if with_word is None:
            return at
        is_timeout = PurePosixPath(words[at]).name == "timeout"
        at += 1
        while at < len(words) and words[at].startswith("-"):
            at += 2 if words[at] in with_word else 1
        at += is_timeout
    return None
