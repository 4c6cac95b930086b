"""The catalogue of texts on real releases: against a full parse, and on lines that these programs really print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.source.packages import release

from gpuwhy.logs import read_bytes
from gpuwhy.model.event import LogLine
from gpuwhy.source import FolderRoot
from gpuwhy.source.facts import facts_of
from gpuwhy.source.parsing import decoded, parse
from gpuwhy.source.texts import Catalogue, PackageTexts
from gpuwhy.source.texts_fit import Fit, fit
from gpuwhy.source.texts_scanning import Scanner, by_line

RELEASES = (("flashinfer-python", "0.6.18.post1", "flashinfer"), ("vllm", "0.33.0", "vllm"), ("sglang", "0.5.23", "sglang"))  # fmt: skip
COMPARED = ("flashinfer/jit", "vllm/v1/engine", "vllm/v1/worker", "vllm/v1/executor", "sglang/srt/managers")
NOT_FOLLOWED = 4
"""Texts put together over several statements in ways that only a run tells."""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue([PackageTexts(FolderRoot(release(name, version), package)) for name, version, package in RELEASES])


def python_files() -> Iterator[Path]:
    for name, version, _ in RELEASES:
        for folder in COMPARED:
            yield from sorted((release(name, version) / folder).rglob("*.py"))


def test_no_text_that_a_parse_finds_is_missed() -> None:
    scanner = Scanner()
    said = missed = other = 0
    for path in python_files():
        source = path.read_bytes()
        text = decoded(source)
        found = {(each.kind, each.line): each.choices for each in scanner.texts_of(source)}
        for unit in facts_of(parse(text), text.split("\n")).functions:
            for each in unit.says:
                said += 1
                choices = found.get((each.kind, each.line))
                missed += choices is None
                wanted = [line for line in by_line(each.text) if line.literal_size]
                other += choices is not None and not all(_is_in(line.pieces, choices) for line in wanted)
    assert said > 1200
    assert missed == 0
    assert other <= NOT_FOLLOWED


def _is_in(pieces: tuple[str, ...], choices: tuple[object, ...]) -> bool:
    """Where a text is added to later, the catalogue leaves its end open."""
    shown = ["\0".join(getattr(choice, "pieces", ())) for choice in choices]
    return any("\0".join(pieces).strip("\0") in each for each in shown)


@pytest.mark.parametrize(
    ("text", "level", "place", "value"),
    [
        (
            "Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
            "",
            "flashinfer/compilation_context.py:108",
            "SM 12.x requires CUDA >= 12.9",
        ),
        ("RuntimeError: FlashInfer requires GPUs with sm75 or higher", "", "flashinfer/jit/core.py:109", None),
        ("RuntimeError: SM 12.x requires CUDA >= 12.9", "", "flashinfer/compilation_context.py:83", None),
        (
            "Ignore import error when loading sglang.srt.models.kimi_k25: No module named 'tvm_ffi'",
            "warning",
            "sglang/srt/models/registry.py",
            "sglang.srt.models.kimi_k25",
        ),
        ("Scheduler hit an exception: Traceback (most recent call last):", "error", "sglang/srt/managers/scheduler.py", None),
        (
            "CUDA platform is not available because: NVML Shared Library Not Found",
            "debug",
            "vllm/platforms/__init__.py",
            "NVML Shared Library Not Found",
        ),
        (
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': -9}",
            "",
            "vllm/v1/engine/utils.py",
            None,
        ),
        ("1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)", "", "sglang/srt/", None),
    ],
)  # fmt: skip
def test_lines_that_these_programs_print(
    catalogue: Catalogue, text: str, level: str, place: str, value: str | None
) -> None:
    (written,) = catalogue.read([LogLine(1, text, text, level=level)])
    places = [f"{origin.spot.path}:{origin.spot.line}" for origin in written.origins]
    assert any(each.startswith(place) for each in places), places
    assert value is None or written.origins[0].values[0] == value


def test_what_a_handler_hides_is_told(catalogue: Catalogue) -> None:
    text = "Failed to get device capability: SM 12.x requires CUDA >= 12.9."
    (written,) = catalogue.read([LogLine(1, text, text)])
    (origin,) = written.origins
    assert (origin.handler, origin.is_swallowed, origin.version) == (107, True, "0.6.18.post1")


VLLM_0_26_0 = """\
(APIServer pid=3994) INFO 08-03 17:45:41 [api_utils.py:345]   version 0.26.0
(APIServer pid=3994) INFO 08-03 17:45:41 [api_utils.py:345]   model   Qwen/Qwen3-8B
(APIServer pid=3994) INFO 08-03 17:45:41 [api_utils.py:273] non-default args: {'model': 'Qwen/Qwen3-8B'}
(APIServer pid=3994) INFO 08-03 17:45:44 [model.py:623] Resolved architecture: Qwen3ForCausalLM
(APIServer pid=3994) INFO 08-03 17:45:44 [model.py:1788] Using max model len 40960
(EngineCore pid=4140) INFO 08-03 17:45:53 [gpu_worker.py:378] Using V2 Model Runner
(EngineCore pid=4140) INFO 08-03 17:45:54 [model_runner.py:284] Loading model from scratch...
"""


def fit_of_vllm(version: str) -> Fit:
    owner = PackageTexts(FolderRoot(release("vllm", version), "vllm"))
    log = read_bytes(VLLM_0_26_0.encode(), "vllm.log")
    (answer,) = fit([owner], Catalogue([owner]).read(log.lines))
    return answer


def test_a_log_fits_the_release_that_wrote_it() -> None:
    answer = fit_of_vllm("0.26.0")
    # the logo's text is put together elsewhere
    assert (answer.stated, answer.agreeing, answer.differs) == (6, 5, False)


def test_a_log_does_not_fit_another_release() -> None:
    answer = fit_of_vllm("0.33.0")
    assert answer.is_other_release
    moved = {each.stated: each.now.path for each in answer.misplaced if each.now is not None}
    assert moved["model.py:623"] == "vllm/config/model.py"
