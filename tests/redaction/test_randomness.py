"""A generated key is told from a word, a name and a hash."""

from __future__ import annotations

import pytest

from gpuwhy.redaction import contexts, patterns
from gpuwhy.redaction.randomness import is_encoded_pair, looks_random


@pytest.mark.parametrize(
    "text", ["q7RtLm2Xv9ZpK4nB8wYd", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzz1KEY", "aB3dE6gH9jK2mN5pQ8sT1vW4"]
)
def test_generated_keys_look_random(text: str) -> None:
    assert looks_random(text)


@pytest.mark.parametrize(
    "text",
    [
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "Qwen3-Coder-30B-A3B-Instruct-FP8",
        "/opt/venv/lib/python3.11/site-packages/Torch2",
        "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb",
        "BatchPrefillWithPagedKVCache128",
        "a1B2",
        "",
        "aA1" * 20,
    ],
)
def test_names_hashes_and_repetitions_do_not(text: str) -> None:
    assert not looks_random(text)


def test_docker_keeps_user_and_password_in_base64() -> None:
    assert is_encoded_pair("Ym9iOmh1bnRlcjI=")
    assert is_encoded_pair("Ym9iOmh1bnRlcjI")
    assert not is_encoded_pair("AAAAAAAAAAAAAAAA")
    assert not is_encoded_pair("per_tensor")
    assert not is_encoded_pair("\u2026" * 12)


def test_each_kind_of_secret_has_a_hint_by_which_it_is_looked_for() -> None:
    assert patterns.FORM_HINTS.keys() == patterns.FORMS.keys()
    assert contexts.CONTEXT_HINTS.keys() == contexts.CONTEXTS.keys()
    assert all(hint == hint.lower() for hints in patterns.FORM_HINTS.values() for hint in hints)
    assert all(hint == hint.lower() for hints in contexts.CONTEXT_HINTS.values() for hint in hints)
