"""Issue templates: what people write about their machine, in English and Chinese, as lists and tables.

- GPU: 2x RTX 5090          **CUDA**: 12.8          | Driver Version | 570.86.15 |          显卡：RTX 4090

A bare ``CUDA`` may be the driver's, the toolkit's or torch's version: it becomes ``cuda_said`` and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated import versions
from gpuwhy.logs.stated._types import Statement, Strength

LITERALS = ("GPU", "Graphics", "graphics", "Driver", "driver", "CUDA", "Cuda", "cuda", "NVCC", "nvcc", "Python", "python", "OS", "Operating", "operating", "Kernel", "kernel", "GCC", "gcc", "glibc", "- ", "* ", "显卡", "驱动", "操作系统", "系统", "内核", "版本")  # fmt: skip
_LINE = Pattern(
    r"^\s{0,12}(?:[-*•] {0,3}(?:\[[ x]\] )?|\|\s{0,4}|\d{1,2}[.)] )?[*_`]{0,3}(?P<label>[A-Za-z\u4e00-\u9fff](?:[\w\u4e00-\u9fff /().-]{0,38}[\w\u4e00-\u9fff)])?)[*_`]{0,3}(?:\s{0,3}[:：=]|\s{0,40}\|)[*_`]{0,3}\s{0,20}[*_`]{0,2}(?P<value>[^|]{1,160}?)[`*]{0,2}\s{0,40}(?:\|.{0,200})?$"
)
_MAKER = (
    r"(?:(?:NVIDIA|GeForce|Tesla|Quadro|Jetson|AGX|DGX|GRID|PRO|MSI|ASUS|Gigabyte|single|dual|one|two)\b[ -]?){0,5}"
)
_MODEL = r"(?:RTX|GTX|TITAN|GeForce|Tesla|Quadro|[ABHL]\d{2,3}[A-Za-z]?\b|GB\d{2,3}\b|GH200\b|T4\b|V100\b|P100\b|P40\b|Thor\b|Orin\b|[2345]0[5-9]0\b)"
_GPU = Pattern(
    rf"^(?:\d{{1,3}} ?[x×*X] ?)?(?P<value>{_MAKER}{_MODEL}[^,;，；(（|]{{0,40}}?)\s*(?:[x×*] ?\d{{1,3}})?\s*(?:[,;，；(（].*)?$",
    re.IGNORECASE,
)
_SEVERAL = Pattern(
    r"[/+&、]|或|和|\b(?:or|and|vs|works?|working|fine|ok|fails?|crash\w*|same|but|not|only|while|any|all|other|too)\b",
    re.IGNORECASE,
)
"""More than one GPU, or a sentence about one."""
_END = r"\s*(?:[,;，；(（].*)?$"
_DRIVER = Pattern(rf"^v?(?P<value>\d{{3}}\.\d{{2,3}}(?:\.\d{{1,2}})?){_END}")
_CUDA = Pattern(rf"^(?:CUDA )?[vV]?(?P<value>\d{{1,2}}\.\d{{1,2}})(?:\.\d{{1,3}})?{_END}")
_PYTHON = Pattern(rf"^(?:Python )?v?(?P<value>3\.\d{{1,2}}(?:\.\d{{1,2}})?){_END}")
_OS = Pattern(rf"^(?P<value>(?:Ubuntu|Debian|Red Hat|RHEL|Rocky|Alma|CentOS|Fedora|openSUSE|SLES|Arch|Amazon Linux|Pop!_OS|Windows|WSL|DGX OS)[^,;，；(（|]{{0,60}}?){_END}")  # fmt: skip
_KERNEL = Pattern(rf"^(?:Linux )?(?P<value>\d{{1,2}}\.\d{{1,3}}\.\d{{1,3}}[\w.+-]{{0,80}}){_END}")
_COMPILER = Pattern(rf"^(?:gcc )?v?(?P<value>\d{{1,2}}\.\d{{1,2}}(?:\.\d{{1,2}})?){_END}")
_GLIBC = Pattern(rf"^(?P<value>2\.\d{{1,2}}){_END}")
_VERSION = Pattern(rf"^[vV]?(?P<value>\d{{1,4}}(?:\.\d{{1,5}}){{1,3}}[\w.+-]{{0,40}}){_END}")
_BULLET = Pattern(
    r"^\s{0,8}[-*•] (?:\d{1,3} ?[x×*X] ?)?(?P<gpu>(?:NVIDIA |GeForce |Tesla |Quadro ){0,2}(?:RTX |GTX |[ABHL]\d{2,3}\b|GB\d{2,3}\b|V100\b|T4\b)[\w .-]{0,40}?)\s*(?:[x×*] ?\d{1,3})?\s*(?:[,(].{0,60})?$"
)
_BESIDE = (
    ("cuda_said", Pattern(rf"^\s{{0,8}}[-*•] CUDA (?P<value>\d{{1,2}}\.\d{{1,2}})(?:\.\d{{1,3}})?{_END}")),
    ("python", Pattern(rf"^\s{{0,8}}[-*•] Python (?P<value>3\.\d{{1,2}}(?:\.\d{{1,2}})?){_END}")),
    ("os", Pattern(rf"^\s{{0,8}}[-*•] (?P<value>Ubuntu \d{{2}}\.\d{{2}}(?:\.\d)?(?: LTS)?){_END}")),
    ("driver", Pattern(rf"^\s{{0,8}}[-*•] (?:NVIDIA )?[Dd]river (?P<value>\d{{3}}\.\d{{2,3}}(?:\.\d{{1,2}})?){_END}")),
)
_LABELS: dict[str, tuple[str, Pattern]] = {
    **dict.fromkeys(("gpu", "gpus", "gpu(s)", "gpu model", "gpu type", "gpu name", "gpu device", "graphics card", "显卡", "显卡型号", "gpu型号", "gpu 型号"), ("gpu@", _GPU)),
    **dict.fromkeys(("driver", "driver version", "nvidia driver", "nvidia driver version", "gpu driver", "gpu driver version", "nvidia-driver", "驱动", "驱动版本", "显卡驱动", "显卡驱动版本", "nvidia驱动", "nvidia 驱动", "nvidia驱动版本", "nvidia 驱动版本"), ("driver", _DRIVER)),
    **dict.fromkeys(("cuda", "cuda version", "cuda版本", "cuda 版本"), ("cuda_said", _CUDA)),
    **dict.fromkeys(("nvcc", "nvcc version", "cuda toolkit", "cuda toolkit version", "nvcc版本", "nvcc 版本"), ("nvcc_path_version", _CUDA)),
    **dict.fromkeys(("python", "python version", "python版本", "python 版本"), ("python", _PYTHON)),
    **dict.fromkeys(("os", "os version", "operating system", "操作系统", "系统", "系统版本"), ("os", _OS)),
    **dict.fromkeys(("kernel", "kernel version", "linux kernel", "内核", "内核版本"), ("kernel_release", _KERNEL)),
    **dict.fromkeys(("gcc", "gcc version", "gcc版本", "gcc 版本"), ("gcc", _COMPILER)),
    "glibc": ("glibc", _GLIBC),
}  # fmt: skip
LONGEST = 300


def read(text: str) -> Iterator[Statement]:
    if len(text) > LONGEST:
        return
    line = _LINE.match(text)
    if line is None:
        yield from _bullet(text)
        return
    label, value = line["label"].strip().lower(), line["value"].strip(" *`")
    known = _LABELS.get(label)
    if known is not None:
        key, pattern = known
        found = pattern.match(value)
        if found is not None and not (key == "gpu@" and _SEVERAL.search(found["value"])):
            yield Statement(key, found["value"].strip("* `"), Strength.PROSE)
        return
    package = label.removesuffix("版本").strip()
    if package != label and package in versions.ALIASES:
        found = _VERSION.match(value)
        if found is not None:
            yield from versions.package(package, found["value"], Strength.PROSE)


def _bullet(text: str) -> Iterator[Statement]:
    """An item of a list that has no label: ``- 2x RTX 5090``, ``- CUDA 12.8``."""
    found = _BULLET.match(text)
    if found is not None:
        name = found["gpu"].strip()
        if not _SEVERAL.search(name) and any(sign.isdigit() for sign in name) and len(name.split()) <= 7:
            yield Statement("gpu@", name, Strength.PROSE)
        return
    for key, pattern in _BESIDE:
        found = pattern.match(text)
        if found is not None:
            yield Statement(key, found["value"], Strength.PROSE)
            return
