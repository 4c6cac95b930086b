"""What redaction took out of source leaves a file that can be understood; each line as a real release has it."""

from __future__ import annotations

import ast
import time

import pytest

from gpuwhy.investigate.mending import mended
from gpuwhy.redaction import Redactor


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("def f(block_token: torch.Tensor | None = None): pass", "def f(block_token: "),
        ("n_prev_token = n_prev_tokens.get(index, 0)", ", 0)"),
        ("token = _checking.set(mode)", "token = "),
        ("api_key: list[str] | None = None", "] | None = None"),
        ('doc_emb_token = special_tokens["doc_embed_token"]', '"doc_embed_token"]'),
        ("token = added_tokens[prompt_ids[last]]", "token = "),
        ("no_token = not self.memory_budget.has_capacity()", "self.memory_budget.has_capacity()"),
        ("if token == self.pattern[matched]:\n    pass", "self.pattern[matched]:"),
        ('table = {"VLLM_API_KEY": lambda: os.environ.get("VLLM_API_KEY", None),\n}', 'lambda: os.environ.get("VLLM_API_KEY", None)'),
        ("EXA_API_KEY = EnvStr(None, secret=True)", ", secret=True)"),
    ],
)  # fmt: skip
def test_a_line_that_was_cut_can_be_parsed_again(line: str, kept: str) -> None:
    hidden = Redactor().value({"lines": line.split("\n")})["lines"]
    assert "<redacted:" in "\n".join(hidden)
    text = mended("\n".join(hidden))
    ast.parse(text)
    assert kept in text
    assert text.count("\n") == line.count("\n")


def test_what_was_taken_out_stays_out() -> None:
    secret = "hf_" + "a" * 34
    hidden = Redactor().value({"lines": [f'token = "{secret}"', f"use('{secret}')"]})["lines"]
    text = mended("\n".join(hidden))
    assert secret not in text
    ast.parse(text)


def test_other_files_stay_as_they_are() -> None:
    broken = "def f(:\n    return '<redacted:x>'\n"
    assert mended(broken) == broken


def test_a_file_made_of_cuts_ends_soon() -> None:
    begun = time.process_time()
    mended("x = <redacted:1>)))) not\n" * 5000)
    mended("(" * 90 + "<redacted:1>" + ")" * 5000)
    assert time.process_time() - begun < 20
