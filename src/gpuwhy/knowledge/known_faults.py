"""Faults of kernels that were found in public, with the conditions under which they show and the release that mends them.

They name a component and a remedy where the conditions are met. Without them a fault of this kind is found by trying.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct
from packaging.specifiers import SpecifierSet

from gpuwhy.knowledge.releases import public_version


class KnownFault(Struct, frozen=True):
    """One fault. ``majors``: compute capability majors it needs; ``words``: pattern that the log, the command or the
    packages must match, ``also`` a second one; ``feature``: key of ``model.``. Empty: no condition. ``engine``: only under
    this engine. ``affected`` (a constraint) and ``fixed_in`` are releases of ``package``; a release that is unknown counts.
    """

    cause: str
    component: str
    mechanism: str
    majors: tuple[int, ...] = ()
    words: str = ""
    also: str = ""
    feature: str = ""
    engine: str = ""
    package: str = ""
    affected: str = ""
    fixed_in: str = ""
    flag: str = ""
    flag_value: str = ""
    provenance: str = ""

    def fits(
        self,
        cause: str,
        major: int | None,
        text: str,
        features: frozenset[str],
        engine: str,
        releases: Mapping[str, str],
    ) -> bool:
        """Whether no condition is missed. A generation that is unknown counts where words name the kernel."""
        if cause != self.cause or (self.engine and engine not in ("", self.engine)):
            return False
        if self.majors and major not in self.majors and not (major is None and self.words):
            return False
        if self.feature and self.feature not in features:
            return False
        if any(pattern and not re.search(pattern, text, re.IGNORECASE) for pattern in (self.words, self.also)):
            return False
        return self._is_affected(releases.get(self.package)) and not self._is_mended(releases.get(self.package))

    def _is_affected(self, release: str | None) -> bool:
        version = public_version(release) if release else None
        return version is None or not self.affected or version in SpecifierSet(self.affected)

    def _is_mended(self, release: str | None) -> bool:
        """Whether the installed release has the fix already."""
        version = public_version(release) if release else None
        return version is not None and self.fixed_in.startswith(">=") and version in SpecifierSet(self.fixed_in)


KNOWN_FAULTS: tuple[KnownFault, ...] = (
    KnownFault(
        cause="kernel-illegal-instruction",
        component="marlin",
        mechanism="Marlin's asynchronous copy with a cache policy traps on Hopper and Blackwell",
        majors=(9, 10, 12),
        words=r"\bmarlin\b",
        package="vllm",
        fixed_in=">=0.4.2",
        provenance="vllm-project/vllm PR 4218 (0.4.2); IST-DASLab/marlin issue 40",
    ),
    KnownFault(
        cause="wrong-output",
        component="flashinfer",
        mechanism="the FA2 prefill wrapper takes attention sinks and does not apply them on SM 12.x, while decode does",
        majors=(12,),
        feature="attention_sinks",
        package="vllm",
        fixed_in="newer",
        flag="--attention-backend",
        flag_value="TRITON_ATTN",
        provenance="vllm-project/vllm PR 52148",
    ),
    KnownFault(
        cause="wrong-output",
        component="vllm",
        mechanism="the Marlin MoE kernels hold only PTX for 8.0, which the driver compiles for 12.x, and decode wrongly when requests run side by side",
        majors=(12,),
        words=r"marlin moe",
        package="vllm",
        fixed_in="rebuild",
        provenance="vllm-project/vllm PR 40923",
    ),
    KnownFault(
        cause="wrong-output",
        component="vllm",
        mechanism="activations of Gemma 2, Gemma 3 and GLM-4 exceed the range of float16; releases from 0.9.2 on refuse that format for them",
        words=r"gemma-?[23]\b|\bglm-?4\b",
        also=r"(?<!b)float16|--dtype[ =]half|dtype='?half",
        engine="vllm",
        package="vllm",
        affected="<0.9.2",
        fixed_in=">=0.9.2",
        flag="--dtype",
        flag_value="bfloat16",
        provenance="the list of models without float16 in vLLM's wheels: absent in 0.9.0, there in 0.9.2",
    ),
)


def known_fault(
    cause: str,
    *,
    major: int | None,
    text: str,
    features: frozenset[str] = frozenset(),
    engine: str = "",
    releases: Mapping[str, str] | None = None,
) -> KnownFault | None:
    """The first known fault whose conditions are met.

    ``text``: what the log, command and package names say; ``releases``: versions by package name.
    """
    known = releases or {}
    return next((each for each in KNOWN_FAULTS if each.fits(cause, major, text, features, engine, known)), None)
