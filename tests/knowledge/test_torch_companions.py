"""Packages that go with one torch release."""

from __future__ import annotations

import pytest

from gpuwhy.knowledge.torch_companions import has_new_string_abi, release_for, torch_for


@pytest.mark.parametrize(("companion", "torch", "release"), [
    ("xformers", "2.1.0+cu121", "==0.0.22.post7"), ("xformers", "2.6.0", "==0.0.29.post2"), ("torchvision", "2.8.0", "==0.23.*"), ("torchaudio", "2.7.1", "==2.7.*"),
    ("xformers", "2.99.0", None), ("flash-attn", "2.8.0", None), ("torchvision", "1.13.1", None), ("torchvision", "nonsense", None),
])  # fmt: skip
def test_the_release_for_a_torch(companion: str, torch: str, release: str | None) -> None:
    assert release_for(companion, torch) == release


def test_and_back() -> None:
    assert torch_for("xformers", "0.0.30") == "==2.7.0"
    assert torch_for("torchvision", "0.20.1") == "==2.5.*"
    assert torch_for("xformers", "0.0.1") is None


def test_the_string_type_of_the_wheels() -> None:
    assert [has_new_string_abi(v) for v in ("2.5.1", "2.6.0", "2.7.0", "x")] == [False, None, True, None]
