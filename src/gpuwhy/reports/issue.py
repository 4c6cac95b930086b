"""A diagnosis as an issue in GitHub's Markdown: each part for itself, so that a project's own form can be filled with them."""

from __future__ import annotations

from gpuwhy import __version__
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Place, Standing
from gpuwhy.model.finding import Link
from gpuwhy.reports.fact_words import value_words
from gpuwhy.reports.github import block, bullets, code, folded, prose, table
from gpuwhy.reports.issue_parts import environment_rows, joined, remedy_text
from gpuwhy.reports.neutral import plain
from gpuwhy.reports.sections import begun

_SURE = {
    "proven": "proven (the mechanism itself was seen)",
    "likely": "likely (it fits, one link is inferred)",
    "possible": "possible (it fits, the deciding fact is not known)",
}
_EXCERPT = 24
"""Lines of the excerpt of the log."""
_FRAMES = 4


class Issue:
    """The parts of an issue about one diagnosis. Every part is Markdown without a heading; "" when there is nothing to say."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        self._diagnosis = diagnosis
        self._finding = diagnosis.findings[0] if diagnosis.findings else None

    def title(self) -> str:
        """One line of plain text, for a field that knows no Markdown."""
        if self._finding is not None:
            return plain(begun(self._finding.title))
        event = self._diagnosis.incident.primary_event
        return plain(event.text.partition("\n")[0])[:200] if event is not None else "No failure was found"

    def cause(self) -> str:
        """The cause, how sure that is, and the chain."""
        if self._finding is None:
            return "The cause is not known; the first fatal event is below."
        finding = self._finding
        component = f" in {code(finding.component)}" if finding.component else ""
        chain = bullets((_link(each) for each in finding.chain), is_numbered=True)
        return joined([f"Cause: {code(finding.cause)}{component}, {_SURE[finding.certainty.value]}.", chain]).rstrip()

    def memory(self) -> str:
        """Where memory ran out: where it went."""
        if self._finding is None or not self._finding.memory:
            return ""
        from gpuwhy.reports.memory_issue import uses_text

        return uses_text(self._finding.memory)

    def environment(self) -> str:
        """A table of versions and settings."""
        rows = list(environment_rows(self._diagnosis.facts))
        return table(("", ""), rows) if rows else "Nothing is known of the environment."

    def excerpt(self) -> str:
        """The lines that the diagnosis rests on, in the order of the log, with the end of the first traceback."""
        quoted: dict[tuple[str, int], list[str]] = {}
        for evidence in [] if self._finding is None else [*self._finding.evidence, *(each.evidence for each in self._finding.chain if each.evidence)]:  # fmt: skip
            place = evidence.place
            if (
                evidence.quote
                and place is not None
                and place.line is not None
                and evidence.standing is Standing.OBSERVED
            ):
                quoted.setdefault((place.path, place.line), evidence.quote.split("\n")[:3])
        event = self._diagnosis.incident.primary_event
        if event is not None:
            frames = [frame for raised in event.exceptions[:1] for frame in raised.frames[-_FRAMES:]]
            shown = [line for frame in frames for line in (f'  File "{frame.path}", line {frame.line or "?"}, in {frame.function}', f"    {frame.code}") if line.strip()]  # fmt: skip
            span = event.exceptions[0].span if event.exceptions else None
            if shown:
                quoted.setdefault((span.log, span.first) if span else (event.place.path, 0), shown)
            quoted[event.place.path, event.place.line or 0] = event.text.split("\n")[:8]
        lines: list[str] = []
        for key in sorted(quoted):
            lines += [*(["..."] if lines else []), *quoted[key]]
        return block(lines[:_EXCERPT]) if lines else ""

    def command(self) -> str:
        """The start command, where it is known."""
        told = next((fact.value for fact in self._diagnosis.facts if fact.key == "command"), None)
        return block([value_words(told)], "sh") if told else ""

    def tried(self) -> str:
        """The experiments that were reported, and what is known not to help."""
        tests = [fact for fact in self._diagnosis.facts if fact.key.startswith("tests.")]
        items = [f"{code(fact.key.removeprefix('tests.'))}: {prose(value_words(fact.value))}" for fact in tests]
        refused = self._finding.not_remedies if self._finding is not None else ()
        items += [f"does not help: {code(each.what)}: {prose(each.why)}" for each in refused]
        return bullets(items)

    def remedies(self) -> str:
        """What gpuwhy proposes: the first way, the others folded."""
        if self._finding is None or not self._finding.remedies:
            return ""
        first, *others = self._finding.remedies
        more = folded("Other ways", "\n\n".join(remedy_text(each) for each in others)) if others else ""
        return joined([remedy_text(first), more]).rstrip()

    def rest(self) -> str:
        """What was ruled out, what is not known, and the record of the investigation, folded."""
        diagnosis = self._diagnosis
        items = [f"ruled out: {code(each.cause)}: {prose(each.why)}" for each in diagnosis.ruled_out]
        items += [f"could still be: {code(each.cause)} ({each.certainty.value})" for each in diagnosis.findings[1:]]
        missing = self._finding.missing if self._finding is not None else diagnosis.to_go_on
        items += [f"not known: {code(each.key)}: {prose(each.why)}" for each in missing]
        steps = [
            f"{prose(each.question)}: {each.outcome}: {prose(each.found)}" for each in diagnosis.investigation.steps
        ]
        parts = [
            folded("Ruled out, and not known", bullets(items)) if items else "",
            folded("How it was found out", bullets(steps)) if steps else "",
            f"Written by gpuwhy {code(__version__)}.",
        ]
        return joined(parts).rstrip()

    def whole(self) -> str:
        """All parts under their headings."""
        sections = (
            ("Environment", self.environment()),
            ("Cause", self.cause()),
            ("Where the memory goes", self.memory()),
            ("Log", self.excerpt()),
            ("Start command", self.command()),
            ("What was tried, and what does not help", self.tried()),
            ("What helps", self.remedies()),
        )
        parts = [f"## {prose(self.title())}"]
        for heading, content in sections:
            parts += [f"### {heading}", content] if content else []
        return joined([*parts, self.rest()])


def _link(link: Link) -> str:
    marks = ["**swallowed**"] if link.is_swallowed else []
    marks += ["inferred"] if link.evidence is None or link.evidence.standing is Standing.INFERRED else []
    place = link.installed.place if link.installed is not None else None
    at = f" ({_place(place)})" if place is not None else ""
    return f"{prose(begun(link.statement))}{at}" + (f" [{', '.join(marks)}]" if marks else "")


def _place(place: Place) -> str:
    return code(str(place))
