"""What the readers find is what cuobjdump and the commands that made the files say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.binaries.truth import HERE, WORDS, Known, images_of, known_files, load_skeleton, skeletons

from gpuwhy.binaries.device_code import REGISTERED, RESOURCE
from gpuwhy.binaries.examining import examine
from gpuwhy.binaries.fatbin import options_of, source_name_of
from gpuwhy.binaries.reading import FileSource, MemorySource

KNOWN = known_files()


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: f"{known.path.parent.name}/{known.path.name}")
def test_every_image_of_a_known_file_is_found(known: Known) -> None:
    with FileSource(str(known.path)) as source:
        binary = examine(source)
    assert images_of(binary) == known.images
    assert sum(1 for _ in binary.device.containers()) == known.containers
    versions = {image.code.version for image in binary.device.images() if image.code.kind == "ptx"}
    assert versions == set(known.ptx)
    # of the known files only one is damaged: its section table was removed, and it says so
    assert binary.is_complete == ("nosections" not in known.path.name), binary.problems + binary.device.problems


def test_a_section_table_that_was_removed_costs_nothing_but_certainty() -> None:
    whole = (HERE / "libk.so").read_bytes()
    cut = bytearray(whole)
    cut[40:48] = bytes(8)
    cut[60:64] = bytes(4)
    binary = examine(MemorySource(bytes(cut), "libk.so"))
    assert images_of(binary) == images_of(examine(MemorySource(whole, "libk.so")))
    assert not binary.is_complete
    assert binary.dynamic.needed[0] == "libcudart.so.13"


def test_options_and_source_name_stand_in_an_entry_or_a_concatenated_one() -> None:
    with FileSource(str(HERE / "concat_lineinfo_opts.fatbin")) as source:
        images = list(examine(source).device.images())
        assert {source_name_of(source, image) for image in images} == {"k.cu"}
        options = {options_of(source, image) for image in images if image.code.kind == "ptx"}
    assert any("maxrregcount" in text for text in options), options


def test_real_libraries_by_their_headers() -> None:
    """Those that lie beside the checkout; ``make wheels`` reads whole ones anywhere."""
    for path, known in skeletons().items():
        check_headers(path, known)


def check_headers(path: Path, known: dict[str, Any]) -> None:
    binary = examine(load_skeleton(path), path.stem, searches=0)
    assert images_of(binary, REGISTERED) == known["images"]
    containers = [container for _, container in binary.device.containers(REGISTERED)]
    assert len(containers) == known["containers"]
    assert sum(len(container.images) for container in containers) == known["entries"]
    resource = known["cask_resource"]
    if resource:
        assert images_of(binary, RESOURCE) == resource["images"]
        assert sum(1 for _ in binary.device.containers(RESOURCE)) == resource["containers"]
    sets: Counter[tuple[str, ...]] = Counter()
    for container in containers:
        names = {f"{WORDS[image.code.kind]}:{image.code.arch}{image.code.suffix}" for image in container.images}
        sets[tuple(sorted(names))] += 1
    # the commonest sets are known
    for number, listed in known["per_container_sets"]:
        assert sets[tuple(sorted(listed))] == number, listed
