"""Issues for GitHub: what a maintainer needs, nothing that means something to GitHub, no name of anybody's machine."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gpuwhy.investigate import diagnose_log
from gpuwhy.investigate.checks.forecasting import check_plan
from gpuwhy.investigate.checks.plan import Plan
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.finding import Excluded, Missing
from gpuwhy.remedies import prescribe
from gpuwhy.reports import Detail, render
from gpuwhy.reports.check import prescribed
from gpuwhy.reports.github import block, code, prose, table
from gpuwhy.reports.issue_forms import FORMS, filled
from gpuwhy.reports.public import public
from gpuwhy.snapshot.given import given

LOGS = Path(__file__).parents[1] / "data" / "logs"
HOSTILE = (
    "``` `x` | @maintainer #123 GH-7 deadbeefcafe0123 https://evil.example/a www.evil.com evil.com <img src=x onerror=y> "
    "[l](http://e) ![i](http://e) </details> <!-- ~~s~~ $\\alpha$ :tada: &copy; *b* _i_ \x1b[31m \u202e\n# heading\n- [ ] task"
)


def diagnosed(data: bytes, name: str = "a.log", facts: dict[str, object] | None = None) -> Diagnosis:
    return prescribe(diagnose_log(data, name, given(facts).facts if facts else None))


@pytest.fixture(scope="module")
def seed() -> Diagnosis:
    known = {"cc": "12.0", "cuda_toolkit": "12.8", "driver": "580.65.06", "tests.without_graphs": "still fails", "command": "python -m sglang.launch_server"}  # fmt: skip
    return diagnosed((LOGS / "sglang.log").read_bytes(), "sglang.log", dict(known))


def tokens(text: str) -> list[Token]:
    """All tokens, flat, as a renderer of CommonMark with GitHub's tables sees them."""
    flat: list[Token] = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        flat += [token, *(token.children or [])]
    return flat


def assert_inert(text: str) -> None:
    for token in tokens(text):
        assert token.type not in ("link_open", "image", "html_inline", "s_open", "em_open"), token
        if token.type == "html_block":
            allowed = r"(?:</?details>|<summary>[\w ,'-]+</summary>|<!-- title -->.*|\s)+"
            assert re.match(allowed, token.content), token.content
        if token.type == "text":
            assert not re.search(r"[@#<>$~\\&|]|://|www\.|GH-\d|\b[0-9a-f]{7,}\b|:\w+:|\.com", token.content), (
                token.content
            )


def hostile(seed: Diagnosis) -> Diagnosis:
    evidence = Evidence(HOSTILE, HOSTILE, Place("log", HOSTILE, 1))
    first = seed.findings[0]
    remedy = msgspec.structs.replace(
        first.remedies[0], name=HOSTILE, value=HOSTILE, summary=HOSTILE, commands=(HOSTILE,)
    )
    finding = msgspec.structs.replace(
        first, title=HOSTILE, component=HOSTILE, evidence=(evidence,), remedies=(remedy, remedy), missing=(Missing(HOSTILE, HOSTILE, HOSTILE),),
        chain=tuple(msgspec.structs.replace(link, statement=HOSTILE, evidence=evidence, installed=evidence) for link in first.chain),
    )  # fmt: skip
    facts = given(
        {"gpu": HOSTILE, "env.CUDA_HOME": HOSTILE, "packages.torch": HOSTILE, "command": HOSTILE, "tests.x": HOSTILE}
    )
    return msgspec.structs.replace(
        seed, where=HOSTILE, findings=(finding, finding), facts=tuple(facts.facts), ruled_out=(Excluded(HOSTILE, HOSTILE, (evidence,)),)
    )  # fmt: skip


def test_a_maintainer_gets_what_an_issue_needs(seed: Diagnosis) -> None:
    text = render(seed, "markdown")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    assert headings[0].startswith("FlashInfer finds CUDA 12.8 and needs 12.9 for this GPU")
    assert headings[1:] == [
        "Environment",
        "Cause",
        "Log",
        "Start command",
        "What was tried, and what does not help",
        "What helps",
    ]
    for expected in (
        "| `driver` | `580.65.06` |",
        "| `sglang` | `0.5.15` |",
        "Cause: `toolkit-too-old-for-arch` in `flashinfer`, likely",
        "only logs a warning [**swallowed**]",
        "Failed to get device capability: SM 12.x requires CUDA >= 12.9.\n...\n",
        "RuntimeError: FlashInfer requires GPUs with sm75 or higher",
        "- `without_graphs`: still fails",
        "export FLASHINFER_CUDA_ARCH_LIST=12.0a",
        "<summary>Ruled out, and not known</summary>",
    ):
        assert expected in text


def test_folds_are_closed_and_nothing_is_more_than_github_takes(seed: Diagnosis) -> None:
    text = render(seed, "markdown")
    assert text.count("<details>") == text.count("</details>") == text.count("<summary>") > 1
    assert len(text) < 65536


def test_hostile_text_is_inert(seed: Diagnosis) -> None:
    changed = hostile(seed)
    assert_inert(render(changed, "markdown", Detail(is_private=True)))
    assert_inert(render(changed, "markdown"))
    for project in FORMS:
        assert_inert(filled(project, changed))


def test_a_hostile_check_is_inert() -> None:
    plan = Plan(("8 x B200",), "535.104.05", "12.2", ("torch==2.4.0",), (), "")
    found = prescribed(check_plan(plan))
    problem = msgspec.structs.replace(found.problems[0], title=HOSTILE, evidence=(Evidence(HOSTILE),))
    assert_inert(render(msgspec.structs.replace(found, problems=(problem,)), "markdown"))


@for_all(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_is_inert_wherever_it_stands(text: str) -> None:
    assert_inert(
        f"1. {prose(text)}\n2. {code(text)}\n\n{table(('', ''), [(code(text), prose(text))])}\n\n{block([text])}\n"
    )
    cells = [token for token in tokens(table(("a", "b"), [(code(text), prose(text))])) if token.type == "td_open"]
    assert len(cells) == 2


def test_names_and_secrets_are_taken_out() -> None:
    log = (
        b"Traceback (most recent call last):\n"
        b'  File "/home/alice/acme-inference/serve.py", line 41, in main\n    connect("http://gpu-7.acme.internal:8000", "10.4.5.6")\n'
        b"MoonPhaseError: cannot reach gpu-7.acme.internal at 10.4.5.6 with token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH as alice@gpu-7.acme.internal\n"
    )
    diagnosis = diagnosed(log, "/srv/acme-prod/crash.log", {"env.CUDA_HOME": "/home/alice/cuda", "command": "serve --key hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"})  # fmt: skip
    told = render(diagnosis, "markdown") + filled("vllm", public(diagnosis))
    for name in ("alice", "acme", "10.4.5.6", "hf_abcdefghijklmnop"):
        assert name not in told
    assert "MoonPhaseError" in told
    assert "acme" in render(diagnosis, "markdown", Detail(is_private=True))


def test_taking_names_out_leaves_the_answer_as_it_is(seed: Diagnosis) -> None:
    shown = public(seed)
    assert [each.cause for each in shown.findings] == [each.cause for each in seed.findings]
    assert shown.findings[0].title == seed.findings[0].title
    assert {fact.key: fact.value for fact in shown.facts if fact.key.startswith("packages.")} == {
        fact.key: fact.value for fact in seed.facts if fact.key.startswith("packages.")
    }
    on_a_host = msgspec.structs.replace(seed, where="root@flashinfer")
    assert public(on_a_host).findings[0].component == "flashinfer"


@pytest.mark.parametrize(
    ("project", "headings"),
    [
        ("vllm", ["Your current environment", "🐛 Describe the bug"]),
        ("sglang", ["Describe the bug", "Reproduction", "Environment"]),
        ("flashinfer", ["Describe the bug", "Reproduction", "Environment"]),
        ("pytorch", ["🐛 Describe the bug", "Versions"]),
    ],
)
def test_the_form_of_a_project(seed: Diagnosis, project: str, headings: list[str]) -> None:
    text = filled(project, seed)
    assert re.findall(r"^### (.*)$", text, re.MULTILINE) == headings
    assert "toolkit-too-old-for-arch" in text
    assert "`580.65.06`" in text
    assert "python -m sglang.launch_server" in text
