"""The bug forms of projects, filled: the headings are those of each project's public form, in its order.

FACTS: written from memory of the forms in the projects' ``.github/ISSUE_TEMPLATE`` as they were in the middle of 2025. A form that has
changed since still takes the same text under its own headings. FlashInfer had no form then: it gets what its maintainers ask for.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.reports.github import folded, prose
from gpuwhy.reports.issue import Issue
from gpuwhy.reports.issue_parts import joined

_REPRODUCTION = "The start command is not known. With it, the model and the request, this section is complete."


class Field(msgspec.Struct, frozen=True):
    """One field of a form: its heading, and what fills it."""

    heading: str
    fill: Callable[[Issue], str]


class Form(msgspec.Struct, frozen=True):
    """A project's form. ``title`` is put before the title; ``own_tool`` prints what the project asks for besides."""

    title: str
    fields: tuple[Field, ...]
    own_tool: str


def _environment(issue: Issue) -> str:
    return issue.environment()


def _folded_environment(issue: Issue) -> str:
    return folded("Your current environment, as gpuwhy found it", issue.environment())


def _described(issue: Issue) -> str:
    return joined(
        [
            prose(issue.title()),
            issue.cause(),
            issue.excerpt(),
            _headed("Where the memory goes", issue.memory()),
            _headed("What was tried, and what does not help", issue.tried()),
            _headed("What helps", issue.remedies()),
            issue.rest(),
        ]
    ).rstrip()


def _headed(heading: str, content: str) -> str:
    return f"**{heading}**\n\n{content}" if content else ""


def _reproduced(issue: Issue) -> str:
    return issue.command() or _REPRODUCTION


def _described_with_command(issue: Issue) -> str:
    return joined([_described(issue), _headed("Start command", issue.command())]).rstrip()


FORMS = {
    "vllm": Form(
        "[Bug]: ",
        (Field("Your current environment", _folded_environment), Field("🐛 Describe the bug", _described_with_command)),
        "vllm collect-env",
    ),
    "sglang": Form(
        "[Bug] ",
        (
            Field("Describe the bug", _described),
            Field("Reproduction", _reproduced),
            Field("Environment", _environment),
        ),
        "python3 -m sglang.check_env",
    ),
    "flashinfer": Form(
        "[Bug] ",
        (
            Field("Describe the bug", _described),
            Field("Reproduction", _reproduced),
            Field("Environment", _environment),
        ),
        "flashinfer show-config",
    ),
    "pytorch": Form(
        "",
        (Field("🐛 Describe the bug", _described_with_command), Field("Versions", _environment)),
        "python -m torch.utils.collect_env",
    ),
}  # fmt: skip
"""By the name of the project."""


def filled(project: str, diagnosis: Diagnosis) -> str:
    """The form with a title line; ``diagnosis`` is written as it is, see :mod:`gpuwhy.reports.public`. Raises KeyError."""
    form = FORMS[project]
    issue = Issue(diagnosis)
    parts = [f"<!-- title --> {form.title}{prose(issue.title())}"]
    for field in form.fields:
        parts += [f"### {field.heading}", field.fill(issue) or "_No response_"]
    return joined(parts)
