"""host-oom-kill: who says so, who the victim was, and what multiplies the need."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "host-oom-kill"


@pytest.mark.parametrize(
    "line",
    [
        "kernel: Out of memory: Killed process 4312 (VLLM::EngineCor) total-vm:99999kB, anon-rss:66000000kB, file-rss:0kB, shmem-rss:12kB",
        "Memory cgroup out of memory: Killed process 8812 (python3) total-vm:99999kB, anon-rss:66000000kB, file-rss:0kB",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker-1.scope,mems_allowed=0,oom_memcg=/docker/1,task=python3,pid=4,uid=0",
        "systemd[1]: sglang.service: A process of this unit has been killed by the OOM killer.",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=4422.0. Some of the step tasks have been OOM Killed.",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "systemd-oomd[700]: Killed /user.slice/vllm.scope due to memory pressure",
        "    Reason:       OOMKilled",
    ],
)  # fmt: skip
def test_those_who_know_prove_it(judge_report: Judge, line: str) -> None:
    first = judge_report(line + "\n").findings[0]
    assert (first.cause, first.component, first.certainty) == (CAUSE, "host-memory", Certainty.PROVEN)
    assert first.evidence[0].quote in line


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 117440512 bytes.",
        "OSError: The paging file is too small for this operation to complete. (os error 1455)",
        "Error: model requires more system memory (12.7 GiB) than is available (7.6 GiB)",
        "ValueError: Not enough host memory available. Requesting 120.00 GB but only have 61.22 GB free.",
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
        "llama_model_load: error loading model: mmap failed: Cannot allocate memory",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 23.0 GiB for an array with shape (1, 2)",
    ],
)  # fmt: skip
def test_allocations_that_the_host_refuses(judge_report: Judge, line: str) -> None:
    first = judge_report(line + "\n").findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


@pytest.mark.parametrize(
    "line",
    [
        "Killed",
        "./run.sh: line 12:  4312 Killed                  python -m sglang.launch_server",
        "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.",
        "traceback : Signal 9 (SIGKILL) received by PID 4312",
        "Rank 0 scheduler is dead. Please check if there are relevant logs there. Exit code: -9",
    ],
)
def test_a_bare_kill_is_only_possible_and_asks(judge_report: Judge, finding: Find, line: str) -> None:
    found = finding(judge_report(f"Loading safetensors checkpoint shards:  62% Completed | 8/13\n{line}\n"), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"kernel_log", "mem_total_bytes", "model_bytes"} <= {missing.key for missing in found.missing}
    assert "jit-build-killed" in found.rivals


def test_copies_per_numa_node_are_multiplied(judge_report: Judge) -> None:
    facts = {
        "mem_total_bytes": 1000 * 10**9,
        "swap_total_bytes": 8 * 10**9,
        "numa_nodes": 2,
        "model_bytes": 713 * 10**9,
        "env.NUMA": "1",
    }
    first = judge_report("loading blk.47.attn_kv_b.weight to cuda:0\nKilled\n", facts).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert "2 times" in first.title
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("NUMA", "unset")
    need = next(remedy for remedy in first.remedies if remedy.name == "host-memory")
    assert need.value == ">=1460 GiB"


def test_a_model_that_fits_leaves_it_possible(judge_report: Judge, finding: Find) -> None:
    facts = {"mem_total_bytes": 1000 * 10**9, "numa_nodes": 2, "model_bytes": 100 * 10**9}
    found = finding(judge_report("loading blk.47.attn_kv_b.weight to cuda:0\nKilled\n", facts), CAUSE)
    assert found.certainty is Certainty.POSSIBLE


def test_a_kernel_log_without_a_kill_rules_it_out(judge_report: Judge) -> None:
    judgement = judge_report("Loading checkpoint shards:  62%\nKilled\n", {"kernel_log": ["usb 1-1: new device"]})
    assert CAUSE not in [found.cause for found in judgement.findings]
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


def test_the_limit_of_a_pod_is_raised_by_its_own_name(judge_report: Judge) -> None:
    first = judge_report("    Reason:       OOMKilled\n    Exit Code:    137\n").findings[0]
    assert (order(first.remedies)[0].kind, order(first.remedies)[0].name) == ("config", "resources.limits.memory")


def test_unified_memory_lowers_the_gpu_s_fraction(judge_report: Judge) -> None:
    text = (
        "vllm serve m on a DGX Spark\n(EngineCore_DP0 pid=8) INFO [gpu_model_runner.py:2] Starting to load model m\n"
        "Out of memory: Killed process 37 (lmcache) total-vm:81306880kB, anon-rss:1058560kB, file-rss:21412kB\n"
    )
    first = judge_report(text).findings[0]
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("--gpu-memory-utilization", "lower")
    assert "oom_score_adj" in [remedy.name for remedy in first.remedies]


def test_sizes_per_worker_are_named(judge_report: Judge) -> None:
    text = (
        "server_args=ServerArgs(model_path='/m', hicache_size=100)\n"
        "Out of memory: Killed process 37 (sglang::schedul) total-vm:81306880kB, anon-rss:91058560kB\n"
    )
    first = judge_report(text).findings[0]
    assert "--hicache-size" in [remedy.name for remedy in first.remedies]


def test_near_miss_a_compiler_as_victim(judge_report: Judge) -> None:
    text = "FAILED: [code=137] gemm.cuda.o\nOut of memory: Killed process 4711 (cicc) total-vm:9918232kB, anon-rss:9401220kB\n"
    judgement = judge_report(text)
    assert judgement.findings[0].cause == "jit-build-killed"
    assert CAUSE not in [found.cause for found in judgement.findings]


def test_near_miss_a_kill_in_a_build(judge_report: Judge) -> None:
    text = (
        "[11/63] /usr/local/cuda/bin/nvcc -c gemm.cu -o gemm.cuda.o\nKilled\nninja: build stopped: subcommand failed.\n"
    )
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_near_miss_cuda_s_own_allocator(judge_report: Judge) -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


@pytest.mark.parametrize(
    "line",
    [
        "ollama.service: State 'stop-sigterm' timed out. Killing.\nollama.service: Killing process 12 (ollama) with signal SIGKILL.",
        "Liveness probe failed: HTTP probe failed\nContainer vllm failed liveness probe, will be restarted\nExit Code:    137",
        "slurmstepd: error: *** JOB 12 ON node CANCELLED AT 2025-01-01 DUE TO TIME LIMIT ***\nexit code 137",
    ],
)
def test_near_miss_a_kill_on_purpose(judge_report: Judge, line: str) -> None:
    assert CAUSE not in [found.cause for found in judge_report(line + "\n").findings]


def test_near_miss_a_container_that_was_not_killed_for_memory(judge_report: Judge) -> None:
    text = '"OOMKilled": false,\n"ExitCode": 1,\n'
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_near_miss_a_kill_after_another_failure(judge_report: Judge) -> None:
    """The first failure is the cause; what the parent does with its children then is not."""
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/app/serve.py", line 3, in <module>\n'
        "KeyError: 'rope_scaling'\n"
        "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.\n"
    )
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_a_kernel_log_with_the_kill_proves_it(judge_report: Judge) -> None:
    line = "Out of memory: Killed process 2583 (python) total-vm:1481207384kB, anon-rss:1044530552kB"
    first = judge_report("loading blk.42.attn_kv_b.weight to cuda:0\nKilled\n", {"kernel_log": [line]}).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.PROVEN)
    assert line in [evidence.quote for evidence in first.evidence]


def test_who_asked_for_memory_is_not_the_line_that_decides(judge_report: Judge) -> None:
    text = (
        "[  512.12] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
        "[  512.14] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/kubepods,task_memcg=/kubepods/pod1,task=VLLM::Worker_TP,pid=9,uid=0\n"
    )
    first = judge_report(text).findings[0]
    assert "CONSTRAINT_MEMCG" in first.evidence[0].quote
    assert order(first.remedies)[0].name == "resources.limits.memory"


PINNED = """INFO 04-02 11:31:09 gpu_executor.py:122] # GPU blocks: 7621, # CPU blocks: 16384
Traceback (most recent call last):
  File "/opt/venv/lib/python3.10/site-packages/vllm/worker/cache_engine.py", line 75, in _allocate_kv_cache
    torch.zeros(kv_cache_shape,
                dtype=self.dtype,
                pin_memory=pin_memory,
RuntimeError: CUDA error: out of memory
"""


def test_memory_that_cannot_be_pinned_is_the_hosts(judge_report: Judge) -> None:
    first = judge_report(PINNED).findings[0]
    assert (first.cause, first.component) == (CAUSE, "host-memory")
    assert "pin" in first.evidence[0].statement


def test_an_allocation_on_the_gpu_is_none_of_the_hosts(judge_report: Judge) -> None:
    text = PINNED.replace("pin_memory=pin_memory", 'device="cuda"')
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_llama_cpp_without_host_memory_for_its_buffer(judge_report: Judge) -> None:
    text = (
        "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 64208371712\n"
        "llama_model_load: error loading model: unable to allocate CPU buffer\n"
        "llama_model_load_from_file_impl: failed to load model\n"
    )
    findings = judge_report(text).findings
    assert [found.cause for found in findings] == [CAUSE]


@pytest.mark.parametrize(
    "text",
    [
        # vLLM ends the other workers after one has died: that line does not say who killed the first.
        (
            "Loading safetensors checkpoint shards:  71% Completed | 22/31\n"
            "ERROR 01-09 10:11:12 multiproc_worker_utils.py:123] Worker VllmWorkerProcess pid 201 died, exit code: -9\n"
            "INFO 01-09 10:11:12 multiproc_worker_utils.py:127] Killing local vLLM worker processes\n"
        ),
        (
            "ERROR shard-manager: text_generation_launcher: Shard complete standard error output:\n\n"
            "ERROR shard-manager: text_generation_launcher: Shard process was signaled to shutdown with signal 9 rank=0\n"
        ),
        (
            "ggml_cuda_host_malloc: failed to allocate 42187.50 MiB of pinned memory: out of memory\n"
            'time=2024-12-01T10:10:10Z level=ERROR source=sched.go:428 msg="error loading llama server" error="llama runner process has terminated: signal: killed"\n'
        ),
    ],
)
def test_a_kill_is_seen_behind_the_noise_of_its_supervisor(judge_report: Judge, text: str) -> None:
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.POSSIBLE)
    told = {"kernel_log": ["Out of memory: Killed process 201 (python3) total-vm:9kB, anon-rss:30231231kB"]}
    assert judge_report(text, told).findings[0].certainty is Certainty.PROVEN


def test_near_miss_what_is_killed_after_the_engine_said_so(judge_report: Judge) -> None:
    text = "INFO 01-09 multiproc_worker_utils.py:127] Killing local vLLM worker processes\nWorker pid 201 died, exit code: -9\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


@pytest.mark.parametrize(
    "line",
    [
        "memory allocation of 2147483648 bytes failed",
        "fatal error: runtime: out of memory",
        "fatal error: runtime: cannot allocate memory",
    ],
)
def test_run_times_of_other_languages(judge_report: Judge, line: str) -> None:
    first = judge_report(line + "\nAborted (core dumped)\n").findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


@pytest.mark.parametrize(
    ("text", "key", "command"),
    [
        ("vllm.service: Main process exited, code=killed, status=9/KILL\nvllm.service: Failed with result 'signal'.\n", "memory_limit_kills", "/proc/vmstat"),
        ("vllm    vllm/vllm-openai:v0.19.0  \"python3\"   vllm      Exited (137) 5 minutes ago\n", "container.oom_killed", "docker inspect"),
        ("    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    137\n", "container.oom_killed", "kubectl get pod"),
        ("(EngineCore pid=80) INFO Starting to load model m...\nRuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': -9}\n", "memory_limit_kills", "/proc/vmstat"),
    ],
)  # fmt: skip
def test_an_exit_status_alone_names_what_decides(judge_report: Judge, finding: Find, text: str, key: str, command: str) -> None:  # fmt: skip
    found = finding(judge_report(text), "host-oom-kill")
    assert found.certainty is Certainty.POSSIBLE
    asked = {each.key: each.command for each in found.missing}
    assert next(iter(asked)) == "kernel_log"
    assert command in asked[key]


def test_the_limit_that_was_reached_is_the_bound_of_the_new_one(judge_report: Judge, finding: Find) -> None:
    kernel = (
        "memory: usage 268435456kB, limit 268435456kB, failcnt 103\n"
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker-abc.scope,oom_memcg=/system.slice/docker-abc.scope,task=python3,pid=4321,uid=0\n"
        "Memory cgroup out of memory: Killed process 4321 (python3) total-vm:900000000kB, anon-rss:32000000kB, file-rss:2000000kB, shmem-rss:1000kB\n"
    )
    found = finding(judge_report(kernel), "host-oom-kill")
    assert {each.name: each.value for each in found.remedies}["memory limit"] == ">256Gi"
    pod = "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n    Limits:\n      memory:          64Gi\n"
    found = finding(judge_report(pod), "host-oom-kill")
    assert {each.name: each.value for each in found.remedies}["resources.limits.memory"] == ">64Gi"


def test_files_in_memory_are_moved_out_of_it(judge_report: Judge, finding: Find) -> None:
    text = "Out of memory: Killed process 4321 (VLLM::Worker) total-vm:190000000kB, anon-rss:6000000kB, file-rss:2000kB, shmem-rss:210000000kB\n"
    found = finding(judge_report(text), "host-oom-kill")
    first = order(found.remedies)[0]
    assert (first.name, first.value) == ("checkpoint", "on a disk, not on tmpfs or /dev/shm")


def test_a_daemon_that_watches_the_pressure_is_no_limit(judge_report: Judge, finding: Find) -> None:
    text = (
        "Jan 10 10:04:22 gpu01 systemd-oomd[700]: Killed /system.slice/sglang.service due to memory pressure for /system.slice being 85.10% > 60.00% for > 20s with reclaim activity\n"
        "Jan 10 10:04:22 gpu01 systemd[1]: sglang.service: Failed with result 'oom-kill'.\n"
    )
    names = {each.name for each in finding(judge_report(text), "host-oom-kill").remedies}
    assert "ManagedOOMPreference" in names
    assert "MemoryMax" not in names


def test_a_launcher_that_only_reports_the_signal(judge_report: Judge, finding: Find) -> None:
    text = (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
        "serve.py FAILED\n"
        "Root Cause (first observed failure):\n"
        "  rank      : 3 (local_rank: 3)\n"
        "  exitcode  : -9 (pid: 4242)\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 4242\n"
    )
    assert finding(judge_report(text), "host-oom-kill").certainty is Certainty.POSSIBLE


def test_an_echo_of_all_arguments_switches_nothing_on(judge_report: Judge, finding: Find) -> None:
    text = (
        "[2026-01-10 10:00:00] server_args=ServerArgs(model_path='m', tp_size=8, enable_hierarchical_cache={}, hicache_ratio=2.0, hicache_size=0, "
        "weight_loader_disable_mmap=False, cpu_offload_gb=0)\n"
        "[2026-01-10 10:04:25] Child process unexpectedly failed with exitcode=-9. pid=12345\n"
    )
    off = {each.name for each in finding(judge_report(text.format("False")), "host-oom-kill").remedies}
    assert not {"--hicache-size", "--cpu-offload-gb"} & off
    on = {each.name for each in finding(judge_report(text.format("True")), "host-oom-kill").remedies}
    assert "--hicache-size" in on
