"""A fleet of 64 as its analysis sees it: an old driver, an odd toolkit, a job that failed, nodes that gave nothing."""

from __future__ import annotations

from gpuwhy.model.fleet import (
    Deviation,
    FleetFinding,
    FleetReport,
    JobFailure,
    Mixed,
    NodeGroup,
    NotCollected,
    Outlier,
    Pool,
    RankFailure,
    Unseen,
    UsualFact,
)

_PTX = FleetFinding(
    "diagnose",
    "ptx-newer-than-driver",
    "proven",
    "A kernel exists only as PTX of CUDA 13.0 than the driver 570.86.15 can compile",
    "driver",
    "LD_LIBRARY_PATH=/usr/local/cuda/compat",
    1,
)
_DRIVER = tuple(
    Deviation(key, "driver", "570.86.15", "580.95.05", 63, 1, ("driver-too-old",), True, 9.0)
    for key in ("driver", "driver_installed", "driver_library")
)
_TOOLKITS = tuple(
    Deviation(f"toolkit_resolved.{name}", "toolkit", "12.4 (/usr/local/cuda-12.4, by CUDA_HOME)", "13.0 (/usr/local/cuda-13.0, by CUDA_HOME)", 62, 2)
    for name in ("flashinfer", "torch", "triton", "deepgemm")
)  # fmt: skip
_HOSTILE = Deviation("kernel_cmdline", "kernel", "<script>alert(1)</script>\u202e" + "x" * 600, "quiet", 63, 1)


def fleet() -> FleetReport:
    alike = tuple(f"gpu{number:03}" for number in range(1, 65) if number not in (9, 17, 40, 41))
    odd = ("gpu040", "gpu041")
    outliers = (
        Outlier("NVIDIA H100 80GB HBM3, sglang", ("gpu017",), _DRIVER, (_PTX,), 27.0),
        Outlier("NVIDIA H100 80GB HBM3, sglang", odd, _TOOLKITS, (), 8.0),
        Outlier("NVIDIA H100 80GB HBM3, sglang", ("gpu009",), (_HOSTILE,), (), 2.0),
    )
    groups = (
        NodeGroup(1, alike, True),
        NodeGroup(2, odd, False, tuple(each.key for each in _TOOLKITS)),
        NodeGroup(3, ("gpu017",), False, tuple(each.key for each in _DRIVER), (_PTX,)),
        NodeGroup(4, ("gpu009",), False, ("kernel_cmdline",)),
    )
    usual = tuple(
        UsualFact(each.key, each.kind, each.usual, each.usual_nodes) for each in (*_DRIVER, *_TOOLKITS, _HOSTILE)
    )
    pool = Pool(
        name="NVIDIA H100 80GB HBM3, sglang",
        nodes=64,
        alike=60,
        groups=groups,
        usual=usual,
        mixed=(Mixed("env.NCCL_SOCKET_IFNAME", "variable", 5, (("eth0", 30), ("eth1", 20), ("bond0", 12))),),
        unseen=(Unseen("denied: only root may read it", ("gpu001", "gpu002"), ("kernel_log", "pci_acs")),),
    )
    job = JobFailure(
        unit="sglang.service",
        nodes=3,
        first=RankFailure("gpu017", "RuntimeError: the provided PTX was compiled with an unsupported toolchain", 1.8e9),
        followed=(RankFailure("gpu018", "NCCL watchdog: peer is gone", 1.8e9 + 31.5, "journal:7", 0.8),),
        findings=(_PTX,),
        is_sure=False,
    )
    missing = (NotCollected("unreachable", "NODE: no route to host", ("gpu065", "gpu066")),)
    return FleetReport(folder="incident", nodes=66, compared=64, failing=3, judged=4, facts=174, pools=(pool,), outliers=outliers, not_collected=missing, jobs=(job,), notes=("collected by gpuwhy 0.0.9, analysed by 0.1.0",))  # fmt: skip
