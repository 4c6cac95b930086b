"""jit-cache-stale: what an earlier run left in a JIT cache blocks or breaks this one."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _jit_caches as caches
from gpuwhy.causes.toolchain._jit_caches import JitCache
from gpuwhy.knowledge.releases import public_version
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Environment, Packages
from gpuwhy.model.loading import Loadings
from gpuwhy.model.remedy import NotARemedy, Remedy, Survives

_SO = r"(?<![^\s'\"(])(?P<path>(?:[A-Za-z]:)?[^\s'\"():]{1,500}\.(?:so|pyd|cubin|dll)(?:\.[\w.]{1,40})?)"
_COMPILER = lazy_pattern(
    r"\b(?:nvcc|cicc|cudafe\+\+|ptxas|cc1plus|cc1|ninja|g\+\+|c\+\+|gcc|clang|compile_worker|cl\.exe)\b", re.IGNORECASE
)
_INTERRUPTED = lazy_pattern(r"KeyboardInterrupt|SIGINT|\^C|py-spy|Thread 0x|Timeout|timed out", re.IGNORECASE)
_NOBODY_WORKS = lazy_pattern(
    r"held by process \d{1,10}(?:, which is no longer there| \(.{0,100}?\), state [TtZ] |.{0,200}, 0\.0\d s of CPU in \d{1,3}\.\d s, no compiler runs below it)|(?:no process|may look into) has it open"
)
"""What the line of a lock says when its holder is gone, stopped or idle, or when it has none."""
_WRITES_BUILD_FILE_ONCE = ("0.4.0", "0.6.12")
"""FlashInfer releases (first, first after) that leave an existing build.ninja as it is; read in the source, measured with 0.6.9."""


class Leftover(msgspec.Struct, frozen=True):
    """What is left. ``kind`` is ``lock``, ``broken`` (half-written), ``foreign`` (built for another environment),
    ``gone`` (a file of an entry is missing) or ``old-rules`` (a build file of an earlier toolkit)."""

    match: Match
    kind: str
    path: str
    cache: JitCache | None


@cause(
    "jit-cache-stale",
    family="Toolchain",
    signs=[
        says("held-lock", "lock file", r"^lock file (?P<path>.{1,1000}) \((?P<kind>flock|baton of torch)\): (?P<held>.{1,400})"),
        says("baton-call", "baton.wait()"),
        says(
            "baton",
            ("file_baton", "waiting for baton", "waited on lock file", "waiting on lock file"),
            r"file_baton\.py|waiting for baton release at|Wait(?:ed|ing) on lock file",
        ),
        says("filelock", ("filelock/", "the file lock", "filelock._", "flock"), r"filelock/(?:_api|_unix|_core/\w{1,40}|_native/_unix)\.py|The file lock '(?P<path>[^']{1,400})' could not be acquired"),
        says("waits-for-lock", ("waiting for lock", "waiting for file lock", "acquire lock", "lock file"), r"(?:waiting (?:for|on)|(?:fail\w*|could not|unable) (?:to )?acquire|stale)\b.{0,60}\block\b.{0,40}?(?P<path>[/~][^'\"\s]{1,400})"),
        says("truncated", ("file too short", "invalid elf header", "file data", "elf file", "not a valid win32 application"), rf"{_SO}: (?:file too short|invalid ELF header|cannot read file data|ELF (?:file|load command)\b.{{0,80}}|.{{0,40}}not a valid Win32 application)"),
        says("foreign-symbol", "undefined symbol", rf"{_SO}: undefined symbol"),
        says("foreign-libc", "not found (required by", rf"(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found \(required by {_SO}\)"),
        says("module-gone", "cannot open shared object file", rf"{_SO}: cannot open shared object file"),
        says("entry-gone", "no such file or directory", r"No such file or directory\W{1,4}['\"]?(?P<path>[/~][^'\"\n]{1,500})"),
        says("garbled", ("jsondecodeerror", "unpicklingerror", "ran out of input", "eoferror", "badzipfile", "pickle data was truncated"), r"JSONDecodeError|UnpicklingError|Ran out of input|BadZipFile|pickle data was truncated"),
        says("said-corrupt", ("corrupted jit cache", "corrupt", "stale", "cache lookup failed", "the cache", "cache directory"), r"Corrupted JIT cache|\bcache lookup failed\b.{0,80}\b(?:remove|delete|clear)|(?:Error|Exception)\b.{0,200}\b(?:remove|delete|clear|clean) (?:the |your |this )?(?:\w{1,20} ){0,2}cache(?: directory| folder| dir)? and (?:try again|retry|re-?run|restart)|leading to a corrupted compilation artifact|(?:cache|cached)\b.{0,80}\b(?:is |are |appears? |seems? )?(?:corrupt(?:ed)?|stale)\b|\b(?:corrupt(?:ed)?|stale)\b.{0,40}\b(?:jit |kernel |compile |triton |inductor )?cache\b"),
        says("old-rules", ("missing and no known rule to make it", "dependency cycle", "premature end of file; recovering"), r"ninja: error: '(?P<path>[^']{1,400})'.{0,400}missing and no known rule to make it"),
        says("nvcc-run", "bin/nvcc", r"(?<![\w:.])(?P<home>/[\w./+-]{1,200}?)/bin/nvcc\b"),
    ],
)  # fmt: skip
def jit_cache_stale(case: Case, packages: Packages | Unknown, environment: Environment | Unknown) -> Judgement:
    """Content that an earlier run left in a JIT cache blocks this run or breaks it.

    How it shows itself
      A start that hangs with no CPU use; the interrupt shows `baton.wait()` or filelock's `acquire`. Or a library in a
      cache that does not load: `file too short`, `invalid ELF header`, an undefined symbol after torch was changed.
      Or JSONDecodeError and EOFError out of Triton's or inductor's cache code. Or the old compile error, word for word,
      after the toolkit was replaced.

    Why it happens
      A build that is killed (reboot, OOM, Ctrl-C) leaves its lock file or half a library; torch's lock is a plain file that
      nobody takes away, so the next start waits for ever. Caches are keyed by less than they depend on: FlashInfer's by
      release and GPU target, not by torch, host compiler or toolkit, and 0.4.0 to 0.6.11 keep an existing build.ninja
      with the old nvcc in it. A home that several machines or images share mixes their builds.

    How to be sure
      While it hangs: `ps -ef | grep -E 'nvcc|cicc|ptxas|ninja'`. With a compiler running it is a build, and slow; without
      one it is the lock. For a broken file: `ls -l` its path, and its date against that of the last change.

    What helps
      Move the module's folder (or the whole cache) aside and start again; everything is compiled anew. For caches shared
      over a network, give each host or rank its own folder.

    What does not help
      Reinstalling the package: the cache lies outside of it. Raising time-outs, killing and restarting: the lock stays.

    Not to be confused with
      cache-dir-unusable (the folder cannot be written), startup-timeout (compilers are busy), abi-mismatch and
      library-corrupt (the file is one that a package installed), jit-build-killed (why the build was interrupted).
    """
    left = _read(case, packages, environment)
    if left is None:
        return None
    processes = case.fact("processes")
    compilers = _compilers(processes)
    if left.kind == "lock" and compilers:
        return RuledOut(
            "compilers are running: this is a build, not a left-over lock", _evidence_of(processes, compilers[0])
        )
    quoted = case.evidence(left.match, _what_it_shows(left))
    host = _evidence_of(processes, "") if isinstance(processes, Fact) and left.kind == "lock" else ()
    component = _component(case, left)
    read = _read_file(case, left)
    certainty = Certainty.PROVEN if read is not None else _certainty(case, left, processes)
    host = (*host, *((read,) if read is not None else ()))
    return Verdict(
        certainty=certainty,
        component=component,
        title=_title(left, component),
        chain=_chain(left, quoted, host),
        evidence=(quoted, *host, *_toolkit_evidence(left, environment)),
        explains=case.explains(left.match),
        missing=_missing(case, left, certainty),
        rivals=() if certainty is Certainty.PROVEN and left.match.sign == "held-lock" else _RIVALS.get(left.kind, ()),
        remedies=_remedies(left, component),
        not_remedies=_IN_VAIN,
        strength=35 if left.cache is None else 92 if left.match.sign == "foreign-libc" else _STRENGTH[left.kind],
    )  # fmt: skip


_STRENGTH = {"lock": 72, "broken": 78, "foreign": 75, "gone": 45, "old-rules": 74}
_RIVALS = {
    "lock": ("startup-timeout",),
    "foreign": ("abi-mismatch", "libc-too-old"),
    "gone": ("disk-full", "jit-build-killed", "host-compiler"),
    "old-rules": ("toolkit-path-wrong",),
}
_KINDS = {
    "held-lock": "lock", "baton-call": "lock", "baton": "lock", "filelock": "lock", "waits-for-lock": "lock", "truncated": "broken", "garbled": "broken", "said-corrupt": "broken",
    "foreign-symbol": "foreign", "foreign-libc": "foreign", "module-gone": "gone", "entry-gone": "gone", "old-rules": "old-rules", "nvcc-run": "old-rules",
}  # fmt: skip


def _read_file(case: Case, left: Leftover) -> Evidence | None:
    """What the file in the cache shows itself: it is not whole, or needs what the libraries of now do not define."""
    if left.cache is None or left.kind not in ("broken", "foreign"):
        return None
    loading = Loadings.of(case.facts).of_file(left.path)
    if left.kind == "foreign":
        symbol = next(iter(loading.broken_symbols), None) if loading is not None else None
        found = Loadings.of(case.facts).undefined(symbol.name) if symbol is not None else None
        return found[1] if found is not None and found[0].file == left.path else None
    fact = case.fact(f"files.{left.path}")
    is_damaged = isinstance(fact, Fact) and str(fact.value).startswith(("truncated", "damaged", "empty"))
    return fact.evidence if isinstance(fact, Fact) and is_damaged else None


def _read(case: Case, packages: Packages | Unknown, environment: Environment | Unknown) -> Leftover | None:
    for sign in _KINDS:
        for match in case.all(sign):
            left = _leftover(case, match, packages, environment)
            if left is not None:
                return left
    return None


def _leftover(
    case: Case, match: Match, packages: Packages | Unknown, environment: Environment | Unknown
) -> Leftover | None:
    kind = _KINDS[match.sign]
    path = match.group("path") or ""
    by_path = caches.cache_of_path(path) if path else None
    if by_path is not None and by_path.name in ("huggingface", "flashinfer-cubin"):
        return None
    code = caches.cache_of_code(tuple(frame.path for frame in match.frames)) or _cache_in_dump(case, match)
    if match.sign == "held-lock":
        by_path = by_path or (code if "baton" in str(match.group("kind")) else None)
        return Leftover(match, kind, path, by_path or code) if _is_left(match) and (by_path or code) else None
    if match.sign == "foreign-libc" and _OLDER_RUN_TIME.search(match.text):
        return None
    if match.sign == "nvcc-run":
        return _old_rules(case, match, packages, environment)
    if match.sign == "said-corrupt":
        cache = code or caches.cache_of_path(match.text)
        cache = cache or (
            caches.cache_of_path("torch_compile_cache")
            if re.search("compilation artifact|Inductor cache", match.text)
            else None
        )
        return Leftover(match, kind, path, cache) if cache is not None or "JIT cache" in match.text else None
    if match.sign in ("baton-call", "baton"):
        return Leftover(match, kind, path, code or by_path or _torch_extensions(match))
    if match.sign in ("filelock", "garbled", "old-rules", "waits-for-lock"):
        cache = by_path or code or (_entered_cache(case, match) if match.sign == "old-rules" else None)
        if match.sign == "garbled" and cache is not None and cache.name in ("torch_extensions", "flashinfer cubins"):
            return None
        return Leftover(match, kind, path, cache) if cache is not None else None
    if by_path is None or re.search(r"/bin/nvcc\b", path) or (kind == "gone" and _built_in_vain(case, match)):
        return None
    return Leftover(match, kind, path, by_path)


_OLDER_RUN_TIME = lazy_pattern(
    r"(?:conda|mamba|miniforge|/envs/|\.venv).{0,200}/libstdc\+\+\.so\S{0,12}: version `(?:GLIBCXX|CXXABI)_"
)
"""An environment's own libstdc++ is loaded, older than the system's, by whose compiler the entry was made: it is no stranger."""


def _is_left(match: Match) -> bool:
    """Whether it is the lock that the process waits for, and nobody works under it: its holder is stopped or gone, or
    there is none."""
    held, path = match.group("held") or "", match.group("path") or ""
    is_it = match.event is not None and f"waits for the lock file {path}, " in match.event.text
    return match.place.source == "process" and is_it and _NOBODY_WORKS.search(held) is not None


def _entered_cache(case: Case, match: Match) -> JitCache | None:
    """The cache that ninja says it works in: the file that its old rules name lies outside of it."""
    entered = (line.text for line in case.lines_around(match, 20, 2) if "Entering directory" in line.text)
    return next((cache for cache in map(caches.cache_of_path, (match.text, *entered)) if cache is not None), None)


def _torch_extensions(match: Match) -> JitCache | None:
    return caches.cache_of_code(("torch/utils/file_baton.py",)) if match.sign.startswith("baton") else None


def _cache_in_dump(case: Case, match: Match) -> JitCache | None:
    """The cache whose code stands around the line: stack dumps are no tracebacks."""
    for line in case.lines_around(match, 8, 12):
        cache = caches.cache_of_code((line.text[:600],)) if ".py" in line.text or "/" in line.text else None
        if cache is not None:
            return cache
    return None


def _built_in_vain(case: Case, match: Match) -> bool:
    """A build failed before: then the file is missing because of that, and the failure is the lead."""
    return any(event.kind == "build" and event.span.first < match.line.number for event in case.incident.events) or any(
        "No space left" in line.text for line in case.lines_around(match, 40, 5)
    )


def _old_rules(
    case: Case, match: Match, packages: Packages | Unknown, environment: Environment | Unknown
) -> Leftover | None:
    """The build runs another nvcc than the one that the environment names, and FlashInfer keeps its build.ninja."""
    named = environment.get("CUDA_HOME") if isinstance(environment, Environment) else None
    home = named if isinstance(named, str) and named else case.facts.value("cuda_home")
    run = (match.group("home") or "").rstrip("/")
    if not home or not run or str(home).rstrip("/") == run or case.component_near(match) != "flashinfer":
        return None
    version = packages.version("flashinfer-python") if isinstance(packages, Packages) else None
    release = public_version(version) if version else None
    first, fixed = (public_version(text) for text in _WRITES_BUILD_FILE_ONCE)
    if release is not None and first is not None and fixed is not None and not first <= release < fixed:
        return None
    return Leftover(match, "old-rules", run, caches.cache_of_code(("flashinfer/jit/core.py",)))


def _compilers(processes: Fact | Unknown) -> tuple[str, ...]:
    if not isinstance(processes, Fact) or not isinstance(processes.value, (list, tuple)):
        return ()
    return tuple(str(line) for line in processes.value if _COMPILER.search(str(line)))


def _evidence_of(processes: Fact | Unknown, quote: str) -> tuple[Evidence, ...]:
    if not isinstance(processes, Fact):
        return ()
    evidence = processes.evidence
    return (msgspec.structs.replace(evidence, quote=quote or evidence.quote),)


def _certainty(case: Case, left: Leftover, processes: Fact | Unknown) -> Certainty:
    if left.match.sign == "held-lock":
        return _certainty_of_held(case, left)
    if left.kind == "lock":
        if isinstance(processes, Fact):
            return Certainty.PROVEN if left.match.sign.startswith("baton") else Certainty.LIKELY
        if left.match.sign == "filelock" and "could not be acquired" not in left.match.text:
            return Certainty.POSSIBLE
        near = [left.match.text, *(line.text for line in case.lines_around(left.match, 6, 10))]
        return Certainty.LIKELY if any(_INTERRUPTED.search(text[:500]) for text in near) else Certainty.POSSIBLE
    if left.kind == "gone" or left.match.sign == "said-corrupt":
        is_plain = (
            re.search(r"Corrupted JIT cache|corrupted compilation artifact|cache lookup failed", left.match.text)
            is not None
        )
        return Certainty.LIKELY if is_plain else Certainty.POSSIBLE
    if left.match.sign == "foreign-libc" and left.cache is not None and "GLIBC_" in left.match.text:
        return Certainty.PROVEN  # what was compiled here would have been linked against the C library of here
    return Certainty.LIKELY


def _certainty_of_held(case: Case, left: Leftover) -> Certainty:
    """Proven where holder and waiting were both seen. A lock without holder may be held in another container or host."""
    text = left.match.text
    if re.search(r"waited for in the kernel by process|opened again and again by process", text):
        return Certainty.PROVEN
    is_in_baton = case.found("baton-call", "baton") is not None
    return Certainty.PROVEN if is_in_baton and "and no process has it open" in text else Certainty.LIKELY


def _component(case: Case, left: Leftover) -> str:
    """The library whose build lies in the cache."""
    if left.cache is not None and (left.cache.name != "torch_extensions" or left.match.sign == "held-lock"):
        return left.cache.component
    return case.component_near(left.match) or "torch"


def _what_it_shows(left: Leftover) -> str:
    return {
        "lock": "the process waits for a lock that marks a build in progress",
        "broken": "the entry of the cache is damaged",
        "foreign": "the library in the cache was built for other libraries than those of now",
        "gone": "a file of a cache entry is gone",
        "old-rules": "the build still goes by an earlier toolkit",
    }[left.kind]


def _title(left: Leftover, component: str) -> str:
    name = left.cache.name if left.cache is not None else "JIT"
    if _holder(left):
        return f"{component} waits for a lock in the {name} cache whose holder, process {_holder(left)}, does not build"
    return {
        "lock": f"{component} waits for a lock in the {name} cache that no build holds any more",
        "broken": f"An entry of the {name} cache is half-written or damaged",
        "foreign": f"A library in the {name} cache was built for another environment",
        "gone": f"Files of an entry of the {name} cache are missing",
        "old-rules": f"The build files in the {name} cache name an earlier toolkit",
    }[left.kind]


def _chain(left: Leftover, quoted: Evidence, host: tuple[Evidence, ...]) -> tuple[Link, ...]:
    first = {
        "lock": ("An earlier build ended without taking its lock away", host[0] if host else inferred("a killed process, a reboot")),
        "broken": ("An earlier run was ended, or two ran at once, while the entry was written", host[0] if host else inferred("the usual way to half a file")),
        "foreign": ("torch, the C library or the image changed after the library was built", host[0] if host else inferred("the cache is not keyed by them")),
        "gone": ("Another process, a cleaner of temporary files or a failed build left the entry incomplete", inferred("nothing in the log tells which")),
        "old-rules": ("CUDA_HOME was changed, and the old build file was kept", inferred("read in the released source")),
    }[left.kind]  # fmt: skip
    if _holder(left):
        first = ("The process that took the lock is stopped, idle or gone, and does not give it back", quoted)
    then = ("This run finds the entry by its key and takes it for good", inferred("read in the released source"))
    if left.match.sign == "held-lock":
        then = ("This run waits until the lock is free, without a limit", inferred("read in the released source"))
    return (
        Link(*first),
        Link(*then),
        Link({"lock": "It waits for ever"}.get(left.kind, "It fails where it uses the entry"), quoted),
    )


def _toolkit_evidence(left: Leftover, environment: Environment | Unknown) -> tuple[Evidence, ...]:
    if left.kind != "old-rules" or not isinstance(environment, Environment):
        return ()
    found = environment.evidence.get("CUDA_HOME")
    return (found,) if found is not None else ()


def _missing(case: Case, left: Leftover, certainty: Certainty) -> tuple[Missing, ...]:
    if left.kind == "lock":
        wanted = case.missing("processes", "whether a compiler is running: then it is a slow build", "ps -ef | grep -E 'nvcc|cicc|ptxas|cc1plus|ninja'")  # fmt: skip
    elif left.path and certainty is not Certainty.PROVEN:
        wanted = case.missing(f"files.{left.path}", "its size and date", f"ls -l {left.path}")
    else:
        wanted = None
    return (wanted,) if wanted is not None else ()


def _remedies(left: Leftover, component: str) -> tuple[Remedy, ...]:
    name = left.cache.name if left.cache is not None else "torch_extensions"
    held = _of_holder(left)
    remedies = held or [
        Remedy(
            kind="cache",
            name=name,
            value="delete",
            summary=f"Move {component}'s folder in the {name} cache aside (or the lock file in it) and start again",
            cost="the kernels are compiled once more",
            limits=("stop every process that uses the cache first",),
        )
    ]
    if left.cache is not None:
        remedies.append(
            Remedy(
                kind="env",
                name=left.cache.variable,
                value="a local directory of its own for each host or rank",
                summary="Give each host, container image or rank a cache of its own",
                limits=("helps against caches that are shared, not against one that is merely old",),
                is_sure=False,
            )
        )
    return tuple(remedies)


def _holder(left: Leftover) -> str:
    """The process that holds the lock, where it was seen on the host."""
    found = re.search(r"held by process (\d{1,10})", left.match.group("held") or "")
    return found[1] if found is not None else ""


def _of_holder(left: Leftover) -> list[Remedy]:
    """The smallest change where a living process holds the lock: let it go on, or end it; the lock goes with it."""
    pid = _holder(left)
    if not pid or "no longer there" in (left.match.group("held") or ""):
        return []
    is_stopped = re.search(r"state [Tt] ", left.match.group("held") or "") is not None
    go_on = f"kill -CONT {pid}" if is_stopped else f"kill {pid}"
    said = "Let it go on, or end it" if is_stopped else "End it, after a look at what it is"
    return [
        Remedy(
            kind="service", name=f"process {pid}", value="continue" if is_stopped else "stop",
            summary=f"{said}: process {pid} holds the lock, and gives it back when it ends", commands=(f"ps -fp {pid}", go_on),
            cost="that process goes on with, or loses, its build", survives=Survives(restart=None, upgrade=None, reboot=None),
        )
    ]  # fmt: skip


_IN_VAIN = (
    NotARemedy("reinstalling the package", "the cache lies outside of it, and is found again"),
    NotARemedy("killing and starting again", "the lock or the broken file is still there"),
    NotARemedy("a longer time-out", "nobody is working on the build"),
)
