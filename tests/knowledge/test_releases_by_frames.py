"""The release from the frames of a traceback, on real ones of several Pythons and on tables of the tests' own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwhy.knowledge import fingerprints
from gpuwhy.knowledge.releases_by_frames import MAX_FRAMES, PACKAGES, located_in, releases_of
from gpuwhy.logs import find_incidents, read_bytes
from gpuwhy.model.event import Frame

TRACEBACKS = Path(__file__).parent / "tracebacks"
"""Printed by these Pythons, which ran the packages of RAN."""
RAN = {
    "python3.10": {"triton": "3.6.0", "transformers": "5.10.2"},
    "python3.11": {
        "torch": "2.13.0",
        "transformers": "4.57.3",
        "flashinfer-python": "0.6.11.post2",
        "sglang": "0.5.15",
    },
    "python3.12": {"triton": "3.6.0", "transformers": "5.10.2"},
    "python3.13": {"triton": "3.6.0", "transformers": "5.10.2"},
}

SAMPLER = (
    Frame("/v/site-packages/flashinfer/sampling.py", 1820, "top_k_mask_logits", "return get_sampling_module().top_k_mask_logits("),
    Frame("/v/site-packages/flashinfer/sampling.py", 68, "get_sampling_module", "module = gen_sampling_module().build_and_load()"),
    Frame("/v/site-packages/flashinfer/jit/sampling.py", 22, "gen_sampling_module", "return gen_jit_spec("),
    Frame("/v/site-packages/flashinfer/jit/core.py", 413, "gen_jit_spec", "check_cuda_arch()"),
    Frame("/v/site-packages/flashinfer/jit/core.py", 108, "check_cuda_arch", 'raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")'),
)  # fmt: skip


def frames_in(text: bytes) -> list[Frame]:
    events = find_incidents([read_bytes(text, "log")]).events
    return [frame for event in events for exception in event.exceptions for frame in exception.frames]


@pytest.mark.parametrize("python", RAN)
def test_every_frame_of_a_wheel_that_really_ran_fits_its_release(python: str) -> None:
    matches = releases_of(frames_in((TRACEBACKS / f"{python}.log").read_bytes()))
    assert set(matches) == set(RAN[python])
    for package, version in RAN[python].items():
        assert not matches[package].foreign
        assert version in matches[package].releases
        assert len(matches[package].agreeing) >= 3


@pytest.mark.parametrize("python", ["python3.10", "python3.12", "python3.13"])
def test_a_release_that_no_other_looks_like_is_found_alone(python: str) -> None:
    assert releases_of(frames_in((TRACEBACKS / f"{python}.log").read_bytes()))["triton"].releases == ("3.6.0",)


def test_the_sampler_of_flashinfer_fits_the_releases_that_have_its_lines_and_no_other() -> None:
    match = releases_of(SAMPLER)["flashinfer-python"]
    assert match.releases == (
        "0.6.11.post1", "0.6.11.post2", "0.6.11.post3", "0.6.12rc1", "0.6.12rc2", "0.6.12rc3", "0.6.12",
    )  # fmt: skip
    assert not match.is_oldest
    assert not match.is_newest
    assert set(match.agreeing) == set(SAMPLER)


def test_the_frame_that_says_most_comes_first() -> None:
    narrow, wide = releases_of(SAMPLER[:1]), releases_of(SAMPLER[2:3])
    assert len(narrow["flashinfer-python"].releases) < len(wide["flashinfer-python"].releases)
    assert releases_of(SAMPLER[2:3] + SAMPLER[:1])["flashinfer-python"].agreeing[0] == SAMPLER[0]


def test_one_edited_line_and_nothing_is_said() -> None:
    edited = Frame(SAMPLER[4].path, SAMPLER[4].line, SAMPLER[4].function, "raise RuntimeError(my_own_message)")
    match = releases_of([*SAMPLER[:4], edited])["flashinfer-python"]
    assert match.releases == ()
    assert match.foreign == (edited,)


def test_frames_of_two_installations_fit_no_release_together() -> None:
    other = Frame(SAMPLER[4].path, 109, SAMPLER[4].function, SAMPLER[4].code)
    assert releases_of([other])["flashinfer-python"].releases
    match = releases_of([*SAMPLER, other])["flashinfer-python"]
    assert (match.releases, match.foreign) == ((), ())
    assert other in match.agreeing


def test_the_same_text_in_another_function_is_foreign() -> None:
    frame = Frame(SAMPLER[4].path, 108, "gen_jit_spec", SAMPLER[4].code)
    assert releases_of([frame])["flashinfer-python"].foreign == (frame,)


def test_a_file_that_no_release_has_is_foreign_where_pip_installs() -> None:
    frame = Frame("/v/site-packages/flashinfer/my_own.py", 3, "f", "raise ValueError(1)")
    match = releases_of([*SAMPLER, frame])["flashinfer-python"]
    assert (match.releases, match.foreign) == ((), (frame,))


def test_a_script_of_the_user_in_a_folder_of_the_same_name_is_not() -> None:
    script = Frame("/home/me/flashinfer/serve.py", 3, "<module>", "main()")
    assert releases_of([*SAMPLER, script]) == releases_of(SAMPLER)


def test_a_file_whose_lines_are_not_recorded_says_nothing() -> None:
    kernel = Frame("/v/site-packages/vllm/model_executor/models/gemma2.py", 99999, "forward", "x = self.norm(x)")
    assert releases_of([kernel]) == {}


def test_pasted_text_may_have_lost_blanks_and_its_end() -> None:
    long = SAMPLER[4].code
    for code in (long.replace(" ", "  "), long.replace(" ", ""), long + "   "):
        frame = Frame(SAMPLER[4].path, 108, "check_cuda_arch", code)
        assert not releases_of([frame])["flashinfer-python"].foreign


@pytest.mark.parametrize(
    "frame",
    [
        Frame(SAMPLER[0].path, SAMPLER[0].line, SAMPLER[0].function),
        Frame(SAMPLER[0].path, None, SAMPLER[0].function, SAMPLER[0].code),
        Frame(SAMPLER[0].path, 70, SAMPLER[0].function, "self.value = 1"),
        Frame("/usr/lib/python3.12/json/decoder.py", 1, "f", "raise ValueError(1)"),
        Frame("<string>", 1, "<module>", "f()"),
    ],
    ids=["no text", "no line", "a kind of line that is not recorded", "another package", "no file"],
)
def test_a_frame_that_cannot_tell_says_nothing(frame: Frame) -> None:
    assert releases_of([frame]) == {}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py", ("vllm", "v1/engine/core.py")),
        ("/usr/lib/python3/dist-packages/torch/nn/modules/module.py", ("torch", "nn/modules/module.py")),
        ("/sgl-workspace/sglang/python/sglang/srt/utils.py", ("sglang", "srt/utils.py")),
        ("C:\\\\venv\\\\Lib\\\\site-packages\\\\flashinfer\\\\jit\\\\core.py".replace("\\\\", "\\"), ("flashinfer-python", "jit/core.py")),
        ("/src/vllm/vllm/attention/triton/ops.py", ("vllm", "attention/triton/ops.py")),
        ("/v/site-packages/vllm/third_party/triton/x.py", ("vllm", "third_party/triton/x.py")),
        ("/v/site-packages/numpy/torch/x.py", None),
        ("/v/site-packages/vllm", None),
        ("vllm", None),
        ("", None),
    ],
)  # fmt: skip
def test_where_a_file_belongs(path: str, place: tuple[str, str] | None) -> None:
    assert located_in(path) == place


def test_no_table_is_read_for_other_frames() -> None:
    fingerprints.table.cache_clear()
    assert releases_of([Frame("/v/site-packages/numpy/core.py", 1, "f", "f()")]) == {}
    assert fingerprints.table.cache_info().currsize == 0


def test_thousands_of_frames_are_looked_up_up_to_a_limit() -> None:
    frames = [Frame(SAMPLER[0].path, number, "f", "raise ValueError(1)") for number in range(1, 5000)]
    assert len(releases_of(frames)["flashinfer-python"].foreign) <= MAX_FRAMES


@settings(max_examples=60)
@given(
    path=st.sampled_from([frame.path for frame in SAMPLER]) | st.text(max_size=80),
    line=st.none() | st.integers(-5, 10**9),
    function=st.text(max_size=40),
    code=st.text(max_size=200),
)
def test_any_frame_gets_an_answer(path: str, line: int | None, function: str, code: str) -> None:
    for match in releases_of([Frame(path, line, function, code)]).values():
        assert set(match.releases) <= set(match.known)


def test_the_shipped_tables_are_small_and_complete() -> None:
    assert {path.stem for path in fingerprints.FOLDER.glob("*.frames")} == set(PACKAGES.values())
    assert sum(path.stat().st_size for path in fingerprints.FOLDER.iterdir()) < 3_000_000
    for folder, package in PACKAGES.items():
        table = fingerprints.table(package)
        assert (table.folder, table.package) == (folder, package)
        assert len(set(table.releases)) == len(table.releases) >= 8
