"""Secrets go, equal ones to equal tokens; what an expert needs to see stays."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwhy.redaction import Redactor

ALPHANUMERIC = string.ascii_letters + string.digits

FORMS = {
    "hugging face": "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ",
    "openai": "sk-proj-aB3dE6gH9jK2mN5pQ8sT1vW4",
    "nvidia": "nvapi-aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ",
    "github": "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6",
    "gitlab": "glpat-aB3dE6gH9jK2mN5pQ8sT",
    "amazon": "AKIAABCDEFGHIJKLMNOP",
    "json web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "slack": "xoxb-123456789012-abcdefghij",
    "docker": "dckr_pat_aB3dE6gH9jK2mN5pQ8sT1vW4",
}


@pytest.mark.parametrize("secret", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize(
    "frame", ["{}", "loading with {} now", "token='{}',", "[TP0] {}\n", "https://host/x?k={}&y=1", "({})"]
)
def test_secrets_of_known_form_are_taken_out_wherever_they_stand(secret: str, frame: str) -> None:
    redactor = Redactor()
    redacted = redactor.text(frame.format(secret))
    assert secret not in redacted
    assert "<redacted:1>" in redacted
    assert sum(redactor.counts.values()) >= 1


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("DB_PASSWORD=hunter2!", "hunter2!"),
        ("WANDB_API_KEY: 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"),
        ('{"client_secret": "a b c"}', "a b c"),
        ("{'api_key': ['abc123', 'x']}", "abc123"),
        ("ServerArgs(model_path='/m', api_key='let-me-in', port=1)", "let-me-in"),
        ("vllm serve /m --api-key let-me-in --port 8000", "let-me-in"),
        ("sglang --admin-api-key=let-me-in", "let-me-in"),
        ("--hf-token let-me-in", "let-me-in"),
        ("pulling https://bob:hunter2@registry.example/v2", "hunter2"),
        ("redis://:hunter2@10.0.0.1:6379/0", "hunter2"),
        ("GET / HTTP/1.1 Authorization: Bearer abcdefgh1", "abcdefgh1"),
        ("authorization: Basic Ym9iOmh1bnRlcjI=", "Ym9iOmh1bnRlcjI"),
        ("headers={'Authorization': 'Bearer abc.def-1'}", "abc.def-1"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----", "MIIEow"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz", "b3BlbnNz"),
    ],
)  # fmt: skip
def test_secrets_are_known_by_what_stands_around_them(text: str, secret: str) -> None:
    assert secret not in Redactor().text(text)


@pytest.mark.parametrize(
    "text",
    [
        "commit 0123456789abcdef0123456789abcdef01234567",
        "NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: 13.0",
        "TORCH_CUDA_ARCH_LIST=8.0 9.0a 12.0+PTX",
        "FLASHINFER_CUDA_ARCH_LIST=12.0a",
        "undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb",
        "GPU-4e3f5a6b-1c2d-3e4f-5a6b-7c8d9e0f1a2b",
        "max_tokens=512 num_tokens: 77, eos_token_id=2 pad_token='<pad>' bos_token='<s>'",
        "Prefill batch, #new-token: 77, #cached-token: 0, token usage: 0.01",
        "ValueError: tokenizer_path='/models/kimi', skip_tokenizer_init=False",
        "TOKENIZERS_PARALLELISM=false",
        "KeyError: 'model.layers.0.self_attn.k_proj.weight_scale_inv'",
        "key: value",
        "api_key=None, admin_api_key=None, ssl_keyfile=None",
        "    return load(token=token, api_key=self.api_key, password=password)",
        "File \"/opt/venv/lib/python3.11/site-packages/flashinfer/jit/core.py\", line 109, in check_cuda_arch",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "git+https://github.com/sgl-project/sglang@v0.5.15",
        "tcp://127.0.0.1:29500",
        "http://localhost:8000/v1/models",
        "PWD=/root OLDPWD=/opt",
        "fw_attention_kernel_sm90_bf16_head128 e2b_gemm_4096x4096x1024_tn",
        "task-scheduler-0123456789abcdef desk-0123456789abcdef",
        "Basic implementation of the sampler; bearer authentication is off",
        "/root/.cache/flashinfer/0.6.18.post1/120a/cached_ops/sampling/sampling.so",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    redactor = Redactor()
    assert redactor.text(text) == text
    assert redactor.counts == {}


def test_one_secret_has_one_token_in_every_text_of_a_snapshot() -> None:
    redactor = Redactor()
    first = redactor.text("SERVICE_PASSWORD=correct-horse")
    second = redactor.text("login with correct-horse failed")
    other = redactor.text("SERVICE_PASSWORD=battery-staple")
    assert first == "SERVICE_PASSWORD=<redacted:1>"
    assert second == "login with <redacted:1> failed"
    assert other == "SERVICE_PASSWORD=<redacted:2>"
    assert redactor.counts == {"by name": 2, "seen before": 1}


def test_a_secret_is_known_by_its_key_before_the_first_text_is_read() -> None:
    document = {"log": ["starting with correct-horse"], "env": {"SERVICE_SECRET": "correct-horse"}}
    assert "correct-horse" not in json.dumps(Redactor().value(document))


def test_a_short_password_goes_where_it_is_named_and_does_not_eat_other_words() -> None:
    redacted = Redactor().value({"env": {"DB_PASSWORD": "log"}, "text": "the log says log"})
    assert redacted == {"env": {"DB_PASSWORD": "<redacted:1>"}, "text": "the log says log"}


def test_arguments_in_a_list_follow_their_option() -> None:
    redacted = Redactor().value({"command": ["vllm", "serve", "--api-key", "let-me-in", "--max-tokens", "5"]})
    assert redacted == {"command": ["vllm", "serve", "--api-key", "<redacted:1>", "--max-tokens", "5"]}


def test_what_an_option_means_depends_on_its_program() -> None:
    redacted = Redactor().value([["curl", "-u", "bob:hunter22", "https://x"], ["docker", "login", "-p", "hunter23"]])
    assert redacted == [["curl", "-u", "bob:<redacted:1>", "https://x"], ["docker", "login", "-p", "<redacted:2>"]]
    others = [
        ["python", "-u", "a:b"],
        ["docker", "run", "-p", "8000:8000"],
        "docker run -p 8000:8000",
        "journalctl -u x",
    ]
    assert Redactor().value(others) == others


def test_the_values_of_a_kubernetes_secret_go_and_those_of_its_neighbours_stay() -> None:
    manifest = "kind: ConfigMap\ndata:\n  level: debug\n---\nkind: Secret\ndata:\n  hub: bXktdmFsdWU=\n"
    assert Redactor().text(manifest) == manifest.replace("bXktdmFsdWU=", "<redacted:1>")
    document = {"kind": "Secret", "metadata": {"name": "hub"}, "data": {"hub": "bXktdmFsdWU="}}
    assert Redactor().value(document)["data"] == {"hub": "<redacted:1>"}
    assert Redactor().value(document)["metadata"] == {"name": "hub"}


@pytest.mark.parametrize("name", ["ATTENTION_KEY", "forward_pass", "cache_key", "WORKER_AUTH"])
def test_a_name_in_doubt_keeps_a_value_that_is_a_word(name: str) -> None:
    text = f"{name}=per_tensor_group_quantised"
    assert Redactor().text(text) == text


def test_a_private_key_that_a_log_spreads_over_entries_goes_as_a_whole() -> None:
    lines = [
        "before",
        "-----BEGIN PRIVATE KEY-----",
        "MIIEvQIBADANBg",
        "kqhkiG9w0BAQEF",
        "-----END PRIVATE KEY-----",
        "after",
    ]
    redacted = Redactor().value([[line] for line in lines])
    text = json.dumps(redacted)
    assert "MIIEvQ" not in text
    assert "kqhkiG" not in text
    assert "before" in text
    assert "after" in text


def test_a_second_redaction_keeps_the_tokens_of_the_first_and_numbers_above_them() -> None:
    once = {"a": "API_TOKEN=<redacted:7>", "b": "NEW_PASSWORD=correct-horse"}
    assert Redactor().value(once) == {"a": "API_TOKEN=<redacted:7>", "b": "NEW_PASSWORD=<redacted:8>"}


@pytest.mark.parametrize(
    "text",
    [
        "\x00" * 50,
        "\x1b[31mtoken=\x1b[0m",
        "\ud800 token=x\udfff",
        "token=" * 5000,
        "://" * 5000 + "@",
        "a" * 200_000 + "token",
        "key" * 70_000,
        "machine " * 20_000 + "password",
        "curl -u " * 20_000,
        "kind: Secret data:" * 10_000,
        "kind: Secret\ndata: {" + "a: b\n" * 20_000,
        "name: a " * 20_000 + "value: token",
        "?token=" * 20_000,
        "a_" * 90_000 + "auth=",
    ],
)
def test_hostile_text_neither_raises_nor_takes_long(text: str) -> None:
    Redactor().text(text)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=80),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["HF_TOKEN", "name", "password", "log"]) | st.text(max_size=10), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_redacting_twice_changes_nothing(document: Any) -> None:
    once = Redactor().value(document)
    assert Redactor().value(once) == once


SECRETS = st.text(ALPHANUMERIC, min_size=20, max_size=40).filter(lambda text: not text.isdigit() and len(set(text)) > 4)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(
        ["HF_TOKEN", "OPENAI_API_KEY", "db_password", "client-secret", "AWS_SECRET_ACCESS_KEY", "X_AUTH_TOKEN"]
    ),
    SECRETS,
    st.sampled_from(
        ["{n}={s}", "{n}: {s}", '"{n}": "{s}"', "export {n}='{s}'", "--{n} {s}", "--{n}={s} --port 1", "x {n}={s}, y"]
    ),
    st.text(max_size=30),
)
def test_no_secret_under_a_telling_name_leaks(name: str, secret: str, frame: str, around: str) -> None:
    text = f"{around} {frame.format(n=name, s=secret)} {around} and again {secret}"
    redactor = Redactor()
    assert secret not in redactor.text(text)
    assert secret not in redactor.text(f"later: {secret}")
    assert secret not in json.dumps(Redactor().value([{"log": f"before {secret}"}, {name: secret}, [secret]]))
