"""Requests that the hub or a registry refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

ID = "gated-or-auth"

GATED = """Traceback (most recent call last):
  File "/usr/local/lib/python3.12/dist-packages/vllm/transformers_utils/config.py", line 300, in get_config
OSError: You are trying to access a gated repo.
Make sure to have access to it at https://huggingface.co/meta-llama/Llama-3.2-1B.
401 Client Error. (Request ID: Root=1-xx)

Cannot access gated repo for url https://huggingface.co/meta-llama/Llama-3.2-1B/resolve/main/config.json.
Access to model meta-llama/Llama-3.2-1B is restricted. You must have access to it and be authenticated to access it. Please log in.
"""
PRIVATE = """huggingface_hub.utils._errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-66b)
Repository Not Found for url: https://huggingface.co/api/models/acme/private-model.
Please make sure you specified the correct `repo_id` and `repo_type`.
If you are trying to access a private or gated repo, make sure you are authenticated.
Invalid username or password.
"""


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        (GATED, "proven"),
        ("huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1)\nAccess to model meta-llama/Llama-3.1-8B is restricted and you are not in the authorized list. Visit https://huggingface.co/meta-llama/Llama-3.1-8B to ask for access.\n", "proven"),
        (PRIVATE, "likely"),
        ("requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/google/gemma-2-9b-it/resolve/main/config.json\n", "likely"),
        ("Error response from daemon: pull access denied for acme/vllm, repository does not exist or may require 'docker login': denied: requested access to the resource is denied\n", "likely"),
        ("Exception: NGC_API_KEY is not set; cannot download the profile\n", "likely"),
    ],
)  # fmt: skip
def test_refusals_in_several_words(judge_report: Judge, text: str, certainty: Any) -> None:
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty.value) == (ID, certainty)


def test_the_program_that_asks_is_named_and_its_token_asked_for(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(GATED), ID)
    assert found.component == "vllm"
    assert found.evidence[0].quote == "OSError: You are trying to access a gated repo."
    assert [missing.key for missing in found.missing] == ["env.HF_TOKEN"]
    assert (found.remedies[0].kind, found.remedies[0].name) == ("env", "HF_TOKEN")


def test_a_known_absent_token_is_evidence_and_is_not_asked_for_again(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(GATED, {"env.HF_TOKEN": None}), ID)
    assert not found.missing
    assert any("not set" in evidence.statement for evidence in found.evidence)


def test_a_worker_gets_the_token_as_a_parameter(judge_report: Judge, finding: Find) -> None:
    text = "".join(f"(EngineCore_0 pid=12) {line}\n" for line in GATED.splitlines() if line)
    names = [remedy.name for remedy in finding(judge_report(text), ID).remedies]
    assert "hf_token in engine_kwargs" in names


def test_an_image_is_pulled_after_a_login(judge_report: Judge, finding: Find) -> None:
    text = 'Error response from daemon: Head "https://nvcr.io/v2/nim/meta/llama3/manifests/latest": unauthorized: <html>\n<head><title>401 Authorization Required</title></head>\n'
    found = finding(judge_report(text), ID)
    assert found.component == "container-image"
    assert "nvcr.io" in found.remedies[0].value


def test_a_name_that_nobody_finds_is_only_possible(judge_report: Judge, finding: Find) -> None:
    text = "OSError: acme/Modle-7B is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'\nIf this is a private repository, make sure to pass a token having permission to this repo.\n"
    found = finding(judge_report(text), ID)
    assert found.certainty.value == "possible"
    assert "weights-missing-or-corrupt" in found.rivals


def test_a_hub_that_is_not_reached_is_another_cause(judge_report: Judge) -> None:
    text = """OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.
Checkout your internet connection or see how to run the library in offline mode at 'https://huggingface.co/docs/transformers/installation#offline-mode'.
"""
    causes = [found.cause for found in judge_report(text).findings]
    assert causes[0] == "download-blocked"
    assert ID not in causes


@pytest.mark.parametrize(
    "text",
    [
        'INFO:     127.0.0.1:51234 - "POST /v1/chat/completions HTTP/1.1" 401 Unauthorized\n',
        "Warning: You are sending unauthenticated requests to the HF Hub. Please set a HF_TOKEN to enable higher rate limits and faster downloads.\n",
        "openai.AuthenticationError: Error code: 401 - {'error': {'message': 'Incorrect API key provided'}}\n",
    ],
)
def test_other_refusals_are_not_the_hubs(judge_report: Judge, text: str) -> None:
    assert ID not in [found.cause for found in judge_report(text).findings]


def test_who_is_known_to_the_hub_needs_the_right_before_a_token(judge_report: Judge, finding: Find) -> None:
    text = (
        "403 Client Error. (Request ID: Root=1-67f6;ab)\n\n"
        "Cannot access gated repo for url https://huggingface.co/google/gemma-3-27b-it/resolve/main/config.json.\n"
        "Access to model google/gemma-3-27b-it is restricted and you are not in the authorized list. Visit https://huggingface.co/google/gemma-3-27b-it to ask for access.\n"
    )
    found = finding(judge_report(text), "gated-or-auth")
    assert found.remedies[0].name == "model access"


def test_a_registry_that_refuses_a_token_was_reached(judge_report: Judge) -> None:
    text = (
        'Warning  Failed  3s  kubelet  Failed to pull image "registry.example.org/llm/vllm:0.9": failed to resolve reference "registry.example.org/llm/vllm:0.9": '
        "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://registry.example.org/jwt/auth: 403 Forbidden\n"
    )
    causes = [found.cause for found in judge_report(text).findings]
    assert causes[0] == "gated-or-auth"
    assert "download-blocked" not in causes


def test_git_is_asked_for_a_login(judge_report: Judge, finding: Find) -> None:
    text = "Cloning into 'Llama-3.1-8B-Instruct'...\nfatal: could not read Username for 'https://huggingface.co': No such device or address\n"
    assert finding(judge_report(text), "gated-or-auth")


def test_a_login_that_another_server_asks_for_is_not_the_hub_s(judge_report: Judge) -> None:
    text = "fatal: could not read Username for 'https://git.example.org': No such device or address\n"
    assert "gated-or-auth" not in [found.cause for found in judge_report(text).findings]
