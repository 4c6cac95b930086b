"""Writes a page: a template, the one style sheet and the one script, and a policy that allows nothing else.

A new kind of page is a template that extends ``base.html.jinja`` and a call of :func:`written`; see docs/html.md.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from gpuwhy import __version__
from gpuwhy.reports.html.inert import inert, whole_command
from gpuwhy.reports.neutral import encodable


def written(template: str, **context: Any) -> str:
    """The page that ``template`` makes of ``context``. Raises jinja2.TemplateError for a fault of the template."""
    style, script = _asset("report.css"), _asset("report.js")
    page = _environment().get_template(template)
    own = {"style": _own(style), "script": _own(script), "policy": _own(_policy(style, script)), "version": __version__}
    encoded: str = encodable(page.render(**context, **own))
    return encoded


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
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["command"] = whole_command
    return environment


def _file(folder: str, name: str) -> str:
    return importlib.resources.files(__package__).joinpath(folder).joinpath(name).read_text(encoding="utf-8")
