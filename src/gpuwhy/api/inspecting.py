"""Which GPUs binaries of this machine have code for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwhy.api.errors import UnusableError

if TYPE_CHECKING:
    from gpuwhy.investigate.binaries import Question
    from gpuwhy.knowledge.capability import ComputeCapability
    from gpuwhy.model.inspection import Inspection


def inspect(
    paths: Iterable[str | Path],
    *,
    gpu: str = "",
    capability: str = "",
    driver: str = "",
    kernel: str = "",
    needs: bool = False,
    library_path: str = "",
    preload: str = "",
    requirements: bool = False,
    deep: bool = False,
    details: bool = True,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Inspection:
    """Which GPUs the binaries at ``paths`` (files, folders, wheels) have code for, and whether one runs them.

    ``gpu`` (``"H100"``) or ``capability`` (``"9.0"``) asks for a verdict, ``driver`` limits PTX, ``kernel`` finds its
    container. ``needs`` adds what would come of loading, with LD_LIBRARY_PATH ``library_path`` and LD_PRELOAD ``preload``.
    ``requirements`` reads only what wheels say of themselves. Nothing is loaded or run.
    """
    from gpuwhy.investigate.binaries import Question, inspect_binaries, inspect_requirements

    name, target = _gpu_of(gpu, capability, driver)
    wanted = [Path(path) for path in paths]
    missing = [path for path in wanted if not path.exists()]
    if not wanted or missing:
        raise UnusableError(f"{missing[0]}: no such file or folder" if missing else "name a file, a folder, or a wheel")
    question: Question = Question(target, name, driver, kernel, deep, details, needs, library_path, preload)
    return (inspect_requirements if requirements else inspect_binaries)(wanted, question, on_progress)


def _gpu_of(gpu: str, capability: str, driver: str) -> tuple[str, ComputeCapability | None]:
    """The name and the compute capability that are asked for; a name that means several is unusable."""
    if not gpu and not capability:
        if driver:
            raise UnusableError("--driver is for a verdict: name the GPU too, with --gpu or --for")
        return "", None
    from gpuwhy.knowledge import capability as capabilities
    from gpuwhy.knowledge import drivers, gpus

    if driver and drivers.driver_version(driver) is None:
        raise UnusableError(f"{driver}: not a driver version such as 570.86")
    target = capabilities.parse(capability or gpu)
    model = gpus.by_name(gpu) if gpu and not target else None
    target = target or (capabilities.parse(model.compute_capability) if model else None)
    if target is None:
        known = ", ".join(f"{each.name} ({each.compute_capability})" for each in gpus.candidates(gpu)[:5])
        raise UnusableError(
            f"{gpu or capability}: " + (f"can mean {known}" if known else "unknown; give its capability, --for 12.0")
        )
    return gpu if model else "", target.plain
