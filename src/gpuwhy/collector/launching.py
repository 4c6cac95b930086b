"""From a start command to the Python that runs in the end: wrappers, shells, start scripts, ``uv run``, ``conda run``.

``/bin/bash -c source /opt/venv/bin/activate && exec vllm serve M`` names no interpreter; ``/opt/venv/bin/vllm`` is a
script whose first line does. Nothing is run to find out: files are read, as far as they are plain.
"""

import os
import re
import shlex
from typing import Dict, List, Optional

from gpuwhy.collector.reading import try_list, try_text

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")

PYTHON = re.compile(r"^(?:python|pypy)[0-9.]*t?$")

DEEPEST = 6


class Launch:
    """What a start command leads to.

    ``interpreter`` is the path of the Python, ``prefix`` the environment it belongs to when a wrapper names that
    instead. ``variables`` are those that wrappers and start scripts set on the way. ``is_opaque`` is true when a script
    does more than could be followed. ``steps`` tell the way in words.
    """

    def __init__(self) -> None:
        self.interpreter: Optional[str] = None
        self.prefix: Optional[str] = None
        self.container: Optional[str] = None
        self.script: Optional[str] = None
        self.words: List[str] = []
        self.variables: Dict[str, str] = {}
        self.is_opaque = False
        self.opaque_reason = ""
        self.steps: List[str] = []

    def opaque(self, reason: str) -> None:
        self.is_opaque = True
        self.opaque_reason = self.opaque_reason or reason


def launch_of(command: List[str], variables: Dict[str, str], directory: str = "") -> Launch:
    """Follows ``command`` as it would be started with ``variables`` in ``directory``."""
    launch = Launch()
    _follow(launch, list(command), dict(variables), directory or "/", 0)
    return launch


def _follow(launch: Launch, words: List[str], variables: Dict[str, str], directory: str, depth: int) -> None:
    while words and depth < DEEPEST:
        name = os.path.basename(words[0].lstrip("@-:+!"))
        if PYTHON.match(name):
            launch.words = launch.words or words
            _take_interpreter(launch, words[0].lstrip("@-:+!"), variables, directory)
            return
        if name in SHELLS:
            _follow_shell(launch, words, variables, directory, depth)
            return
        if name == "env":
            words = _after_env(launch, words[1:], variables)
            continue
        if name in ("uv", "conda", "mamba", "micromamba", "pixi", "poetry"):
            _follow_runner(launch, name, words, variables, directory, depth)
            return
        if name in ("docker", "podman", "nerdctl") and any(
            word in ("run", "start", "exec", "compose") for word in words[1:4]
        ):
            launch.container = name
            launch.steps.append("%s starts a container" % name)
            return
        inner = _inner(name, words)
        if inner is not None:
            launch.steps.append("%s runs %s" % (name, inner[0]))
            words, depth = inner, depth + 1
            continue
        launch.words = launch.words or words
        _follow_file(launch, words, variables, directory, depth)
        return


def _take_interpreter(launch: Launch, name: str, variables: Dict[str, str], directory: str) -> None:
    path = which(name, variables, directory)
    if path is None and launch.prefix is not None:
        path = os.path.join(launch.prefix, "bin", os.path.basename(name))
    launch.interpreter = path or name
    launch.steps.append("the interpreter is %s" % launch.interpreter)


def which(name: str, variables: Dict[str, str], directory: str = "/") -> Optional[str]:
    """The file that ``name`` starts, by the PATH of the process."""
    if "/" in name:
        path = os.path.normpath(os.path.join(directory, name))
        return path if os.path.exists(path) else None
    for folder in variables.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or directory, name)
        try:
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        except ValueError:
            continue
    return None


def _follow_file(launch: Launch, words: List[str], variables: Dict[str, str], directory: str, depth: int) -> None:
    """A script with a first line of its own: ``#!/opt/venv/bin/python``, ``#!/usr/bin/env bash``."""
    name = words[0].lstrip("@-:+!")
    path = which(name, variables, directory)
    if path is None and launch.prefix is not None:
        inside = os.path.join(launch.prefix, "bin", os.path.basename(name))
        path = inside if os.path.exists(inside) else None
    if path is None:
        launch.steps.append("%s was not found" % name)
        launch.opaque("%s was not found" % name)
        return
    launch.script = launch.script or path
    head = try_text(path, 4096) or ""
    if not head.startswith("#!"):
        launch.steps.append("%s is a program of its own" % path)
        return
    first = head[2:].split("\n", 1)[0].strip()
    if head.startswith("#!/bin/sh\n'''exec'"):
        # pip and uv write this form when the path of the interpreter is too long for a first line.
        found = re.search(r"'''exec' [\"']?(/[^\"'\n]+?)[\"']? \"\$0\"", head)
        first = found.group(1) if found else first
    launch.steps.append("%s is run by %s" % (path, first))
    interpreter = first.split()
    if interpreter and os.path.basename(interpreter[0]) in SHELLS:
        _follow_script(launch, path, variables, directory, depth)
    elif interpreter:
        _follow(launch, interpreter + [path] + words[1:], variables, directory, depth + 1)


def _follow_shell(launch: Launch, words: List[str], variables: Dict[str, str], directory: str, depth: int) -> None:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if not words[at].startswith("--") and "c" in words[at]:
            # systemd prints arguments joined by blanks: all that follows is the script.
            launch.steps.append("%s runs a line of its own" % words[0])
            if "l" in words[at] or "i" in words[at]:
                launch.opaque("a login shell reads its profile first")
            _follow_lines(launch, " ".join(words[at + 1 :]), variables, directory, depth)
            return
        at += 2 if words[at] in ("-o", "-O", "+o") else 1
    if at < len(words):
        path = which(words[at], variables, directory) or words[at]
        _follow_script(launch, path, variables, directory, depth)


def _follow_script(launch: Launch, path: str, variables: Dict[str, str], directory: str, depth: int) -> None:
    text = try_text(path, 1 << 16)
    launch.script = launch.script or path
    if text is None:
        launch.opaque("%s could not be read" % path)
        return
    launch.steps.append("%s is a shell script" % path)
    _follow_lines(launch, text, variables, os.path.dirname(path) if not directory else directory, depth)


def _follow_lines(launch: Launch, text: str, variables: Dict[str, str], directory: str, depth: int) -> None:
    if depth >= DEEPEST:
        return
    for words in _statements(text):
        while words and re.match(r"^[A-Za-z_][A-Za-z0-9_]*=", words[0]):
            name, _, value = words.pop(0).partition("=")
            _assign(launch, variables, name, value)
        if not words:
            continue
        head = words[0]
        if head == "export":
            for word in words[1:]:
                name, sign, value = word.partition("=")
                if sign:
                    _assign(launch, variables, name, value)
        elif head == "unset":
            for name in words[1:]:
                variables.pop(name, None)
                launch.opaque("unset %s" % name)
        elif head == "cd" and len(words) > 1:
            directory = os.path.normpath(os.path.join(directory, expand(words[1], variables) or directory))
        elif head in ("source", ".") and len(words) > 1:
            _source(launch, expand(words[1], variables) or words[1], variables, directory)
        elif head in ("conda", "mamba", "micromamba") and "activate" in words[1:2] and len(words) > 2:
            _activate(launch, conda_prefix(words[2], variables), variables)
        elif head in ("if", "for", "while", "case", "eval", "until"):
            launch.opaque("the start script has %s" % head)
        elif _starts_a_program(words):
            if head in ("exec", "then", "else", "do", "nohup", "time"):
                words = words[1:]
            expanded = [expand(word, variables) or word for word in words]
            _follow(launch, expanded, variables, directory, depth + 1)
            if launch.interpreter or launch.container:
                return


def _statements(text: str) -> List[List[str]]:
    """The simple commands of a script, one after the other, as far as a shell's own splitting goes."""
    statements: List[List[str]] = []
    joined = text.replace("\\\n", " ")
    for line in joined.splitlines():
        if line.lstrip().startswith("#"):
            continue
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        words: List[str] = []
        try:
            for word in lexer:
                if word and not word.strip(";&|"):
                    statements.append(words)
                    words = []
                else:
                    words.append(word)
        except ValueError:
            words = line.split()
        statements.append(words)
    return [words for words in statements if words]


def _starts_a_program(words: List[str]) -> bool:
    quiet = ("set", "echo", "printf", "mkdir", "ulimit", "trap", "sleep", "shopt", "umask", "true", ":", "[", "[[", "test", "fi", "done", "}", "{", "read", "return", "exit", "local", "declare", "shift", "alias", "chmod", "chown", "rm", "ls", "cat", "esac", "nvidia-smi", "sysctl", "mount", "wait", "kill", "pkill", "hash", "rehash", "deactivate", "pip", "command", "type", "date", "hostname", "wget", "curl", "git", "apt-get", "apt", "modprobe")  # fmt: skip
    return words[0] not in quiet and not words[0].startswith(("#", "$("))


def _assign(launch: Launch, variables: Dict[str, str], name: str, value: str) -> None:
    expanded = expand(value, variables)
    if expanded is None:
        launch.opaque("%s is computed by the start script" % name)
        return
    variables[name] = expanded
    launch.variables[name] = expanded


def expand(text: str, variables: Dict[str, str]) -> Optional[str]:
    """``$NAME``, ``${NAME}`` and ``${NAME:-default}`` replaced; None when the text holds what only a shell can compute."""
    if "`" in text or "$(" in text:
        return None

    def value(found: "re.Match[str]") -> str:
        name = found.group(1) or found.group(3)
        known = variables.get(name, "")
        return known if known or found.group(2) is None else found.group(2)

    expanded = re.sub(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?::?[-+]([^}]*))?\}|([A-Za-z_][A-Za-z0-9_]*))", value, text)
    home = variables.get("HOME")
    return home + expanded[1:] if home and (expanded == "~" or expanded.startswith("~/")) else expanded


def _source(launch: Launch, path: str, variables: Dict[str, str], directory: str) -> None:
    full = os.path.normpath(os.path.join(directory, path))
    if os.path.basename(full) == "activate":
        _activate(launch, os.path.dirname(os.path.dirname(full)), variables)
    elif full.endswith(("profile.d/conda.sh", "/.bashrc", "/.profile")):
        launch.opaque("%s is read by the start script" % full)
    else:
        text = try_text(full, 1 << 16)
        if text is None:
            launch.opaque("%s could not be read" % full)
            return
        launch.steps.append("the start script reads %s" % full)
        for words in _statements(text):
            for word in words[1:] if words[0] == "export" else words[:1]:
                name, sign, value = word.partition("=")
                if sign and re.match(r"^[A-Za-z_][A-Za-z0-9_]*$", name):
                    _assign(launch, variables, name, value)


def _activate(launch: Launch, prefix: Optional[str], variables: Dict[str, str]) -> None:
    if prefix is None:
        launch.opaque("the conda environment was not found")
        return
    launch.prefix = prefix
    launch.steps.append("%s is activated" % prefix)
    added = {"PATH": os.path.join(prefix, "bin") + ":" + variables.get("PATH", os.defpath)}
    if os.path.exists(os.path.join(prefix, "pyvenv.cfg")):
        added["VIRTUAL_ENV"] = prefix
    else:
        added["CONDA_PREFIX"] = prefix
    variables.update(added)
    launch.variables.update(added)


def conda_prefix(name: str, variables: Dict[str, str]) -> Optional[str]:
    """Where a conda environment of that name (or path) lies."""
    if "/" in name:
        return name if os.path.isdir(name) else None
    homes = [variables.get("MAMBA_ROOT_PREFIX", ""), variables.get("CONDA_ROOT", "")]
    binary = variables.get("CONDA_EXE") or which("conda", variables)
    if binary:
        homes.append(os.path.dirname(os.path.dirname(os.path.realpath(binary))))
    home = variables.get("HOME", "/root")
    for base in (home, "/opt", "/root", "/usr/local", "/"):
        homes += [
            os.path.join(base, kind)
            for kind in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "conda", "micromamba", "miniconda")
        ]
    for base in homes:
        for prefix in ([base] if name == "base" else []) + [os.path.join(base, "envs", name)]:
            if base and os.path.isdir(os.path.join(prefix, "conda-meta")):
                return prefix
    return None


def _after_env(launch: Launch, words: List[str], variables: Dict[str, str]) -> List[str]:
    """``env -u X A=b python``: notes what it changes, returns the command behind it."""
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("-u", "--unset", "-C", "--chdir"):
            if word in ("-u", "--unset") and at + 1 < len(words):
                variables.pop(words[at + 1], None)
                launch.opaque("env unsets %s" % words[at + 1])
            at += 2
        elif word == "-S" or word.startswith("--split-string"):
            at += 1
        elif word in ("-i", "-", "--ignore-environment"):
            launch.opaque("env starts from an empty environment")
            at += 1
        elif word.startswith("-"):
            at += 1
        elif re.match(r"^[A-Za-z_][A-Za-z0-9_]*=", word):
            name, _, value = word.partition("=")
            variables[name] = value
            launch.variables[name] = value
            at += 1
        else:
            break
    return words[at:]


def _follow_runner(
    launch: Launch, name: str, words: List[str], variables: Dict[str, str], directory: str, depth: int
) -> None:
    """``uv run``, ``conda run -n NAME``: the environment they choose, then the command they run in it."""
    options = {"-n", "--name", "-p", "--prefix", "--project", "--directory", "--python", "--with", "--extra", "--group", "--env-file", "-m", "--package", "-e", "--environment", "--cwd"}  # fmt: skip
    given: Dict[str, str] = {}
    at = 1
    while at < len(words) and (words[at].startswith("-") or words[at] in ("run", "tool")):
        option, sign, value = words[at].partition("=")
        if not sign and option in options and at + 1 < len(words) and not (name == "uv" and option in ("-n", "-p")):
            given[option] = words[at + 1]
            at += 2
        else:
            if sign:
                given[option] = value
            at += 1
    where = os.path.join(directory, given.get("--project") or given.get("--directory") or given.get("--cwd") or "")
    prefix: Optional[str] = None
    if name in ("conda", "mamba", "micromamba"):
        chosen = given.get("-p") or given.get("--prefix")
        prefix = chosen or conda_prefix(given.get("-n") or given.get("--name") or "base", variables)
    elif name == "uv":
        prefix = variables.get("UV_PROJECT_ENVIRONMENT") or (
            variables.get("VIRTUAL_ENV") if "--active" in words else None
        )
        prefix = os.path.join(where, prefix) if prefix else _upwards(where, ".venv")
    elif name == "pixi":
        prefix = _upwards(
            where, os.path.join(".pixi", "envs", given.get("-e") or given.get("--environment") or "default")
        )
    else:
        prefix = _upwards(where, ".venv")
    if prefix is None:
        launch.opaque("the environment of %s was not found" % name)
        launch.steps.append("%s runs in an environment that was not found" % name)
        return
    _activate(launch, prefix, variables)
    launch.interpreter = interpreter_in(prefix)
    rest = words[at:]
    launch.words = rest
    if rest:
        _follow(launch, rest, variables, where, depth + 1)


def _upwards(directory: str, name: str) -> Optional[str]:
    current = os.path.normpath(directory)
    for _ in range(10):
        candidate = os.path.join(current, name)
        if os.path.isdir(candidate):
            return candidate
        parent = os.path.dirname(current)
        if parent == current:
            break
        current = parent
    return None


def interpreter_in(prefix: str) -> Optional[str]:
    """The Python of an environment, None when it has none."""
    names = ["python3", "python"] + [name for name in try_list(os.path.join(prefix, "bin")) if PYTHON.match(name)]
    for name in names:
        path = os.path.join(prefix, "bin", name)
        if os.path.exists(path):
            return path
    return None


def _inner(name: str, words: List[str]) -> Optional[List[str]]:
    """The command behind a wrapper such as ``numactl --cpunodebind=0 python``: the first word that is a program again."""
    wrappers = {
        "exec", "nice", "ionice", "numactl", "taskset", "stdbuf", "nohup", "setsid", "chrt", "timeout", "sudo", "runuser", "su-exec", "gosu",
        "setpriv", "tini", "dumb-init", "catchsegv", "systemd-cat", "prlimit", "unbuffer", "script", "nsys", "ncu", "compute-sanitizer",
        "mpirun", "mpiexec", "srun", "flock", "time", "strace", "ltrace", "gdb", "chpst", "s6-setuidgid", "unshare", "nsenter", "softlimit", "perf", "doas", "start-stop-daemon",
    }  # fmt: skip
    if name not in wrappers:
        return None
    for at, word in enumerate(words[1:], 1):
        base = os.path.basename(word)
        is_program = PYTHON.match(base) or base in SHELLS or base in ("env", "uv", "conda") or base in wrappers
        if is_program or (word.startswith("/") and os.path.isfile(word) and os.access(word, os.X_OK)):
            return words[at:]
    plain = [at for at, word in enumerate(words[1:], 1) if re.match(r"^[A-Za-z_][\w.-]*$", word)]
    return words[plain[-1 if len(plain) == 1 else 0] :] if plain else None
