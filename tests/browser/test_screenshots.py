"""The seed case looks as it did. ``GPUWHY_GOLDEN=write`` draws the golden images anew; look at them before committing."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from PIL import Image, ImageChops
from tests.browser.conftest import page_of
from tests.browser.opening import Browser

GOLDEN = Path(__file__).parent / "golden"
_TALL = 2600
_SCALE = 2
"""Images are compared and kept at half their size: another release of the browser smooths letters a little differently."""
_LOUD = 32
"""Of 255: a difference in one colour that an eye sees."""
_MOST = 0.004
"""Share of the pixels that may differ so."""


def drawn(png: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(png)).convert("RGB")
    return image.resize((image.width // _SCALE, image.height // _SCALE), Image.Resampling.BOX)


def difference(one: Image.Image, other: Image.Image) -> float:
    """Share of pixels that differ loudly; 1 for images of other sizes."""
    if one.size != other.size:
        return 1.0
    loud = ImageChops.difference(one, other).convert("L").point(lambda value: 255 if value > _LOUD else 0)
    return loud.histogram()[255] / (one.width * one.height)


@pytest.mark.parametrize(
    ("name", "width", "scheme", "media"),
    [
        ("phone", 360, "light", ""),
        ("wide", 1280, "light", ""),
        ("dark", 1280, "dark", ""),
        ("print", 800, "light", "print"),
    ],
)
def test_the_seed_case_looks_as_it_did(browser: Browser, name: str, width: int, scheme: str, media: str) -> None:
    browser.open(page_of("seed"), width, scheme, media)
    taken = drawn(browser.screenshot(_TALL))
    kept = GOLDEN / f"{name}.png"
    if os.environ.get("GPUWHY_GOLDEN") == "write":
        taken.quantize(128, dither=Image.Dither.NONE).save(kept, optimize=True)
    assert difference(taken, Image.open(kept).convert("RGB")) < _MOST


def test_the_comparison_sees_a_missing_picture(browser: Browser) -> None:
    browser.open(page_of("seed"))
    browser.run("document.querySelector('.picture').style.visibility = 'hidden'")
    assert difference(drawn(browser.screenshot(_TALL)), Image.open(GOLDEN / "wide.png").convert("RGB")) > _MOST
