"""Source of installed packages comes through whole; what has the form of a secret does not."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.redaction.test_redactor import FORMS

from gpuwhy.redaction import Redactor

INSTALLED = "/opt/venv/lib/python3.12/site-packages/engine/core.py"
KEY_LINE = "MIIEowIBAAKCAQEAv3bVnBw9VqVt0dGhpcyBpcyBub3QgYSBrZXkgYnV0IGEgdGVzdA"


def reply(lines: list[str], path: str = INSTALLED) -> dict[str, Any]:
    return {"path": path, "first": 1, "lines": lines, "count": len(lines), "modified": 1700000000.0}


def redacted(lines: list[str], path: str = INSTALLED, redactor: Redactor | None = None) -> list[str]:
    value = (redactor or Redactor()).value({"id": 1, "status": "ok", "reason": "", "value": reply(lines, path)})
    found: list[str] = value["value"]["lines"]
    assert len(found) == len(lines)
    return found


@pytest.mark.parametrize(
    "line",
    [
        "def step(block_token: torch.Tensor, x_token: T, api_key: SecretKey) -> None:",
        "token = special_tokens[token_id], 0)",
        "password = other_name",
        "self.api_key = os.environ.get('API_KEY', default_of(settings))",
        'authorization = request.headers.get("Authorization")',
        'headers = {"Authorization": f"Bearer {self.hf_token}"}',
        'url = f"redis://{user}:{password}@{host}/0"',
        "if lora_token == pad_token or secret_key != shared.secret_key:",
        'if "-----BEGIN PRIVATE KEY-----" in text:',
        "hf_quantizationconfigclassname = hf_quantizationconfigfactory()",
    ],
)
def test_names_of_the_program_hide_nothing(line: str) -> None:
    assert redacted([line, "    pass", "value = 1"]) == [line, "    pass", "value = 1"]


@pytest.mark.parametrize("secret", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize(
    "line", ['TOKEN = "{}"', "# paste: {}", 'run(["--key={}"])', 'requests.get("https://h/x?k={}")']
)
def test_what_has_the_form_of_a_secret_is_taken_out(secret: str, line: str) -> None:
    (found,) = redacted([line.format(secret)])
    assert secret not in found
    assert "<redacted:1>" in found


def test_a_login_in_a_url_is_taken_out() -> None:
    assert redacted(['INDEX = "https://bob:hunter2@registry.example/simple"']) == [
        'INDEX = "https://bob:<redacted:1>@registry.example/simple"'
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ['KEY = """-----BEGIN RSA PRIVATE KEY-----', KEY_LINE, KEY_LINE, "QUJDRA==", '-----END RSA PRIVATE KEY-----"""', "x = 1"],
        [f'KEY = "-----BEGIN PRIVATE KEY-----\\n{KEY_LINE}\\n-----END PRIVATE KEY-----"', "x = 1"],
        ["KEY = (", '    "-----BEGIN EC PRIVATE KEY-----\\n"', f'    "{KEY_LINE}\\n"', '    "-----END EC PRIVATE KEY-----"', ")", "x = 1"],
    ],
)  # fmt: skip
def test_a_private_key_goes_and_the_code_around_it_stays(lines: list[str]) -> None:
    found = redacted(lines)
    assert KEY_LINE not in "\n".join(found)
    assert "QUJDRA" not in "\n".join(found)
    assert found[-1] == "x = 1"
    ast.parse("\n".join(found))


def test_a_secret_that_the_environment_named_is_taken_out_of_a_text_but_not_of_a_name() -> None:
    redactor = Redactor()
    redactor.learn_from({"HF_TOKEN": "correct-horse-battery", "DB_PASSWORD": "scheduler"})
    assert redacted(['KEY = "correct-horse-battery"', 'MODE = "scheduler"', "scheduler.run(scheduler)"], redactor=redactor) == [
        'KEY = "<redacted:1>"', 'MODE = "<redacted:2>"', "scheduler.run(scheduler)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "path", ["/etc/engine/settings.py", "/home/bob/sglang/launch.py", "/opt/venv/lib/python3.12/site-packages/engine/app.conf"]
)  # fmt: skip
def test_other_files_are_redacted_by_name_as_before(path: str) -> None:
    assert redacted(['api_key = "let-me-in"'], path) == ['api_key = "<redacted:1>"']


def test_a_checkout_laid_out_as_a_package_is_source_too() -> None:
    line = "def f(block_token: Tensor):"
    assert redacted([line], "/sgl-workspace/sglang/python/sglang/srt/x.py") == [line]


def test_redacting_again_on_this_side_changes_nothing() -> None:
    once = redacted(['TOKEN = "hf_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0"', "x_token: T = other"])
    assert redacted(once) == once


def test_the_standard_library_s_own_source_comes_through_whole() -> None:
    folder = Path(ast.__file__).parent
    changed = []
    for name in (
        "smtplib.py",
        "urllib/request.py",
        "netrc.py",
        "ftplib.py",
        "imaplib.py",
        "getpass.py",
        "tokenize.py",
        "ssl.py",
    ):
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        found = redacted(lines, f"/usr/lib/python{sys.version_info[0]}/site-packages/{name}")
        changed += [each for each, before in zip(found, lines, strict=True) if each != before]
    assert changed == []
