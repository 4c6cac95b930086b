"""``pip list`` and ``uv pip list`` (two columns under a rule), ``pip show``, ``conda list``.

Package            Version
------------------ ----------
flashinfer-python  0.6.12

Name: torch
Version: 2.9.1

# packages in environment at /opt/conda:
# Name                    Version                   Build  Channel
pytorch                   2.5.1           py3.12_cuda12.4_cudnn9.1.0_0    pytorch
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated import versions
from gpuwhy.logs.stated._types import Block, Statement, Strength

OPENING = ("Package", "Name: ", "# Name ")
_CUDA_BUILD = Pattern(r"_cuda(?P<cuda>\d{1,2}\.\d{1,2})_")
_NOT_FOUND = Pattern(r"^(?:WARNING: )?Package\(s\) not found: (?P<names>[\w., -]{1,400})$")
_NAME = Pattern(r"^Name: (?P<name>[\w.-]{1,100})\s*$")


def opened(text: str) -> Block | None:
    if text.startswith("Name: "):
        found = _NAME.match(text)
        return _Shown(found["name"]) if found is not None else None
    words = text.split()
    if [word.lower() for word in words[:2]] == ["package", "version"]:
        return _Table()
    if words[:3] == ["#", "Name", "Version"]:
        return _Conda()
    return None


LITERALS = ("Package(s) not found",)


def read(text: str) -> list[Statement]:
    """``pip show`` of what is not there."""
    found = _NOT_FOUND.match(text)
    if found is None:
        return []
    names = [name.strip() for name in found["names"].split(",")[:40]]
    return [Statement(f"packages.{versions.canonical(name)}", None, Strength.REPORTED) for name in names if name]


class _Shown:
    """The lines of ``pip show`` behind its first."""

    shares = True

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, text: str) -> list[Statement] | None:
        if text.startswith("Version: ") and self._name:
            version, name = text[9:].strip(), self._name
            self._name = ""
            return list(versions.package(name, version, Strength.REPORTED)) if version[:1].isdigit() else []
        return [] if self._name else None


class _Table:
    shares = False

    def __init__(self) -> None:
        self._has_rule = False

    def read(self, text: str) -> list[Statement] | None:
        words = text.split()
        if not self._has_rule:
            self._has_rule = bool(words) and set(words[0]) == {"-"}
            return [] if self._has_rule else None
        if len(words) >= 2 and words[1][:1].isdigit() and not text.startswith(" "):
            return list(versions.package(words[0], words[1], Strength.REPORTED))
        return None


class _Conda:
    shares = False

    def read(self, text: str) -> list[Statement] | None:
        words = text.split()
        if not 3 <= len(words) <= 4 or text.startswith(("#", " ")):
            return None
        if not words[1][:1].isdigit() or words[0].startswith("_"):  # _libgcc_mutex and its kind
            return []
        name, version, build = words[:3]
        statements = list(versions.package(name, version, Strength.REPORTED))
        cuda = _CUDA_BUILD.search(build) if name == "pytorch" else None
        if cuda is not None:
            statements.append(Statement("torch_cuda", cuda["cuda"], Strength.REPORTED))
        return statements
