"""Ranks that cannot meet over TCP: interfaces, addresses, routes, names, silence; and the echoes of dead peers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

NO_INTERFACE = "node:1:1 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\n"
NO_FAMILY = """\
[trainer3]:worker-3:1958:1958 [3] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth7
torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, internal error - please report this issue to the NCCL developers, NCCL version 2.27.7
ncclInternalError: Internal check failed.
Last error:
ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)
"""
GLOO = "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: eth0\n"
SAME_ADDRESS = "RuntimeError: Every node should have a unique IP address. Got 2 nodes with node ids ['a', 'b'] and 1 unique IP addresses {'127.0.0.1'}. If you set `VLLM_HOST_IP` environment variable, make sure it is unique for each node.\n"
NO_ROUTE = "node2:55:88 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 192.0.2.11<43213> failed : No route to host\n"
BRIDGE = "node2:55:88 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 172.17.0.1<43213> failed : Connection refused\n"
LATE = "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (192.0.2.10, 29500).\n"
NAME = "[W socket.cpp:601] [c10d] The IPv4 network addresses of (node-0, 29500) cannot be retrieved (gai error: -2 - Name or service not known).\n"
NOT_OURS = "zmq.error.ZMQError: Cannot assign requested address (addr='tcp://192.0.2.5:38211')\n"
ABSENT = "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/2 clients joined.\n"
HOME = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:38547: Connection refused\n"
)
SILENT = "worker-0:1:1 [0] NCCL INFO Bootstrap : Using eth0:192.0.2.8<0>\nworker-0:1:1 [0] NCCL INFO NET/IB : No device found.\n(hangs here, no further output)\n"


@pytest.mark.parametrize(
    ("report", "certainty", "component", "remedy"),
    [
        (NO_INTERFACE, Certainty.PROVEN, "nccl", "NCCL_SOCKET_IFNAME"),
        (NO_FAMILY, Certainty.LIKELY, "nccl", "NCCL_SOCKET_IFNAME"),
        (GLOO, Certainty.PROVEN, "gloo", "GLOO_SOCKET_IFNAME"),
        (SAME_ADDRESS, Certainty.LIKELY, "vllm", "VLLM_HOST_IP"),
        (NO_ROUTE, Certainty.LIKELY, "network", "firewall"),
        (BRIDGE, Certainty.LIKELY, "network", "NCCL_SOCKET_IFNAME"),
        (LATE, Certainty.LIKELY, "network", "firewall"),
        (NAME, Certainty.LIKELY, "network", "MASTER_ADDR"),
        (NOT_OURS, Certainty.LIKELY, None, "NCCL_SOCKET_IFNAME"),
        (ABSENT, Certainty.POSSIBLE, "network", "firewall"),
        (HOME, Certainty.LIKELY, "network", "GLOO_SOCKET_IFNAME"),
        (SILENT, Certainty.POSSIBLE, "network", "firewall"),
    ],
)
def test_each_way_not_to_meet(
    judge_report: Judge, finding: Find, report: str, certainty: Certainty, component: str | None, remedy: str
) -> None:
    judgement = judge_report(report)
    assert judgement.findings[0].cause == "bootstrap-network"
    found = finding(judgement, "bootstrap-network")
    assert found.certainty is certainty
    assert component is None or found.component == component
    assert remedy in [each.name for each in found.remedies]


def test_the_variable_is_quoted_before_the_nonsense_it_leads_to(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(NO_FAMILY), "bootstrap-network")
    assert found.evidence[0].quote.endswith("NCCL_SOCKET_IFNAME set by environment to eth7")
    assert "eth7" in found.title


def test_an_interface_that_the_host_lacks_is_proven_and_a_real_one_proposed(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(NO_FAMILY, {"net_interfaces": ["lo", "docker0", "ens3"]}), "bootstrap-network")
    assert found.certainty is Certainty.PROVEN
    assert (found.remedies[0].name, found.remedies[0].value) == ("NCCL_SOCKET_IFNAME", "ens3")


def test_a_firewall_proves_the_silence(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(SILENT, {"firewall": "rules drop TCP to high ports on eth0"}), "bootstrap-network")
    assert (found.certainty, found.component) == (Certainty.PROVEN, "network")
    asked = finding(judge_report(SILENT), "bootstrap-network")
    assert asked.missing[0].key == "firewall"
    assert "p2p-iommu" in asked.rivals


def test_no_firewall_rules_the_silence_out(judge_report: Judge) -> None:
    judgement = judge_report(SILENT, {"firewall": "inactive"})
    assert "bootstrap-network" in [each.cause for each in judgement.ruled_out]


def test_a_list_is_nothing_for_gloo(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(GLOO, {"env.GLOO_SOCKET_IFNAME": "^lo,docker0"}), "bootstrap-network")
    assert "GLOO_SOCKET_IFNAME=^lo,docker0" in found.title
    assert any("exclusion lists" in note for note in found.notes)


@pytest.mark.parametrize(
    "report",
    [
        # a download
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded (Caused by NewConnectionError('[Errno 101] Network is unreachable'))\n",
        # a peer died first
        "(Worker_TP1 pid=9) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.\n(Worker_TP0 pid=8) RuntimeError: Gloo connectFullMesh failed with Connection refused\n",
        # the ranks met
        SILENT.replace("(hangs", "worker-0:1:1 [0] NCCL INFO comm 0x1 - Init COMPLETE\n(hangs"),
        # a name that does not resolve for a client of the server
        "[W socket.cpp:697] [c10d] The hostname of the client socket cannot be retrieved. err=-3\nRuntimeError: out of luck\n",
        "OSError: [Errno 98] Address already in use\n",
        "RuntimeError: Connection closed by peer\n",
    ],
)
def test_near_misses(judge_report: Judge, report: str) -> None:
    assert "bootstrap-network" not in [each.cause for each in judge_report(report).findings]


def test_dockers_bridge_is_nowhere_for_another_node(judge_report: Judge, finding: Find) -> None:
    report = (
        "NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>\n"
        "node-1:1:1 [0] NCCL WARN Net: connect to 172.17.0.1 failed : Connection timed out\n"
    )
    found = finding(judge_report(report), "bootstrap-network")
    assert found.certainty is Certainty.LIKELY
    assert "NCCL_SOCKET_IFNAME" in [each.name for each in found.remedies]


NAMED = "pod-0:77:77 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth2\n"
INTERNAL = (
    "RuntimeError: NCCL error in: NCCLUtils.cpp:94, internal error - please report this issue to the NCCL developers, NCCL version 2.27.3\n"
    "ncclInternalError: Internal check failed.\n"
)


@pytest.mark.parametrize("end", ["", "Last error:\n"])
def test_an_internal_error_without_a_reason_below_a_named_interface(
    judge_report: Judge, finding: Find, end: str
) -> None:
    found = finding(judge_report(NAMED + INTERNAL + end), "bootstrap-network")
    assert (found.certainty, found.component) == (Certainty.POSSIBLE, "nccl")
    assert found.evidence[0].quote.endswith("set by environment to eth2")
    assert "net_interfaces" in [each.key for each in found.missing]


@pytest.mark.parametrize(
    "report",
    [
        INTERNAL,
        NAMED + "pod-0:77:90 [0] transport/nvls.cc:170 NCCL WARN Cuda failure 1 'invalid argument'\n" + INTERNAL,
        NAMED + INTERNAL + "Last error:\nNET/IB : Unable to open device mlx5_0\n",
    ],
)
def test_an_internal_error_with_another_reason_is_not_of_the_interface(judge_report: Judge, report: str) -> None:
    assert "bootstrap-network" not in [found.cause for found in judge_report(report).findings]


def test_nccl_that_gives_up_after_its_retries(judge_report: Judge, finding: Find) -> None:
    report = "w2:101:330 [5] misc/socket.cc:528 NCCL WARN socketStartConnect: exceeded retries (20000)\n"
    assert finding(judge_report(report), "bootstrap-network").evidence[0].quote.endswith("exceeded retries (20000)")


FALL_BACK = "[W ProcessGroupGloo.cpp:715] Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback. Manually set the network interface to bind to with GLOO_SOCKET_IFNAME. (function operator())\n"


def test_gloos_fall_back_harms_nobody_until_something_fails(judge_report: Judge, finding: Find) -> None:
    assert "bootstrap-network" not in [found.cause for found in judge_report(FALL_BACK).findings]
    failed = (
        "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error\n"
    )
    assert finding(judge_report(FALL_BACK + failed), "bootstrap-network")


def test_the_program_s_own_line_is_cited_and_not_the_title(judge_report: Judge, finding: Find) -> None:
    error = (
        "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"
    )
    text = f"[Bug] two nodes fail with Gloo connectFullMesh failed\n\nTraceback (most recent call last):\n{error}\n"
    assert finding(judge_report(text), "bootstrap-network").evidence[0].quote == error


GCS = "ConnectionError: Failed to connect to GCS at address 192.0.2.4:6379 within 5 seconds\n"


def test_no_variable_of_nccl_reaches_ray_s_server(judge_report: Judge, finding: Find) -> None:
    names = [remedy.name for remedy in finding(judge_report(GCS), "bootstrap-network").remedies]
    assert names == ["firewall", "--node-ip-address"]


def test_a_firewall_in_the_reporter_s_words_orders_the_remedies_and_proves_nothing(
    judge_report: Judge, finding: Find
) -> None:
    found = finding(judge_report(GCS + "ufw is active on the head\n"), "bootstrap-network")
    assert order(found.remedies)[0].name == "firewall"
    assert found.certainty is finding(judge_report(GCS), "bootstrap-network").certainty
