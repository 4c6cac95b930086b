"""``--format``: the formats that show what a command answers, found by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    NamedType = click.ParamType[str]
else:
    # before click 8.2 it takes no parameter
    NamedType = click.ParamType


class FormatName(NamedType):
    """The name of a format that shows one kind of answer (:data:`gpuwhy.reports.interface.KINDS`), "" for any kind."""

    name = "format"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Asked for by the help alone: only then are all formats looked at."""
        from gpuwhy.reports.formats import names, names_for

        return f"[{'|'.join(names_for(self._kind) if self._kind else names())}]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """The names that begin so."""
        from click.shell_completion import CompletionItem

        from gpuwhy.reports.formats import names, names_for

        fitting = names_for(self._kind) if self._kind else names()
        return [CompletionItem(name) for name in fitting if name.startswith(incomplete)]

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if that format shows this kind of answer; nothing is imported for the default."""
        from gpuwhy.reports.formats import names, show_of
        from gpuwhy.reports.interface import UnknownFormatError

        if value == "text":
            return value
        if not self._kind and value in names():
            return value
        try:
            show_of(value, self._kind)
        except UnknownFormatError as error:
            self.fail(str(error), param, ctx)
        return value
