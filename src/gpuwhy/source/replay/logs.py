"""Loggers and warnings: what is said is noted, with its level; whether the process shows it depends on its set-up."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpuwhy.source.replay import bounds
from gpuwhy.source.replay.stops import NotModelledError, ReplayedError
from gpuwhy.source.replay.values import Inert, Logger, LogPart, Native

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "critical": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}
_NAMES = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
    logging.CRITICAL: "critical",
}
_SET_UP = ("addHandler", "removeHandler", "addFilter", "removeFilter")


def attribute(machine: Machine, logger: Logger, name: str) -> Any:
    """A method or value of a logger."""
    plain = name.removesuffix("_once")
    if plain in _LEVELS and (plain == name or logger.has_once):
        once = plain != name
        return Native(name, lambda m, args, kwargs: _say(m, logger, _LEVELS[plain], args, once))
    if name == "log":
        return Native(name, lambda m, args, kwargs: _say_at(m, logger, args))
    if name == "setLevel":
        return Native(name, lambda m, args, kwargs: _set_level(m, logger, args[0]))
    if name in _SET_UP:
        return Native(name, lambda _, __, ___: None)
    if name == "handlers":
        # as many as the code adds; their formats do not matter
        return [LogPart() for _ in range(8)]
    if name == "name":
        return logger.name
    if name == "level":
        return logger.level
    raise NotModelledError(f"logger.{name}")


def _say_at(machine: Machine, logger: Logger, args: tuple[Any, ...]) -> None:
    if not args or not isinstance(args[0], int):
        raise NotModelledError("logger.log with a level that is no number")
    _say(machine, logger, args[0], args[1:], once=False)


def _say(machine: Machine, logger: Logger, level: int, args: tuple[Any, ...], once: bool) -> None:
    if not args:
        raise NotModelledError("a log call without a message")
    if level < logger.level:
        return
    text = message(machine, args[0], args[1:])
    if once:
        if text in logger.once:
            return
        logger.once.add(text)
    machine.log(_NAMES.get(level, str(level)), logger.name, text)


def message(machine: Machine, template: Any, args: tuple[Any, ...]) -> str:
    """The text of a log call, put together as :mod:`logging` does it."""
    for value in (template, *args):
        if isinstance(value, Inert):
            raise value.stop()
    machine.weigh(template, *args)
    text = str(machine.native(str, template))
    if not args:
        return text
    values: Any = args
    if len(args) == 1 and isinstance(args[0], Mapping) and args[0]:
        values = args[0]
    bounds.fillable(text, args, text.count("%"))
    try:
        return str(machine.native(lambda: text % values))
    except ReplayedError:
        # logging prints a complaint of its own in place of the line
        return text


def _set_level(machine: Machine, logger: Logger, level: Any) -> None:
    if isinstance(level, Inert):
        raise level.stop()
    if isinstance(level, str):
        known = logging.getLevelNamesMapping() if hasattr(logging, "getLevelNamesMapping") else logging._nameToLevel
        if level not in known:
            raise machine.error(ValueError(f"Unknown level: {level!r}"))
        logger.level = known[level]
    elif isinstance(level, int):
        logger.level = level
    else:
        raise NotModelledError("a log level that is neither text nor number")


def get_logger(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Logger:
    """``logging.getLogger``: one logger per name."""
    name = str(args[0]) if args and args[0] is not None else str(kwargs.get("name") or "root")
    return machine.written.setdefault(f"logger {name}", Logger(name))  # type: ignore[no-any-return]


def engine_logger(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Logger:
    """vLLM's ``init_logger``: a logger with methods that say a thing once."""
    logger = get_logger(machine, args, kwargs)
    logger.has_once = True
    return logger


def on_root(name: str) -> Native:
    """``logging.warning`` and its like."""
    return Native(f"logging.{name}", lambda m, args, kwargs: _say(m, Logger("root"), _LEVELS[name], args, once=False))


def warn(machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``warnings.warn``."""
    said = args[0] if args else kwargs.get("message")
    if isinstance(said, Inert):
        raise said.stop()
    category = args[1] if len(args) > 1 else kwargs.get("category")
    name = getattr(category, "__name__", None) or getattr(category, "name", "UserWarning")
    machine.log("warn", str(name), str(machine.native(str, said)))
