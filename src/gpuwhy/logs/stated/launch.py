"""Start commands, over several lines too: the command, the variables it sets, and the flags of engines and containers.

$ VLLM_USE_FLASHINFER_SAMPLER=0 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2
$ docker run --gpus all --shm-size 1g -e NCCL_DEBUG=INFO vllm/vllm-openai:v0.9.0 \\
    --model Qwen/Qwen3-8B
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated import images
from gpuwhy.logs.stated._types import Block, Statement, Strength, size_of
from gpuwhy.logs.stated.environment import PROMPT, WORD_ASSIGNMENT, variable

LITERALS = (
    "vllm serve", "vllm.entrypoints", "launch_server", "sglang serve", "trtllm-", "lmdeploy serve", "llama-server", "text-generation-launcher", "tritonserver", "aphrodite run",
    "ollama serve", "docker run", "podman run", "nerdctl run", "torchrun", "accelerate launch", "mpirun", "deepspeed", "$ ",
)  # fmt: skip
OPENING = LITERALS
_LAUNCH = Pattern(
    r"\b(?:vllm serve|vllm\.entrypoints|sglang\.launch_server|sglang/launch_server|sglang serve|trtllm-serve|trtllm-build|lmdeploy serve|llama-server|text-generation-launcher|tritonserver|aphrodite run|ollama serve|"
    r"(?:docker|podman|nerdctl) run|torchrun|accelerate launch|mpirun|deepspeed)\b"
)
_LAUNCH_START = Pattern(
    r"^(?:sudo )?(?:(?:env |exec |nohup |time )?(?:[A-Z_][A-Z0-9_]{0,60}=\S{0,400} ){0,40})(?:\S{0,200}/)?(?:python[\d.]*|vllm|docker|podman|nerdctl|torchrun|trtllm-\w+|lmdeploy|llama-server|sglang|uv run|mpirun|tritonserver)\b(?![:,])"
)
_PROSE_TAIL = Pattern(r"[.;:,!?]$|\b(?:is|was|the|with the|then|and it|works|fails|crashes)\b")
_CONTAINER_PROGRAMS = ("docker", "podman", "nerdctl")
_NO_VALUE = frozenset(
    [
        "--rm",
        "--detach",
        "--interactive",
        "--tty",
        "--init",
        "--privileged",
        "--publish-all",
        "--read-only",
        "--no-healthcheck",
        "--sig-proxy",
        "--oom-kill-disable",
        "--disable-content-trust",
        "--quiet",
        "--replace",
    ]
)
_FLAG_ALIASES = {
    "sglang": {"tp": "tp_size", "tensor_parallel_size": "tp_size", "dp": "dp_size", "data_parallel_size": "dp_size", "pp": "pp_size", "pipeline_parallel_size": "pp_size", "ep": "ep_size", "expert_parallel_size": "ep_size", "model": "model_path"},
    "vllm": {"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size", "q": "quantization"},
}  # fmt: skip
_SECRET_FLAGS = ("key", "token", "password", "secret")
_INT = Pattern(r"-?\d{1,15}")
_FLOAT = Pattern(r"-?\d{1,15}\.\d{1,15}")
MAX_WORDS = 400
MAX_LINES = 80
LONGEST = 8000


def read(text: str) -> Iterator[Statement]:
    """A command that stands on one line."""
    typed = _typed(text[:LONGEST])
    if typed is not None and not typed.endswith("\\"):
        yield from _command([typed], text)


def opened(text: str) -> Block | None:
    """A command that goes on behind a backslash."""
    typed = _typed(text)
    return _Continued(text, typed) if typed is not None and typed.endswith("\\") and _is_launch(typed, text) else None


def _typed(text: str) -> str | None:
    shown = text.strip()
    prompt = PROMPT.match(shown)
    typed = shown[prompt.end() :].strip() if prompt else shown
    return typed if prompt or _LAUNCH_START.match(typed) else None


def _is_launch(typed: str, text: str) -> bool:
    return _LAUNCH.search(typed) is not None and (_LAUNCH_START.match(typed) is not None or _has_prompt(text))


def _has_prompt(text: str) -> bool:
    return PROMPT.match(text.strip()) is not None


class _Continued:
    shares = False

    def __init__(self, first: str, typed: str) -> None:
        self._first = first
        self._parts = [typed]

    def read(self, text: str) -> list[Statement] | None:
        if not self._parts or len(self._parts) > MAX_LINES:
            return None
        self._parts.append(text.strip().removeprefix("> "))
        if self._parts[-1].endswith("\\"):
            return []
        parts, self._parts = self._parts, []
        return list(_command(parts, self._first))


def _command(parts: Sequence[str], first: str) -> Iterator[Statement]:
    """What the command in ``parts`` (its lines) says; each statement is traced back to its line."""
    whole = " ".join(part.rstrip("\\ ") for part in parts).strip()
    if not _is_launch(parts[0], first):
        if _has_prompt(first) and "=" in whole:
            yield from _leading_variables(split(whole))
        return
    has_prompt = _has_prompt(first)
    words = split(whole)
    if not has_prompt and len(parts) == 1 and _PROSE_TAIL.search(whole):
        return
    command = whole if len(parts) == 1 else " ".join(whole.split())
    yield Statement(
        "command",
        command,
        Strength.REPORTED if has_prompt or len(parts) > 1 else Strength.PRINTED,
        len(parts) - 1,
    )
    for statement, word in _parsed(words):
        yield Statement(statement.key, statement.value, statement.strength, _lines_back(parts, word))


def _lines_back(parts: Sequence[str], word: str) -> int:
    for at, part in enumerate(parts):
        if word in part:
            return len(parts) - 1 - at
    return len(parts) - 1


def split(text: str) -> list[str]:
    """The words of a command as a shell takes them; none when its quotes do not close."""
    import shlex

    try:
        return shlex.split(text)[:MAX_WORDS]
    except ValueError:
        return []


def _leading_variables(words: Sequence[str]) -> Iterator[Statement]:
    for word in words:
        if word in ("env", "sudo", "export", "exec", "time", "nohup"):
            continue
        found = WORD_ASSIGNMENT.fullmatch(word)
        if found is None:
            return
        yield from variable(found["name"], found["value"], Strength.REPORTED)


def _parsed(words: Sequence[str]) -> Iterator[tuple[Statement, str]]:
    """Statements of a start command, each with the word that says it."""
    at = 0
    for at, word in enumerate(words):  # noqa: B007
        if word in ("env", "sudo", "exec", "time", "nohup"):
            continue
        found = WORD_ASSIGNMENT.fullmatch(word)
        if found is None:
            break
        for statement in variable(found["name"], found["value"], Strength.REPORTED):
            yield statement, found["name"] + "="
    rest = list(words[at:])
    if len(rest) > 1 and rest[0].rpartition("/")[2] in _CONTAINER_PROGRAMS and rest[1] == "run":
        yield from _container(rest[2:])
    else:
        yield from _engine(rest)


def _container(words: Sequence[str]) -> Iterator[tuple[Statement, str]]:
    """``docker run [OPTIONS] IMAGE [ARGUMENTS]``."""
    options: list[tuple[str, str]] = []
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-"):
            break
        name, equals, value = word.partition("=")
        takes_value = not equals and name not in _NO_VALUE and not (_is_short_switch(name))
        if takes_value and at + 1 < len(words):
            at += 1
            value = words[at]
        options.append((name, value))
        at += 1
    image = words[at] if at < len(words) else ""
    shares_ipc = any(name == "--ipc" and value == "host" for name, value in options)
    for name, value in options:
        for statement in _option(name, value, shares_ipc):
            yield statement, name
    if image and "$" not in image:
        for statement in images.named(image, Strength.REPORTED):
            yield statement, image
        if images.is_engine(image):
            yield Statement("container.in_container", True, Strength.PROSE), image
    yield from _engine(words[at:])


def _is_short_switch(name: str) -> bool:
    return not name.startswith("--") and set(name[1:]) <= set("ditP")


def _option(name: str, value: str, shares_ipc: bool) -> Iterator[Statement]:
    if name in ("-e", "--env"):
        found = WORD_ASSIGNMENT.fullmatch(value)
        if found is not None:
            yield from variable(found["name"], found["value"], Strength.REPORTED)
    elif name == "--gpus" and value and "$" not in value:
        yield Statement("container.gpus", value.strip("\"'"), Strength.PROSE)
    elif name == "--shm-size" and not shares_ipc:
        size = size_of(value)
        if size is not None:
            yield Statement("shm_bytes", size, Strength.PROSE)
    elif name in ("-m", "--memory"):
        size = size_of(value)
        if size:
            yield Statement("memory_limit_bytes", size, Strength.PROSE)
    elif name == "--ulimit" and value.startswith("memlock="):
        limit = value.removeprefix("memlock=").partition(":")[0]
        yield Statement("memlock", "unlimited" if limit == "-1" else limit, Strength.PROSE)
    elif name == "--runtime" and value == "nvidia":
        yield Statement("container.runtime", value, Strength.PROSE)


def flags(words: Sequence[str]) -> Iterator[Statement]:
    """The flags of an inference server's command, or of its arguments alone (sglang says ``--model-path``)."""
    text = " ".join(words)
    is_named = "sglang" in text or "vllm" in text
    engine = "sglang" if "--model-path" in words else "vllm"
    for statement, _ in _engine(words if is_named else [engine, *words]):
        yield statement


def _engine(words: Sequence[str]) -> Iterator[tuple[Statement, str]]:
    """The flags of an inference server: what it will echo as its arguments, when it comes so far."""
    text = " ".join(words[:8])
    engine = "sglang" if "sglang" in text else "vllm" if "vllm" in text else ""
    if not engine:
        return
    aliases = _FLAG_ALIASES[engine]
    if "serve" in words[:3]:
        at = words.index("serve") + 1
        if at < len(words) and not words[at].startswith("-") and engine == "vllm":
            yield Statement("server_args.model", words[at], Strength.PROSE), words[at]
    for at, word in enumerate(words):
        if not word.startswith("--") and not (word.startswith("-") and word[1:] in aliases):
            continue
        flag, equals, value = word.partition("=")
        name = flag.lstrip("-").replace("-", "_")
        name = aliases.get(name, name)
        if not name.isidentifier() or any(secret in name for secret in _SECRET_FLAGS):
            continue
        following = words[at + 1] if at + 1 < len(words) else "--"
        given = value if equals else (True if following.startswith("--") else following)
        if isinstance(given, str) and ("$" in given or "<" in given):
            continue
        yield Statement(f"server_args.{name}", _plain(given), Strength.PROSE), flag


def _plain(value: str | bool) -> str | int | float | bool:
    if isinstance(value, bool):
        return value
    if _INT.fullmatch(value):
        return int(value)
    return float(value) if _FLOAT.fullmatch(value) else value
