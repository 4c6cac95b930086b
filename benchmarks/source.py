"""Seconds of CPU and megabytes of the tracer on real releases, beside other tools on the same tree; and the bars.

Run: ``python benchmarks/source.py [--quick]``. The releases are fetched through pip's index on first use. ``grep`` (or
``rg``, when it is installed) and jedi (``pip install .[bench]``) are asked for the same symbol; they name places, not
conditions.
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
from tests.source.reads import LISTED
from tests.source.reads import measured as measured_reads

from gpuwhy.source.cache import Cache
from gpuwhy.source.roots import FolderRoot, Root, packages_in
from gpuwhy.source.tracing import Question, trace
from gpuwhy.source.trees import Tree

INDEXED = (("flashinfer-python", "0.6.18.post1", "flashinfer", 2.0), ("vllm", "0.33.0", "vllm", 3.0), ("sglang", "0.5.23", "sglang", 4.0))  # fmt: skip
WARM = 0.2
COMPARED = (
    (
        "flashinfer-python==0.6.18.post1",
        "flashinfer/compilation_context.py",
        "self.TARGET_CUDA_ARCHS =",
        "TARGET_CUDA_ARCHS",
    ),
    ("torch==2.13.0", "torch/utils/cpp_extension.py", "CUDA_HOME = ", "CUDA_HOME"),
    ("vllm==0.33.0", "vllm/v1/sample/ops/topk_topp_sampler.py", "def flashinfer_sample", "flashinfer_sample"),
    ("sglang==0.5.23", "sglang/srt/arg_groups/fields/exec_.py", "sampling_backend: A[", "sampling_backend"),
)
"""The symbol behind each traced case, and the line that defines it."""
_PATIENCE = 120.0
"""Seconds that another tool is given."""
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
    if not receiving.poll(_PATIENCE):
        process.kill()
        return {"cpu": float("nan"), "mb": 0, "value": None}
    answer: dict[str, Any] = receiving.recv()
    process.join()
    return answer


def _child(sending: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    started = time.process_time()
    value = work(*arguments)
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = time.process_time() - started + below.ru_utime + below.ru_stime
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


def searched(folder: str, symbol: str) -> tuple[str, int]:
    """The lines with a word, by ``rg`` or ``grep``."""
    tool = "rg" if shutil.which("rg") else "grep"
    command = ["rg", "-n", "-w", "--type", "py", symbol] if tool == "rg" else ["grep", "-rnw", "--include=*.py", symbol]
    found = subprocess.run([*command, folder], capture_output=True, check=False)
    return tool, len(found.stdout.splitlines())


def referenced(folder: str, file: str, line: str, symbol: str) -> int:
    """How many references jedi finds of the symbol on the first line with a text; -1 when it is not installed."""
    try:
        import jedi  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return -1
    lines = (Path(folder) / file).read_text().split("\n")
    number = next(at for at, each in enumerate(lines, 1) if line in each)
    column = lines[number - 1].index(symbol) + 1
    script = jedi.Script(path=Path(folder) / file, project=jedi.Project(folder))
    return len(script.get_references(number, column))


def told_of_reads() -> list[str]:
    lines = []
    for name, package, listed in LISTED:
        found = measured_reads(name, package, listed)
        lines.append(f"reads of {listed:24} recall {found.recall:.1%} of {found.listed} places, precision {found.precision:.1%} of {found.found}")  # fmt: skip
        lines += [f"    in the list, not a read: {each.name} {each.path}:{each.line}" for each in found.missed]
        lines += [f"    doubtful: {each.name} {each.path}:{each.line}" for each in found.doubtful]
    return lines


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
        for compared, file, line, symbol in COMPARED:
            name, _, version = compared.partition("==")
            folder = str(release(name, version))
            by_word = measured(searched, folder, symbol)
            by_name = measured(referenced, folder, file, line, symbol)
            tool, lines = by_word["value"]
            told(f"{tool} {symbol} in {name}", by_word["cpu"], 0, f"s    {lines} lines")
            if by_name["value"] == -1:
                print("jedi: not installed")
            else:
                said = "no answer in time" if by_name["value"] is None else f"{by_name['value']} references"
                told(f"jedi {symbol} in {name}", by_name["cpu"], 0, f"s    {said}, {by_name['mb']} MB")
        if "--quick" not in sys.argv[1:]:
            held = masks_found(cache)
            print(
                f"masks: {len(held)} of {len(MASKS)} found; not {sorted({mask.number for mask in MASKS} - set(held))}"
            )
            print(*told_of_reads(), sep="\n")
    print(json.dumps({"load": os.getloadavg()[0], "missed": missed}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
