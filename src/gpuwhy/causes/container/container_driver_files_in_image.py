"""container-driver-files-in-image: driver files in the image are in the way of those that the hook mounts."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_access import GpuAccess
from gpuwhy.model.remedy import NotARemedy, Remedy

_DRIVER_FILE = r"(?:lib(?:nvidia-|cuda(?:debugger)?\.so|nvcuvid|vdpau_nvidia|nvoptix|EGL_nvidia|GLX_nvidia|GLES\w{0,6}_nvidia)|nvidia-(?:smi|debugdump|persistenced|cuda-mps|uvm)|\blibdxcore|libd3d12)"


@cause(
    "container-driver-files-in-image",
    family="Container",
    signs=[
        says(
            "hook-file-exists",
            "file exists",
            rf"(?:file creation failed|create (?:symlink|link|file)\w{{0,4}}|creat\w{{2,4}} (?:sym)?link|symlink|mount|link)\b.{{0,400}}(?P<file>{_DRIVER_FILE}[\w.+-]{{0,80}}).{{0,200}}: file exists",
        ),
        says(
            "empty-library",
            ("file too short", "is empty, not checked"),
            r"(?P<file>\S{0,200}(?:libcuda|libnvidia-[\w-]{1,40})\.so[.\d]{0,16}\S{0,4}):? (?:file too short|is empty, not checked)",
        ),
    ],
)
def container_driver_files_in_image(case: Case, access: GpuAccess | Unknown) -> Judgement:
    """The image itself contains NVIDIA driver files, and the container hook cannot mount the host's over them.

    How it shows itself
      The container does not start: `nvidia-container-cli: mount error: file creation failed:
      .../merged/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1: file exists` (or libcuda.so.1, nvidia-smi). Where the left-over
      is an empty file: `libcuda.so.1: file too short` when a program loads it without the GPU passed.

    Why it happens
      Driver packages (nvidia-driver, nvidia-utils, libnvidia-compute, cuda-drivers, the metapackage cuda) were
      installed in the image; or the image was committed from a container that ran with the NVIDIA runtime, or was built
      under WSL, which leaves the mount points behind as files and links.

    How to be sure
      `docker run --rm --runtime=runc --entrypoint ls IMAGE -l /usr/bin/nvidia-smi /usr/lib/x86_64-linux-gnu/libcuda.so.1` without
      any GPU option: the files must not be there.

    What helps
      Rebuild without driver packages (cuda-toolkit-*, not cuda or cuda-drivers), or delete the files in a last layer:
      `RUN rm -f /usr/lib/x86_64-linux-gnu/libcuda.so* /usr/lib/x86_64-linux-gnu/libnvidia-*.so* /usr/bin/nvidia-smi`.

    What does not help
      Another driver on the host, reinstalling the container toolkit, pulling the same image again.

    Not to be confused with
      libcuda-shadowed (the container starts, and the wrong library is loaded), driver-library-mismatch (the host).
    """
    match = place.earliest(case, "hook-file-exists") or place.earliest(case, "empty-library")
    if match is None:
        return None
    file = match.group("file") or "a driver file"
    if match.sign == "empty-library":
        return _empty(case, match, file, access)
    is_hook = re.search(r"nvidia-container|nvidia-ctk|nvidia-cdi-hook|/merged/|hook|OCI runtime|/overlay|rootfs", match.text) is not None  # fmt: skip
    return _verdict(case, match, file, Certainty.PROVEN if is_hook else Certainty.LIKELY, 92)


def _empty(case: Case, match: Match, file: str, access: GpuAccess | Unknown) -> Judgement:
    """An empty libcuda is a mount point of an earlier container; the host's driver would lie over it if it were passed."""
    if isinstance(access, GpuAccess) and access.cuinit_container:
        return RuledOut("CUDA starts in the container", access.shown("cuinit.container"))
    is_only_listed = "not checked" in match.text
    where = place.read_surroundings(case)
    if where.is_container and not is_only_listed:
        return _verdict(case, match, file, Certainty.LIKELY, 70, is_passed=where.asks_for_gpu is True)
    return _verdict(case, match, file, Certainty.POSSIBLE, 40 if is_only_listed else 56)


def _verdict(
    case: Case, match: Match, file: str, certainty: Certainty, strength: int, *, is_passed: bool = False
) -> Verdict:
    is_refused = match.sign == "hook-file-exists"
    quoted = case.evidence(match, "the file is in the image already" if is_refused else "an empty file stands where the driver's library belongs")  # fmt: skip
    return Verdict(
        certainty=certainty,
        component="container-image",
        title=f"The image contains a driver file, {file}, where the host's is to be mounted",
        chain=(
            Link("Driver packages were installed in the image, or it was committed from a container with the NVIDIA runtime", inferred("how such files come into an image")),
            Link(f"{file} lies in the image", quoted),
            Link("The hook cannot put the host's file there, and the container is not started" if is_refused else "A program loads the left-over", quoted),
        ),
        evidence=(quoted,),
        explains=case.explains(match),
        missing=() if certainty is Certainty.PROVEN else _missing(case),
        rivals=() if certainty is Certainty.PROVEN else ("container-gpu-not-passed", "library-corrupt"),
        remedies=_remedies(is_refused or is_passed),
        not_remedies=(
            NotARemedy("another driver or a reinstalled container toolkit on the host", "the file in the image stays in the way"),
            NotARemedy("committing the running container again", "it records the mounted files as part of the image"),
        ),
        strength=strength,
    )  # fmt: skip


def _missing(case: Case) -> tuple[Missing, ...]:
    asked = (
        case.missing("container.gpus", "whether the container was given GPUs", "docker inspect --format '{{json .HostConfig.DeviceRequests}}' NAME"),
        case.missing("libcuda_path", "which libcuda the process loads", "ldconfig -p | grep libcuda.so.1; ls -lL /usr/lib/*-linux-gnu/libcuda.so.1"),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(is_refused: bool) -> tuple[Remedy, ...]:
    image = Remedy(
        kind="container", name="image", value="rebuild without driver packages",
        summary="Rebuild the image without driver packages (cuda-toolkit-X-Y instead of cuda, no nvidia-driver, nvidia-utils or cuda-drivers), or take the published one",
        cost="a build of the image", check=("docker run --rm --gpus all IMAGE nvidia-smi",),
    )  # fmt: skip
    files = Remedy(
        kind="files", name="driver files in the image", value="delete",
        summary="Delete them in a last layer of the Dockerfile: libcuda.so*, libnvidia-*.so*, nvidia-smi",
        limits=("a layer on top is enough: it hides the files of those below",),
    )  # fmt: skip
    purge = Remedy(
        kind="system-package", name="nvidia-*", value="remove",
        summary="In the image: apt-get remove --purge 'nvidia-*' 'libnvidia-*' 'cuda-drivers*'",
    )  # fmt: skip
    passed = Remedy(kind="flag", name="--gpus", value="all", summary="Start the container with GPUs: the driver's library is mounted over the empty file", is_sure=False)  # fmt: skip
    return (image, files, purge) if is_refused else (passed, image, files, purge)
