"""binary-lacks-arch: a published extension or engine binary has no code for this GPU, while torch has."""

from __future__ import annotations

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.architecture import _arch_lists as lists
from gpuwhy.causes.architecture import _engine_files as engine_files
from gpuwhy.causes.architecture import _extension_remedies as remedies
from gpuwhy.causes.architecture import _generations as generations
from gpuwhy.causes.architecture import _missing_image as images
from gpuwhy.causes.architecture import _own_build as own_build
from gpuwhy.causes.architecture import _torch_warnings as warnings
from gpuwhy.causes.architecture._host_evidence import of_gpus
from gpuwhy.causes.architecture._missing_image import MissingImage
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Environment, Gpus, Torch
from gpuwhy.model.remedy import Remedy

_RIVALS = ("torch-lacks-arch", "build-target-wrong", "arch-unsupported-by-library")
_STATED = (
    engine_files.OF_OTHER_GPU,
    says(
        "built-without-it",
        (
            "no compiled ",
            "kernel for cuda device capability",
            "was not built with cuda kernel binaries compatible",
            "mismatched gpu architecture",
            "is not compatible with compile time compute cap",
            "which is not supported by paddle",
            "not compiled for this gpu",
            "not compiled for this device",
            "was not compiled for",
        ),
        r"No compiled (?P<what>[\w: ]{3,60}?)(?: kernel)? for (?:a |this |the )?(?:compute|CUDA|device)"
        r"|not built with CUDA kernel binaries compatible with compute capability (?P<cc>\d{1,2}\.\d)"
        r"|Runtime compute cap (?P<packed>\d{2,3}) is not compatible with compile time compute cap (?P<made>\d{2,3})"
        r"|Mismatched GPU Architecture|capability .{0,60}not supported by Paddle"
        r"|(?:was |were |is |are )?not compiled for (?:this|your|the current) (?:GPU|device|arch)"
        r"|was not compiled for (?:sm_?|compute capability |arch(?:itecture)? )\d",
    ),
    says(
        "kernel-built-for-other",
        ("but was built for sm", "requires building with sm version", "arch conditional mma instruction used without"),
        r"is for sm\d+(?:-sm\d+)?, but was built for (?P<built>sm\d+)"
        r"|requires building with sm version (?P<range>sm\d+\S*), but was built for"
        r"|Arch conditional MMA instruction used without targeting (?P<target>\S+)",
    ),
)
"""Messages in which the library itself says what it was built for."""


@cause(
    "binary-lacks-arch",
    family="Binary and architecture limits",
    signs=[*images.SIGNS, *warnings.SIGNS, *_STATED, *lists.SIGNS, *own_build.SIGNS],
)
def binary_lacks_arch(case: Case, gpus: Gpus | Unknown, torch: Torch | Unknown) -> Judgement:
    """A published extension or engine binary, not torch, has no machine code or usable PTX for this GPU.

    How it shows itself
      `CUDA error: no kernel image is available for execution on the device` (error 209, cudaErrorNoKernelImageForDevice,
      CUDA_ERROR_NO_BINARY_FOR_GPU), in some libraries `invalid device function` or `named symbol not found`; in
      llama.cpp `has no device code compatible with CUDA arch 520. ggml-cuda.cu was compiled for: ...`; in text-embeddings-
      inference `Runtime compute cap 75 is not compatible with compile time compute cap 80`. Often the service starts, loads the model, and fails at the first request.

    Why it happens
      A wheel or program holds kernels for the architectures that its builder listed. Wheels built with a CUDA before
      12.8 end at 9.0; CUDA 13 builds begin at 7.5. Sometimes one family of kernels was left out of an otherwise
      complete wheel: bf16 works and FP8 does not. Torch can be fine all the while.

    How to be sure
      First exclude torch: `python -c 'import torch; torch.ones(1, device="cuda") + 1'`. Then list what the library
      named in the last frames holds: `cuobjdump --list-elf FILE.so | grep -o 'sm_[0-9a-z]*' | sort | uniq -c`.
      If the path of the kernel lies in a JIT cache, it was compiled here: build-target-wrong.

    What helps
      A release of that library whose wheel has the GPU; a build from source with the GPU in its list; the option
      that avoids the library (another attention backend, no KV connector). An engine file of TensorRT has to be built
      again on the GPU that runs it.

    What does not help
      TORCH_CUDA_ARCH_LIST at run time; a newer toolkit or driver; reinstalling the same wheel; a search for the source
      path in the message, which is the path of the machine that built the program.

    Not to be confused with
      torch-lacks-arch (torch warns, everything fails), build-target-wrong (compiled here for another target),
      arch-unsupported-by-library (no build can exist), ptx-newer-than-driver (`unsupported toolchain`).
    """
    stated = case.found(*(sign.name for sign in _STATED))
    if stated is not None:
        return _stated(case, stated, gpus)
    image = images.read_missing_image(case, gpus, torch)
    if image is None:
        return None
    return _excluded(case, image) or _missing_image(case, image, gpus)


def _excluded(case: Case, image: MissingImage) -> RuledOut | None:
    quoted = case.evidence(image.match, "the failed launch")
    if image.torch_warning is not None and image.component not in images.WITHOUT_TORCH:
        return RuledOut(
            "torch itself has no code for this GPU",
            (case.evidence(image.torch_warning, "torch's own warning"), quoted),
        )
    if image.torch.value is False and image.component not in images.WITHOUT_TORCH and image.has_code is not False:
        return RuledOut(f"torch itself has no code for this GPU: {image.torch.why}", (quoted,))
    if image.jit_targets is not None and image.match.sign != images.NO_DEVICE_CODE.name:
        return RuledOut("the kernel was compiled on this machine, it does not come from a published binary", (quoted,))
    if image.has_code is True and image.is_plain:
        known = image.built_evidence
        return RuledOut(f"{image.component} has code for this GPU", (known,) if known else (quoted,))
    return None


def _missing_image(case: Case, image: MissingImage, gpus: Gpus | Unknown) -> Verdict:
    quoted = case.evidence(image.match, "a kernel was started that has no code for this GPU")
    component = image.component if image.component != "torch" else None
    majors = generations.written_for(image.component, _surroundings(image))
    is_impossible = majors is not None and generations.is_outside(majors, image.capability) is True
    certainty, strength = _certainty(image, is_impossible)
    against = _built_here(case, image, component)
    if against is not None:
        certainty, strength = Certainty.POSSIBLE, 30
    built = image.built_evidence
    lacks: Evidence = built if built is not None and image.has_code is False else inferred(_inference(image))
    known = [e for e in (built, image.contrast, *of_gpus(gpus, quoted)) if e is not None]
    return Verdict(
        certainty=certainty,
        component=component,
        title=_title(component, image.capability),
        chain=(
            Link(f"The binary of {component or 'a library'} holds no code that runs on this GPU", lacks),
            Link("Starting one of its kernels fails: no kernel image is available", quoted),
        ),
        evidence=(quoted, *known),
        against=() if against is None else (against,),
        explains=case.explains(image.match),
        missing=() if certainty is Certainty.PROVEN else _missing(case, component),
        rivals=() if certainty is Certainty.PROVEN else _RIVALS,
        remedies=remedies.for_extension(case, component, image.capability),
        not_remedies=remedies.IN_VAIN,
        notes=("Source paths in such a message are those of the machine that built the program.",),
        strength=strength,
    )


def _built_here(case: Case, image: MissingImage, component: str | None) -> Evidence | None:
    """What says that the binary is no published one: its package, or a list in the environment without this GPU."""
    named = own_build.evidence_naming_component(case, component)
    if named is not None:
        return named
    listed = lists.known_lists(case, Environment.of(case.facts))
    if image.capability is None:
        is_built = case.found(own_build.BUILT_HERE.name) is not None
        return next((each.evidence for each in listed if is_built and each.capabilities), None)
    return next((each.evidence for each in listed if each.covers(image.capability) is False), None)


def _certainty(image: MissingImage, is_impossible: bool) -> tuple[Certainty, int]:
    """A list of targets without the GPU proves it; a named extension beside a working torch makes it likely."""
    if image.has_code is False and image.is_plain and image.is_owner_sure:
        return Certainty.PROVEN, 75
    if is_impossible or image.is_torch_own or image.is_mixed:
        return Certainty.POSSIBLE, 25
    if image.match.sign == images.NO_DEVICE_CODE.name:
        return Certainty.LIKELY, 75
    if image.contrast is not None or image.has_code is False:
        return Certainty.LIKELY, 65
    if image.is_named and image.is_plain:
        return Certainty.LIKELY, 60
    if image.component is not None and (
        image.torch.value is True or (image.capability and image.component in images.WITHOUT_TORCH)
    ):
        return Certainty.LIKELY if image.is_plain else Certainty.POSSIBLE, 55
    return Certainty.POSSIBLE, 40 if image.is_plain else 25


def _stated(case: Case, match: Match, gpus: Gpus | Unknown) -> Verdict:
    """The library says itself that its code was made for other GPUs; whether it was built here, it does not say."""
    quoted = case.evidence(match, "the library says for which GPU its code was made")
    is_engine_file = match.sign == "tensorrt-other-gpu"
    component: str | None
    if is_engine_file:
        component = "tensorrt-llm" if case.engine == "tensorrt-llm" else "tensorrt"
    else:
        component = images.in_other_words(match.text) or case.component_near(match, case.engine or None)
    packed = match.group("packed")
    stated = f"{packed[:-1]}.{packed[-1]}" if packed else None
    capability = (
        stated or match.group("cc") or match.group("sm") or (gpus.capability if isinstance(gpus, Gpus) else None)
    )
    # the kernels' own texts come as often from a build of one's own; an engine file mostly does
    certainty = Certainty.POSSIBLE
    if packed is not None:
        certainty = Certainty.PROVEN
    elif not is_engine_file and match.event is not None and match.sign == "built-without-it":
        certainty = Certainty.LIKELY if component in ("vllm", "tensorflow", "paddle") and _is_site(match) else certainty
    return Verdict(
        certainty=certainty,
        component=component,
        title=_title(component, capability),
        chain=(
            Link(f"The code of {component or 'the library'} was made for other GPUs", quoted),
            Link("It is refused or fails on this GPU", quoted),
        ),
        evidence=(quoted, *of_gpus(gpus, quoted)),
        explains=case.explains(match),
        missing=_missing(case, component),
        rivals=("build-target-wrong", "arch-unsupported-by-library"),
        remedies=engine_files.REMEDIES
        if is_engine_file
        else (*_other_image(packed), *remedies.for_extension(case, component, capability)),
        not_remedies=() if is_engine_file else remedies.IN_VAIN,
        strength=40 if is_engine_file else 50,
    )


def _other_image(packed: str | None) -> tuple[Remedy, ...]:
    """Programs that are published as one image per generation of GPUs say for which one theirs was compiled."""
    if packed is None:
        return ()
    return (
        Remedy(
            kind="container",
            name="image",
            value=f"the variant for compute capability {packed[:-1]}.{packed[-1]}",
            summary=f"Run the image that is published for compute capability {packed[:-1]}.{packed[-1]} (the tag names the generation)",
            cost="another image is pulled",
        ),
    )


def _is_site(match: Match) -> bool:
    """The failing code lies in an installed package, not in a checkout."""
    return any("-packages/" in frame.path for frame in match.frames)


def _surroundings(image: MissingImage) -> str:
    frames = image.match.frames[-6:]
    return " ".join([image.match.text[:1000], *(f"{frame.path} {frame.code}" for frame in frames)])


def _title(component: str | None, capability: str | None) -> str:
    gpu = f"compute capability {capability}" if capability else "this GPU"
    return f"The installed {component or 'extension'} has no code for {gpu}"


def _inference(image: MissingImage) -> str:
    if image.torch.value is True:
        return "torch has code for the GPU, so another library lacks it"
    return "nobody listed what the binary holds"


def _missing(case: Case, component: str | None) -> tuple[Missing, ...]:
    suffix = f".{component}" if component else ""
    asked = (
        case.missing("cc", "which code the GPU needs"),
        case.missing(
            f"binary_archs{suffix}",
            "what the library holds",
            "cuobjdump --list-elf FILE.so | grep -o 'sm_[0-9a-z]*' | sort | uniq -c",
        ),
        None
        if component in images.WITHOUT_TORCH
        else case.missing("torch_arch_list", "whether torch itself has the GPU"),
        case.missing(f"packages{suffix}", "which release it is", "python -m pip list"),
    )
    return tuple(m for m in asked if m is not None)
