"""``gpuwhy`` and ``python -m gpuwhy``; answers ``--version`` before anything is imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; ends the process with its exit status."""
    if sys.argv[1:] == ["--version"]:
        from gpuwhy import __version__

        sys.stdout.write(f"gpuwhy {__version__}\n")
        return
    from gpuwhy.cli import run

    sys.exit(run())


if __name__ == "__main__":
    main()
