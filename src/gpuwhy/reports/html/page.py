"""Writes a page: a template, the one style sheet and the one script, and a policy that allows nothing else.

A new kind of page is a template that extends ``base.html.jinja`` and a call of :func:`written`; see docs/html.md.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import gc
import hashlib
import importlib.resources
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import BytecodeCache, Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from gpuwhy import __version__
from gpuwhy.reports.html.inert import inert, whole_command
from gpuwhy.reports.neutral import encodable
from gpuwhy.reports.sections import begun


def written(template: str, **context: Any) -> str:
    """The page that ``template`` makes of ``context``. Raises jinja2.TemplateError for a fault of the template."""
    style, script = _asset("report.css"), _asset("report.js")
    own = {"style": _own(style), "script": _own(script), "policy": _own(_policy(style, script)), "version": __version__}
    with _no_collection():
        text = _environment().get_template(template).render(**context, **own)
    encoded: str = encodable(text)
    return encoded


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Templates become a tree of thousands of objects for a moment: looking for garbage then costs a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _own(text: str) -> Markup:
    """Text of this package, which needs no escaping; nothing from a log or a host ever comes here."""
    return Markup(text)  # noqa: S704


def _policy(style: str, script: str) -> str:
    """Only what is named by its hash may run; ``data:`` is for the empty icon, without which a server is asked for one."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@functools.cache
def _asset(name: str) -> str:
    return _file("assets", name)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        keep_trailing_newline=True,
        loader=FunctionLoader(lambda name: _file("templates", name)),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=inert,
        bytecode_cache=_compiled(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["command"] = whole_command
    environment.filters["begun"] = begun
    return environment


def _compiled() -> BytecodeCache | None:
    """Where compiled templates are kept: beside them, as Python keeps its own modules, and under the same conditions.

    Compiling takes twice as long as all the rest of a page. A folder of the user's would do for speed, and not for safety:
    what is read from it is run, and root may run with the home folder of another user.
    """
    folder = importlib.resources.files(__package__).joinpath("templates")
    if not isinstance(folder, Path):
        return None
    kept = folder / "__pycache__"
    if not sys.dont_write_bytecode:
        with contextlib.suppress(OSError):
            kept.mkdir(exist_ok=True)
    return (
        _Beside(str(kept), f"%s.{sys.implementation.cache_tag}.jinja-{jinja2.__version__}") if kept.is_dir() else None
    )


class _Beside(FileSystemBytecodeCache):
    """What cannot be written is compiled again the next time."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                super().dump_bytecode(bucket)


def _file(folder: str, name: str) -> str:
    return importlib.resources.files(__package__).joinpath(folder).joinpath(name).read_text(encoding="utf-8")
