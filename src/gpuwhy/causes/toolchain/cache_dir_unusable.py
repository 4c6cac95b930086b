"""cache-dir-unusable: a library cannot create, write or execute from the folder of its run-time cache."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _jit_caches as caches
from gpuwhy.causes.toolchain._jit_caches import JitCache
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Environment, Packages
from gpuwhy.model.remedy import NotARemedy, Remedy

_PATH = r"['\"`\[]?(?P<path>(?:[A-Za-z]:[\\/]|~|\.{0,2}/)[^'\"`\]\n:]{0,400})"

_TEMPORARY = lazy_pattern(r"/(?:var/)?tmp/|/dev/shm/")
"""Where JIT compilers link what they load; a .so that fails elsewhere belongs to an installed package."""


class Obstacle(msgspec.Struct, frozen=True):
    """What stood in the way: ``kind`` is ``denied``, ``read-only``, ``noexec``, ``homeless``, ``locks`` or ``not-a-folder``.

    ``cache`` whose folder it is, None when the path is some cache that no known library owns.
    """

    match: Match
    kind: str
    path: str
    cache: JitCache | None
    is_shown_by_path: bool


@cause(
    "cache-dir-unusable",
    family="Toolchain",
    leads_to=("jit-cache-stale",),
    signs=[
        says("denied", ("permission denied", "errno 13", "eacces", "operation not permitted", "errno 1]"), rf"(?:Permission denied|Operation not permitted)\W{{1,4}}(?:\(os error 13\)\W{{1,4}})?{_PATH}"),
        says("denied-before", ("permission denied", "not writable", "not writeable", "no write permission"), r"(?<![^\s'\"`(\[=:])(?P<path>(?:~|\.{0,2}/)[^'\"`\]\s:]{1,400})['\"`’\]]?:? (?:Permission denied|is not writ(?:e)?able|.{0,40}no write permission)|(?:Permission denied|not writ(?:e)?able)[^\n/~]{1,80}['\"`(\[](?P<path2>[/~][^'\"`\])\n]{1,400})"),
        says("read-only", ("read-only file system", "errno 30", "erofs"), rf"Read-only file system\W{{1,4}}{_PATH}|(?<![^\s'\"`(\[=:])(?P<path2>(?:~|/)[^'\"`\]\s:]{{1,400}})['\"`’\]]?:? Read-only file system"),
        says("noexec", "failed to map segment", r"(?<![^\s'\"(])(?P<path>[^\s'\":]{1,400}\.(?:so|pyd)(?:\.[\w.]{1,40})?): failed to map segment from shared object"),
        says("not-a-folder", ("errno 20", "errno 17", "errno 40", "errno 116", "errno 5]", "errno 36"), rf"(?:Not a directory|File exists|File name too long|Too many levels of symbolic links|Stale file handle|Input/output error)\W{{1,4}}{_PATH}"),
        says("locks", ("no locks available", "errno 37", "does not appear to support flock", "errno 38", "errno 524"), r"No locks available|does not appear to support flock|Function not implemented"),
        says("no-such-user", ("getpwuid(): uid not found", "no username set in the environment"), r"getpwuid\(\): uid not found: \d+|No username set in the environment"),
        says("homeless", ("could not determine home directory", "can't determine home directory", "$home is not defined", "home environment variable"), r"(?:[Cc]ould not|can't) determine home directory|\$HOME is not defined|(?<![\w-])\$?HOME environment variable"),
        says("cannot-be-made", ("cannot create director", "failed to create", "could not create", "cannot create temporary", "unable to create", "no locator available"), r"(?:cannot create director|[Ff]ailed to create|[Cc]ould not create|[Uu]nable to create)[^\n]{0,120}?(?P<path>[/~][^'\"`\]\n:\s]{1,400})|no locator available for file '(?P<path2>[^']{1,400})'"),
        says("database", "unable to open database file"),
        says("hub-denied", "permissionerror at ", r"PermissionError at (?P<path>[/~][^\s'\"]{1,400}) when downloading"),
        says("hub-warned", "problem when trying to write in your cache folder", r"write in your cache folder \((?P<path>[^)]{1,400})\)"),
    ],
)  # fmt: skip
def cache_dir_unusable(case: Case, packages: Packages | Unknown, environment: Environment | Unknown) -> Judgement:
    """The folder in which a library keeps what it compiles or fetches cannot be created, written, or executed from.

    How it shows itself
      `PermissionError: [Errno 13] Permission denied: '/.triton'`, `Read-only file system: '/home/app/.cache/flashinfer'`,
      `failed to map segment from shared object` for a .so in a cache, `getpwuid(): uid not found: 1000`,
      `Could not determine home directory`. Often only in a container that runs as another user than its image was
      made for, or under a service with ProtectHome or ReadOnlyPaths.

    Why it happens
      FlashInfer, Triton, torch and others write below the home by default. With no HOME, HOME=/ or a user that the image
      does not know, that is `/.cache` or `/.triton`, which only root may create. A read-only root file system refuses
      everyone; a mount with noexec lets them write the library and not load it. Some network file systems have no locks.

    How to be sure
      As the service's user, with its environment: `echo "$HOME"; id; touch PATH/x`; and for the map error
      `findmnt -T PATH -o TARGET,OPTIONS`, which shows noexec.

    What helps
      Give each cache a folder that the user owns: FLASHINFER_WORKSPACE_BASE, TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR,
      TORCH_EXTENSIONS_DIR, VLLM_CACHE_ROOT, or HOME for all at once. Or run as the user that owns the folder. For
      noexec: a folder on a mount that allows execution.

    What does not help
      chmod against noexec or a read-only mount. FLASHINFER_CUBIN_DIR while flashinfer-cubin up to 0.6.15 is installed: the
      package's own folder wins. A reinstallation.

    Not to be confused with
      disk-full (`No space left`), jit-cache-stale (the folder is fine, its content is not), download-blocked,
      libcuda-shadowed and library-corrupt (a .so outside any cache).
    """
    obstacle = _read(case)
    if obstacle is None:
        return None
    mount = _mount(case, obstacle)
    if obstacle.kind == "noexec" and isinstance(mount, Fact) and "noexec" not in str(mount.value):
        return RuledOut("the mount allows execution", (mount.evidence,))
    quoted = case.evidence(obstacle.match, _what_it_shows(obstacle))
    host = [mount.evidence] if isinstance(mount, Fact) else []
    home = environment.get("HOME") if isinstance(environment, Environment) else None
    if isinstance(environment, Environment) and "HOME" in environment.evidence:
        host.append(environment.evidence["HOME"])
    component = _component(case, obstacle)
    return Verdict(
        certainty=_certainty(case, obstacle, mount),
        component=component,
        title=_title(obstacle, component),
        chain=_chain(obstacle, quoted, home if isinstance(home, str) else None, mount),
        evidence=(quoted, *host),
        explains=case.explains(obstacle.match),
        missing=_missing(case, obstacle),
        remedies=_remedies(obstacle, component, packages),
        not_remedies=_in_vain(obstacle),
        strength=_strength(obstacle),
    )


_ORDER = ("denied", "read-only", "noexec", "denied-before", "not-a-folder", "no-such-user", "homeless", "locks", "cannot-be-made", "database", "hub-denied", "hub-warned")  # fmt: skip
_KINDS = {"denied-before": "denied", "cannot-be-made": "denied", "database": "denied", "hub-denied": "denied", "hub-warned": "denied", "no-such-user": "homeless"}  # fmt: skip


def _read(case: Case) -> Obstacle | None:
    """The first refusal that has to do with a cache, those with a known one first."""
    candidates = [found for match in case.all(*_ORDER) if (found := _obstacle(case, match)) is not None]
    return min(candidates, key=lambda o: (o.match.is_code, o.cache is None, _ORDER.index(o.match.sign)), default=None)


def _obstacle(case: Case, match: Match) -> Obstacle | None:
    path = (match.group("path") or match.group("path2") or "").strip()
    kind = _KINDS.get(match.sign, match.sign)
    if re.search(r"/bin/nvcc\b", path):
        return None  # a program that is called, in whatever library's code
    code = caches.cache_of_code(tuple(frame.path for frame in match.frames))
    by_path = caches.cache_of_path(path) if path else None
    if kind == "noexec":
        return Obstacle(match, kind, path, by_path, True) if by_path or _TEMPORARY.match(path) else None
    if match.sign == "cannot-be-made" and by_path is None and "locator" not in match.text:
        return None
    if match.sign == "database" and code is None:
        return None
    if kind in ("homeless", "locks"):
        near = code or _cache_near(case, match)
        return Obstacle(match, kind, path, near, False) if near or kind == "homeless" else None
    if "no locator available" in match.text:
        return Obstacle(match, kind, path, caches.cache_of_code(("numba/",)), True)
    if by_path is None and code is None and not caches.is_some_cache(path):
        return None
    return Obstacle(match, kind, path, by_path or code, by_path is not None)


def _cache_near(case: Case, match: Match) -> JitCache | None:
    for line in case.lines_around(match, 30, 5):
        found = re.search(r"File \"([^\"]{1,400})\"", line.text[:1000])
        cache = caches.cache_of_code((found.group(1),)) if found else None
        cache = cache or (caches.cache_of_path(line.text[:1000]) if "/" in line.text else None)
        if cache is not None:
            return cache
    return None


def _mount(case: Case, obstacle: Obstacle) -> Fact | Unknown:
    """The mount options of the longest mount point that holds the path."""
    mounts = case.facts.group("mount")
    holding = [point for point in mounts if obstacle.path.startswith(point.rstrip("/") or "/")]
    if holding:
        return mounts[max(holding, key=len)]
    only = list(mounts.values())
    return only[0] if len(only) == 1 and not obstacle.path.startswith("/") else case.fact("mount")


def _certainty(case: Case, obstacle: Obstacle, mount: Fact | Unknown) -> Certainty:
    if obstacle.match.sign == "hub-warned":
        return Certainty.POSSIBLE
    is_primary = case.incident.primary in case.explains(obstacle.match)
    if obstacle.kind == "noexec":
        return Certainty.PROVEN if isinstance(mount, Fact) else Certainty.LIKELY
    if obstacle.kind in ("denied", "read-only") and obstacle.is_shown_by_path and not obstacle.match.is_code:
        return Certainty.PROVEN if is_primary else Certainty.LIKELY
    return Certainty.LIKELY if is_primary or obstacle.cache is not None else Certainty.POSSIBLE


def _strength(obstacle: Obstacle) -> int:
    if obstacle.match.sign == "hub-warned":
        return 30
    if obstacle.cache is None:
        return 50
    return 85 if obstacle.is_shown_by_path else 70


def _component(case: Case, obstacle: Obstacle) -> str:
    """The library that owns the cache; for torch's extension cache the extension that is built in it."""
    cache = obstacle.cache
    if cache is not None and cache.name != "torch_extensions":
        return cache.component
    near = case.component_near(obstacle.match)
    if near is not None:
        return near
    return cache.component if cache is not None else "python-env"


def _what_it_shows(obstacle: Obstacle) -> str:
    return {
        "denied": "the user of the process may not write there",
        "read-only": "the file system is mounted read-only",
        "noexec": "the library was written, and may not be loaded from there",
        "not-a-folder": "the path is not a usable folder",
        "locks": "the file system has no locks, which the cache needs",
        "homeless": "the process has no home or no user name from which the path is made",
    }[obstacle.kind]


def _title(obstacle: Obstacle, component: str) -> str:
    where = obstacle.path or "the default folder below HOME"
    verb = {"noexec": "load code from", "locks": "lock files in", "homeless": "find"}.get(obstacle.kind, "write to")
    return f"{component} cannot {verb} its cache, {where}"


def _chain(obstacle: Obstacle, quoted: Evidence, home: str | None, mount: Fact | Unknown) -> tuple[Link, ...]:
    cache = obstacle.cache
    begins_at_root = re.match(r"/\.|/nonexistent", obstacle.path) is not None
    reason = {
        "denied": "The folder belongs to another user"
        if not begins_at_root
        else "HOME of the process is / or does not exist",
        "read-only": "The folder lies on a file system that is mounted read-only",
        "noexec": "The folder lies on a file system that is mounted noexec",
        "not-a-folder": "A file or a dangling link stands where the folder should be",
        "locks": "The folder lies on a file system without file locks",
        "homeless": "The user id of the process has no entry in /etc/passwd, or HOME is not set",
    }[obstacle.kind]
    evidence = mount.evidence if isinstance(mount, Fact) else (Evidence(f"HOME is {home}", home) if home else None)
    variable = f" ({cache.variable} moves it)" if cache else ""
    return (
        Link(reason, evidence or inferred("the usual reason; look at the owner and the mount of the path")),
        Link(f"{cache.component if cache else 'The library'} keeps its cache there{variable}", inferred("read in the released source") if cache else None),
        Link("The first write or load fails", quoted),
    )  # fmt: skip


def _missing(case: Case, obstacle: Obstacle) -> tuple[Missing, ...]:
    path = obstacle.path or "$HOME"
    wanted = {
        "noexec": [
            case.missing(f"mount.{path}", "whether it is mounted noexec", f"findmnt -T {path} -o TARGET,OPTIONS")
        ],
        "homeless": [case.missing("env.HOME", "where the caches would lie", "echo $HOME; id")],
        "denied": [
            case.missing(f"files.{path}", "who owns the folder, and as whom the process runs", f"id; ls -ld {path}")
        ],
    }.get(obstacle.kind, [])
    return tuple(m for m in wanted if m is not None)


def _remedies(obstacle: Obstacle, component: str, packages: Packages | Unknown) -> tuple[Remedy, ...]:
    cache = obstacle.cache
    if cache is not None and cache.name == "flashinfer-cubin":
        return _cubin_remedies(packages)
    wanted = "a writable directory" if obstacle.kind != "noexec" else "a directory on a mount without noexec"
    remedies = []
    if cache is not None:
        remedies.append(
            Remedy(
                kind="env",
                name=cache.variable,
                value=wanted,
                summary=f"Put {component}'s cache into {wanted} of the service's user",
                cost="kernels are compiled once more",
                rank=0,
            )
        )
    if obstacle.kind == "homeless":
        remedies.append(Remedy(kind="env", name="USER", value="the service's user name", summary="Give the process a user name", rank=5, is_sure=False))  # fmt: skip
        if cache is None:
            remedies.append(Remedy(kind="env", name="TORCHINDUCTOR_CACHE_DIR", value=wanted, summary="Name torch's cache folder, so that no user name is needed", rank=2))  # fmt: skip
    remedies.append(Remedy(kind="env", name="HOME", value=wanted, summary="Give the process a home it can write to: all caches move with it", rank=3))  # fmt: skip
    remedies += [
        Remedy(kind="container", name="user", value="the owner of the folder", summary="Run the container as the user that owns the folder", rank=0),
        Remedy(kind="files", name=obstacle.path or "the cache folder", value="make writable", summary="Give the folder to the user of the service (chown)", is_sure=obstacle.kind == "denied"),
    ]  # fmt: skip
    if obstacle.kind in ("noexec", "read-only", "locks"):
        return (*remedies[:2], Remedy(kind="container", name="bind mount", value="writable, exec", summary="Mount a local folder that may be written and executed from over the cache", rank=0))  # fmt: skip
    return tuple(remedies)


def _cubin_remedies(packages: Packages | Unknown) -> tuple[Remedy, ...]:
    version = packages.version("flashinfer-python") if isinstance(packages, Packages) else None
    shown = f" (flashinfer {version})" if version else ""
    return (
        Remedy(kind="files", name="flashinfer_cubin/cubins", value="make writable", summary="Make the cubins folder of the installed flashinfer_cubin writable for the service's user", rank=0),
        Remedy(kind="package", name="flashinfer-cubin", value="remove", summary=f"Uninstall flashinfer-cubin{shown}: the user's own cache is used then", cost="the cubins are fetched again, which needs the network"),
        Remedy(kind="container", name="user", value="owner of site-packages", summary="Run as the user that owns the installation"),
    )  # fmt: skip


def _in_vain(obstacle: Obstacle) -> tuple[NotARemedy, ...]:
    said = []
    if obstacle.kind in ("noexec", "read-only"):
        said.append(NotARemedy("chmod", "the mount option decides, not the permissions"))
    if obstacle.cache is not None and obstacle.cache.name == "flashinfer-cubin":
        said.append(
            NotARemedy("FLASHINFER_CUBIN_DIR", "ignored up to FlashInfer 0.6.15 while flashinfer-cubin is installed")
        )
    said.append(NotARemedy("reinstalling the library", "the folder stays as it is"))
    return tuple(said)
