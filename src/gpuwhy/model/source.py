"""What the installed source says of a failure: the failing condition, where its values come from, what was swallowed."""

from __future__ import annotations

import msgspec

from gpuwhy.model.evidence import Place


class SourceLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of installed source. ``path`` is as below ``site-packages``; ``function`` is empty for code that runs on
    import; ``code`` is the line itself."""

    path: str
    line: int
    function: str = ""
    code: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class SourceCondition(msgspec.Struct, frozen=True, omit_defaults=True):
    """What has to be true for a line to run, as the source writes it. ``is_weak``: had it been otherwise, an earlier
    raise would have come."""

    text: str
    line: int
    is_weak: bool = False


class SourceWhatIf(msgspec.Struct, frozen=True):
    """With ``value`` being one of ``values`` (``empty``, ``None``, ``False``, ``True``) the line is reached ``always`` or
    ``never``."""

    value: str
    values: tuple[str, ...]
    outcome: str


class SourceStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step from the condition back to where its value comes from. ``depth`` is 0 for what the condition itself reads.
    ``kind`` and ``note`` as in docs/trace.md."""

    kind: str
    text: str
    depth: int
    place: SourceLine | None = None
    conditions: tuple[SourceCondition, ...] = ()
    note: str = ""


class HiddenRaise(msgspec.Struct, frozen=True, omit_defaults=True):
    """An exception that can end in a handler. ``message`` has ``{}`` where a value stands; ``via`` are the functions on
    the way."""

    type: str
    message: str
    place: SourceLine
    conditions: tuple[SourceCondition, ...] = ()
    via: tuple[str, ...] = ()


class SeenInLog(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the log that the handler wrote. ``value`` is the exception's own text in it, ``raised_at`` the raise
    that it came from, as far as its text tells; ``times`` how often it stands in the log."""

    text: str
    place: Place
    value: str = ""
    raised_at: HiddenRaise | None = None
    times: int = 1


class SwallowedException(msgspec.Struct, frozen=True, omit_defaults=True):
    """A handler on the way to the condition that does not raise again.

    ``skips`` is the step that is then not done; ``logs`` the messages it prints, as patterns; ``hides`` the raises that
    can end there, ``may_hide`` calls outside these packages that may fail, ``more`` counts what is not listed.
    ``seen`` are the lines of this log that it wrote: empty means that nothing shows whether it ran.
    """

    place: SourceLine
    catches: tuple[str, ...]
    skips: str = ""
    logs: tuple[str, ...] = ()
    hides: tuple[HiddenRaise, ...] = ()
    may_hide: tuple[str, ...] = ()
    more: int = 0
    seen: tuple[SeenInLog, ...] = ()


class SourceSwitch(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something outside the code that reaches the condition.

    ``kind`` is environment, flag, field (of a configuration), file, subprocess or external (a call into another
    package). ``value`` is what is known of it here, None when nothing is; ``is_by_name``: a step on the way was only
    matched by a name. ``way`` are the steps from the condition to it.
    """

    kind: str
    name: str
    places: tuple[SourceLine, ...] = ()
    default: str = ""
    accepts: tuple[str, ...] = ()
    consulted_if: tuple[SourceCondition, ...] = ()
    read_when: str = ""
    cached_by: str = ""
    note: str = ""
    value: str | None = None
    is_by_name: bool = False
    way: tuple[str, ...] = ()


class Speaker(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the log and the source line that wrote it. ``is_swallowed``: from a handler that goes on."""

    text: str
    place: Place
    level: str
    at: SourceLine
    is_swallowed: bool = False


class SearchedPackage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A package whose installed source was looked at: how many of its files were fetched, and where they stand."""

    name: str
    version: str
    folder: str
    files: int


class ReplayedFact(msgspec.Struct, frozen=True):
    """The code asked the outside ``what``, and the fact ``key`` answered ``value``."""

    what: str
    key: str
    value: str
    place: SourceLine


class ReplayedCatch(msgspec.Struct, frozen=True):
    """An exception that a handler at ``place`` took."""

    type: str
    message: str
    raised_at: SourceLine
    place: SourceLine


class ReplayedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line that the code logs with these facts; ``seen`` is where the log holds it, None where it does not."""

    level: str
    text: str
    at: SourceLine
    seen: Place | None = None


class ReplayedBranch(msgspec.Struct, frozen=True):
    """A condition on the way, and how it came out."""

    condition: str
    holds: bool
    place: SourceLine


class ReplayedSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the function on the path does with the facts of this host, interpreted from the installed source.

    ``ending`` is ``raised``, ``returned``, ``needs a fact`` or ``not modelled``. ``agreement`` with the log is
    ``same`` (exception, line and every warning on the way), ``partly`` (exception and line; a warning that would come is
    not in the log), ``other`` (with these facts it does not come to this), or ``open``. ``why`` says it in a sentence.
    ``needs`` is the key of the missing fact and ``command`` gets it. What the ending rests on without a fact is
    ``assumed``.
    """

    entry: str
    ending: str
    agreement: str
    why: str
    type: str = ""
    message: str = ""
    place: SourceLine | None = None
    facts: tuple[ReplayedFact, ...] = ()
    branches: tuple[ReplayedBranch, ...] = ()
    swallowed: tuple[ReplayedCatch, ...] = ()
    lines: tuple[ReplayedLine, ...] = ()
    assumed: tuple[str, ...] = ()
    needs: str = ""
    command: str = ""

    @property
    def is_proof(self) -> bool:
        """Whether the log, the source and the facts say the same, and nothing had to be assumed."""
        return self.agreement == "same" and not self.assumed


class SourceAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the installed source says of the primary exception. ``problem`` says why there is no ``place``.

    ``disagreements``: where the log or a rule of the catalogue and the installed source do not fit. ``limits``: what
    was not found or not looked at, in sentences. ``confirmed`` are switches of the first finding's remedies that the
    installed source really reads on the way to the condition. ``replay`` is what the code does with the facts of the
    host, None where no function on the path can be replayed.
    """

    place: SourceLine | None = None
    raises: str = ""
    message: str = ""
    problem: str = ""
    conditions: tuple[SourceCondition, ...] = ()
    what_ifs: tuple[SourceWhatIf, ...] = ()
    origin: tuple[SourceStep, ...] = ()
    swallowed: tuple[SwallowedException, ...] = ()
    switches: tuple[SourceSwitch, ...] = ()
    speakers: tuple[Speaker, ...] = ()
    confirmed: tuple[str, ...] = ()
    disagreements: tuple[str, ...] = ()
    packages: tuple[SearchedPackage, ...] = ()
    limits: tuple[str, ...] = ()
    replay: ReplayedSource | None = None

    @property
    def shown_cause(self) -> SeenInLog | None:
        """The swallowed exception that the log shows, of the handler nearest to the condition."""
        return next((seen for each in self.swallowed for seen in each.seen), None)
