"""From the file name of a shared library to what brings it: a package of the distribution, a CUDA release, a wheel.

Names of distribution packages: Debian and Ubuntu, and Fedora or RHEL. CUDA's libraries: the number behind ``.so.`` is
that of the library's interface; for most it is the CUDA major, for some it is not (documented: the file lists of the
CUDA toolkits 11.8, 12.x and 13.0 and of NVIDIA's wheels).
"""

from __future__ import annotations

import functools
import re

from msgspec import Struct

_SONAME = re.compile(r"(?:lib)?(?P<stem>[\w+.-]{1,80}?)\.so(?:\.(?P<version>\d{1,4}(?:\.\d{1,6}){0,3}))?", re.ASCII)


class SharedLibrary(Struct, frozen=True):
    """``libcudart.so.12`` taken apart: ``stem`` "cudart", ``version`` "12", ``major`` 12 (None without a number)."""

    name: str
    stem: str
    version: str

    @property
    def major(self) -> int | None:
        head = self.version.partition(".")[0]
        return int(head) if head else None


class SystemPackage(Struct, frozen=True):
    """The distribution's packages that hold a library; ``""`` where one distribution has none."""

    debian: str
    fedora: str
    what: str = ""


class CudaLibrary(Struct, frozen=True):
    """A library of the CUDA toolkit or beside it.

    ``cuda_majors`` are the CUDA majors whose libraries have this number; empty when the number says nothing of
    them (cuDNN counts for itself). ``wheel`` is NVIDIA's wheel that holds it, without the number behind ``-cu``.
    """

    wheel: str
    cuda_majors: tuple[int, ...]


def parse(name: str) -> SharedLibrary | None:
    """Take a library's file name apart; None for what is no name of one."""
    last = name.strip().rpartition("/")[2][:200]
    found = _SONAME.fullmatch(last)
    return SharedLibrary(last, found["stem"], found["version"] or "") if found else None


_JETSON = frozenset({"nvdla_compiler", "nvdla_runtime", "nvos", "nvrm_gpu", "nvrm_mem", "nvbufsurface", "nvbufsurftransform", "nvbuf_utils", "nvcudla", "cudla"})  # fmt: skip
"""Part of the driver of a Jetson, which its container runtime mounts from the host."""
_DRIVER = frozenset({"cuda", "nvidia-ml", "nvidia-ptxjitcompiler", "nvcuvid", "nvidia-encode", "cudadebugger", "nvidia-opticalflow", *_JETSON})  # fmt: skip
_TORCH = frozenset(
    {"torch", "torch_cpu", "torch_cuda", "torch_python", "torch_cuda_cu", "torch_cuda_cpp", "torch_cuda_linalg", "torch_global_deps", "c10", "c10_cuda", "caffe2_nvrtc", "shm"}
)  # fmt: skip

_SAME_NUMBER = {
    "cudart": "nvidia-cuda-runtime",
    "cublas": "nvidia-cublas",
    "cublasLt": "nvidia-cublas",
    "nvblas": "nvidia-cublas",
    "nvrtc": "nvidia-cuda-nvrtc",
    "nvrtc-builtins": "nvidia-cuda-nvrtc",
    "nvJitLink": "nvidia-nvjitlink",
    "cupti": "nvidia-cuda-cupti",
    "nppc": "nvidia-npp",
    "nppicc": "nvidia-npp",
    "nppig": "nvidia-npp",
    "nppif": "nvidia-npp",
    "nppial": "nvidia-npp",
    "nppidei": "nvidia-npp",
    "nppist": "nvidia-npp",
    "nvjpeg": "nvidia-nvjpeg",
    "nvfatbin": "nvidia-nvfatbin",
}
"""Libraries whose number is the CUDA major itself."""
_OWN_NUMBER: dict[tuple[str, int], CudaLibrary] = {
    ("cufft", 10): CudaLibrary("nvidia-cufft", (11,)),
    ("cufft", 11): CudaLibrary("nvidia-cufft", (12,)),
    ("cufft", 12): CudaLibrary("nvidia-cufft", (13,)),
    ("cusparse", 11): CudaLibrary("nvidia-cusparse", (11,)),
    ("cusparse", 12): CudaLibrary("nvidia-cusparse", (12, 13)),
    ("cusolver", 11): CudaLibrary("nvidia-cusolver", (11, 12)),
    ("cusolver", 12): CudaLibrary("nvidia-cusolver", (13,)),
    ("curand", 10): CudaLibrary("nvidia-curand", (11, 12, 13)),
    ("cufile", 0): CudaLibrary("nvidia-cufile", (11, 12, 13)),
    ("nvToolsExt", 1): CudaLibrary("nvidia-nvtx", (11, 12)),
    ("nppc", 11): CudaLibrary("nvidia-npp", (11,)),
    ("nvjpeg", 11): CudaLibrary("nvidia-nvjpeg", (11,)),
}
_BESIDE_CUDA = {
    "cudnn": "nvidia-cudnn",
    "nccl": "nvidia-nccl",
    "nvshmem_host": "nvidia-nvshmem",
    "cusparseLt": "nvidia-cusparselt",
    "cudss": "nvidia-cudss",
    "cutensor": "cutensor",
}
"""Libraries with a numbering of their own, published for each CUDA major."""


def cuda_library(library: SharedLibrary) -> CudaLibrary | None:
    """What brings a library of CUDA's; None for any other library."""
    stem = "cudnn" if library.stem.startswith("cudnn_") else library.stem
    if stem.startswith("npp"):
        stem = "nppc"
    if stem in _BESIDE_CUDA:
        return CudaLibrary(_BESIDE_CUDA[stem], ())
    major = library.major
    if major is not None and (stem, major) in _OWN_NUMBER:
        return _OWN_NUMBER[(stem, major)]
    if stem in _SAME_NUMBER:
        return CudaLibrary(_SAME_NUMBER[stem], (major,) if major is not None and major >= 9 else ())
    if stem in {known for known, _ in _OWN_NUMBER}:
        return CudaLibrary(f"nvidia-{stem.lower()}", ())
    return None


def wheel_for(library: CudaLibrary, cuda_major: int) -> str:
    """The wheel's name for a CUDA major. From CUDA 13 on NVIDIA's own libraries carry no number in their name."""
    is_numbered = cuda_major < 13 or library.wheel in (*(_BESIDE_CUDA[s] for s in ("cudnn", "nccl", "nvshmem_host", "cusparseLt")),)  # fmt: skip
    return f"{library.wheel}-cu{cuda_major}" if is_numbered else library.wheel


def is_driver_library(library: SharedLibrary) -> bool:
    """Whether the driver brings it: no package and no toolkit does."""
    return library.stem in _DRIVER


def is_torch_library(library: SharedLibrary) -> bool:
    return library.stem in _TORCH


_SYSTEM: dict[str, tuple[str, str, str]] = {
    "numa": ("libnuma1", "numactl-libs", "memory placement"),
    "GL": ("libgl1", "mesa-libGL", "OpenGL, which OpenCV loads"),
    "GLX": ("libglx0", "libglvnd-glx", "OpenGL"),
    "EGL": ("libegl1", "libglvnd-egl", "OpenGL without a screen"),
    "OpenGL": ("libopengl0", "libglvnd-opengl", "OpenGL"),
    "GLU": ("libglu1-mesa", "mesa-libGLU", "OpenGL"),
    "gthread-2.0": ("libglib2.0-0", "glib2", "GLib, which OpenCV loads"),
    "glib-2.0": ("libglib2.0-0", "glib2", "GLib"),
    "gobject-2.0": ("libglib2.0-0", "glib2", "GLib"),
    "SM": ("libsm6", "libSM", "X11, which OpenCV loads"),
    "ICE": ("libice6", "libICE", "X11"),
    "X11": ("libx11-6", "libX11", "X11"),
    "Xext": ("libxext6", "libXext", "X11, which OpenCV loads"),
    "Xrender": ("libxrender1", "libXrender", "X11, which OpenCV loads"),
    "xcb": ("libxcb1", "libxcb", "X11"),
    "ibverbs": ("libibverbs1", "libibverbs", "RDMA"),
    "rdmacm": ("librdmacm1", "librdmacm", "RDMA"),
    "mlx5": ("ibverbs-providers", "libibverbs", "RDMA on Mellanox cards"),
    "efa": ("libefa1", "libefa", "RDMA on AWS"),
    "fabric": ("libfabric1", "libfabric", "libfabric"),
    "ucp": ("libucx0", "ucx", "UCX"),
    "ucs": ("libucx0", "ucx", "UCX"),
    "uct": ("libucx0", "ucx", "UCX"),
    "ucm": ("libucx0", "ucx", "UCX"),
    "nl-3": ("libnl-3-200", "libnl3", "netlink, which RDMA libraries load"),
    "nl-route-3": ("libnl-route-3-200", "libnl3", "netlink, which RDMA libraries load"),
    "hwloc": ("libhwloc15", "hwloc-libs", "hardware topology"),
    "mpi": ("libopenmpi-dev", "openmpi", "MPI"),
    "mpi_cxx": ("libopenmpi-dev", "openmpi", "MPI"),
    "mpich": ("libmpich12", "mpich", "MPI"),
    "open-rte": ("libopenmpi-dev", "openmpi", "MPI"),
    "pmix": ("libpmix2", "pmix", "MPI"),
    "gomp": ("libgomp1", "libgomp", "OpenMP of gcc"),
    "omp": ("libomp5", "libomp", "OpenMP of clang"),
    "iomp5": ("intel-openmp", "", "OpenMP of Intel (also a wheel: intel-openmp)"),
    "gfortran": ("libgfortran5", "libgfortran", "Fortran run time"),
    "quadmath": ("libquadmath0", "libquadmath", "run time of gcc"),
    "stdc++": ("libstdc++6", "libstdc++", "C++ run time"),
    "gcc_s": ("libgcc-s1", "libgcc", "run time of gcc"),
    "atomic": ("libatomic1", "libatomic", "run time of gcc"),
    "openblas": ("libopenblas0", "openblas", "linear algebra"),
    "blas": ("libblas3", "blas", "linear algebra"),
    "lapack": ("liblapack3", "lapack", "linear algebra"),
    "mkl_intel_lp64": ("intel-mkl", "", "linear algebra of Intel (also a wheel: mkl)"),
    "mkl_rt": ("intel-mkl", "", "linear algebra of Intel (also a wheel: mkl)"),
    "tbb": ("libtbb12", "tbb", "threads of Intel"),
    "tbbmalloc": ("libtbbmalloc2", "tbb", "memory of Intel's threads"),
    "tcmalloc": ("libgoogle-perftools4", "gperftools-libs", "allocator"),
    "tcmalloc_minimal": ("libtcmalloc-minimal4", "gperftools-libs", "allocator"),
    "jemalloc": ("libjemalloc2", "jemalloc", "allocator"),
    "curl": ("libcurl4", "libcurl", "HTTP"),
    "curl-gnutls": ("libcurl3-gnutls", "", "HTTP"),
    "ssl": ("libssl3", "openssl-libs", "TLS"),
    "crypto": ("libssl3", "openssl-libs", "TLS"),
    "crypt": ("libcrypt1", "libxcrypt", "passwords; a Python of another distribution loads it"),
    "aio": ("libaio1", "libaio", "asynchronous file access, which DeepSpeed loads"),
    "uring": ("liburing2", "liburing", "asynchronous file access"),
    "z": ("zlib1g", "zlib", "compression"),
    "zstd": ("libzstd1", "libzstd", "compression"),
    "lz4": ("liblz4-1", "lz4-libs", "compression"),
    "bz2": ("libbz2-1.0", "bzip2-libs", "compression"),
    "lzma": ("liblzma5", "xz-libs", "compression"),
    "ffi": ("libffi8", "libffi", "calls into C"),
    "sqlite3": ("libsqlite3-0", "sqlite-libs", "SQLite"),
    "xml2": ("libxml2", "libxml2", "XML"),
    "tinfo": ("libtinfo6", "ncurses-libs", "terminal"),
    "ncurses": ("libncurses6", "ncurses-libs", "terminal"),
    "readline": ("libreadline8", "readline", "terminal"),
    "sndfile": ("libsndfile1", "libsndfile", "sound files"),
    "portaudio": ("libportaudio2", "portaudio", "sound"),
    "sox": ("libsox3", "sox", "sound files, which torchaudio loads"),
    "avcodec": ("ffmpeg", "ffmpeg-libs", "FFmpeg"),
    "avformat": ("ffmpeg", "ffmpeg-libs", "FFmpeg"),
    "avutil": ("ffmpeg", "ffmpeg-libs", "FFmpeg"),
    "avdevice": ("ffmpeg", "ffmpeg-libs", "FFmpeg"),
    "avfilter": ("ffmpeg", "ffmpeg-libs", "FFmpeg"),
    "swscale": ("ffmpeg", "ffmpeg-libs", "FFmpeg"),
    "swresample": ("ffmpeg", "ffmpeg-libs", "FFmpeg"),
    "png16": ("libpng16-16", "libpng", "pictures"),
    "jpeg": ("libjpeg-turbo8", "libjpeg-turbo", "pictures"),
    "turbojpeg": ("libturbojpeg", "turbojpeg", "pictures"),
    "webp": ("libwebp7", "libwebp", "pictures"),
    "tiff": ("libtiff6", "libtiff", "pictures"),
    "magic": ("libmagic1", "file-libs", "file types"),
    "re2": ("libre2-10", "re2", "regular expressions"),
    "b64": ("libb64-0d", "libb64", "base64, which Triton Server loads"),
    "archive": ("libarchive13", "libarchive", "archives, which Triton Server loads"),
    "dcgm": ("datacenter-gpu-manager", "datacenter-gpu-manager", "GPU telemetry, which Triton Server loads"),
    "numa-1": ("libnuma1", "numactl-libs", "memory placement"),
    "vulkan": ("libvulkan1", "vulkan-loader", "Vulkan"),
    "OpenCL": ("ocl-icd-libopencl1", "ocl-icd", "OpenCL"),
    "yaml": ("libyaml-0-2", "libyaml", "YAML"),
    "yaml-cpp": ("libyaml-cpp0.7", "yaml-cpp", "YAML"),
    "glog": ("libgoogle-glog0v5", "glog", "logging"),
    "gflags": ("libgflags2.2", "gflags", "options"),
    "jsoncpp": ("libjsoncpp25", "jsoncpp", "JSON"),
    "protobuf": ("libprotobuf23", "protobuf", "protocol buffers"),
    "unwind": ("libunwind8", "libunwind", "stack traces"),
    "elf": ("libelf1", "elfutils-libelf", "object files"),
    "nccl-net": ("", "", "a plug-in of NCCL"),
    "gdrapi": ("libgdrapi", "gdrcopy", "GDRCopy"),
    "etcd-cpp-api": ("", "", "etcd"),
    "cpprest": ("libcpprest2.10", "cpprest", "HTTP"),
}  # fmt: skip


@functools.cache
def system_package(stem: str) -> SystemPackage | None:
    """The distribution's package for the stem of a library ("numa" -> libnuma1); None when it is not known."""
    row = _SYSTEM.get(stem)
    if row is None and stem.startswith("python3."):
        return SystemPackage(f"lib{stem}", stem.replace("python", "python") + "-libs", "the interpreter as a library")
    return SystemPackage(*row) if row is not None and row[0] else None
