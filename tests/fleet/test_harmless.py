"""Rules for differences that mean nothing: they take out names, places and moments, and leave versions and limits."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gpuwhy.fleet.harmless import IGNORED, Node, is_address, neutralised, told


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("root=UUID=0f3c9a1e-77aa-4b52-8f0e-1a2b3c4d5e6f ro", "root=UUID=aaaaaaaa-77aa-4b52-8f0e-1a2b3c4d5e6f ro"),
        ("GPU-0f3c9a1e-77aa-4b52-8f0e-1a2b3c4d5e6f", "GPU-11111111-77aa-4b52-8f0e-1a2b3c4d5e6f"),
        ("--host 10.0.0.17 --port 30000", "--host 10.0.0.18 --port 30000"),
        ("http://10.0.0.17:8000/v1", "http://10.0.3.1:8000/v1"),
        ("fe80::1a2b:3cff:fe4d:5e6f", "fe80::1a2b:3cff:fe4d:0001"),
        ("--node-rank 3 --tp 8", "--node-rank 11 --tp 8"),
        ("/tmp/job.8123/x", "/tmp/job.99/x"),
        ("/var/lib/containers/9f8e7d6c5b4a39281706/merged", "/var/lib/containers/0f8e7d6c5b4a39281706/merged"),
        ("rw,size=1048576k,nr_inodes=77", "rw,size=2097152k,nr_inodes=88"),
        ("2026-11-30T10:11:12.123Z up", "2026-12-01T00:00:00Z up"),
        ("0000:1b:00.0: none", "0000:9a:00.0: none"),
    ],
)
def test_names_places_and_moments_are_left_out(one: str, other: str) -> None:
    assert neutralised(one) == neutralised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("580.95.05", "570.86.15"),
        ("12.8", "12.9"),
        ("2.9.1+cu129", "2.9.1+cu128"),
        ("6.8.0-79-generic", "6.8.0-55-generic"),
        ("/usr/local/cuda-12.8/bin", "/usr/local/cuda-12.9/bin"),
        ("12.0a 12.0f", "12.0a"),
        ("65536", "unlimited"),
        ("8589934592", "17179869184"),
        ("--tp 8 --mem-fraction-static 0.85", "--tp 8 --mem-fraction-static 0.9"),
        ("--dist-init-addr 10.0.0.1:5000", "--dist-init-addr 10.0.0.2:5000"),
        ("8 x NVIDIA H100 80GB HBM3 (9.0)", "7 x NVIDIA H100 80GB HBM3 (9.0)"),
    ],
)
def test_what_can_matter_stays(one: str, other: str) -> None:
    assert neutralised(one) != neutralised(other)


def test_a_node_is_known_by_its_name_and_the_name_of_its_host_alone() -> None:
    one, other = Node("root@gpu017.cluster", "ip-10-0-0-17"), Node("gpu018.cluster")
    assert one.neutral("/var/log/gpu017/out on gpu017.cluster") == other.neutral(
        "/var/log/gpu018/out on gpu018.cluster"
    )
    assert "gpu0171" in one.neutral("gpu0171 is another")
    # a name that is a word says nothing about the node
    assert Node("local").neutral("/usr/local/cuda") == "/usr/local/cuda"


@pytest.mark.parametrize("key", ["env.NODE_RANK", "env.HOSTNAME", "mem_available_bytes", "service.restarts", "env.SLURM_PROCID", "processes"])  # fmt: skip
def test_facts_of_the_day_are_never_compared(key: str) -> None:
    assert IGNORED.match(key)
    assert told(key, "1") is ...


@pytest.mark.parametrize("key", ["env.CUDA_HOME", "env.NCCL_SOCKET_IFNAME", "env.MASTER_ADDR", "driver", "memlock", "service.user", "packages.torch"])  # fmt: skip
def test_facts_that_matter_are(key: str) -> None:
    assert told(key, "1") == "1"


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("df./", {"size_bytes": 100, "avail_bytes": 50}, {"size_bytes": 90, "avail_bytes": 20}),
        ("net_interfaces", ["lo", "eno1", "ib0"], ["lo", "enp3s0f1", "veth77", "ib1"]),
        ("fabric_state", ["GPU 0: completed, success", "GPU 1: x"], ["GPU 0: x", "GPU 1: completed, success"]),
        ("jit_cache./c", {"a": "built"}, {"b": "built", "c": "unbuilt"}),
        ("pci_gpus", ["0000:1b:00.0"], ["0000:9a:00.0"]),
    ],
)
def test_what_follows_slots_and_use_is_equal(key: str, one: Any, other: Any) -> None:
    assert told(key, one) == told(key, other)


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("df./", {"size_bytes": 100, "avail_bytes": 50}, {"size_bytes": 100, "avail_bytes": 2}),
        ("net_interfaces", ["ib0", "ib1"], ["ib0"]),
        ("fabric_state", ["GPU 0: completed, success"], ["GPU 0: not started, x"]),
        ("jit_cache./c", {"a": "built"}, {"a": "truncated"}),
        ("pci_gpus", ["0000:1b:00.0"], []),
        ("files./models/x", None, "there"),
    ],
)
def test_what_is_broken_or_missing_is_not(key: str, one: Any, other: Any) -> None:
    assert told(key, one) != told(key, other)


def test_a_variable_that_is_an_address_is_compared_as_it_is() -> None:
    assert is_address("env.HTTPS_PROXY", "http://10.0.0.1:3128")
    assert not is_address("command", "10.0.0.1")
    assert not is_address("env.PATH", "/usr/bin")


@pytest.mark.parametrize("text", ["1:" * 40_000, "a0" * 40_000, "/tmp/" * 20_000, "10." * 40_000, "0000:" * 20_000, "-" * 80_000 + "1", "uuid=" * 20_000])  # fmt: skip
def test_hostile_text_takes_no_more_than_linear_time(text: str) -> None:
    began = time.process_time()
    neutralised(text)
    assert time.process_time() - began < 1.0
