"""What the real FlashInfer does with each value and each toolkit: the measurements behind what gpuwhy knows about it.

nvcc 12.8 is a stand-in that answers as the real one's ptxas and NVRTC do; nvcc 12.4 is real.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.lab.conftest import run_in_seed
from tests.lab.gpu_host import LAB

pytestmark = pytest.mark.lab

Done = subprocess.CompletedProcess[str]

TRY_EACH = """
import json, os, subprocess, sys, tempfile
os.environ["FLASHINFER_CUDA_ARCH_LIST"] = "12.0a"
from flashinfer.compilation_context import CompilationContext
from flashinfer.jit import core
from flashinfer.jit.sampling import gen_sampling_module

def outcome(value):
    os.environ["FLASHINFER_CUDA_ARCH_LIST"] = value
    try:
        core.current_compilation_context = CompilationContext()
    except Exception as error:
        return {"at": "import", "says": f"{type(error).__name__}: {error}"}
    try:
        spec = gen_sampling_module()
    except RuntimeError as error:
        return {"at": "gate", "says": f"{type(error).__name__}: {error}"}
    with tempfile.TemporaryDirectory() as folder:
        command = spec.get_compile_commands()[0]["command"] + " --dryrun"
        done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return {"at": "compiler", "says": done.stderr.strip()}
    return {"at": "accepted", "says": next(word for word in command.split() if word.startswith("-gencode"))}

print(json.dumps({value: outcome(value) for value in json.loads(sys.stdin.read())}))
"""
VALUES = ("12.0a", "12.0", "12.0f", "12.0 9.0", "12.0;9.0", "12.0a,9.0a", "120", "sm_120", "", "12.0+PTX", "9.0", "7.0")
TOO_MANY = "ValueError: too many values to unpack (expected 2)"
NOT_ENOUGH = "ValueError: not enough values to unpack (expected 2, got 1)"
SM12 = "RuntimeError: SM 12.x requires CUDA >= 12.9"

BAD_LISTS = {"12.0": SM12, "12.0;9.0": TOO_MANY, "120": NOT_ENOUGH}

SAMPLE = """
import logging
logging.basicConfig(format="%(message)s")
from flashinfer.jit import core
print(sorted(core.current_compilation_context.TARGET_CUDA_ARCHS))
core.check_cuda_arch()
"""
GATE = "RuntimeError: FlashInfer requires GPUs with sm75 or higher"
ONLY_12_9 = "Failed to get device capability: SM 12.x requires CUDA >= 12.9."
NO_VERSION = (
    "Failed to get device capability: nvcc not found and PyTorch is not built with CUDA support. "
    "Could not determine CUDA version.."
)

SAME_MESSAGE: dict[str, tuple[dict[str, Any], str]] = {
    "an old nvcc by CUDA_HOME": ({"CUDA_HOME": str(LAB / "cuda-12.4")}, ONLY_12_9),
    "an old nvcc by CUDA_PATH": ({"CUDA_HOME": "", "CUDA_PATH": str(LAB / "cuda-12.8")}, ONLY_12_9),
    "an old nvcc on PATH": ({"PATH": f"{LAB}/cuda-12.8/bin:/usr/bin:/bin"}, ONLY_12_9),
    "no nvcc, torch built for 12.8": ({"CUDA_HOME": "/nowhere"}, ONLY_12_9),
    "no nvcc, torch not built for CUDA": ({"CUDA_HOME": "/nowhere", "FAKE_TORCH_CUDA": ""}, NO_VERSION),
    "an old GPU": ({"CUDA_HOME": str(LAB / "cuda-12.8"), "FAKE_GPUS": "1x7.0"}, ""),
    "an old GPU in the list": ({"CUDA_HOME": str(LAB / "cuda-12.8"), "FLASHINFER_CUDA_ARCH_LIST": "7.0"}, ""),
}

Runs = dict[str, "Future[Done]"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Every program of this file, started two at a time: each imports FlashInfer, and that is most of what it does."""
    nvcc128 = {"CUDA_HOME": str(LAB / "cuda-12.8")}
    with ThreadPoolExecutor(2) as pool:

        def start(program: str, stdin: str = "", **variables: str) -> Future[Done]:
            return pool.submit(run_in_seed, tmp_path_factory.mktemp("home"), program, stdin=stdin, **variables)

        started = {
            toolkit: start(TRY_EACH, json.dumps(VALUES), CUDA_HOME=str(LAB / toolkit))
            for toolkit in ("cuda-12.8", "cuda-12.4")
        }
        for value in BAD_LISTS:
            started[f"import with {value}"] = start("import flashinfer", FLASHINFER_CUDA_ARCH_LIST=value, **nvcc128)
        for situation, (variables, _) in SAME_MESSAGE.items():
            started[situation] = start(SAMPLE, **variables)
        started["a mixed host"] = start(SAMPLE, FAKE_GPUS="4x9.0,4x12.0", **nvcc128)
        yield started


def tried(runs: Runs, toolkit: str) -> dict[str, dict[str, str]]:
    done = runs[toolkit].result()
    assert done.returncode == 0, done.stderr
    outcomes: dict[str, dict[str, str]] = json.loads(done.stdout)
    return outcomes


def test_values_of_the_architecture_list_with_nvcc_12_8(runs: Runs) -> None:
    assert tried(runs, "cuda-12.8") == {
        "12.0a": {"at": "accepted", "says": "-gencode=arch=compute_120a,code=sm_120a"},
        "12.0": {"at": "import", "says": SM12},
        "12.0f": {"at": "compiler", "says": "nvcc fatal   : Unsupported gpu architecture 'compute_120f'"},
        "12.0 9.0": {"at": "import", "says": SM12},
        "12.0;9.0": {"at": "import", "says": TOO_MANY},
        "12.0a,9.0a": {"at": "import", "says": TOO_MANY},
        "120": {"at": "import", "says": NOT_ENOUGH},
        "sm_120": {"at": "import", "says": NOT_ENOUGH},
        "": {"at": "import", "says": NOT_ENOUGH},
        "12.0+PTX": {"at": "compiler", "says": "nvcc fatal   : Unsupported gpu architecture 'compute_120+PTX'"},
        # Accepted, and of no use: code that a GPU of compute capability 12.0 cannot run.
        "9.0": {"at": "accepted", "says": "-gencode=arch=compute_90a,code=sm_90a"},
        "7.0": {"at": "gate", "says": "RuntimeError: FlashInfer requires GPUs with sm75 or higher"},
    }


def test_no_value_gets_past_the_real_nvcc_12_4(runs: Runs) -> None:
    outcomes = tried(runs, "cuda-12.4")
    assert not [value for value, outcome in outcomes.items() if outcome["at"] == "accepted"]
    refusal = {"at": "compiler", "says": "nvcc fatal   : Unknown option '--compress-mode=size'"}
    assert outcomes["12.0a"] == outcomes["12.0f"] == outcomes["9.0"] == refusal


@pytest.mark.parametrize("value", BAD_LISTS)
def test_a_bad_list_ends_the_import_itself(runs: Runs, value: str) -> None:
    done, says = runs[f"import with {value}"].result(), BAD_LISTS[value]
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(says)


@pytest.mark.parametrize("situation", SAME_MESSAGE)
def test_one_message_of_many_causes(runs: Runs, situation: str) -> None:
    _, warning = SAME_MESSAGE[situation]
    done = runs[situation].result()
    assert done.stderr.rstrip().endswith(GATE)
    warnings = [line for line in done.stderr.splitlines() if line.startswith("Failed to get device capability")]
    assert set(warnings) == ({warning} if warning else set())


def test_a_mixed_host_passes_the_gate_without_code_for_the_newer_gpus(runs: Runs) -> None:
    done = runs["a mixed host"].result()
    assert done.returncode == 0
    assert done.stdout.strip() == "[(9, '0a')]"


def test_the_real_nvcc_12_4_compiles_for_what_it_knows_and_refuses_what_it_does_not(tmp_path: Any) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text("__global__ void kernel(int *x) { *x = 1; }\n")

    def compile_for(architecture: str) -> subprocess.CompletedProcess[str]:
        nvcc = LAB / "cuda-12.4/bin/nvcc"
        command = [str(nvcc), f"-arch={architecture}", "-c", "-o", "kernel.o", str(source)]
        return subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)

    accepted = compile_for("sm_90")
    assert accepted.returncode == 0, accepted.stderr
    refused = compile_for("sm_120")
    assert refused.returncode == 1
    assert "Value 'sm_120' is not defined for option 'gpu-architecture'" in refused.stderr
