"""Files of a model that are absent, cut off, or something else in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

ID = "weights-missing-or-corrupt"


def _raised(error: str, path: str = "/usr/local/lib/python3.12/dist-packages/vllm/model_executor/model_loader/default_loader.py") -> str:  # fmt: skip
    return f'Traceback (most recent call last):\n  File "{path}", line 130, in load\n    raise\n{error}\n'


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        ("safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer\n", "proven"),
        (_raised("RuntimeError: Cannot find any model weights with `/models/qwen`"), "proven"),
        ("huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/Qwen2.5-7B'. Use `repo_type` argument if needed.\n", "likely"),
        ("OSError: Incorrect path_or_model_id: '/app/model/'. Please provide either the path to a local folder or the repo_id of a model on the Hub.\n", "likely"),
        ("OSError: Error no file named pytorch_model.bin, model.safetensors, tf_model.h5, model.ckpt.index or flax_model.msgpack found in directory ./output/checkpoint-500.\n", "proven"),
        ("_pickle.UnpicklingError: invalid load key, 'v'.\n", "proven"),
        ("RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n", "proven"),
        ("gguf_init_from_file: invalid magic characters 'vers'\nllama_model_load: error loading model: llama_model_loader: failed to load model from /models/model.gguf\n", "proven"),
        ("llama_model_load: error loading model: tensor 'blk.25.ffn_down.weight' data is not within the file bounds, model is corrupted or incomplete\n", "proven"),
        ("Error: digest mismatch, file must be downloaded again: want sha256:aaa, got sha256:bbb\n", "likely"),
        (_raised('FileNotFoundError: No such file or directory: "/models/DeepSeek-R1/model-00099-of-000163.safetensors"'), "proven"),
        ("OSError: Consistency check failed: file should be of size 4976698672 but has size 3221225472 (model-00001-of-00004.safetensors).\n", "proven"),
        ("onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf: [ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model from /models/model.onnx failed:Protobuf parsing failed.\n", "proven"),
        ("[TRT] [E] 1: Serialization assertion plan->header.magicTag == rt::kPLAN_MAGIC_TAG failed.\n", "proven"),
        ("ValueError: Model path does not exist: /models/llama.gguf\n", "proven"),
    ],
)  # fmt: skip
def test_loaders_say_it_in_many_words(judge_report: Judge, text: str, certainty: Any) -> None:
    first = judge_report(text).findings[0]
    assert (first.cause, first.component, first.certainty.value) == (ID, "model-files", certainty)


def test_a_giant_header_is_a_pointer_as_a_rule_and_a_short_file_a_broken_download(
    judge_report: Judge, finding: Find
) -> None:
    giant = finding(judge_report("SafetensorError: Error while deserializing header: HeaderTooLarge\n"), ID)
    short = finding(judge_report("SafetensorError: Error while deserializing header: MetadataIncompleteBuffer\n"), ID)
    assert giant.remedies[0].value == "git lfs pull"
    assert min(short.remedies, key=lambda remedy: remedy.rank).value == "download with the hub client"
    assert giant.missing[0].key.startswith("files.")


def test_the_size_of_the_file_settles_that_it_is_a_pointer(judge_report: Judge, finding: Find) -> None:
    text = "SafetensorError: Error while deserializing header: HeaderTooLarge\n"
    found = finding(judge_report(text, {"files./models/model.safetensors": "134 bytes, begins with version https://git-lfs"}), ID)  # fmt: skip
    assert "pointer" in found.title
    assert not found.missing


def test_a_file_that_a_check_found_whole_rules_it_out(judge_report: Judge) -> None:
    text = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n"
    judgement = judge_report(text, {"files./models/pytorch_model.bin": "sha256 matches the hub"})
    assert ID in [excluded.cause for excluded in judgement.ruled_out]


def test_a_path_that_is_taken_for_a_name_is_not_mounted(judge_report: Judge, finding: Find) -> None:
    text = "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/Qwen2.5-7B'. Use `repo_type` argument if needed.\n"
    found = finding(judge_report(text), ID)
    assert "/models/Qwen2.5-7B" in found.title
    assert ("container", "bind mount") in [(remedy.kind, remedy.name) for remedy in found.remedies]


def test_an_error_page_in_place_of_weights(judge_report: Judge, finding: Find) -> None:
    text = 'Traceback (most recent call last):\n  File "/app/run.py", line 3, in <module>\n    torch.load("model.pt")\n_pickle.UnpicklingError: invalid load key, \'<\'.\n'
    assert "page" in finding(judge_report(text), ID).title


def test_shapes_that_differ_are_only_possible(judge_report: Judge, finding: Find) -> None:
    text = "RuntimeError: Error(s) in loading state_dict for LlamaForCausalLM:\n\tsize mismatch for model.embed_tokens.weight: copying a param with shape torch.Size([32001, 4096]) from checkpoint\n"
    found = finding(judge_report(text), ID)
    assert found.certainty.value == "possible"
    assert "model-arch-unsupported" in found.rivals


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("ImportError: /usr/lib/python3/dist-packages/torch/lib/libtorch_cuda.so: file too short\n", "library-corrupt"),
        ("llama_model_load: error loading model: unknown model architecture: 'qwen3next'\n", "model-arch-unsupported"),
        ("huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder for the specified revision on the local disk and outgoing traffic has been disabled.\n", "download-blocked"),
    ],
)  # fmt: skip
def test_near_misses_belong_to_their_own_causes(judge_report: Judge, text: str, cause: str) -> None:
    causes = [found.cause for found in judge_report(text).findings]
    assert causes[0] == cause
    assert ID not in causes


@pytest.mark.parametrize(
    "text",
    [
        'Traceback (most recent call last):\n  File "/usr/lib/python3/dist-packages/torch/_inductor/codecache.py", line 1000, in load\nEOFError: Ran out of input\n',
        "WARNING 01-01 [fused_moe.py:700] Using default MoE config. Performance might be sub-optimal! Config file not found at /x/fused_moe/configs/E=64,N=896.json\n",
        "FileNotFoundError: [Errno 2] No such file or directory: 'nvcc'\n",
        "INFO:     no generation_config.json found, using default\n",
    ],
)
def test_other_missing_or_damaged_files_are_not_weights(judge_report: Judge, text: str) -> None:
    assert ID not in [found.cause for found in judge_report(text).findings]


@pytest.mark.parametrize(
    "text",
    [
        "llama_model_load: error loading model: invalid split file idx: 0 (file: m-00002-of-00009.gguf), expected 1\n",
        "llama_model_load: error loading model: illegal split file: 1, model must be loaded with the first split\n",
        "llama_model_load: error loading model: llama_model_loader: failed to load GGUF split from ./m-00003-of-00009.gguf\n",
        _raised("RuntimeError: weight lm_head.weight does not exist"),
        "RuntimeError: [enforce fail at inline_container.cc:209] . file not found: model/data/183\n",
    ],
)
def test_parts_that_are_missing(judge_report: Judge, text: str) -> None:
    assert judge_report(text).findings[0].cause == ID
