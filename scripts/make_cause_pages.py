"""Writes ``docs/causes/``: a page for each cause of the catalogue, and an index by family.

Run: ``python -m scripts.make_cause_pages`` (``--check`` writes nothing and fails when a page is not as it should be).

A page is the cause's own documentation and one worked example: the shortest labelled case of this cause that is
diagnosed rightly from its report alone, with the report that gpuwhy prints. A cause without such a case takes its
example from ``docs/causes/examples/ID.log``, which is written by hand.
"""

from __future__ import annotations

import argparse
import functools
import re
import sys
from pathlib import Path
from typing import Any

from gpuwhy.causes import CauseEntry, catalogue
from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.remedies import prescribe
from gpuwhy.reports import Detail
from gpuwhy.reports.text import render
from scripts.score import CASES, read_cases

FOLDER = Path(__file__).parents[1] / "docs" / "causes"
EXAMPLES = FOLDER / "examples"
WIDTH = 96
LONGEST = 60
"""Lines of a case that an example shows; the middle of a longer one is left out."""
FAMILIES = (
    "Toolchain",
    "Binary and architecture limits",
    "Packages",
    "Driver, device and fabric",
    "Container",
    "Memory, storage, limits",
    "Distributed",
    "Model and configuration",
    "Run time",
)
MADE = "<!-- made by scripts/make_cause_pages.py from the cause's docstring and a labelled case -->"
_HEADING = re.compile(r"^(?P<title>[A-Z][A-Za-z' ]{2,60})$")


def pages() -> dict[Path, str]:
    """Every page and its text."""
    entries = sorted(catalogue().values(), key=lambda entry: entry.id)
    made = {FOLDER / f"{entry.id}.md": page(entry) for entry in entries}
    made[FOLDER / "README.md"] = index(entries)
    return made


def index(entries: list[CauseEntry]) -> str:
    """The catalogue by family, in the order in which a stack is built up."""
    lines = [
        MADE,
        "# The catalogue of causes",
        "",
        f"{len(entries)} causes. An id names what has to be changed; two failures with the same text and different",
        "fixes have different ids. `gpuwhy cause ID` prints the same documentation in a terminal.",
    ]
    families = sorted({entry.family for entry in entries}, key=lambda name: (name not in FAMILIES, FAMILIES.index(name) if name in FAMILIES else 0, name))  # fmt: skip
    for family in families:
        lines += ["", f"## {family}", "", "| cause | what it is |", "| --- | --- |"]
        lines += [f"| [{e.id}]({e.id}.md) | {e.summary.replace('|', chr(92) + '|')} |" for e in entries if e.family == family]  # fmt: skip
    return "\n".join(lines) + "\n"


def page(entry: CauseEntry) -> str:
    """One cause: its documentation, then the example."""
    lines = [MADE, f"# {entry.id}", "", f"*{entry.family}*", ""]
    for line in entry.documentation.splitlines():
        heading = _HEADING.match(line)
        if heading is not None:
            lines += [f"## {heading['title']}", ""]
        else:
            lines.append(line.removeprefix("  "))
    if entry.leads_to:
        lines += ["", "## What it leads to", "", ", ".join(f"[{each}]({each}.md)" for each in entry.leads_to)]
    return _linked("\n".join(lines).rstrip() + "\n" + _example(entry), entry.id)


def _linked(text: str, own: str) -> str:
    """Ids of other causes in running text lead to their pages."""
    before, fence, rest = text.partition("```")
    ids = "|".join(sorted((re.escape(each) for each in catalogue() if each != own), key=len, reverse=True))
    linked = re.sub(rf"(?<![\w\[(/`-])(?P<id>{ids})(?![\w\].`-]|\.md)", r"[\g<id>](\g<id>.md)", before)
    return linked + fence + rest


def _example(entry: CauseEntry) -> str:
    found = _written_example(entry.id) or _case_example(entry.id)
    if found is None:
        raise SystemExit(
            f"{entry.id}: no labelled case is diagnosed rightly, and there is no {EXAMPLES.name}/{entry.id}.log"
        )
    text, report, origin = found
    return (
        f"\n## An example\n\n{origin}\n\n```text\n{text}\n```\n\n```console\n$ gpuwhy diagnose crash.log\n{report}```\n"
    )


def _written_example(identity: str) -> tuple[str, str, str] | None:
    path = EXAMPLES / f"{identity}.log"
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    diagnosis = _diagnosed(text)
    if not diagnosis.findings or diagnosis.findings[0].cause != identity:
        raise SystemExit(f"{path} is diagnosed as {[finding.cause for finding in diagnosis.findings]}")
    return _shown(text), render(diagnosis, Detail(width=WIDTH)), "Written from the program's own messages:"


def _case_example(identity: str) -> tuple[str, str, str] | None:
    for case in _cases_of(identity):
        diagnosis = _diagnosed(case["report"])
        if diagnosis.findings and diagnosis.findings[0].cause == identity:
            return (
                _shown(case["report"]),
                render(diagnosis, Detail(width=WIDTH)),
                _origin(str(case.get("source", ""))),
            )
    return None


def _origin(source: str) -> str:
    thread = re.fullmatch(r"(?P<project>[\w.-]+/[\w.-]+)#(?P<number>\d+)", source)
    if thread is None:
        return "From a public report:"
    return f"From [{source}](https://github.com/{thread['project']}/issues/{thread['number']}):"


def _diagnosed(text: str) -> Diagnosis:
    return prescribe(diagnose_log(text.encode(), "crash.log"))


@functools.cache
def _all_cases() -> tuple[dict[str, Any], ...]:
    return tuple(read_cases(CASES))


def _cases_of(identity: str) -> list[dict[str, Any]]:
    """The labelled cases of a cause, those as printed before completed ones, the shortest first."""
    own = [case for case in _all_cases() if case["truth"]["cause"] == identity]
    return sorted(own, key=lambda case: (case.get("quality") == "reconstructed", len(case["report"])))


def _shown(text: str) -> str:
    lines = [line.rstrip()[:200] for line in text.replace("```", "'''").strip("\n").split("\n")]
    if len(lines) > LONGEST:
        left_out = len(lines) - LONGEST
        lines = [*lines[: LONGEST // 2], f"[... {left_out} lines ...]", *lines[-LONGEST // 2 :]]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make_cause_pages", description="Write docs/causes/.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is not as it should be")
    options = parser.parse_args(arguments)
    made = pages()
    stale = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    left = [path for path in FOLDER.glob("*.md") if path not in made]
    if options.check:
        for path in [*stale, *left]:
            print(f"{path.relative_to(FOLDER.parents[1])} is not as it should be; run `make pages`", file=sys.stderr)
        return 1 if stale or left else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    for path in left:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
