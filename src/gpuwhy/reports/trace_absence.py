"""The other answers of ``gpuwhy trace`` as text: whether a variable is read, and where a name went."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.reports.neutral import plain
from gpuwhy.reports.trace import ANSWER, HEADING, NOTE, QUOTE, Line, extent
from gpuwhy.source.answers import Absence, FoundSymbol, Moved, Occurrence


def lines(answer: Absence | Moved, verbose: bool = False) -> Iterator[Line]:
    for text, style in _absence(answer, verbose) if isinstance(answer, Absence) else _moved(answer):
        yield plain(text), style


def _absence(answer: Absence, verbose: bool) -> Iterator[Line]:
    package = answer.scope.packages[0] if answer.scope.packages else None
    named = f"{package.name} {package.version}".strip() if package else "what was given"
    reached = f"{answer.reachable} of its {answer.files} files are reachable by imports"
    if package and package.place:
        reached = extent(package)
    if answer.is_absent:
        yield f"No reachable read of {answer.name} in {named}: {reached}", ANSWER
    elif not answer.is_decided:
        yield f"No read of {answer.name} in what was looked at of {named}, which is not all that could hold one: {reached}", ANSWER  # fmt: skip
    else:
        yield f"{named} reads {answer.name}; {reached}", ANSWER
    for each in answer.occurrences if verbose else [one for one in answer.occurrences if one.kind != "other"][:20]:
        yield f"  {each.kind}: {_occurrence(each)}", ""
    texts = sum(each.kind == "other" for each in answer.occurrences)
    if texts and not verbose:
        yield f"  {texts} other lines hold the word, with --verbose", NOTE
    if answer.caveats:
        yield "What limits this", HEADING
    for caveat in answer.caveats:
        yield f"  {caveat}", NOTE
    near = [each for each in answer.dynamic_reads if each.is_reachable]
    for each in answer.dynamic_reads if verbose else near[:8]:
        yield f"  key not constant: {_occurrence(each)}", QUOTE
    for each in answer.whole_environment if verbose else answer.whole_environment[:4]:
        yield f"  whole environment: {_occurrence(each)}", QUOTE


def _occurrence(each: Occurrence) -> str:
    via = f" through {each.via}" if each.via else ""
    reach = "" if each.is_reachable else "   (not reachable by imports)"
    return f"{each.spot.path}:{each.spot.line}  {each.spot.function or 'on import'}{via}  {each.spot.code}{reach}"


def _moved(answer: Moved) -> Iterator[Line]:
    wanted = f"{answer.module}.{answer.name}" if answer.name else answer.module
    if answer.here or (answer.is_module_there and not answer.name):
        yield f"{wanted} is there", ANSWER
    elif answer.elsewhere:
        yield (
            f"{wanted} is not there; {answer.name or 'a module of that name'} is in {answer.elsewhere[0].dotted}",
            ANSWER,
        )
    else:
        yield f"{wanted} is not in {'the Python source that' if answer.open_ends else 'what'} is installed", ANSWER
    for end in answer.open_ends:
        yield f"  it may be there all the same: {end}", NOTE
    if not answer.is_module_there:
        yield f"  there is no module {answer.module}", ""
    for each in (*answer.here, *answer.elsewhere):
        yield f"  {_symbol(each)}", ""
    if answer.nearest:
        yield f"  names like it there: {', '.join(answer.nearest)}", ""
    for each in answer.earlier:
        yield f"  last had in {_symbol(each)}", ""
    for package in answer.scope.packages if answer.scope else ():
        yield f"  searched: {package.name} {package.version}, {extent(package)}", NOTE


def _symbol(each: FoundSymbol) -> str:
    condition = f"   only when {' and '.join(one.text for one in each.requires)}" if each.requires else ""
    return f"{each.dotted} ({each.kind})   {each.spot.path}:{each.spot.line}{condition}"
