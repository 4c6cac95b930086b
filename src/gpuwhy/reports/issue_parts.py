"""Parts of an issue in GitHub's Markdown that several reports share, and the reports that are but tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpuwhy.investigate.checks.results import Forecast
from gpuwhy.investigate.differences import Comparison
from gpuwhy.model.fact import Fact
from gpuwhy.model.inspection import Inspection
from gpuwhy.model.remedy import Remedy
from gpuwhy.reports.counting import counted
from gpuwhy.reports.fact_words import said, value_words
from gpuwhy.reports.github import block, bullets, code, folded, prose, table
from gpuwhy.reports.remedy_words import change_of

_ENVIRONMENT = ("gpu", "gpus", "cc", "driver", "driver_cuda", "cuda_toolkit", "cuda_home", "toolkits", "torch", "torch_cuda", "torch_arch_list", "python", "os", "glibc", "gcc", "kernel_release", "hypervisor", "command", "container.image")  # fmt: skip
"""What maintainers ask for, in the order of the table; packages follow, then variables. torch is in both."""
_MOST = 200
"""Rows of a table."""


def environment_rows(facts: Sequence[Fact]) -> Iterator[tuple[str, str]]:
    """Name and value, as Markdown, of the facts that describe the environment."""
    by_key = {fact.key: fact for fact in facts}
    wanted = [key for key in _ENVIRONMENT if key in by_key]
    wanted += sorted(key for key in by_key if key.startswith(("packages.", "release_range.")))
    wanted += sorted(key for key in by_key if key.startswith("env."))
    shown: set[tuple[str, str]] = set()
    for key in wanted[:_MOST]:
        row = (code(_label(key)), _value(key, by_key[key].value))
        if row not in shown:
            yield row
        shown.add(row)


def _label(key: str) -> str:
    for group in ("packages.", "env.", "release_range."):
        key = key.removeprefix(group)
    return key


def _value(key: str, value: object) -> str:
    if value is None or value in ([], ()):
        return said(key, value)
    text = code(value_words(value)) if value != "" else said(key, value)
    return f"{text}, by the frames of the traceback" if key.startswith("release_range.") else text


def remedy_text(remedy: Remedy) -> str:
    """A remedy with its commands."""
    change = change_of(remedy)
    doubt = "" if remedy.is_sure else " (helps in some such cases)"
    first = f"{code(change)}: {prose(remedy.summary)}" if change != remedy.summary else prose(change)
    return f"{first}{doubt}" + (f"\n\n{block(remedy.commands, 'sh')}" if remedy.commands else "")


def forecast_text(answer: Forecast) -> str:
    """A check as an issue."""
    parts = [f"## {counted(len(answer.problems), 'problem')} found before anything failed"]
    for problem in answer.problems:
        evidence = bullets(prose(each.statement) for each in problem.evidence)
        parts += [f"### {prose(problem.title)}", f"{code(problem.cause)}, {problem.certainty.value}", evidence]
        if problem.remedies:
            parts.append(f"What helps: {remedy_text(problem.remedies[0])}")
    if answer.estimate is not None:
        from gpuwhy.fit.memory_use import gpu_use, host_use
        from gpuwhy.reports.memory_issue import uses_text

        parts += ["### Where the memory goes", uses_text((gpu_use(answer.estimate), host_use(answer.estimate)))]
    rows = list(environment_rows(answer.facts))
    if rows:
        parts.append(folded("Environment", table(("", ""), rows)))
    if answer.unchecked:
        parts.append(
            folded("Not checked", bullets(f"{prose(each.what)}: {prose(each.why)}" for each in answer.unchecked))
        )
    return joined(parts)


def inspection_text(answer: Inspection) -> str:
    """An inspection as an issue."""
    wanted = f" for compute capability {answer.compute_capability}" if answer.compute_capability else ""
    rows = [
        (
            code(each.path),
            code(" ".join(each.architectures) or "no code"),
            each.verdict.outcome.value if each.verdict is not None else "",
            ""
            if each.loading is None
            else {True: "loads", False: "does not load", None: "may load"}[each.loading.loads],
        )
        for each in answer.files[:_MOST]
    ]
    more = [f"and {counted(len(answer.files) - _MOST, 'more file')}"] if len(answer.files) > _MOST else []
    unreadable = [bullets(prose(f"unreadable: {each}") for each in answer.unreadable)] if answer.unreadable else []
    heading = f"## {counted(len(answer.files), 'file')} inspected{wanted}"
    return joined([heading, table(("file", "architectures", "on this GPU", "loading"), rows), *more, *unreadable])


def comparison_text(answer: Comparison) -> str:
    """A comparison as an issue."""
    heading = f"## {len(answer.changes):,} of {counted(answer.compared, 'fact')} differ"
    rows = [
        (code(each.key), code(each.before or "-"), code(each.after or "-"), code(each.undoes or ", ".join(each.causes[:4]) or "-"))
        for each in answer.changes[:_MOST]
    ]  # fmt: skip
    return joined([heading, table(("what", "before", "after", "can cause"), rows)])


def joined(parts: Iterable[str]) -> str:
    """Parts with blank lines between them."""
    return "\n\n".join(part for part in parts if part) + "\n"
