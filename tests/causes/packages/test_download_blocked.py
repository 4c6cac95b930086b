"""download-blocked: what could not be fetched, by whose words, and what takes its place."""

from __future__ import annotations

import pytest
from tests.causes.packages.texts import Find, Judge, names, remedies, ruled_out

from gpuwhy.model.finding import Certainty

CAUSE = "download-blocked"
UNREACHABLE = "requests.exceptions.ConnectionError: (MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /api/models/Qwen/Qwen3-8B (Caused by NewConnectionError('Failed to establish a new connection: [Errno 101] Network is unreachable'))\"))\n"
HEADER = "AssertionError: BatchedGemmEnums.h not found\n"
CUBIN = (
    "2025-07-29 00:56:18,372 - INFO - flashinfer.jit: Fetching cubin 29053574/fmha/trtllm-gen/fmhaSm100Kernel from https://artifact-host.example/repo/29053574.cubin\n"
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
)


@pytest.mark.parametrize(("text", "component", "remedy"), [
    (UNREACHABLE, "model-files", ("config", "network egress", "allow huggingface.co")),
    ("OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.\n", "model-files", ("env", "HF_HOME", "folder with a filled cache")),
    ("openai_harmony.HarmonyError: error downloading or loading vocab file: failed to download or load vocab file\n", "openai-harmony", ("env", "TIKTOKEN_ENCODINGS_BASE", "folder with the vocabulary files")),
    ("Error: pull model manifest: Get \"https://registry.ollama.ai/v2/library/llama3/manifests/latest\": dial tcp: lookup registry.ollama.ai on 127.0.0.53:53: server misbehaving\n", "model-files", ("config", "network egress", "allow registry.ollama.ai")),
    ("Error response from daemon: Get \"https://nvcr.io/v2/\": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)\n", "container-image", ("container", "image", "pulled elsewhere, or from a mirror")),
    ("huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/x/tree/main\n", "model-files", ("env", "HF_TOKEN", "a token")),
    # what git of a real system says of a host that does not exist
    ("fatal: unable to access 'https://github.com/NVIDIA/cutlass.git/': Could not resolve host: github.com\n", "network", ("config", "network egress", "allow github.com")),
    ("ssl.SSLCertVerificationError\nurllib.error.URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate in certificate chain (_ssl.c:1000)>\n", "network", ("env", "REQUESTS_CA_BUNDLE", "file with the network's own certificate")),
    (CUBIN, "flashinfer-cubin", ("package", "flashinfer-cubin", "match:flashinfer-python")),
    (HEADER, "flashinfer-cubin", ("env", "FLASHINFER_CUBIN_DIR", "pre-filled directory")),
])  # fmt: skip
def test_what_is_missing_and_what_takes_its_place(
    judge_report: Judge, finding: Find, text: str, component: str, remedy: tuple[str, str, str]
) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.component == component
    assert remedy in remedies(found)


def test_a_stated_refusal_of_the_network_proves_it(judge_report: Judge, finding: Find) -> None:
    assert finding(judge_report(UNREACHABLE), CAUSE).certainty is Certainty.PROVEN


@pytest.mark.parametrize("text", [CUBIN, HEADER])
def test_a_hidden_fetch_asks_whether_the_server_answers(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert found.missing[0].key.startswith("http.")
    assert "curl" in found.missing[0].command


@pytest.mark.parametrize("answer", ["unreachable", "403", 502])
def test_a_server_that_does_not_answer_proves_it(judge_report: Judge, finding: Find, answer: object) -> None:
    found = finding(judge_report(HEADER, {"http.artifact-host.example": answer}), CAUSE)
    assert found.certainty is Certainty.PROVEN


def test_a_server_that_answers_rules_it_out(judge_report: Judge) -> None:
    assert CAUSE in ruled_out(judge_report(CUBIN, {"http.artifact-host.example": "200"}))


def test_an_offline_variable_is_unset_first(judge_report: Judge, finding: Find) -> None:
    text = "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and outgoing traffic has been disabled.\n"
    found = finding(judge_report(text, {"env.HF_HUB_OFFLINE": "1"}), CAUSE)
    assert remedies(found)[0] == ("env", "HF_HUB_OFFLINE", "unset")


def test_a_toolkit_for_the_header_is_told_to_be_vain(judge_report: Judge, finding: Find) -> None:
    assert "toolkit" in finding(judge_report(HEADER), CAUSE).not_remedies[0].what


@pytest.mark.parametrize("text", [
    "huggingface_hub.errors.GatedRepoError: 401 Client Error.\nrequests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/meta-llama/x/resolve/main/config.json\n",
    "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://huggingface.co/api/models/no/such\nRepositoryNotFoundError: 404 Client Error.\n",
    "requests.exceptions.ConnectionError: HTTPConnectionPool(host='127.0.0.1', port=30000): Max retries exceeded with url: /health (Caused by NewConnectionError('[Errno 111] Connection refused'))\n",
    "fatal error: curand_kernel.h: No such file or directory\n",
    "[rank1]: torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (node-0, 29500). [Errno -3] Temporary failure in name resolution, TCPStore\n",
    "WARNING usage_lib.py: HTTPSConnectionPool(host='stats.vllm.ai', port=443): Max retries exceeded with url: / (Caused by NameResolutionError)\n",
    "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge\n",
])  # fmt: skip
def test_near_misses_are_others(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_the_store_of_chunks_refuses(judge_report: Judge, finding: Find) -> None:
    text = (
        "RuntimeError: Data processing error: CAS service error : Reqwest Error: HTTP status client error (403 Forbidden), "
        "domain: https://cas-server.xethub.hf.co/v1/reconstructions/9f2\n"
    )
    judged = judge_report(text)
    found = finding(judged, "download-blocked")
    assert judged.findings[0] is found
    assert ("env", "HF_HUB_DISABLE_XET") in [(each.kind, each.name) for each in found.remedies]
