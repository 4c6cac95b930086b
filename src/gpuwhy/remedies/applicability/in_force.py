"""What the service was started with already, and failed all the same."""

from __future__ import annotations

from gpuwhy.model.remedy import NotARemedy, Remedy
from gpuwhy.remedies.applicability.releases import shown
from gpuwhy.remedies.circumstances import Circumstances
from gpuwhy.remedies.command_line import value_of
from gpuwhy.remedies.container_run import is_option_of_run
from gpuwhy.remedies.typed_command import TypedCommand
from gpuwhy.remedies.values import is_literal, is_option, is_variable


def in_force(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    """A variable or an option that the command or the environment of the failing service shows to be so already."""
    if remedy.kind == "env" and is_variable(remedy.name):
        return _variable(remedy, known)
    if remedy.kind == "flag" and is_option(remedy.name) and known.command is not None:
        return _option(remedy, known.command)
    return remedy


def _variable(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    typed = known.command.variable(remedy.name) if known.command is not None else None
    now = typed if typed is not None else known.variables.get(remedy.name)
    if remedy.value == "unset":
        is_unset = now is None and remedy.name in known.variables
        return NotARemedy(shown(remedy), f"{remedy.name} is not set") if is_unset else remedy
    if now is None or now != remedy.value or not is_literal(remedy.name, remedy.value):
        return remedy
    return NotARemedy(shown(remedy), "the service failed with it set so")


def _option(remedy: Remedy, command: TypedCommand) -> Remedy | NotARemedy:
    if remedy.value == "remove":
        return remedy
    run = command.run
    if is_option_of_run(remedy.name, remedy.value):
        now = None if run is None else run.option(remedy.name)
    else:
        now = value_of(command.words, remedy.name, command.engine_start)
    wanted = "" if remedy.value == "set" else remedy.value
    if now is None or now != wanted or (wanted and not is_literal(remedy.name, wanted)):
        return remedy
    return NotARemedy(shown(remedy), "the service failed with it given")
