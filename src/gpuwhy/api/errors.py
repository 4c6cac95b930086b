"""What every function of the interface raises."""

from __future__ import annotations


class GpuwhyError(Exception):
    """What every function here raises. The text is for a person: what failed, on what, and what to try."""


class UnusableError(GpuwhyError):
    """The arguments, or a file that they name, cannot be used. The command line ends with 2."""


class UnreachableError(GpuwhyError):
    """A live place could not be examined or gave no answer. The command line ends with 3."""
