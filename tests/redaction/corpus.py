"""The corpus that the bars of redaction are measured on: planted secrets of many kinds, and harmless tokens.

Everything is drawn from one seed, so a failure can be read again. Nothing in here was ever a working secret.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

UPPER, LOWER, DIGITS = string.ascii_uppercase, string.ascii_lowercase, string.digits
MIXED = UPPER + LOWER + DIGITS
HEX = "0123456789abcdef"
PER_KIND = 12


class Planted(NamedTuple):
    """One secret of a kind, and the value of a snapshot that holds it."""

    kind: str
    secret: str
    document: Any


class Draw:
    """Random texts of the alphabets that secrets are made of; each holds a digit where its alphabet has digits."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, alphabet: str, length: int) -> str:
        text = "".join(self.random.choice(alphabet) for _ in range(length))
        if "0" in alphabet and not any(each.isdigit() for each in text):
            text = text[:-1] + self.random.choice(DIGITS)
        return text

    def mixed(self, length: int) -> str:
        return self.of(MIXED, length)

    def hexadecimal(self, length: int) -> str:
        return self.of(HEX, length)

    def base64(self, count: int) -> str:
        return base64.b64encode(self.random.randbytes(count)).decode()

    def base64url(self, count: int) -> str:
        return base64.urlsafe_b64encode(self.random.randbytes(count)).decode().rstrip("=")

    def password(self) -> str:
        """As a person or a generator makes it."""
        word = self.random.choice(["correct", "Summer", "winter", "Dragon", "staple", "qwerty", "Coffee"])
        return word + self.random.choice("!-_.#%+") + self.mixed(self.random.randint(3, 10))

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))


Make = Callable[[Draw], str]
Frame = Callable[[str, Draw], Any]

PLAIN: tuple[Frame, ...] = (
    lambda s, _: f"loading weights with {s} from the hub",
    lambda s, _: ["vllm", "serve", "/models/x", "--anything", s],
    lambda s, _: {"journal": {"entries": [[1.5, 7, "python", 6, "stdout", f"[TP0] got '{s}', going on"]]}},
    lambda s, _: {"environment": {"variables": {"EXTRA_ARGS": f"--x {s} --port 8000"}}},
    lambda s, _: f"GET https://api.example.com/v1/models?k={s}&page=2 HTTP/1.1",
    lambda s, _: f'{{"message": "refused ({s})"}}',
)
"""Where a secret of known form may turn up: nothing around it says what it is."""


def _named(*names: str) -> tuple[Frame, ...]:
    """Ways in which a value stands under a name."""
    return (
        lambda s, d: f"{d.random.choice(names)}={s}",
        lambda s, d: f"export {d.random.choice(names)}='{s}'",
        lambda s, d: f'Environment="{d.random.choice(names)}={s}" "PORT=8000"',
        lambda s, d: json.dumps({d.random.choice(names): s, "port": 8000}),
        lambda s, d: f"  {d.random.choice(names)}: {s}\n  replicas: 2\n",
        lambda s, d: {d.random.choice(names): s},
        lambda s, d: [f"{d.random.choice(names)}={s}", "LANG=C"],
        lambda s, d: {"command": ["docker", "run", "-e", f"{d.random.choice(names)}={s}", "image"]},
        lambda s, d: {"name": d.random.choice(names), "value": s},
    )


def _pem(label: str) -> tuple[Frame, ...]:
    begin, end = f"-----BEGIN {label}-----", f"-----END {label}-----"
    return (
        lambda s, _: f"{begin}\n{s}\n{end}\n",
        lambda s, _: [[begin], [s], [end]],
        lambda s, _: json.dumps({"private_key": f"{begin}\n{s}\n{end}\n"}),
        lambda s, _: f"reading key: {begin} {s}",
    )


def _frames(*texts: str) -> tuple[Frame, ...]:
    return tuple((lambda s, _, text=text: text.replace("@@", s)) for text in texts)


def _jwt(d: Draw) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"RS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(b'{"sub":"' + d.mixed(12).encode() + b'"}').decode().rstrip("=")
    return f"{head}.{body}.{d.base64url(32)}"


def _pair(d: Draw) -> str:
    return base64.b64encode(f"robot{d.mixed(3)}:{d.password()}".encode()).decode()


KINDS: dict[str, tuple[Make, tuple[Frame, ...]]] = {
    "Hugging Face": (lambda d: "hf_" + d.of(UPPER + LOWER, 34), PLAIN),
    "OpenAI project": (lambda d: "sk-proj-" + d.base64url(54), PLAIN),
    "OpenAI": (lambda d: "sk-" + d.mixed(20) + "T3BlbkFJ" + d.mixed(20), PLAIN),
    "Anthropic": (lambda d: "sk-ant-api03-" + d.base64url(60) + "AA", PLAIN),
    "OpenRouter": (lambda d: "sk-or-v1-" + d.hexadecimal(64), PLAIN),
    "DeepSeek": (lambda d: "sk-" + d.hexadecimal(32), PLAIN),
    "NVIDIA": (lambda d: "nvapi-" + d.base64url(48), PLAIN),
    "Groq": (lambda d: "gsk_" + d.mixed(52), PLAIN),
    "Replicate": (lambda d: "r8_" + d.mixed(37), PLAIN),
    "Perplexity": (lambda d: "pplx-" + d.mixed(48), PLAIN),
    "xAI": (lambda d: "xai-" + d.mixed(80), PLAIN),
    "RunPod": (lambda d: "rpa_" + d.of(UPPER + DIGITS, 44), PLAIN),
    "Together": (lambda d: "tgp_v1_" + d.base64url(32), PLAIN),
    "Weights & Biases": (lambda d: d.hexadecimal(40), _named("WANDB_API_KEY")),
    "Weights & Biases v1": (lambda d: "wandb_v1_" + d.mixed(77), PLAIN),
    "GitHub": (lambda d: d.random.choice(["ghp_", "gho_", "ghs_", "ghu_", "ghr_"]) + d.mixed(36), PLAIN),
    "GitHub fine-grained": (lambda d: "github_pat_" + d.mixed(22) + "_" + d.mixed(59), PLAIN),
    "GitLab": (lambda d: d.random.choice(["glpat-", "gldt-", "glrt-", "glcbt-64_", "glptt-"]) + d.mixed(20), PLAIN),
    "npm": (lambda d: "npm_" + d.mixed(36), PLAIN),
    "PyPI": (lambda d: "pypi-AgEIcHlwaS5vcmc" + d.base64url(80), PLAIN),
    "Docker Hub": (lambda d: "dckr_pat_" + d.base64url(20), PLAIN),
    "Amazon key id": (lambda d: d.random.choice(["AKIA", "ASIA"]) + d.of(UPPER + "234567", 16), PLAIN),
    "Amazon secret key": (lambda d: d.base64(30), _named("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key", "secretAccessKey")),
    "Amazon session": (lambda d: "IQoJb3JpZ2luX2Vj" + d.base64(200), _named("AWS_SESSION_TOKEN", "aws_session_token")),
    "signed URL": (lambda d: d.hexadecimal(64), _frames("GET https://b.s3.amazonaws.com/model.safetensors?X-Amz-Date=20261130T090000Z&X-Amz-Signature=@@ 403", "https://storage.googleapis.com/b/w.bin?X-Goog-Expires=600&X-Goog-Signature=@@")),
    "Google API": (lambda d: "AIza" + d.of(MIXED + "_-", 35), PLAIN),
    "Google OAuth": (lambda d: "ya29.a0" + d.base64url(120), PLAIN),
    "Google client secret": (lambda d: "GOCSPX-" + d.of(MIXED + "_-", 28), PLAIN),
    "Azure storage": (lambda d: d.base64(64), _frames("DefaultEndpointsProtocol=https;AccountName=models;AccountKey=@@;EndpointSuffix=core.windows.net", 'AZURE_STORAGE_CONNECTION_STRING="DefaultEndpointsProtocol=https;AccountName=x;AccountKey=@@"')),
    "Azure SAS": (lambda d: d.base64(32).replace("+", "%2B").replace("/", "%2F").replace("=", "%3D"), _frames("https://m.blob.core.windows.net/w/model.bin?sv=2022-11-02&se=2026-12-01&sr=b&sp=r&sig=@@", "AZURE_STORAGE_SAS_TOKEN=sv=2022-11-02&ss=b&sig=@@")),
    "Azure client": (lambda d: d.mixed(3) + "8Q~" + d.of(MIXED + "_.-", 34), _named("AZURE_CLIENT_SECRET", "clientSecret", "client_secret")),
    "Alibaba": (lambda d: "LTAI5t" + d.mixed(18), PLAIN),
    "Slack": (lambda d: f"xoxb-{d.of(DIGITS, 12)}-{d.of(DIGITS, 13)}-{d.mixed(24)}", PLAIN),
    "Slack webhook": (lambda d: d.mixed(24), _frames("posting to https://hooks.slack.com/services/T0ABCDE12/B0ABCDE34/@@", "ALERT_URL=https://hooks.slack.com/services/T0ABCDE12/B0ABCDE34/@@")),
    "Discord webhook": (lambda d: d.of(MIXED + "_-", 68), _frames("POST https://discord.com/api/webhooks/112233445566778899/@@ 204", "hook: https://discordapp.com/api/webhooks/112233445566778899/@@")),
    "Telegram": (lambda d: d.of(DIGITS[1:], 10) + ":AA" + d.of(MIXED + "_-", 33), (*PLAIN, *_frames("https://api.telegram.org/bot@@/sendMessage"))),
    "Stripe": (lambda d: "sk_live_" + d.mixed(24), PLAIN),
    "SendGrid": (lambda d: "SG." + d.base64url(16) + "." + d.base64url(32), PLAIN),
    "Vault": (lambda d: d.random.choice(["hvs.", "hvb."]) + d.base64url(60), PLAIN),
    "Databricks": (lambda d: "dapi" + d.hexadecimal(32), PLAIN),
    "DigitalOcean": (lambda d: "dop_v1_" + d.hexadecimal(64), PLAIN),
    "Grafana": (lambda d: "glsa_" + d.mixed(32) + "_" + d.hexadecimal(8), PLAIN),
    "Tailscale": (lambda d: "tskey-auth-" + d.mixed(12) + "-" + d.mixed(32), PLAIN),
    "New Relic": (lambda d: "NRAK-" + d.of(UPPER + DIGITS, 27), PLAIN),
    "Linear": (lambda d: "lin_api_" + d.mixed(40), PLAIN),
    "Fireworks": (lambda d: "fw_" + d.mixed(24), PLAIN),
    "Cerebras": (lambda d: "csk-" + d.of(LOWER + DIGITS, 48), PLAIN),
    "Tavily": (lambda d: "tvly-dev-" + d.mixed(32), PLAIN),
    "LangSmith": (lambda d: f"lsv2_pt_{d.hexadecimal(32)}_{d.hexadecimal(10)}", PLAIN),
    "Pinecone": (lambda d: "pcsk_" + d.mixed(5) + "_" + d.mixed(63), PLAIN),
    "Atlassian": (lambda d: "ATATT3xFfGF0" + d.base64url(120) + "=" + d.hexadecimal(8).upper(), PLAIN),
    "Postman": (lambda d: f"PMAK-{d.hexadecimal(24)}-{d.hexadecimal(34)}", PLAIN),
    "Shopify": (lambda d: "shpat_" + d.hexadecimal(32), PLAIN),
    "age": (lambda d: "AGE-SECRET-KEY-1" + d.of(UPPER + DIGITS, 58), PLAIN),
    "ModelScope": (lambda d: "ms-" + d.uuid(), _named("MODELSCOPE_API_TOKEN", "MODELSCOPE_SDK_TOKEN")),
    "NGC": (lambda d: d.base64(62), _named("NGC_API_KEY", "NGC_CLI_API_KEY")),
    "Datadog": (lambda d: d.hexadecimal(32), _named("DD_API_KEY", "DD_APP_KEY", "DATADOG_API_KEY")),
    "Sentry": (lambda d: d.hexadecimal(32), _frames("SENTRY_DSN=https://@@@o447951.ingest.sentry.io/5429219")),
    "JSON web token": (_jwt, PLAIN),
    "bearer": (lambda d: d.base64url(30), _frames("Authorization: Bearer @@", "curl -H 'Authorization: Bearer @@' http://127.0.0.1:8000/v1/models", "{'Authorization': 'Bearer @@'}", "sending bearer @@")),
    "basic": (_pair, _frames("Authorization: Basic @@", "headers={'authorization': 'Basic @@'}", "Proxy-Authorization: Basic @@", "--header 'Authorization: Basic @@'")),
    "header": (lambda d: d.mixed(32), _frames("X-API-Key: @@", "-H 'x-api-key: @@' http://localhost", "{'X-Auth-Token': '@@'}", "api-key: @@")),
    "cookie": (lambda d: d.mixed(40), _frames("Cookie: session=@@; theme=dark", "Set-Cookie: sid=@@; Path=/; HttpOnly", "{'Cookie': 'jupyter-hub=@@'}")),
    "curl user": (Draw.password, (*_frames("curl -u admin:@@ https://registry.example/v2/", "curl -sS --user robot:@@ https://x.example"), lambda s, _: ["curl", "-u", f"admin:{s}", "https://x"], lambda s, _: {"command": ["curl", "--user", f"admin:{s}"]})),
    "URL": (Draw.password, _frames("postgresql://svc:@@@db.internal:5432/x", "redis://:@@@10.0.0.7:6379/0", "http_proxy=http://bob:@@@proxy:3128", "git+https://oauth2:@@@git.example/a/b.git@v1")),
    "index URL": (lambda d: d.mixed(30), _frames("pip install --extra-index-url https://__token__:@@@pypi.example/simple x", "UV_INDEX_URL=https://@@@pypi.example/simple", "PIP_INDEX_URL=https://u:@@@pypi.example/simple")),
    "netrc": (lambda d: d.mixed(24), _frames("machine huggingface.co login bob password @@", "machine api.wandb.ai\n  login user\n  password @@\n", "default login anonymous password @@")),
    "docker config": (_pair, (*_frames('{"auths": {"nvcr.io": {"auth": "@@"}}}', '"auths":{"https://index.docker.io/v1/":{"auth":"@@"}}'), lambda s, _: {"auths": {"ghcr.io": {"auth": s}}}, lambda s, _: {"identitytoken": s})),
    "docker login": (lambda d: d.mixed(40), (*_frames("docker login nvcr.io -u '$oauthtoken' -p @@", "podman login -u bob --password @@ quay.io", "docker login --username bob --password=@@"), lambda s, _: ["docker", "login", "-u", "bob", "-p", s, "nvcr.io"])),
    "kube": (lambda d: d.base64(90), (*_frames("users:\n- name: admin\n  user:\n    client-key-data: @@\n", "    token: @@\n", '{"user": {"client-key-data": "@@"}}'), lambda s, _: {"client-key-data": s})),
    "kube secret": (_pair, _frames("kind: Secret\ndata:\n  .dockerconfigjson: @@\n", "apiVersion: v1\nkind: Secret\nstringData:\n  hf: @@\n", '{"kind": "Secret", "data": {"value": "@@"}}')),
    "variable": (Draw.password, _named("DB_PASSWORD", "SERVICE_SECRET", "REDIS_PASS", "SMTP_PASSWD", "PGPASSWORD", "MYSQL_PWD", "MINIO_ROOT_PASSWORD", "ADMIN_TOKEN", "LICENSE_KEY")),
    "variable by its value": (lambda d: d.mixed(36), _named("GATEWAY_AUTH", "PARTNER_CRED", "SERVICE_SIG", "UPSTREAM_KEY", "BUILD_PAT")),
    "option": (lambda d: d.mixed(24), (*_frames("vllm serve /m --api-key @@ --port 8000", "sglang --admin-api-key=@@", "--hf-token @@", "mysql -u root --password=@@ -h db", "sshpass -p @@ ssh host"), lambda s, _: ["--api-key", s], lambda s, _: ["python", "-m", "x", f"--api-key={s}"], lambda s, _: ["sshpass", "-p", s, "ssh", "h"])),
    "engine's arguments": (lambda d: d.mixed(20), _frames("ServerArgs(model_path='/m', api_key='@@', port=1)", "Namespace(host=None, api_key=['@@'], uvicorn_log_level='info')", "non-default args: {'api_key': ['@@'], 'model': '/m'}")),
    "query": (lambda d: d.mixed(32), _frames("GET /v1/models?api_key=@@ HTTP/1.1", "http://127.0.0.1:8888/lab?token=@@", "wss://x.example/s?access_token=@@&v=1", "POST /?key=@@&x=1")),
    "prose": (lambda d: d.mixed(22), _frames("the password is @@", "your token is @@ , keep it", "Invalid API key provided: @@.", "logged in with key @@")),
    "RSA key": (lambda d: d.base64(48), _pem("RSA PRIVATE KEY")),
    "private key": (lambda d: d.base64(48), _pem("PRIVATE KEY")),
    "OpenSSH key": (lambda d: d.base64(48), _pem("OPENSSH PRIVATE KEY")),
    "PGP key": (lambda d: d.base64(48), _pem("PGP PRIVATE KEY BLOCK")),
    "WireGuard": (lambda d: d.base64(32), _frames("[Interface]\nPrivateKey = @@\nAddress = 10.0.0.2/32", "PresharedKey = @@")),
}  # fmt: skip


def planted(seed: int = 20261130) -> Iterator[Planted]:
    """``PER_KIND`` secrets of each kind, through every way in which the kind turns up."""
    for number, (kind, (make, frames)) in enumerate(KINDS.items()):
        draw = Draw(seed + number)
        for turn in range(PER_KIND):
            secret = make(draw)
            yield Planted(kind, secret, frames[turn % len(frames)](secret, draw))


def _mangled(d: Draw) -> str:
    parts = [d.of(LOWER + UPPER, d.random.randint(3, 22)) for _ in range(3)]
    return "_ZN" + "".join(f"{len(part)}{part}" for part in parts) + "EPK" + d.of("abcfhijlm", 4)


def _version(d: Draw) -> str:
    r = d.random
    base = f"{r.randint(0, 30)}.{r.randint(0, 40)}.{r.randint(0, 20)}"
    return base + r.choice(["", f".post{r.randint(1, 9)}", f"rc{r.randint(1, 4)}", f"+cu1{r.randint(18, 32)}", f".dev20260{r.randint(101, 931)}+g{d.hexadecimal(9)}"])  # fmt: skip


HARMLESS: dict[str, tuple[Make, str]] = {
    "UUID of a GPU": (lambda d: "GPU-" + d.uuid(), "CUDA_VISIBLE_DEVICES={}"),
    "UUID of a MIG instance": (lambda d: "MIG-" + d.uuid(), "GPU 0: NVIDIA H100 80GB HBM3 (UUID: {})"),
    "version": (_version, "Found existing installation: torch {}"),
    "pinned": (lambda d: f"{d.of(LOWER, 8)}=={_version(d)}", "Collecting {}"),
    "commit": (lambda d: d.hexadecimal(40), "commit {}"),
    "short commit": (lambda d: "g" + d.hexadecimal(9), "built from v0.6.12-3-{}"),
    "sha256": (lambda d: "sha256:" + d.hexadecimal(64), "image: lmsysorg/sglang@{}"),
    "hub snapshot": (lambda d: f"/root/.cache/huggingface/hub/models--Qwen--Qwen3-32B/snapshots/{d.hexadecimal(40)}/config.json", "loading {}"),
    "hub blob": (lambda d: f"models--x--y/blobs/{d.hexadecimal(64)}", "lrwxrwxrwx {}"),
    "triton cache": (lambda d: f"/root/.triton/cache/{d.of(UPPER + '234567', 52)}/fused_moe_kernel.cubin", "FileNotFoundError: {}"),
    "inductor cache": (lambda d: f"/tmp/torchinductor_root/{d.of(LOWER + DIGITS, 2)}/c{d.of(LOWER + '234567', 51)}.py", 'File "{}", line 7'),
    "compile cache key": (lambda d: d.hexadecimal(10), "Using cache directory: /root/.cache/vllm/torch_compile_cache/{}/rank_0_0/backbone"),
    "cache key": (lambda d: d.mixed(44), "cache_key={}"),
    "FlashInfer module": (lambda d: f"batch_prefill_with_kv_cache_dtype_q_bf16_head_dim_qk_{d.random.choice([64, 128, 256])}_{d.hexadecimal(8)}", "ninja: building {}.so"),
    "FlashInfer cache": (lambda d: f"/root/.cache/flashinfer/{_version(d)}/120a/cached_ops/sampling/{d.hexadecimal(6)}.cuda.o", "FAILED: {}"),
    "symbol": (_mangled, "undefined symbol: {}"),
    "site-packages": (lambda d: f"/opt/venv/lib/python3.11/site-packages/{d.of(LOWER, 9)}/{d.of(LOWER, 7)}_{d.random.randint(0, 99)}.py", 'File "{}", line 109, in f'),
    "library": (lambda d: f"lib{d.of(LOWER, 8)}-{d.hexadecimal(8)}.so.{d.random.randint(1, 13)}.{d.random.randint(0, 9)}", "=> /opt/venv/lib/{} (0x00007f12)"),
    "wheel": (lambda d: f"{d.of(LOWER, 9)}-{d.random.randint(0, 9)}.{d.random.randint(0, 20)}.{d.random.randint(0, 9)}-cp311-cp311-manylinux_2_28_x86_64.whl", "Downloading {}"),
    "container": (lambda d: d.hexadecimal(64), "0::/system.slice/docker-{}.scope"),
    "short container": (lambda d: d.hexadecimal(12), "HOSTNAME={}"),
    "request": (lambda d: "chatcmpl-" + d.hexadecimal(32), "Added request {}."),
    "completion": (lambda d: f"cmpl-{d.hexadecimal(32)}-0", "Received request {}: prompt: None"),
    "boot": (lambda d: d.hexadecimal(32), "_BOOT_ID={}"),
    "invocation": (lambda d: d.hexadecimal(32), "InvocationID: {}"),
    "address": (lambda d: "0x" + d.hexadecimal(12), "frame #3: <unknown function> + {}"),
    "bus": (lambda d: f"0000:{d.hexadecimal(2)}:00.0", "NVRM: Xid (PCI:{}): 79"),
    "architecture": (lambda d: f"sm_{d.random.choice([75, 80, 86, 89, 90, 100, 103, 120])}{d.random.choice(['', 'a', 'f'])}", "ptxas fatal: Value '{}' is not defined"),
    "tensor": (lambda d: f"model.layers.{d.random.randint(0, 93)}.self_attn.{d.of('qkvo', 1)}_proj.weight_scale_inv", "KeyError: '{}'"),
    "shard": (lambda d: f"model-{d.random.randint(1, 99):05d}-of-00099.safetensors", "Loading safetensors checkpoint shards: {}"),
    "kernel": (lambda d: f"cutlass3x_sm90_tensorop_s64x{d.random.choice([64, 128, 256])}x16gemm_e4m3_{d.of('f0123456789x', 8)}_warpspecialized_pingpong", "launching {}"),
    "token count": (lambda d: str(d.random.randint(1, 10**6)), "max_total_num_tokens={}"),
    "address of a peer": (lambda d: f"tcp://10.{d.random.randint(0, 255)}.{d.random.randint(0, 255)}.7:{d.random.randint(1024, 65535)}", "init_method={}"),
    "url": (lambda d: f"https://files.pythonhosted.org/packages/{d.hexadecimal(2)}/{d.hexadecimal(2)}/{d.hexadecimal(60)}/flashinfer.whl", "Using cached {}"),
    "pull": (lambda d: f"{d.hexadecimal(12)}:", "{} Pull complete"),
    "record": (lambda d: "sha256=" + d.base64url(32), "torch/version.py,{},1043"),
    "lock key": (lambda d: f"/tmp/vllm_{d.hexadecimal(16)}.lock", "waiting for {}"),
    "nccl": (lambda d: f"0x{d.hexadecimal(16)}", "comm 0x55 rank 0 nranks 8 cudaDev 0 busId 1a000 commId {}"),
    "interface": (lambda d: f"veth{d.hexadecimal(7)}", "br0: port 2({}) entered forwarding state"),
    "disk": (lambda d: d.uuid(), "root=UUID={} ro quiet"),
    "unit": (lambda d: f"run-r{d.hexadecimal(32)}.scope", "Started {}"),
    "store key": (lambda d: f"worker/{d.random.randint(0, 9)}/{d.hexadecimal(8)}", "TCPStore waits for key: {}"),
    "digest": (lambda d: d.base64(32), "integrity: sha256-{}"),
    "build id": (lambda d: d.hexadecimal(40), "BuildID[sha1]={}, stripped"),
    "pod": (lambda d: f"vllm-{d.hexadecimal(10)}-{d.of('bcdfghjklmnpqrstvwxz2456789', 5)}", "pod/{} evicted"),
}  # fmt: skip
"""What a log or a host is full of, in the words it stands in."""

TOKENS = 50_000
LINES_PER_DOCUMENT = 1000


class Sheet(NamedTuple):
    """A document of harmless lines, and the token that each must still hold."""

    lines: list[str]
    tokens: list[tuple[str, str]]


def harmless(seed: int = 20261130) -> Iterator[Sheet]:
    """:data:`TOKENS` harmless tokens in documents of :data:`LINES_PER_DOCUMENT` lines, all kinds in each."""
    draw, kinds = Draw(seed), list(HARMLESS.items())
    for start in range(0, TOKENS, LINES_PER_DOCUMENT):
        tokens, lines = [], []
        for number in range(start, start + LINES_PER_DOCUMENT):
            kind, (make, frame) = kinds[number % len(kinds)]
            token = make(draw)
            tokens.append((kind, token))
            lines.append(frame.format(token))
        yield Sheet(lines, tokens)
