"""How one sees that a remedy has helped, where nothing else shows it: the service is started again, and the failure is gone."""

from __future__ import annotations

import shlex

from gpuwhy.model.event import Event
from gpuwhy.model.finding import Finding
from gpuwhy.model.incident import Incident
from gpuwhy.remedies.setting import Setting
from gpuwhy.remedies.typed_command import read_words

_LONGEST = 110
"""Characters of the line that must not come any more."""


def started_again(finding: Finding, incident: Incident, setting: Setting) -> tuple[str, ...]:
    """The last check of any remedy: what to look at after the next start, and the line that must not come any more.

    Of a unit or a container gpuwhy looks by itself; what a person types is a comment, as only they know how.
    """
    line = _line_of(finding, incident)
    gone = f": this must not come any more: {line}" if line else ""
    if setting.kind == "systemd" and setting.unit:
        looks = f"gpuwhy diagnose {shlex.quote(setting.host or 'local')} --unit {shlex.quote(setting.unit)}"
    elif setting.kind == "docker" and setting.container:
        via = f"--via {shlex.quote(setting.host)} " if setting.host else ""
        looks = f"gpuwhy diagnose {via}{shlex.quote(f'{setting.engine}:{setting.container}')}"
    else:
        is_known = not setting.is_container and read_words(setting.command) is not None
        return (f"# {'run the command' if is_known else 'start the service'} again{gone}",)
    return (f"# started again{gone}", looks) if gone else (looks,)


def _line_of(finding: Finding, incident: Incident) -> str:
    """What the program printed when it failed of this: the first line of what began it, cut to be read."""
    explained = [event for event in incident.events if event.id in finding.explains]
    fatal = [event for event in explained if event.is_fatal and not event.is_echo]
    began = [event for event in explained if event.id == incident.primary]
    event: Event | None = next(iter([*began, *fatal, *explained]), incident.primary_event)
    if event is None:
        return ""
    text = "".join(each if each.isprintable() else " " for each in event.text.strip().partition("\n")[0])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
