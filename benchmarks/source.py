"""Seconds of CPU and megabytes of the tracer on real releases, beside other tools on the same tree; and the bars.

Run: ``python benchmarks/source.py [--quick]``. The releases are fetched through pip's index on first use. ``rg`` and
jedi are asked for the same symbol when they are installed; they name places, not conditions.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.source.masks import MASKS
from tests.source.packages import release

from gpuwhy.source.cache import Cache
from gpuwhy.source.roots import FolderRoot, Root, packages_in
from gpuwhy.source.tracing import Question, trace
from gpuwhy.source.trees import Tree

INDEXED = (("flashinfer-python", "0.6.18.post1", "flashinfer", 2.0), ("vllm", "0.33.0", "vllm", 3.0), ("sglang", "0.5.23", "sglang", 4.0))  # fmt: skip
WARM = 0.2
_SAMPLER = "sglang.srt.layers.sampler:Sampler._sample_from_probs"
TRACED = (
    ("seed", ("flashinfer-python==0.6.18.post1",), Question(symbol="flashinfer.jit.core:check_cuda_arch"), 0.5, 100),
    ("torch", ("torch==2.13.0",), Question(place="torch/utils/cpp_extension.py:646"), 0.6, 0),
    ("vllm sampler", ("vllm==0.33.0", "flashinfer-python==0.6.18.post1"), Question(place="vllm/v1/sample/ops/topk_topp_sampler.py:152"), 2.5, 300),
    ("sglang flag", ("sglang==0.5.23",), Question(symbol=_SAMPLER, call="top_k_top_p_sampling_from_probs"), 6.0, 500),
)  # fmt: skip


def measured(work: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """What a function gives, run in a process of its own, with its CPU seconds and peak megabytes."""
    receiving, sending = multiprocessing.get_context("spawn").Pipe(False)
    process = multiprocessing.get_context("spawn").Process(target=_child, args=(sending, work, arguments))
    process.start()
    answer: dict[str, Any] = receiving.recv()
    process.join()
    return answer


def _child(sending: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    started = time.process_time()
    value = work(*arguments)
    spent = time.process_time() - started
    sending.send({"cpu": spent, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, "value": value})


def index(folder: str, package: str, cache: str) -> int:
    return Tree(FolderRoot(Path(folder), package), Cache(Path(cache))).words.size


def traced(releases: tuple[str, ...], question: Question, cache: str) -> tuple[int, float]:
    """How many switches, and the seconds to the guard."""
    roots: dict[str, Root] = {}
    for each in releases:
        name, _, version = each.partition("==")
        roots |= packages_in(release(name, version))
    started = time.process_time()
    first = [0.0]

    def on_first(_: object) -> None:
        first[0] = time.process_time() - started

    return len(trace(roots, question, Cache(Path(cache)), on_first).switches), first[0]


def masks_found(cache: str) -> list[int]:
    return [mask.number for mask in MASKS if mask.is_found(_answer(mask.releases, mask.question, cache))]


def _answer(releases: tuple[str, ...], question: Question, cache: str) -> Any:
    roots: dict[str, Root] = {}
    for each in releases:
        name, _, version = each.partition("==")
        roots |= packages_in(release(name, version))
    return trace(roots, question, Cache(Path(cache)))


def others(folder: Path) -> list[str]:
    """The same attribute with tools for names."""
    told = []
    if shutil.which("rg"):
        started = time.perf_counter()
        found = subprocess.run(
            ["rg", "-c", "TARGET_CUDA_ARCHS", "--type", "py", str(folder)], capture_output=True, text=True, check=False
        )
        told.append(f"rg: {len(found.stdout.splitlines())} files, {time.perf_counter() - started:.2f} s")
    try:
        import jedi  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return [*told, "jedi: not installed"]
    started = time.process_time()
    path = folder / "flashinfer" / "compilation_context.py"
    line = next(
        number for number, text in enumerate(path.read_text().split("\n"), 1) if "self.TARGET_CUDA_ARCHS =" in text
    )
    script = jedi.Script(path=path, project=jedi.Project(folder))
    references = script.get_references(line, path.read_text().split("\n")[line - 1].index("TARGET"))
    return [*told, f"jedi: {len(references)} references, {time.process_time() - started:.2f} s of CPU"]


def main() -> int:
    missed = 0

    def told(name: str, value: float, bar: float, unit: str) -> None:
        nonlocal missed
        verdict = "" if not bar else "ok" if value <= bar else "MISSED"
        missed += verdict == "MISSED"
        print(f"{name:40} {value:8.2f} {unit:4} {f'bar {bar:g}' if bar else '':10} {verdict}")

    with tempfile.TemporaryDirectory() as cache:
        for name, version, package, bar in INDEXED:
            folder = str(release(name, version))
            told(f"word index {package} {version}, cold", measured(index, folder, package, cache)["cpu"], bar, "s")
            told(f"word index {package} {version}, warm", measured(index, folder, package, cache)["cpu"], WARM, "s")
        for name, releases, question, seconds, megabytes in TRACED:
            cold = measured(traced, releases, question, cache)
            warm = measured(traced, releases, question, cache)
            told(f"{name}, facts not kept yet", cold["cpu"], 0, "s")
            told(f"{name}, warm", warm["cpu"], seconds, "s")
            told(f"{name}, memory", warm["mb"], megabytes, "MB")
            told(f"{name}, guard shown after", warm["value"][1], 1.0, "s")
            print(f"{'':40} {warm['value'][0]} switches")
        print(*others(release("flashinfer-python", "0.6.18.post1")), sep="\n")
        if "--quick" not in sys.argv[1:]:
            found = masks_found(cache)
            print(
                f"masks: {len(found)} of {len(MASKS)} found; not {sorted({mask.number for mask in MASKS} - set(found))}"
            )
    print(json.dumps({"load": os.getloadavg()[0], "missed": missed}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
