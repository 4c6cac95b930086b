"""Uses the time that a target takes to answer: the catalogue and what judges are loaded meanwhile."""

from __future__ import annotations

from threading import Thread


def prepare() -> None:
    """Loads in the background what every diagnosis of a live target needs. Whoever comes first waits for the other."""
    Thread(target=_load, name="prepare", daemon=True).start()


def _load() -> None:
    from gpuwhy.causes import catalogue
    from gpuwhy.diagnosis import sign_literals
    from gpuwhy.investigate import collected

    catalogue()
    sign_literals()
    del collected
