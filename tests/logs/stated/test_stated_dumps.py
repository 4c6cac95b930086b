"""Whole dumps as their programs print them, and what each may and may not state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuwhy.logs import facts_in, open_log, read_report

DUMPS = Path(__file__).parents[2] / "data" / "logs" / "dumps"


def stated(text: str) -> dict[str, Any]:
    return {fact.key: fact.value for fact in facts_in(read_report(text))}


def quoted(text: str, key: str) -> str:
    found = {fact.key: fact.evidence.quote for fact in facts_in(read_report(text))}
    return found[key]


def test_collect_env_on_a_machine_without_a_gpu() -> None:
    facts = {fact.key: fact.value for fact in facts_in(open_log(DUMPS / "collect_env_without_gpu.txt"))}
    assert {key: value for key, value in facts.items() if not key.startswith("packages.nvidia")} == {
        "torch": "2.14.1+cu130",
        "torch_cuda": "13.0",
        "os": "Debian GNU/Linux 12",
        "gcc": "12.2.0",
        "glibc": "2.36",
        "kernel_release": "6.18.44",
        "python": "3.11.7",
        "nvcc_path_version": "13.0",
        "hypervisor": "KVM",
        "numa_nodes": 1,
        "packages.triton": "3.8.0",
    }


def test_nothing_collected_is_no_gpu_and_no_driver() -> None:
    text = (
        "CUDA runtime version: Could not collect\nGPU models and configuration: Could not collect\n"
        "Nvidia driver version: Could not collect\ncuDNN version: Could not collect\n"
    )
    assert stated(text) == {"nvcc_path_version": None}


def test_a_session_in_a_shell() -> None:
    facts = {fact.key: fact.value for fact in facts_in(open_log(DUMPS / "shell_session.txt"))}
    assert facts["mem_total_bytes"] == 24683652 << 10
    assert facts["swap_total_bytes"] == 0
    assert facts["shm_bytes"] == facts["df./dev/shm"]["size_bytes"] == 24683652 << 10
    assert (facts["memlock"], facts["ulimit.memlock"], facts["ulimit.nofile"]) == ("8388608", 8388608, 20000)
    assert (facts["kernel_release"], facts["gcc"], facts["glibc"]) == ("6.18.44", "12.2.0", "2.36")
    assert facts["nvcc_path_version"] == "13.0"
    assert "cuda_toolkit" not in facts


SMI = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA H100 PCIe               On  |   00000000:01:00.0 Off |                    0 |
| N/A   36C    P0             48W /  350W |   70001MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 PCIe               On  |   00000000:02:00.0 Off |                    0 |
| N/A   36C    P0             48W /  350W |       1MiB /  81559MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A      2310      C   /usr/bin/python3                            70000MiB |
+-----------------------------------------------------------------------------------------+
"""


def test_nvidia_smi() -> None:
    assert stated(SMI) == {
        "driver": "550.54.15",
        "driver_cuda": "12.4",  # what the driver supports; no toolkit
        "gpu": "NVIDIA H100 PCIe",
        "gpus": ["0: NVIDIA H100 PCIe", "1: NVIDIA H100 PCIe"],
        "gpu_memory": ["GPU 0: 70001 of 81559 MiB in use", "GPU 1: 1 of 81559 MiB in use"],
        "gpu_processes": ["GPU 0: process 2310 (/usr/bin/python3) holds 70000 MiB"],
    }
    assert quoted(SMI, "gpu_processes").startswith("|    0   N/A  N/A      2310")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (  # before driver 450
            ("| NVIDIA-SMI 440.33.01    Driver Version: 440.33.01    CUDA Version: 10.2     |\n"
            "|   0  Tesla V100-SXM2...  On   | 00000000:00:1E.0 Off |                    0 |\n"
            "| N/A   42C    P0    27W / 300W |      0MiB / 16160MiB |      0%      Default |\n"
            "|  GPU       PID   Type   Process name                             Usage      |\n"
            "|    0      1234      C   python                                      1234MiB |\n"),
            {
                "driver": "440.33.01", "driver_cuda": "10.2", "gpu": "Tesla V100", "gpu_memory": ["GPU 0: 0 of 16160 MiB in use"],
                "gpu_processes": ["GPU 0: process 1234 (python) holds 1234 MiB"],
            },
        ),
        (  # since driver 610
            ("| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |\n"
            "|   0  NVIDIA RTX PRO 6000 Blac...    Off |   00000000:01:00.0 Off |                  Off |\n"),
            {"driver": "610.43.02", "driver_cuda": "13.3", "gpu": "NVIDIA RTX PRO 6000 Blackwell"},
        ),
        ("| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: N/A      |\n", {"driver": "550.54.15"}),
        ("|   0  GeForce RTX 208...  Off  | 00000000:01:00.0 Off |                  N/A |\n", {}),
        ("|   3  ERR!                On   | 00000000:01:00.0 Off |                  N/A |\n", {"gpu_errors": ["GPU 3: nvidia-smi cannot read it (ERR!)"]}),
        (
            ("|   1  NVIDIA H100 PCIe               On  |   00000000:02:00.0 Off |                    2 |\n"
            "| N/A   36C    P0             48W /  350W |       1MiB /  81559MiB |      0%      Default |\n"
            "|   2  NVIDIA H100 PCIe               On  |   00000000:03:00.0 Off |                 ERR! |\n"
            "| ERR!   ERR! ERR! /  350W |      0MiB / 81559MiB |     ERR!      Default |\n"),
            {
                "gpu": "NVIDIA H100 PCIe", "gpus": ["1: NVIDIA H100 PCIe", "2: NVIDIA H100 PCIe"], "gpu_memory": ["GPU 1: 1 of 81559 MiB in use"],
                "gpu_errors": ["GPU 1: Volatile Uncorrectable ECC errors: 2", "GPU 2: nvidia-smi cannot read it (ERR!)"],
            },
        ),
        (
            ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1234)\n\t Link 0: Replay Errors: 0\n\t Link 0: CRC Errors: 0\n"
            "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-5678)\n\t Link 0: Recovery Errors: 0\n\t Link 3: CRC Errors: 88\n"),
            {
                "gpu": "NVIDIA A100-SXM4-80GB", "gpus": ["0: NVIDIA A100-SXM4-80GB", "1: NVIDIA A100-SXM4-80GB"],
                "nvlink_errors": ["GPU 1: Link 3: CRC Errors: 88"],
            },
        ),
        ("         Link 5: Replay Errors: 213\n", {"nvlink_errors": ["Link 5: Replay Errors: 213"]}),
        (
            "NVIDIA-SMI version  : 570.86.10\nNVML version        : 570.86\nDRIVER version      : 570.86.10\nCUDA Version        : 12.8\n",
            {"driver": "570.86.10", "driver_cuda": "12.8"},
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.86\n",
            {"gpu_errors": ["Failed to initialize NVML: Driver/library version mismatch"], "driver_library": "570.86"},
        ),
        (
            ("==============NVSMI LOG==============\n\nDriver Version                            : 570.86.15\nCUDA Version                              : 12.8\n\n"
            "Attached GPUs                             : 2\nGPU 00000000:01:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n"
            "    Fabric\n        State                             : In Progress\nGPU 00000000:02:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n"),
            {
                "driver": "570.86.15", "driver_cuda": "12.8", "gpu": "NVIDIA H100 80GB HBM3", "gpus": ["0: NVIDIA H100 80GB HBM3", "1: NVIDIA H100 80GB HBM3"],
                "gpu_errors": ["GPU 0: Fabric State: In Progress"],
            },
        ),
        (
            ("index, name, driver_version, memory.total [MiB], memory.used [MiB], compute_cap\n"
            "0, NVIDIA GeForce RTX 5090, 570.86.15, 32607 MiB, 3 MiB, 12.0\n1, NVIDIA GeForce RTX 5090, 570.86.15, 32607 MiB, 20000 MiB, 12.0\n"),
            {
                "driver": "570.86.15", "cc": "12.0", "gpu": "NVIDIA GeForce RTX 5090", "gpus": ["0: NVIDIA GeForce RTX 5090", "1: NVIDIA GeForce RTX 5090"],
                "gpu_memory": ["GPU 0: 3 of 32607 MiB in use", "GPU 1: 20000 of 32607 MiB in use"],
            },
        ),
        (
            "$ nvidia-smi --query-gpu=name,driver_version --format=csv,noheader\nNVIDIA A10, 535.216.01\nsome, words\n",
            {"driver": "535.216.01", "gpu": "NVIDIA A10"},
        ),
        (
            ("\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\tSYS\tPXB\t0-55\t0\t\tN/A\n"
            "GPU1\tNV18\t X \tSYS\tPXB\t0-55\t0\t\tN/A\nNIC0\tPXB\tPXB\tSYS\t X\n"),
            {"gpu_links": ["NV18", "SYS"]},
        ),
    ],
)  # fmt: skip
def test_what_nvidia_smi_prints_elsewhere(text: str, expected: dict[str, Any]) -> None:
    assert stated(text) == expected


CHECK_ENV = """\
Python: 3.12.3 (main, Jun 18 2025, 17:59:45) [GCC 13.3.0]
CUDA available: True
GPU 0,1: NVIDIA H100 80GB HBM3
GPU 0,1 Compute Capability: 9.0
CUDA_HOME: /usr/local/cuda
NVCC: Cuda compilation tools, release 12.8, V12.8.93
CUDA Driver Version: 570.86.15
PyTorch: 2.9.1+cu128
sglang: 0.5.6
sglang-kernel: Module Not Found
flashinfer_python: 0.5.3
NVIDIA Topology:
\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\t0-55\t0\t\tN/A

ulimit soft: 1048576
"""


def test_sglang_check_env() -> None:
    assert stated(CHECK_ENV) == {
        "python": "3.12.3",
        "gpu": "NVIDIA H100 80GB HBM3",
        "gpus": ["0: NVIDIA H100 80GB HBM3", "1: NVIDIA H100 80GB HBM3"],
        "cc": "9.0",
        # the compiler in torch's CUDA_HOME, which need not be the one on PATH nor the service's
        "other_toolkits./usr/local/cuda": "12.8",
        "toolkit_resolved.torch": {"version": "12.8", "root": "/usr/local/cuda"},
        "driver": "570.86.15",
        "torch": "2.9.1+cu128",
        "torch_cuda": "12.8",
        "packages.sglang": "0.5.6",
        "packages.sglang-kernel": None,
        "packages.flashinfer-python": "0.5.3",
        "gpu_links": ["NV18"],
    }


SHOW_CONFIG = """\
=== Version Info ===
FlashInfer version: 0.6.12
flashinfer-cubin version: 0.6.12
flashinfer-jit-cache: Not installed
=== Torch Version Info ===
Torch version: 2.10.0+cu130
CUDA runtime available: Yes

=== Environment Variables ===
FLASHINFER_CACHE_DIR: /opt/user/.cache/flashinfer
FLASHINFER_CUDA_ARCH_LIST: {targets}
FLASHINFER_CUDA_VERSION: 12.8
CUDA_VERSION: 12.8
CUDA_HOME: /usr/local/cuda
NVCC found: {found}

=== Artifact Path ===
"""


def test_flashinfer_show_config() -> None:
    facts = stated(SHOW_CONFIG.format(targets="set()", found="Yes"))
    assert facts == {
        "packages.flashinfer-python": "0.6.12",
        "packages.flashinfer-cubin": "0.6.12",
        "packages.flashinfer-jit-cache": None,
        "torch": "2.10.0+cu130",
        "torch_cuda": "13.0",
        "jit_targets": [],  # the resolved set: no variable of that name need be set
        "cuda_home": "/usr/local/cuda",
        "cuda_toolkit": "12.8",
    }


def test_show_config_without_nvcc_gives_torch_s_cuda_for_its_version() -> None:
    facts = stated(SHOW_CONFIG.format(targets="{(9, '0a'), (12, '0f')}", found="No"))
    assert facts["cuda_toolkit"] is None
    assert facts["jit_targets"] == ["12.0f", "9.0a"]


def test_flashinfer_collect_env_where_nothing_can_be_imported() -> None:
    facts = {fact.key: fact.value for fact in facts_in(open_log(DUMPS / "flashinfer_collect_env.txt"))}
    assert facts == {
        "packages.flashinfer-cubin": None,
        "packages.flashinfer-jit-cache": None,
        "python": "3.11.7",
        "kernel_release": "6.18.44",
        "glibc": "2.36",
        "os": "Debian GNU/Linux 12",
        "nvcc_path": "/usr/local/bin/nvcc",
        "nvcc_path_version": "13.0",
        "packages.numpy": "2.4.6",
    }


FLASHINFER_ENVIRONMENT = """\
### FlashInfer environment report

==== FlashInfer ====
flashinfer                   : 0.7.0
flashinfer-cubin             : 0.6.12  ⚠ MISMATCH vs flashinfer-python==0.7.0
flashinfer-jit-cache         : 0.7.0+cu130  ⚠ MISMATCH vs flashinfer-python==0.7.0
Target CUDA archs (resolved) : {(12, '0a')}

==== GPU / Driver ====
Driver version       : 580.95.05
CUDA_VISIBLE_DEVICES : <unset>
GPU 0 (CUDA order)   : NVIDIA GeForce RTX 5090 | SM120 | 170 SMs | 31.4 GiB

==== CUDA Toolkit ====
nvcc on PATH                            : /usr/bin/nvcc
CUDA_HOME (env)                         : /usr/local/cuda-12.8
CUDA toolkit resolved by flashinfer JIT : /usr/local/cuda-12.8 (version 12.8)
nvcc version                            : release 11.5, V11.5.119

==== PyTorch ====
torch                : 2.10.0+cu130
torch.version.cuda   : 13.0
torch compiled archs : sm_90 sm_120

==== Environment Variables ====
CUDA_HOME : /usr/local/cuda-12.8
"""


def test_flashinfer_collect_env_tells_the_two_compilers_apart() -> None:
    facts = stated(FLASHINFER_ENVIRONMENT)
    assert facts["toolkit_resolved.flashinfer"] == {"version": "12.8", "root": "/usr/local/cuda-12.8"}
    assert (facts["nvcc_path"], facts["nvcc_path_version"]) == ("/usr/bin/nvcc", "11.5")
    assert "cuda_toolkit" not in facts
    assert facts["jit_targets"] == ["12.0a"]
    assert (facts["gpu"], facts["cc"], facts["driver"]) == ("NVIDIA GeForce RTX 5090", "12.0", "580.95.05")
    assert facts["packages.flashinfer-jit-cache"] == "0.7.0+cu130"
    assert facts["torch_arch_list"] == ["sm_90", "sm_120"]
    assert facts["env.CUDA_HOME"] == "/usr/local/cuda-12.8"
    assert "env.CUDA_VISIBLE_DEVICES" not in facts


INSPECT = """\
        "State": {
            "Status": "exited",
            "OOMKilled": true,
            "Dead": false,
            "Pid": 0,
            "ExitCode": 137,
        },
        "Image": "sha256:5f1a",
        "HostConfig": {
            "ContainerIDFile": "",
            "IpcMode": "MODE",
            "ShmSize": 67108864,
            "Runtime": "nvidia",
            "Memory": 68719476736,
            "DeviceRequests": [
                {
                    "Driver": "",
                    "Count": -1
                }
            ],
            "Ulimits": [
                {
                    "Name": "memlock",
                    "Hard": -1,
                    "Soft": -1
                }
            ]
        },
        "Config": {
            "Env": [
                "NCCL_DEBUG=INFO",
                "HF_TOKEN=hf_x"
            ],
            "Cmd": [
                "--model",
                "Qwen/Qwen3-8B"
            ],
            "Image": "vllm/vllm-openai:v0.9.0",
"""


def test_docker_inspect() -> None:
    assert stated(INSPECT.replace("MODE", "private")) == {
        "container.oom_killed": True,
        "container.exit_code": 137,
        "shm_bytes": 67108864,
        "container.runtime": "nvidia",
        "memory_limit_bytes": 68719476736,
        "ulimit.memlock": "unlimited",
        "memlock": "unlimited",
        "env.NCCL_DEBUG": "INFO",
        "env.HF_TOKEN": "(set)",
        "container.arguments": "--model Qwen/Qwen3-8B",
        "container.image": "vllm/vllm-openai:v0.9.0",
        "packages.vllm": "0.9.0",
    }


def test_the_size_of_a_private_dev_shm_means_nothing_with_the_host_s() -> None:
    assert "shm_bytes" not in stated(INSPECT.replace("MODE", "host"))


def test_state_on_one_line() -> None:
    text = '{"Status":"exited","Running":false,"OOMKilled":false,"Dead":false,"Pid":0,"ExitCode":139,"Error":""}'
    assert stated(text) == {"container.oom_killed": False, "container.exit_code": 139}


def test_an_exit_code_elsewhere_is_no_container_s() -> None:
    assert stated('{\n  "name": "lint",\n  "ExitCode": 1,\n}\n') == {}


COMMAND = """\
docker run -d --gpus all --shm-size 1g \\
  -e NCCL_DEBUG=INFO \\
  --ulimit memlock=-1 \\
  vllm/vllm-openai:v0.9.0 \\
  --model Qwen/Qwen3-8B \\
  -tp 2 --enforce-eager --api-key abc
"""


def test_a_command_over_several_lines() -> None:
    assert stated(COMMAND) == {
        "command": "docker run -d --gpus all --shm-size 1g -e NCCL_DEBUG=INFO --ulimit memlock=-1 vllm/vllm-openai:v0.9.0"
        " --model Qwen/Qwen3-8B -tp 2 --enforce-eager --api-key abc",
        "container.gpus": "all",
        "shm_bytes": 1 << 30,
        "env.NCCL_DEBUG": "INFO",
        "memlock": "unlimited",
        "container.image": "vllm/vllm-openai:v0.9.0",
        "container.in_container": True,
        "packages.vllm": "0.9.0",
        "server_args.model": "Qwen/Qwen3-8B",
        "server_args.tensor_parallel_size": 2,
        "server_args.enforce_eager": True,
    }
    assert quoted(COMMAND, "env.NCCL_DEBUG") == "-e NCCL_DEBUG=INFO \\"
    assert quoted(COMMAND, "server_args.tensor_parallel_size") == "-tp 2 --enforce-eager --api-key abc"


def test_what_the_engine_echoes_outranks_what_was_typed() -> None:
    text = (
        "$ python -m sglang.launch_server --model-path /m --tp 8\n"
        "server_args=ServerArgs(model_path='/m', tp_size=4, mem_fraction_static=0.8)\n"
    )
    assert stated(text)["server_args.tp_size"] == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$ ulimit -l\nunlimited\n", {"ulimit.memlock": "unlimited", "memlock": "unlimited"}),
        ("$ ulimit -l\nbash: ulimit: -l: invalid\n", {}),
        ("Max locked memory         8388608              8388608              bytes     \n", {"ulimit.memlock": 8388608, "memlock": "8388608"}),
        ("               total        used        free      shared  buff/cache   available\nMem:              62          10           1           0          50          51\n", {}),
        ("               total        used        free      shared  buff/cache   available\nMem:            62Gi        10Gi       1.0Gi        10Mi        50Gi        51Gi\n", {"mem_total_bytes": 62 << 30, "mem_available_bytes": 51 << 30}),
        ("$ free -g\n               total        used        free      shared  buff/cache   available\nMem:              62          10           1           0          50          51\n", {"mem_total_bytes": 62 << 30, "mem_available_bytes": 51 << 30}),
        ("Filesystem      Size  Used Avail Use% Mounted on\ntmpfs            64M     0   64M   0% /dev/shm\n", {"df./dev/shm": {"size_bytes": 64 << 20, "avail_bytes": 64 << 20}, "shm_bytes": 64 << 20}),
        ("Filesystem     Type  Size  Used Avail Use% Mounted on\n/dev/vda       ext4  252G   29G   74G  28% /\n", {"df./": {"size_bytes": 252 << 30, "avail_bytes": 74 << 30}, "fs./": "ext4"}),
        ("\tlibcudart.so.12 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n", {"files.libcudart.so.12": None}),
        ("\tlibcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1\n", {"libcuda_path": "/lib/x86_64-linux-gnu/libcuda.so.1"}),
        (
            "● nvidia-fabricmanager.service - NVIDIA fabric manager service\n     Loaded: loaded (/lib/systemd/system/x; enabled)\n     Active: failed (Result: exit-code) since Mon\n",
            {"unit_state.nvidia-fabricmanager": "failed (Result: exit-code)"},
        ),
        ("Unit nvidia-fabricmanager.service could not be found.\n", {"unit_state.nvidia-fabricmanager": "not-found"}),
        ("    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n", {"container.oom_killed": True, "container.exit_code": 137}),
        ("ii  libnvidia-compute-570  570.86.15-0ubuntu1  amd64  NVIDIA\n", {"system_packages.libnvidia-compute-570": "570.86.15-0ubuntu1", "driver_library": "570.86.15"}),
        ("rc  libnvidia-compute-535  535.183.01-0ubuntu1  amd64  removed\n", {}),
        ("ii  cuda-nvcc-12-8  12.8.93-1  amd64  CUDA nvcc\n", {"system_packages.cuda-nvcc-12-8": "12.8.93-1", "other_toolkits./usr/local/cuda-12.8": "12.8"}),
        ("nvidia-fabricmanager-570.86.15-1.x86_64\n", {"system_packages.nvidia-fabricmanager": "570.86.15-1"}),
        (
            "01:00.0 VGA compatible controller: NVIDIA Corporation GB202 [GeForce RTX 5090] (rev a1)\n01:00.1 Audio device: NVIDIA Corporation Device 22e8\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir-\n",
            {"pci_gpus": ["01:00.0"], "pci_acs": "SrcValid+ ReqRedir+"},
        ),
        ("Linux node1 5.15.0-25-generic #25-Ubuntu SMP Wed Mar 30 15:54:22 UTC 2022 x86_64 x86_64 x86_64 GNU/Linux\n", {"kernel_release": "5.15.0-25-generic"}),
        ("# packages in environment at /opt/conda:\n#\n# Name                    Version                   Build  Channel\n_libgcc_mutex             0.1                 conda_forge    conda-forge\npytorch                   2.5.1           py3.12_cuda12.4_cudnn9.1.0_0    pytorch\n",
            {"torch": "2.5.1", "torch_cuda": "12.4"}),
        ("WARNING: Package(s) not found: flashinfer-cubin\n", {"packages.flashinfer-cubin": None}),
    ],
)  # fmt: skip
def test_small_dumps(text: str, expected: dict[str, Any]) -> None:
    assert stated(text) == expected


def test_variables_in_manifests() -> None:
    pod = (
        "        env:\n        - name: NCCL_DEBUG\n          value: \"INFO\"\n        - name: HF_TOKEN\n          valueFrom:\n            secretKeyRef:\n"
        "              name: hf\n              key: token\n        - name: VLLM_USE_V1\n          value: '1'\n        resources:\n          limits:\n            nvidia.com/gpu: 2\n"
    )  # fmt: skip
    assert stated(pod) == {"env.NCCL_DEBUG": "INFO", "env.VLLM_USE_V1": "1"}
    compose = '    environment:\n      - NCCL_DEBUG=INFO\n    ports:\n      - "80:80"\n  b:\n    environment:\n      VLLM_USE_V1: "0"  # old\n'
    assert stated(compose) == {"env.NCCL_DEBUG": "INFO", "env.VLLM_USE_V1": "0"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ENV NCCL_DEBUG=INFO VLLM_USE_V1=0\n", {"env.NCCL_DEBUG": "INFO", "env.VLLM_USE_V1": "0"}),
        ("ENV CUDA_HOME /usr/local/cuda\n", {"env.CUDA_HOME": "/usr/local/cuda"}),
        ('Environment="HF_HOME=/data/hf" "NCCL_DEBUG=INFO"\n', {"env.HF_HOME": "/data/hf", "env.NCCL_DEBUG": "INFO"}),
        ('os.environ["VLLM_ATTENTION_BACKEND"] = "FLASHINFER"\n', {"env.VLLM_ATTENTION_BACKEND": "FLASHINFER"}),
        ("# export CUDA_HOME=/usr/local/cuda-12.8\n", {}),
        ("set CUDA_HOME=/usr/local/cuda-12.8 and try again\n", {}),
        ("CUDA_HOME=/usr/local/cudaPATH=/usr/binVLLM_X=1\n", {}),  # /proc/PID/environ whose NULs were lost
        ("export HF_TOKEN=***\n", {}),
    ],
)
def test_variables(text: str, expected: dict[str, Any]) -> None:
    assert stated(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "### Workaround\nexport CUDA_HOME=/usr/local/cuda-12.8\n",
        "**Fix**\n```\nexport CUDA_HOME=/usr/local/cuda-12.8\n```\n",
        "I fixed it with:\n\n```\npip install x\nexport VLLM_USE_V1=0\n```\n",
        "You can try this instead:\n```\nVLLM_USE_V1=0 vllm serve m\n```\n",
        "## Works on\n- GPU: NVIDIA A100\n- Driver: 535.54.03\n",
        "diff --git a/Dockerfile b/Dockerfile\n@@ -1,2 +1,2 @@\n-ENV CUDA_HOME=/usr/local/cuda-12.4\n+ENV CUDA_HOME=/usr/local/cuda-12.8\n ENV NCCL_DEBUG=INFO\n",
        "## 解决方案\nexport VLLM_USE_V1=0\n",
    ],
)  # fmt: skip
def test_proposals_diffs_and_other_machines_state_nothing(text: str) -> None:
    assert stated(text) == {}


def test_a_proposal_ends_with_its_section() -> None:
    text = "### Workaround\nexport VLLM_USE_V1=0\n### Environment\n- Driver: 580.95.05\nFixed it with:\n\nexport A_B=1\n\n- GPU: RTX 5090\n"
    assert stated(text) == {"driver": "580.95.05", "gpu": "RTX 5090"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- GPU: 2x RTX 5090\n**CUDA**: 12.8\n- Driver Version: 570.86.15\n- OS: Ubuntu 24.04 LTS\n", {"gpu": "RTX 5090", "cuda_said": "12.8", "driver": "570.86.15", "os": "Ubuntu 24.04 LTS"}),
        (
            "| Component | Version |\n| --- | --- |\n| Python | 3.12.3 |\n| vLLM | 0.10.0 |\n| **Kernel** | 6.8.0-45-generic |\n| CUDA Toolkit | 12.8 |\n",
            {"python": "3.12.3", "packages.vllm": "0.10.0", "kernel_release": "6.8.0-45-generic", "nvcc_path_version": "12.8"},
        ),
        (
            "显卡：RTX 4090 x 2\n驱动版本：550.54.14\n操作系统：Ubuntu 22.04\nCUDA版本：12.4\nvllm版本：0.10.0\n",
            {"gpu": "RTX 4090", "driver": "550.54.14", "os": "Ubuntu 22.04", "cuda_said": "12.4", "packages.vllm": "0.10.0"},
        ),
        ("GPU: works fine on A100 too\n", {}),
        ("GPU: A100 / H100\n", {}),
        ("GPU: A100 works, H100 fails\n", {}),
        ("CUDA: yes\nOS: fine\nDriver: latest\n", {}),
    ],
)  # fmt: skip
def test_issue_templates(text: str, expected: dict[str, Any]) -> None:
    assert stated(text) == expected


def test_cuda_versions_of_different_meaning_stand_side_by_side() -> None:
    facts = stated(
        SMI
        + "$ nvcc --version\nCuda compilation tools, release 12.8, V12.8.93\nPyTorch version: 2.9.1+cu130\n- CUDA: 12.9\n"
    )
    found = {
        key: facts.get(key) for key in ("driver_cuda", "nvcc_path_version", "torch_cuda", "cuda_said", "cuda_toolkit")
    }
    assert found == {
        "driver_cuda": "12.4",
        "nvcc_path_version": "12.8",
        "torch_cuda": "13.0",
        "cuda_said": "12.9",
        "cuda_toolkit": None,
    }


def arguments(text: str) -> dict[str, Any]:
    return {key.partition(".")[2]: value for key, value in stated(text).items() if key.startswith("server_args.")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            ("Initializing a V1 LLM engine (v0.10.0) with config: model='Qwen/Qwen3-8B', speculative_config=None, dtype=torch.bfloat16, tensor_parallel_size=2,"
            " decoding_config=DecodingConfig(backend='auto', x=1), kv_cache_dtype=auto\n"),
            {"model": "Qwen/Qwen3-8B", "speculative_config": None, "dtype": "bfloat16", "tensor_parallel_size": 2, "kv_cache_dtype": "auto"},
        ),
        ("args: Namespace(host=None, port=8000, model='Q', cls=<class 'x'>)\n", {"host": None, "port": 8000, "model": "Q"}),
        ("llm = LLM(\n    model='Q',\n    tensor_parallel_size=4,  # all\n)\nprint(x=1)\n", {"model": "Q", "tensor_parallel_size": 4}),
        ("engine = sgl.Engine(model_path='Q', tp_size=2)\n", {"model_path": "Q", "tp_size": 2}),
        ("the LLM(s) model='Q' we use\n", {}),
    ],
)  # fmt: skip
def test_arguments_of_engines(text: str, expected: dict[str, Any]) -> None:
    assert arguments(text) == expected


def test_answers_in_a_shell_belong_to_their_commands() -> None:
    assert stated(
        "$ which nvcc\n/usr/bin/nvcc\n$ /usr/local/cuda-12.8/bin/nvcc --version\nnvcc: NVIDIA (R) Cuda compiler driver\n"
        "Cuda compilation tools, release 12.8, V12.8.93\n$ ls /usr/local | grep cuda\ncuda\ncuda-12.8\n$ echo $CUDA_HOME\n/usr/local/cuda\n"
        "$ ls -l /usr/local\nlrwxrwxrwx 1 root root   20 Oct 16 23:04 cuda -> /usr/local/cuda-13.0\n"
    ) == {
        "nvcc_path": "/usr/bin/nvcc",
        "other_toolkits./usr/local/cuda-12.8": "12.8",
        "files./usr/local/cuda": "a link to /usr/local/cuda-13.0",
        "files./usr/local/cuda-12.8": "a directory",
        "env.CUDA_HOME": "/usr/local/cuda",
    }
    assert stated("cuda-12.8\n/usr/bin/nvcc\n") == {}
    assert stated("bash: nvcc: command not found\n") == {"nvcc_path": None}


def test_docker_info_and_compose() -> None:
    text = " Runtimes: io.containerd.runc.v2 nvidia runc\n Kernel Version: 6.8.0-45-generic\n Operating System: Ubuntu 24.04.1 LTS\n"
    assert stated(text) == {
        "container.runtimes": ["io.containerd.runc.v2", "nvidia", "runc"],
        "kernel_release": "6.8.0-45-generic",
        "os": "Ubuntu 24.04.1 LTS",
    }
    assert stated("    image: vllm/vllm-openai:v0.10.0\n    shm_size: '8gb'\n") == {
        "container.image": "vllm/vllm-openai:v0.10.0",
        "packages.vllm": "0.10.0",
        "shm_bytes": 8 << 30,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: ':/usr/local/cuda-11.7/bin/nvcc'\n", {"cuda_home": ":/usr/local/cuda-11.7"}),
        ("/bin/sh: 1: /opt/cuda/bin/nvcc: not found\n", {"cuda_home": "/opt/cuda"}),
        (
            "nv-fabricmanager[3228]: fabric manager NVIDIA GPU driver interface version 530.30.02 don't match with driver version 530.41.03. Please update\n",
            {"driver": "530.41.03", "system_packages.nvidia-fabricmanager": "530.30.02"},
        ),
        ("node1:1:1 [0] NCCL INFO NCCL version 2.27.7+cuda12.9\n", {"packages.nccl": "2.27.7"}),
        ('  File "/opt/vllm/lib64/python3.12/multiprocessing/process.py", line 3, in f\n', {"python": "3.12"}),
    ],
)  # fmt: skip
def test_what_messages_give_away(text: str, expected: dict[str, Any]) -> None:
    assert stated(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The conflict is caused by:\n    vllm 0.6.3 depends on torch==2.4.0\n    torch==2.5.0\n", {}),
        (
            "vllm 0.10.0 requires torch==2.7.1, but you have torch 2.8.0 which is incompatible.\n",
            {"packages.vllm": "0.10.0", "torch": "2.8.0"},
        ),
        ("vllm 0.6.3 crashes for me\n", {}),
        ("- NVIDIA GeForce RTX 5090\n- 2x RTX 5090\n- CUDA 12.8\n- vLLM 0.11.0\n", {"gpu": "NVIDIA GeForce RTX 5090", "cuda_said": "12.8", "packages.vllm": "0.11.0"}),
        ("- A100\n- H100\n", {}),  # two machines, or one with both: nobody knows
        ("[conda] numpy                     1.26.4                   pypi_0    pypi\n", {"packages.numpy": "1.26.4"}),
        ('    args: ["--model-path", "Qwen", "--tp", "2"]\n', {"server_args.model_path": "Qwen", "server_args.tp_size": 2}),
        ("    command: --model Q --tensor-parallel-size 2\n    ports:\n", {"server_args.model": "Q", "server_args.tensor_parallel_size": 2}),
        (
            "        args:\n        - --model=Q\n        - --dtype\n        - half\n        - --enforce-eager\n        - --seed=1\n        ports:\n",
            {"server_args.model": "Q", "server_args.dtype": "half", "server_args.enforce_eager": True, "server_args.seed": 1},
        ),
        ("        env:\n        - {name: NCCL_DEBUG, value: INFO}\n", {"env.NCCL_DEBUG": "INFO"}),
    ],
)  # fmt: skip
def test_lists_of_packages_and_manifests(text: str, expected: dict[str, Any]) -> None:
    assert stated(text) == expected
