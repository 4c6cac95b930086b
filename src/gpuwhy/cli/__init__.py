"""The command line: one file per command, loaded when it is called; no logic of its own."""

from gpuwhy.cli.group import run

__all__ = ["run"]
