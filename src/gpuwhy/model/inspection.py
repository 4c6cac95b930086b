"""What ``gpuwhy inspect`` says of binaries: the architectures, what a file needs, and whether a GPU can run it."""

from __future__ import annotations

import enum

import msgspec

from gpuwhy.model.loading import Loading


class Outcome(str, enum.Enum):
    """What happens when a kernel of a container is launched, or what a whole file comes to."""

    NATIVE = "native"
    """There is machine code for the GPU."""
    JIT = "jit"
    """The driver compiles PTX for the GPU; the first start takes longer."""
    JIT_BLOCKED = "jit-blocked"
    """There is PTX for the GPU, but of a version newer than the driver knows: "unsupported toolchain"."""
    NONE = "none"
    """No image fits: "no kernel image is available for execution on the device"."""
    UNKNOWN = "unknown"
    """Nothing measured or documented decides it, or the file could not be read in full."""
    NO_DEVICE_CODE = "no-device-code"
    """A file without code for NVIDIA GPUs."""
    DRIVER_TOO_OLD = "driver-too-old"
    """The CUDA major version of the file's runtime needs a newer driver; nothing of it starts."""


class ImageCount(msgspec.Struct, frozen=True):
    """Images of one architecture. ``versions`` are PTX versions, or those of the cubin format."""

    architecture: str
    kind: str
    count: int
    versions: tuple[str, ...] = ()
    compression: tuple[str, ...] = ()
    debug: int = 0


class ContainerSet(msgspec.Struct, frozen=True):
    """``count`` containers of a section that hold the same set of images; the first is at ``offset`` in the file.

    ``outcome`` is what the given GPU and driver make of each, with the image that is taken and why.
    """

    section: str
    role: str
    count: int
    architectures: tuple[str, ...]
    offset: int
    member: str = ""
    outcome: Outcome | None = None
    taken: str = ""
    why: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """Whether a file can run on a GPU with a driver: what each of its ``containers`` comes to, and the sum.

    A file with some containers without an image is no fault by itself: host code often chooses by capability. It
    ``runs`` unless every container fails; None when that is not known.
    """

    outcome: Outcome
    runs: bool | None
    containers: int
    native: int
    jit: int
    jit_blocked: int
    none: int
    unknown: int
    why: str


class CudaUse(msgspec.Struct, frozen=True):
    """Which CUDA runtime a file works with. ``undefined`` symbols of it are provided by no library that it names."""

    needed: str = ""
    embedded: bool = False
    embedded_release: str = ""
    undefined: int = 0


class TorchUse(msgspec.Struct, frozen=True):
    """Which interface of torch a file is built on: ``release`` (one torch release), ``stable``, or ``""``."""

    abi: str = ""
    tied_symbols: int = 0
    stable_symbols: int = 0
    strings: str = ""
    example: str = ""


class Kernel(msgspec.Struct, frozen=True):
    """A kernel that was asked for, and the container that it is in."""

    name: str
    section: str
    offset: int
    architectures: tuple[str, ...]
    outcome: Outcome | None = None
    taken: str = ""
    why: str = ""


class InspectedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file. ``architectures`` and ``containers`` are of the code that the CUDA runtime registers (or, in an object,
    that the device linker will); ``container_sets`` has all, hidden and relocatable ones too.

    ``members`` is more than 1 for a folder of bare cubins, which count as one file. ``toolkit`` is the CUDA release that
    made the device code, "13.5" or ">= 13.0", and ``toolkit_shown_by`` what says so. ``loading`` is there when it was asked
    for, of libraries and programs.
    """

    path: str
    within: str = ""
    kind: str
    machine: str = ""
    size: int = 0
    members: int = 1
    architectures: tuple[str, ...] = ()
    images: tuple[ImageCount, ...] = ()
    containers: int = 0
    relocatable_containers: int = 0
    hidden_containers: int = 0
    hidden_cubins: int = 0
    hidden_architectures: tuple[str, ...] = ()
    container_sets: tuple[ContainerSet, ...] = ()
    registered: int | None = None
    unsearched: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    soname: str = ""
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    version_needs: dict[str, tuple[str, ...]] = {}
    newest_versions: dict[str, str] = {}
    interpreter: str = ""
    build_id: str = ""
    cuda: CudaUse = CudaUse()
    torch: TorchUse = TorchUse()
    toolkit: str = ""
    toolkit_shown_by: str = ""
    other_gpus: tuple[str, ...] = ()
    complete: bool = True
    problems: tuple[str, ...] = ()
    verdict: Verdict | None = None
    kernels: tuple[Kernel, ...] = ()
    loading: Loading | None = None


class WheelSummary(msgspec.Struct, frozen=True):
    """What a wheel's directory and metadata say."""

    path: str
    name: str
    version: str
    requires: tuple[str, ...]
    requires_python: str
    tags: tuple[str, ...]
    binaries: int
    binary_bytes: int


class Inspection(msgspec.Struct, frozen=True):
    """All files of one call. ``compute_capability`` and ``driver`` are those that the verdicts are for, or ``""``.

    ``unreadable`` are paths that could not be read, with the reason.
    """

    files: tuple[InspectedFile, ...]
    compute_capability: str = ""
    gpu: str = ""
    driver: str = ""
    kernel: str = ""
    wheels: tuple[WheelSummary, ...] = ()
    unreadable: tuple[str, ...] = ()
