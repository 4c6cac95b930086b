"""import-shadowed: a file or folder of one's own answers to a module's name. Samples: Python 3.11 with such a file."""

from __future__ import annotations

import pytest
from tests.causes.packages.texts import SITE, Find, Judge, names, remedies, ruled_out, traceback

from gpuwhy.model.finding import Certainty

CAUSE = "import-shadowed"
TIMEIT = traceback(
    "IndexError: list index out of range",
    (f"{SITE}/torch/utils/benchmark/utils/timer.py", "<module>", "import timeit"),
    ("/opt/user/bench/timeit.py", "<module>", "n = int(sys.argv[1])"),
)
CHECKOUT = traceback(
    "ModuleNotFoundError: No module named 'vllm._C'",
    ("/opt/user/vllm/vllm/__init__.py", "<module>", "from vllm.engine import X"),
    ("/opt/user/vllm/vllm/platforms/cuda.py", "<module>", "import vllm._C  # noqa"),
)


@pytest.mark.parametrize("text", [
    TIMEIT,
    "AttributeError: module 'random' has no attribute 'Random' (consider renaming '/srv/app/random.py' since it has the same name as the standard library module named 'random' and prevents importing that standard library module)\n",
    traceback("AttributeError: partially initialized module 'queue' has no attribute 'SimpleQueue' (most likely due to a circular import)", ("/opt/user/proj/queue.py", "<module>", "from vllm import LLM"), ("/usr/lib/python3.11/concurrent/futures/thread.py", "<module>", "import queue"), ("/opt/user/proj/queue.py", "<module>", "import torch")),
    "ImportError: cannot import name 'Literal' from 'typing' (/opt/user/app/typing.py)\n",
    "ImportError: Failed to load PyTorch C extensions:\n    It appears that PyTorch has loaded the `torch/_C` folder\n    of the PyTorch repository rather than the C extensions which\n    are expected in the `torch._C` namespace.\n",
])  # fmt: skip
def test_the_file_is_seen(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert judgement.findings[0] == found
    assert found.certainty is Certainty.PROVEN
    assert found.component == "user-program"


def test_the_file_is_renamed(judge_report: Judge, finding: Find) -> None:
    proposed = remedies(finding(judge_report(TIMEIT), CAUSE))
    assert ("files", "timeit.py", "rename") in proposed
    assert ("config", "working directory", "another folder") in proposed


@pytest.mark.parametrize("text", [
    traceback("ImportError: cannot import name 'jit' from 'triton' (unknown location)", ("/opt/user/run.py", "<module>", "from triton import jit")),
    traceback("AttributeError: module 'triton' has no attribute 'jit'", ("/opt/user/main.py", "<module>", "triton.jit")),
    CHECKOUT,
])  # fmt: skip
def test_a_folder_in_the_way_is_likely_and_its_place_is_asked_for(
    judge_report: Judge, finding: Find, text: str
) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert any(missing.key.startswith("files.") for missing in found.missing)


def test_the_place_of_the_module_decides(judge_report: Judge, finding: Find) -> None:
    own = judge_report(CHECKOUT, {"files.vllm.__file__": "/opt/user/vllm/vllm/__init__.py"})
    assert finding(own, CAUSE).certainty is Certainty.PROVEN
    assert CAUSE in ruled_out(judge_report(CHECKOUT, {"files.vllm.__file__": f"{SITE}/vllm/__init__.py"}))


@pytest.mark.parametrize("text", [
    f"ImportError: cannot import name 'AutoModelForVision2Seq' from 'transformers' ({SITE}/transformers/__init__.py)\n",
    f"ImportError: cannot import name 'X' from partially initialized module 'sglang.srt.x' (most likely due to a circular import) ({SITE}/sglang/srt/x.py)\n",
    traceback("RuntimeError: CUDA error: out of memory", ("/opt/user/app/types.py", "run", "model.generate()")),
    traceback("ModuleNotFoundError: No module named 'vllm._C'", (f"{SITE}/vllm/platforms/cuda.py", "<module>", "import vllm._C")),
    traceback("AttributeError: module 'asyncio' has no attribute 'coroutine'", (f"{SITE}/old/x.py", "<module>", "@asyncio.coroutine")),
])  # fmt: skip
def test_near_misses_are_others(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_a_reason_that_is_told_is_another_cause(judge_report: Judge) -> None:
    warned = "WARNING Failed to import from vllm._C with ModuleNotFoundError(\"No module named 'vllm._C'\")\n"
    assert CAUSE in names(judge_report(warned))
    told = (
        warned + "Failed to import from vllm._C with ImportError(\"/lib64/libc.so.6: version `GLIBC_2.32' not found\n"
    )
    assert CAUSE not in names(judge_report(told))


def test_a_file_of_that_name_that_was_found_decides(judge_report: Judge, finding: Find) -> None:
    text = traceback(
        "AttributeError: module 'queue' has no attribute 'Queue'",
        (f"{SITE}/torch/utils/data/x.py", "<module>", "queue.Queue()"),
    )
    assert finding(judge_report(text), CAUSE).certainty is Certainty.LIKELY
    found = finding(judge_report(text, {"files./opt/user/srv/app/queue.py": "a script of 40 lines"}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert "/opt/user/srv/app/queue.py" in found.title


FOLDER = traceback(
    "ModuleNotFoundError: No module named 'tritonclient'",
    (f"{SITE}/vllm/attention/ops/prefix_prefill.py", "<module>", "import triton.language as tl"),
    ("/workspace/proj/triton/__init__.py", "<module>", "from .server import TritonClient"),
)


def test_a_folder_named_like_an_installed_package(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(FOLDER), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert "/workspace/proj/triton" in found.title


@pytest.mark.parametrize("folder", ["/opt/triton/python/triton", "/build/triton-src/triton"])
def test_near_miss_an_editable_installation(judge_report: Judge, folder: str) -> None:
    assert CAUSE not in names(judge_report(FOLDER.replace("/workspace/proj/triton", folder)))


def test_a_checkout_whose_compiled_part_lies_beside_it(judge_report: Judge, finding: Find) -> None:
    text = (
        'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
        '  File "/opt/DeepGEMM/deep_gemm/__init__.py", line 16, in <module>\n    import deep_gemm_cpp\n'
        "ModuleNotFoundError: No module named 'deep_gemm_cpp'\n"
    )
    assert finding(judge_report(text), "import-shadowed").component == "user-program"
    installed = text.replace("/opt/DeepGEMM", "/opt/venv/lib/python3.12/site-packages")
    assert "import-shadowed" not in [found.cause for found in judge_report(installed).findings]


def test_a_script_with_the_name_of_what_it_imports(judge_report: Judge, finding: Find) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/content/unsloth.py", line 1, in <module>\n    import unsloth\n'
        "AttributeError: partially initialized module 'unsloth' has no attribute 'FastLanguageModel' (most likely due to a circular import)\n"
    )
    assert finding(judge_report(text), "import-shadowed").component == "user-program"
