"""Engine files of TensorRT: compiled for one kind of GPU, and refused by every other."""

from __future__ import annotations

from gpuwhy.causes._signs import says
from gpuwhy.model.remedy import Remedy

OF_OTHER_GPU = says(
    "tensorrt-other-gpu",
    ("generated on an incompatible device", "engine plan file is generated", "engine was built for"),
    r"generated on an incompatible device, expecting compute (?P<built>\d{1,2}\.\d) got compute (?P<sm>\d{1,2}\.\d)"
    r"|engine (?:plan )?(?:file )?(?:is|was) (?:generated|built) (?:on|for) (?:an incompatible|a different) (?:device|GPU|compute)",
)
REMEDIES = (
    Remedy(
        kind="files",
        name="engine",
        value="rebuild on this GPU",
        summary="Build the engine file again on a GPU of the kind that runs it, and delete the old one",
        cost="minutes to an hour of building",
        check=("trtexec --loadEngine=FILE",),
    ),
    Remedy(
        kind="hardware",
        name="gpu",
        value="the kind it was built on",
        summary="Run the engine file on the kind of GPU it was built on",
        is_sure=False,
    ),
)
