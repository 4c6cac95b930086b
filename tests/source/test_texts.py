"""From a line of a log to the place that wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.model.event import LogLine
from gpuwhy.source import Cache, FedRoot, FolderRoot
from gpuwhy.source.texts import Catalogue, PackageTexts, Written, stated_place
from gpuwhy.source.texts_fit import fit

CONTEXT = '''
"""Example:

    raise RuntimeError("only written down here")
"""
import logging
logger = logging.getLogger(__name__)

class Context:
    def __init__(self):
        try:
            self.add()
        except Exception as e:
            logger.warning(f"Failed to get device capability: {e}.")

    def add(self):
        raise RuntimeError("SM 12.x requires CUDA >= 12.9")

def tell(x):
    try:
        x()
    except ValueError:
        logger.error("gave up on it")
        raise
'''
SAMPLER = """
def use(reason):
    logger.info_once(reason)
    logger.warning(
        "FlashInfer sampling unavailable: %s",
        reason,
    )
"""


def package(name: str, **files: str) -> PackageTexts:
    root = FedRoot(name, "1.2")
    root.feed({f"{name}/{path}.py": text.encode() for path, text in files.items()})
    return PackageTexts(root)


@pytest.fixture
def catalogue() -> Catalogue:
    return Catalogue([package("fi", context=CONTEXT), package("engine", sampler=SAMPLER)])


def line(text: str, prefix: str = "", level: str = "", number: int = 1) -> LogLine:
    return LogLine(number, text, prefix + text, level=level)


def places(catalogue: Catalogue, *lines: LogLine) -> list[list[str]]:
    return [
        [f"{origin.spot.path}:{origin.spot.line}" for origin in written.origins] for written in catalogue.read(lines)
    ]


def test_a_warning_with_its_value_function_and_handler(catalogue: Catalogue) -> None:
    (written,) = catalogue.read([line("Failed to get device capability: SM 12.x requires CUDA >= 12.9.")])
    (origin,) = written.origins
    assert (origin.package, origin.version, origin.spot.function) == ("fi", "1.2", "Context.__init__")
    assert (origin.spot.path, origin.spot.line, origin.handler) == ("fi/context.py", 14, 13)
    assert origin.values == ("SM 12.x requires CUDA >= 12.9",)
    assert origin.is_whole
    assert origin.is_swallowed


def test_a_handler_that_raises_again_swallows_nothing(catalogue: Catalogue) -> None:
    (written,) = catalogue.read([line("gave up on it")])
    assert written.origins[0].handler == 22
    assert not written.origins[0].is_swallowed


def test_an_exception_is_found_by_its_message(catalogue: Catalogue) -> None:
    (written,) = catalogue.read([line("RuntimeError: SM 12.x requires CUDA >= 12.9")])
    assert (written.origins[0].spot.line, written.origins[0].kind, written.origins[0].name) == (17, "raise", "RuntimeError")  # fmt: skip


def test_an_example_in_a_docstring_writes_nothing(catalogue: Catalogue) -> None:
    assert places(catalogue, line("RuntimeError: only written down here")) == [[]]


def test_frames_of_a_traceback_are_written_by_nobody(catalogue: Catalogue) -> None:
    frame = line('  File "/x/fi/context.py", line 17, in add')
    quoted = line('    raise RuntimeError("SM 12.x requires CUDA >= 12.9")')
    error = line("RuntimeError: SM 12.x requires CUDA >= 12.9")
    assert places(catalogue, frame, quoted, error) == [[], [], ["fi/context.py:17"]]


def test_a_place_that_the_line_names_decides(catalogue: Catalogue) -> None:
    prefix = "WARNING 11-30 10:04:09 [sampler.py:4] "
    said = line("FlashInfer sampling unavailable: no nvcc", prefix, "warning")
    assert stated_place(said) == "sampler.py:4"
    assert places(catalogue, said) == [["engine/sampler.py:4"]]
    whatever = line("anything at all", "INFO 11-30 10:04:09 [sampler.py:3] ")
    assert places(catalogue, whatever) == [["engine/sampler.py:3"]]


def test_short_texts_are_not_taken_for_lines_that_hold_them(catalogue: Catalogue) -> None:
    held = "the worker has long since said that it gave up on it after some time, and went on"
    assert places(catalogue, line(held), line("")) == [[], []]


def test_the_same_text_in_two_places_names_both() -> None:
    twice = "def f():\n    raise ValueError('too many requests')\ndef g():\n    raise ValueError('too many requests')\n"
    assert places(Catalogue([package("p", m=twice)]), line("ValueError: too many requests")) == [
        ["p/m.py:2", "p/m.py:4"]
    ]


def test_what_was_found_is_kept_by_content(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    (folder / "p").mkdir(parents=True)
    (folder / "p" / "m.py").write_text("print('the first text of this')\n")
    cache = Cache(tmp_path / "cache")
    said = line("the first text of this")
    assert places(Catalogue([PackageTexts(FolderRoot(folder, "p"), cache)]), said) == [["p/m.py:1"]]
    kept = list((tmp_path / "cache" / "texts").rglob("*"))
    assert places(Catalogue([PackageTexts(FolderRoot(folder, "p"), cache)]), said) == [["p/m.py:1"]]
    assert list((tmp_path / "cache" / "texts").rglob("*")) == kept
    (folder / "p" / "m.py").write_text("print('the second text, which is longer')\n")
    assert places(Catalogue([PackageTexts(FolderRoot(folder, "p"), cache)]), said) == [[]]


def test_a_spoilt_cache_is_built_again(tmp_path: Path) -> None:
    root = FedRoot("p")
    root.feed({"p/m.py": b"print('the first text of this')\n"})
    cache = Cache(tmp_path)
    assert PackageTexts(root, cache).files
    for kept in (tmp_path / "texts").rglob("*"):
        if kept.is_file():
            kept.write_bytes(b"\x93junk")
    assert PackageTexts(root, cache).files[0].path == "p/m.py"


def written_at(place: str, text: str, catalogue: Catalogue) -> Written:
    (written,) = catalogue.read([line(text, f"INFO 11-30 10:04:09 [{place}] ")])
    return written


def test_a_log_of_the_installed_release_fits(catalogue: Catalogue) -> None:
    lines = [
        written_at("sampler.py:4", "FlashInfer sampling unavailable: no nvcc", catalogue),
        written_at("sampler.py:3", "any reason", catalogue),
    ]
    (answer,) = fit(catalogue.packages, lines)
    assert (answer.package, answer.stated, answer.agreeing, answer.differs) == ("engine", 2, 2, False)


def test_a_log_of_another_release_does_not(catalogue: Catalogue) -> None:
    lines = [
        written_at("sampler.py:152", "FlashInfer sampling unavailable: no nvcc", catalogue),
        written_at("sampler.py:80", "a text that it had once", catalogue),
        written_at("nowhere.py:1", "of no package here", catalogue),
    ]
    (answer,) = fit(catalogue.packages, lines)
    assert (answer.stated, answer.agreeing, answer.is_other_release) == (2, 0, True)
    assert [(each.stated, each.now.line if each.now else None) for each in answer.misplaced] == [
        ("sampler.py:152", 4),
        ("sampler.py:80", None),
    ]
