"""Models whose architecture the installed release does not know."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

ID = "model-arch-unsupported"

TRANSFORMERS = """Traceback (most recent call last):
  File "/usr/local/lib/python3.12/dist-packages/transformers/models/auto/configuration_auto.py", line 1131, in from_pretrained
    config_class = CONFIG_MAPPING[config_dict["model_type"]]
  File "/usr/local/lib/python3.12/dist-packages/transformers/models/auto/configuration_auto.py", line 833, in __getitem__
    raise KeyError(key)
KeyError: 'qwen3_moe'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/usr/local/bin/vllm", line 8, in <module>
    sys.exit(main())
  File "/usr/local/lib/python3.12/dist-packages/transformers/models/auto/configuration_auto.py", line 1133, in from_pretrained
    raise ValueError(
ValueError: The checkpoint you are trying to load has model type `qwen3_moe` but Transformers does not recognize this architecture. This could be because of an issue with the checkpoint, or because your version of Transformers is out of date.
"""
LISTED = "ValueError: Model architectures ['Qwen3VLMoeForConditionalGeneration'] are not supported for now. Supported architectures: dict_keys(['AquilaModel', 'ArcticForCausalLM'])\n"


@pytest.mark.parametrize(
    ("text", "component"),
    [
        (TRANSFORMERS, "transformers"),
        (LISTED, "vllm"),
        ("ValueError: GlmOcrForConditionalGeneration has no vLLM implementation and the Transformers implementation is not compatible with vLLM.\n", "vllm"),
        ("[TensorRT-LLM] TensorRT-LLM version: 0.20.0\nValueError: Unknown architecture for AutoModelForCausalLM: Glm4MoeForCausalLM\n", "tensorrt-llm"),
        ("llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'qwen3next'\n", "llama.cpp"),
        ("Error: llama runner process has terminated: error loading model: error loading model architecture: unknown model architecture: 'qwen3next'\n", "ollama"),
        ("Error: pull model manifest: 412:\n\nThe model you are attempting to pull requires a newer version of Ollama.\n", "ollama"),
        ("llama_model_load: error loading model: error loading model vocabulary: unknown pre-tokenizer type: 'deepseek-r1-qwen'\nllama_load_model_from_file: failed to load model\n", "llama.cpp"),
        ("llama_model_load: error loading model: done_getting_tensors: wrong number of tensors; expected 292, got 291\n", "llama.cpp"),
        ('Traceback (most recent call last):\n  File "/opt/conda/lib/python3.10/site-packages/awq/models/auto.py", line 45, in check_and_get_model_type\n    raise TypeError(f"{config.model_type} isn\'t supported yet.")\nTypeError: gemma3 isn\'t supported yet.\n', "autoawq"),
        ("ValueError: GGUF model with architecture qwen3moe is not supported yet.\n", "transformers"),
        ("2024-07-24T10:00:00.000000Z ERROR text_generation_launcher: Error when initializing model\nValueError: Unsupported model type gemma2\n", "text-generation-inference"),
        ("ValueError: Tokenizer class Qwen2Tokenizer does not exist or is not currently imported.\n", "transformers"),
    ],
)  # fmt: skip
def test_each_program_says_it_in_its_own_words(judge_report: Judge, text: str, component: str) -> None:
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (ID, component)


def test_the_sentence_is_quoted_and_the_release_that_knows_the_model_is_computed(
    judge_report: Judge, finding: Find
) -> None:
    found = finding(judge_report(TRANSFORMERS), ID)
    assert "does not recognize this architecture" in found.evidence[0].quote
    remedies = {(remedy.kind, remedy.name): remedy.value for remedy in found.remedies}
    assert remedies[("package", "transformers")] == ">=4.51.0"
    assert remedies[("package", "vllm")] == ">=0.8.4"


def test_an_engine_that_lacks_the_class_is_upgraded_itself(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(LISTED), ID)
    assert [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies] == [("package", "vllm", ">=0.11.0")]


def test_the_generic_implementation_is_worth_a_try_where_no_release_is_known_to_have_the_class(
    judge_report: Judge, finding: Find
) -> None:
    text = "ValueError: Model architectures ['QuiteUnheardOfForCausalLM'] are not supported for now. Supported architectures: dict_keys(['LlamaForCausalLM'])\n"
    found = finding(judge_report("vllm serve m\n" + text), ID)
    assert "--model-impl" in [remedy.name for remedy in found.remedies]


def test_a_bare_key_error_of_the_table_of_models_is_enough(judge_report: Judge, finding: Find) -> None:
    text = TRANSFORMERS.partition("\n\nDuring")[0] + "\n"
    assert finding(judge_report(text), ID).component == "transformers"


def test_a_key_error_of_any_other_dictionary_is_nothing(judge_report: Judge) -> None:
    text = 'Traceback (most recent call last):\n  File "/app/main.py", line 20, in handler\n    name = payload["model_name"]\nKeyError: \'model_name\'\n'
    assert ID not in [found.cause for found in judge_report(text).findings]


def test_tensors_of_another_layout_may_also_be_a_damaged_file(judge_report: Judge, finding: Find) -> None:
    text = "llama_model_load: error loading model: check_tensor_dims: tensor 'token_embd.weight' not found\n"
    found = finding(judge_report(text), ID)
    assert found.certainty.value == "possible"
    assert "weights-missing-or-corrupt" in found.rivals
    assert found.missing


def test_a_release_that_is_new_enough_rules_it_out(judge_report: Judge) -> None:
    text = "ValueError: Tokenizer class Qwen2Tokenizer does not exist or is not currently imported.\n"
    judgement = judge_report(text, {"packages.transformers": "4.57.1"})
    assert ID not in [found.cause for found in judgement.findings]
    assert ID in [excluded.cause for excluded in judgement.ruled_out]


def test_an_import_that_fails_below_the_model_is_another_cause(judge_report: Judge) -> None:
    text = """ERROR 07-25 10:00:00 [registry.py:320] Error in inspecting model architecture 'LlavaForConditionalGeneration'
Traceback (most recent call last):
  File "/usr/local/lib/python3.12/dist-packages/vllm/model_executor/models/llava.py", line 12, in <module>
    from transformers import SiglipVisionModel
ImportError: cannot import name 'SiglipVisionModel' from 'transformers' (/usr/local/lib/python3.12/dist-packages/transformers/__init__.py)
ValueError: Model architectures ['LlavaForConditionalGeneration'] failed to be inspected. Please check the logs for more details.
"""
    causes = [found.cause for found in judge_report(text).findings]
    assert causes[0] == "api-drift"
    assert ID not in causes


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: unsupported architecture sm_120\n",
        "nvcc fatal   : Unsupported gpu architecture 'compute_120'\n",
        "exec /usr/bin/python: exec format error, unsupported architecture amd64\n",
    ],
)
def test_architectures_of_gpus_and_processors_are_not_meant(judge_report: Judge, text: str) -> None:
    assert ID not in [found.cause for found in judge_report(text).findings]


def test_code_of_the_repository_that_was_not_permitted_is_another_cause(judge_report: Judge) -> None:
    text = "ValueError: Loading acme/Model requires you to execute the configuration file in that repo on your local machine. Make sure you have read the code there to avoid malicious use, then set the option `trust_remote_code=True` to remove this error.\n"
    assert [found.cause for found in judge_report(text).findings] == ["trust-remote-code"]


def test_weights_that_a_known_class_lacks_give_no_release(judge_report: Judge, finding: Find) -> None:
    text = "ValueError: There is no module or parameter named 'model.vision_tower' in Gemma3ForCausalLM\n"
    found = finding(judge_report("INFO 10-01 [api_server.py:1] vLLM API server version 0.11.0\n" + text), ID)
    assert found.certainty.value == "possible"
    assert found.remedies[0].value == "newer"


def test_lmdeploy_looks_for_its_rewrite(judge_report: Judge, finding: Find) -> None:
    found = finding(
        judge_report(
            "  File \"/opt/py3/lib/python3.10/site-packages/lmdeploy/pytorch/models/patch.py\", line 171, in f\nRuntimeError: Can not found rewrite for architectures: ['MiniCPM3ForCausalLM']\n"
        ),
        "model-arch-unsupported",
    )
    assert (found.component, found.certainty.value) == ("lmdeploy", "proven")


def test_a_projector_that_an_old_llama_cpp_does_not_know(judge_report: Judge) -> None:
    text = (
        "clip_init: failed to load model '/models/mmproj.gguf': load_hparams: unknown projector type: qwen3vl_merger\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == ("model-arch-unsupported", "llama.cpp")


def test_a_release_from_before_the_file_format(judge_report: Judge, finding: Find) -> None:
    text = (
        "llama.cpp: loading model from /models/llama-2-7b.Q4_K_M.gguf\n"
        "error loading model: unknown (magic, version) combination: 46554747, 00000002; is this really a GGML file?\n"
    )
    assert finding(judge_report(text), "model-arch-unsupported").component == "llama.cpp"


def test_a_model_class_that_funasr_does_not_have(judge_report: Judge, finding: Find) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.10/site-packages/funasr/auto/auto_model.py", line 258, in build_model\n'
        "    assert model_class is not None, f'{kwargs[\"model\"]} is not registered'\nAssertionError: FunASRNano is not registered\n"
    )
    found = finding(judge_report(text), "model-arch-unsupported")
    assert (found.component, found.certainty.value) == ("funasr", "likely")
