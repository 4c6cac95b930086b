"""gpuwhy with more patience: what a diagnosis comes to must not depend on what else the machine does.

For what is tested about the limits of time themselves, it is run as ``python -m gpuwhy``.
"""

from __future__ import annotations

PROGRAM = """\
from gpuwhy.investigate import failing_condition, replaying
failing_condition.examined.__defaults__ = (30.0,)
replaying.with_replay.__defaults__ = replaying.installed_source.__defaults__ = (30.0,)
replaying.SECONDS, replaying.CPU_SECONDS = 30.0, 15.0
from gpuwhy.__main__ import main
main()
"""

UNHURRIED = ("-c", PROGRAM)
"""In place of ``-m gpuwhy`` after the name of an interpreter."""
