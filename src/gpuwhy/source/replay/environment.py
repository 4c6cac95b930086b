"""``os.environ`` and ``os.getenv``: facts, and what the replayed code wrote before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuwhy.source.replay.stops import NotModelledError

if TYPE_CHECKING:
    from gpuwhy.source.replay.machine import Machine


def read(machine: Machine, name: Any) -> str | None:
    """The variable; None when it is not set."""
    if not isinstance(name, str):
        raise NotModelledError("a variable whose name is no text")
    key = f"environ.{name}"
    if key in machine.written:
        return machine.written[key]  # type: ignore[no-any-return]
    return machine.used(f"${name}", machine.oracle.variable(name))  # type: ignore[no-any-return]


def write(machine: Machine, name: Any, value: Any) -> None:
    """Set a variable for the rest of the replay; None removes it."""
    if not isinstance(name, str) or not (value is None or isinstance(value, str)):
        raise machine.error(
            TypeError(f"str expected, not {machine.type_name(value if isinstance(name, str) else name)}")
        )
    machine.written[f"environ.{name}"] = value


def everything(machine: Machine) -> dict[str, str]:
    """All variables."""
    values: dict[str, str] = dict(machine.used("all variables", machine.oracle.variables()))
    for key, value in machine.written.items():
        if key.startswith("environ."):
            values.pop(key[8:], None)
            if value is not None:
                values[key[8:]] = value
    return values


def call(machine: Machine, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of ``os.environ``."""
    if kwargs:
        args = (*args, *(kwargs[name] for name in ("key", "default", "failobj") if name in kwargs))
    if method == "get" and args:
        value = read(machine, args[0])
        return value if value is not None else (args[1] if len(args) > 1 else None)
    if method == "setdefault" and len(args) == 2:
        value = read(machine, args[0])
        if value is None:
            write(machine, args[0], args[1])
            value = args[1]
        return value
    if method == "pop" and args:
        value = read(machine, args[0])
        if value is None:
            if len(args) > 1:
                return args[1]
            raise machine.error(KeyError(args[0]))
        write(machine, args[0], None)
        return value
    if method in ("copy", "keys", "values", "items") and not args:
        values = everything(machine)
        return values if method == "copy" else getattr(values, method)()
    if method == "update" and len(args) == 1 and isinstance(args[0], dict):
        for name, value in args[0].items():
            write(machine, name, value)
        return None
    raise NotModelledError(f"os.environ.{method}")
