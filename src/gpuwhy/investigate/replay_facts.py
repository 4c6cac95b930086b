"""The facts of a case in the vocabulary of the replay, and the few more that the target can still be asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gpuwhy.investigate.mending import HIDDEN
from gpuwhy.investigate.source import Questioner, lines_of
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.host import Gpus, Resolution, ToolkitInstall
from gpuwhy.targets import Ask

_ALSO = re.compile(r"\balso (?P<paths>/[^;]{1,800})")
_MODULE = re.compile(r"modules\.(?P<name>[A-Za-z_]\w{0,100})")
_FILE = re.compile(r"files\.(?P<path>/[^\0\n]{1,800}?)(?P<content> \(its content\))?")
_LINK = re.compile(r"links\.(?P<path>/[^\0\n]{1,800})")
_KINDS = {"file": "file", "folder": "directory"}
_OF_TORCH = "torch.version.cuda"
"""The step of a search for a toolkit that finds a number and no nvcc."""


def replayable(facts: Facts) -> Facts:
    """The facts as a replay asks for them. What redaction cut is not known; what was looked for in vain stays unknown."""
    known = {each.key: each for each in facts}
    hidden = {key: fact for key, fact in known.items() if _is_cut(fact.value)}
    for key in [*hidden, *(key for key in known if key == "toolkits" or key.startswith("toolkit_resolved."))]:
        known.pop(key, None)
    added = {each.key: each for each in (*_of_devices(facts), *_of_toolkits(facts))}
    unknown = {key: Unknown("its value was taken out by redaction", key) for key in hidden}
    return Facts({**known, **added}, {**facts.unknowns(), **unknown})


def changed(facts: Facts, changes: Mapping[str, Any]) -> Facts:
    """Facts of :func:`replayable` with some of them otherwise: keys of docs/facts.md, None for what is not there.

    Of ``env.PATH`` it is not known which programs another one finds, so what PATH led to is no longer known.
    """
    known = {each.key: each for each in facts}
    if "env.PATH" in changes:
        known.pop("nvcc_path", None)
        known.pop("ninja_path", None)
    evidence = Evidence("as it would be", standing=Standing.GIVEN, place=Place("facts", "the change"))
    known.update({key: Fact(key, value, evidence, "change") for key, value in changes.items()})
    return Facts(known, {key: each for key, each in facts.unknowns().items() if key not in known})


def _is_cut(value: object) -> bool:
    return isinstance(value, str) and HIDDEN.search(value) is not None


def _of_devices(facts: Facts) -> Iterator[Fact]:
    """The listed GPUs as texts. One that is only named by the log says nothing about how many there are."""
    listed = facts.get("gpus")
    gpus = Gpus.of(facts)
    if not isinstance(listed, Fact) or not isinstance(gpus, Gpus):
        return
    texts = [f"{each.index if each.index is not None else at}: {each.name or 'GPU'} ({each.compute_capability})" if each.compute_capability else f"{at}: {each.name}" for at, each in enumerate(gpus.devices)]  # fmt: skip
    yield msgspec.structs.replace(listed, value=texts)


def _of_toolkits(facts: Facts) -> Iterator[Fact]:
    """Each toolkit under its folder, so that a replay finds the one that the code it follows resolves."""
    listed = facts.get("toolkits")
    for install in (listed.value or ()) if isinstance(listed, Fact) else ():
        if isinstance(install, ToolkitInstall) and isinstance(listed, Fact) and (install.version or not install.has_nvcc):  # fmt: skip
            also = _ALSO.search(install.note[:1000])
            for root in (install.root, *(also["paths"].split(", ") if also else ())):
                yield Fact(f"other_toolkits.{root}", install.version, listed.evidence, listed.subject)
                yield Fact(f"files.{root}", "directory", listed.evidence, listed.subject)
    for consumer, fact in facts.group("toolkit_resolved").items():
        resolution = fact.value
        if isinstance(resolution, str):
            yield fact
        elif isinstance(resolution, Resolution) and resolution.root and resolution.by != _OF_TORCH and resolution.version:  # fmt: skip
            said = msgspec.structs.replace(fact.evidence, statement=f"{fact.evidence.statement} (as {consumer} looks)")
            yield Fact(f"other_toolkits.{resolution.root}", resolution.version, said, fact.subject)


def asked_for(key: str, folders: Sequence[str], facts: Facts, source: Questioner) -> Fact | None:
    """The fact that stopped a replay, where a look at the target's files gives it; None where it does not.

    ``folders`` hold the packages of the environment.
    """
    file = _FILE.fullmatch(key)
    if file is not None:
        return _content(file["path"], source) if file["content"] else _kind(file["path"], source)
    link = _LINK.fullmatch(key)
    if link is not None:
        return _real_path(link["path"], source)
    module = _MODULE.fullmatch(key)
    if module is not None and folders:
        return _module(module["name"], folders, facts, source)
    return None


def _kind(path: str, source: Questioner) -> Fact | None:
    reply = next(iter(source.ask([Ask("stat", path)])), None)
    if reply is not None and reply.status == "ok" and isinstance(reply.value, dict):
        kind = _KINDS.get(str(reply.value.get("kind")), True)
        return _seen(f"files.{path}", kind, f"{path} is there", path)
    if reply is not None and reply.status == "absent" and "not in this snapshot" not in reply.reason:
        return _seen(f"files.{path}", None, f"there is no {path}", path)
    return None


def _real_path(path: str, source: Questioner) -> Fact | None:
    reply = next(iter(source.ask([Ask("stat", path)])), None)
    real = reply.value.get("real") if reply is not None and isinstance(reply.value, dict) else None
    return _seen(f"links.{path}", real, f"{path} leads to {real}", path) if isinstance(real, str) else None


def _content(path: str, source: Questioner) -> Fact | None:
    reply = next(iter(source.ask([Ask("read", path, 1, 2000)])), None)
    if reply is None or reply.status != "ok":
        return None
    lines = lines_of(reply.value)
    text = "\n".join([*lines, ""])
    count = reply.value.get("count") if isinstance(reply.value, dict) else None
    if count != len(lines) or HIDDEN.search(text):
        return None
    return _seen(f"files.{path}", {"content": text}, f"{path} was read", path)


def _module(name: str, folders: Sequence[str], facts: Facts, source: Questioner) -> Fact | None:
    """A module is there when a folder of packages has it. It is not when neither a folder nor the list of what is
    installed has it: one of both may miss an editable installation."""
    asks = [Ask("stat", f"{folder}/{name}{end}") for folder in folders for end in ("", ".py")]
    replies = source.ask(asks)
    found = next((ask.path for ask, reply in zip(asks, replies, strict=False) if reply.status == "ok"), None)
    if found is not None:
        return _seen(f"modules.{name}", True, f"{name} is installed", found)
    is_looked_for = replies and all(
        reply.status == "absent" and "not in this snapshot" not in reply.reason for reply in replies
    )
    listed = facts.group("packages")
    if is_looked_for and len(listed) > 1 and name.replace("_", "-") not in listed and name not in listed:
        return _seen(f"modules.{name}", False, f"{name} is not installed", folders[0])
    return None


def _seen(key: str, value: Any, statement: str, path: str) -> Fact:
    return Fact(key, value, Evidence(statement, place=Place("file", path)))
