"""Models that bring their own code, and loaders that were not permitted to run it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

ID = "trust-remote-code"

SENTENCE = """ValueError: The repository acme/Model contains custom code which must be executed to correctly load the model. You can inspect the repository content at https://hf.co/acme/Model.
Please pass the argument `trust_remote_code=True` to allow custom code to be run.
"""
PROMPT = """The repository for acme/Model contains custom code which must be executed to correctly load the model. You can inspect the repository content at https://hf.co/acme/Model.
You can avoid this prompt in future by passing the argument `trust_remote_code=True`.

Do you wish to run the custom code? [y/N] Traceback (most recent call last):
  File "/usr/local/lib/python3.12/site-packages/vllm/transformers_utils/processor.py", line 60, in get_processor
    processor = AutoProcessor.from_pretrained(name)
  File "/usr/local/lib/python3.12/site-packages/transformers/dynamic_module_utils.py", line 740, in resolve_trust_remote_code
    answer = input(
EOFError: EOF when reading a line
"""


@pytest.mark.parametrize(
    ("text", "component"),
    [
        ("python3 -m sglang.launch_server --model-path acme/Model --tp 2\n" + SENTENCE, "sglang"),
        ("vllm serve acme/Model\n" + SENTENCE, "vllm"),
        (PROMPT, "vllm"),
        ("2024-01-05T08:00:00Z ERROR text_generation_launcher: Error when initializing model\nValueError: Loading microsoft/phi-2 requires you to execute the configuration file in that repo on your local machine. Make sure you have read the code there to avoid malicious use, then set the option `trust_remote_code=True` to remove this error.\n", "text-generation-inference"),
    ],
)  # fmt: skip
def test_the_loader_asks_in_several_words(judge_report: Judge, text: str, component: str) -> None:
    first = judge_report(text).findings[0]
    assert (first.cause, first.component, first.certainty.value) == (ID, component, "proven")


def test_the_engines_own_option_is_the_first_remedy(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("vllm serve acme/Model\n" + SENTENCE), ID)
    assert (found.remedies[0].kind, found.remedies[0].name) == ("flag", "--trust-remote-code")
    assert found.evidence[0].quote.startswith("Please pass the argument")


def test_a_flag_that_was_given_was_not_passed_on(judge_report: Judge, finding: Find) -> None:
    text = "python3 -m sglang.launch_server --model-path acme/Model --trust-remote-code\n" + SENTENCE
    found = finding(judge_report(text), ID)
    assert (found.remedies[0].kind, found.remedies[0].name, found.remedies[0].value) == ("package", "sglang", "newer")
    assert any("once more" in vain.what for vain in found.not_remedies)


def test_a_quoted_call_without_the_permission_shows_which_loader_lacks_it(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(PROMPT), ID)
    assert ("patch", "AutoProcessor.from_pretrained") in [(remedy.kind, remedy.name) for remedy in found.remedies]


def test_the_unanswered_prompt_is_explained_and_not_a_dead_worker(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(PROMPT), ID)
    assert found.explains
    assert "EOFError" not in found.evidence[0].quote


def test_an_eoferror_without_the_sentence_is_not_this(judge_report: Judge) -> None:
    text = 'Traceback (most recent call last):\n  File "/usr/lib/python3.12/multiprocessing/connection.py", line 399, in _recv\n    raise EOFError\nEOFError\n'
    assert ID not in [found.cause for found in judge_report(text).findings]


def test_advice_that_is_added_to_every_failure_is_no_proof(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: Failed to load the model config. If the model is a custom model not yet available in the HuggingFace transformers library, consider setting `trust_remote_code=True` in LLM or using the `--trust-remote-code` flag in the CLI.\n"
    found = finding(judge_report(text), ID)
    assert found.certainty.value == "possible"
    assert found.missing
    assert "model-arch-unsupported" in found.rivals


def test_the_advice_yields_to_an_architecture_that_is_not_known(judge_report: Judge) -> None:
    text = """ValueError: The checkpoint you are trying to load has model type `glm4_moe` but Transformers does not recognize this architecture.
RuntimeError: Failed to load the model config. If the model is a custom model not yet available in the HuggingFace transformers library, consider setting `trust_remote_code=True` in LLM or using the `--trust-remote-code` flag in the CLI.
"""
    assert judge_report(text).findings[0].cause == "model-arch-unsupported"


def test_the_notice_of_datasets_that_dropped_the_option_is_not_this(judge_report: Judge) -> None:
    text = "`trust_remote_code` is not supported anymore.\nPlease check that the Hugging Face dataset 'x' isn't based on a loading script and remove `trust_remote_code`.\n"
    assert ID not in [found.cause for found in judge_report(text).findings]


def test_code_that_did_not_reach_a_worker_is_only_possible(judge_report: Judge, finding: Find) -> None:
    text = "Traceback (most recent call last):\n  File \"/usr/local/lib/python3.10/dist-packages/ray/_private/serialization.py\", line 423, in deserialize_objects\nModuleNotFoundError: No module named 'transformers_modules'\n"
    found = finding(judge_report(text), ID)
    assert found.certainty.value == "possible"
    assert "HF_MODULES_CACHE" in [remedy.name for remedy in found.remedies]


def test_a_refusal_of_the_hub_is_another_cause(judge_report: Judge) -> None:
    text = "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/acme/Model.\n401 Client Error.\n"
    assert [found.cause for found in judge_report(text).findings] == ["gated-or-auth"]


def test_the_engine_is_told_by_its_advice(judge_report: Judge, finding: Find) -> None:
    text = (
        "ValueError: The repository for /models/deepseek-vl2 contains custom code which must be executed to correctly load the model.\n"
        "RuntimeError: Failed to load the model config. If the model is a custom model not yet available in the HuggingFace transformers library, "
        "consider setting `trust_remote_code=True` in LLM or using the `--trust-remote-code` flag in the CLI.\n"
    )
    found = finding(judge_report(text), "trust-remote-code")
    assert found.component == "vllm"
    assert found.remedies[0].name == "--trust-remote-code"
