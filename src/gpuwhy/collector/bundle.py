"""Makes the one program that is sent to a target. Runs on our side (Python >= 3.10), and is not sent itself."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from importlib.resources import files

PACKAGES = ("collector", "redaction", "binaries")

NOT_SENT = frozenset({"bundle", "wheel", "sieve", "payload", "__main__"})
"""What runs on our side only: no wheel is inflated and no kernel looked for on a target."""

ABOUT = "gpuwhy's collector: looks, changes nothing, and ends by itself. Made from the files of gpuwhy/collector."

LOADER = '''\
"""{about}"""
import sys
from importlib.machinery import ModuleSpec


class Bundled:
    """Finds and loads the modules that this text carries."""

    def find_spec(self, name, path=None, target=None):
        if name not in SOURCES:
            return None
        return ModuleSpec(name, self, origin="<%s>" % name, is_package=name in PACKAGES)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        exec(compile(SOURCES[name], "<%s>" % name, "exec"), module.__dict__)

    def get_source(self, name):
        return SOURCES[name]

    def program(self):
        """This text, to be started once more: inside a container."""
        return filled(LOADER, repr(PACKAGES), repr(LOADER), repr(SOURCES))


def filled(text, packages, loader, sources):
    for name, value in (("packages", packages), ("loader", loader), ("sources", sources)):
        text = text.replace("{%s}" % name, value, 1)
    return text


SOURCES = {sources}
PACKAGES = {packages}
LOADER = {loader}
sys.meta_path.insert(0, Bundled())
from {entry} import main

main()
'''


@cache
def program() -> str:
    """The text of the collector: every module of it, of the redaction and of the readers of binaries, with a loader in front."""
    return bundled(ABOUT, "gpuwhy.collector.program", PACKAGES, NOT_SENT)


_TEXT = re.compile(r'^( *)"""(?:[^"\\]|\\.|"(?!""))*"""$', re.MULTILINE | re.DOTALL)
"""A string that stands alone: a docstring, or what is said of a value below it."""

_REMARK = re.compile(r"^ *#.*$", re.MULTILINE)


def lean(text: str) -> str:
    """A module without its docstrings and whole-line comments, each line where it was: a quarter less to send.

    By the form that the formatter gives the files, as parsing them would take longer than sending them.
    """
    without = _TEXT.sub(lambda found: found[1] + '""' + "\n" * found[0].count("\n"), text)
    return _REMARK.sub("", without)


def bundled(about: str, entry: str, carried: Sequence[str], not_sent: Collection[str]) -> str:
    """One program that holds the modules of the packages ``carried``, and runs ``main`` of the module ``entry``."""
    sources = {"gpuwhy": ""}
    packages = ["gpuwhy"]
    for package in carried:
        packages.append(f"gpuwhy.{package}")
        for file in sorted(files("gpuwhy").joinpath(package).iterdir(), key=lambda each: each.name):
            stem = file.name.removesuffix(".py")
            if stem == file.name or stem in not_sent:
                continue
            name = f"gpuwhy.{package}" if stem == "__init__" else f"gpuwhy.{package}.{stem}"
            sources[name] = lean(file.read_text(encoding="utf-8"))
    listed = "{\n" + "".join(f"    {name!r}: {text!r},\n" for name, text in sources.items()) + "}"
    loader = LOADER.replace("{about}", about, 1).replace("{entry}", entry, 1)
    for name, value in (("packages", repr(tuple(packages))), ("loader", repr(loader)), ("sources", listed)):
        # the sources last, as nothing is looked for in them; each in its first place, as the loader holds itself
        loader = loader.replace("{%s}" % name, value, 1)
    return loader
