"""Rungs c and d: a module compiled where the service is, with the change, loaded and read; and one launch on a GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuwhy.knowledge.capability import runs_on
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.fact import Facts
from gpuwhy.model.host import Gpus
from gpuwhy.remedies.applying.verification import Rung, Trial
from gpuwhy.remedies.verifying.calls import failing_exception
from gpuwhy.remedies.verifying.changes import changes_of
from gpuwhy.remedies.verifying.checker import Ended, asked

_NO_PROGRAM = re.compile(r"No such file or directory: '(?P<name>[\w.+-]{1,60})'$")
SECONDS = 180.0
"""On a machine that does nothing else; as many times more as its cores are shared, four at most."""
LAUNCH_SECONDS = 240.0

CHEAPEST = {"module": "flashinfer.jit.quantization", "function": "gen_quantization_module"}
"""The module of FlashInfer that compiles fastest: 26 s of processor time with nvcc 13.2, a sixth of sampling's."""


class Builds:
    """The cheapest module by FlashInfer's own generator, compiler and linker: all of the way but the failing kernels."""

    name = "build"
    needs_change = False

    def verify(self, trial: Trial) -> Rung | None:
        change = changes_of(trial.remedy)
        if not trial.is_building or change is None or not change.variables or not compiles_flashinfer(trial.diagnosis):
            return None
        said = asked(trial, "build", SECONDS, variables=dict(change.variables), build=CHEAPEST)
        ended = said.ended
        if said.status != "ok" or ended is None:
            return Rung("c", self.name, "not possible", said.reason)
        if ended.status == "timed out":
            return Rung("c", self.name, "not possible", f"the build did not end in {said.seconds:.0f} s")
        tool = _missing_tool(ended)
        if tool:
            why = f"{tool}, which the build starts, is not on the PATH of the service: without it the service compiles nothing either"
            return Rung("c", self.name, "not possible", why)
        if ended.status != "returned":
            is_unknown = ended.type in ("AttributeError", "ImportError", "ModuleNotFoundError")
            return Rung("c", self.name, "not possible" if is_unknown else "failed", ended.words)
        return judged(ended.name, said.codes, capabilities(trial.diagnosis), said.seconds)


class Launches:
    """One kernel on the GPU of the host, with its result compared."""

    name = "launch"
    needs_change = False

    def verify(self, trial: Trial) -> Rung | None:
        change = changes_of(trial.remedy)
        if not trial.is_building or change is None or not change.variables:
            return None
        act = "launch_built" if compiles_flashinfer(trial.diagnosis) else "launch"
        said = asked(trial, "launch", LAUNCH_SECONDS, variables=dict(change.variables), act=act)
        ended = said.ended
        if said.status != "ok" or ended is None:
            return Rung("d", self.name, "not possible", said.reason)
        if ended.status == "returned":
            return Rung("d", self.name, "passed", f"a kernel ran on {ended.device}, its result is right")
        if ended.status == "timed out":
            return Rung("d", self.name, "not possible", f"no answer in {LAUNCH_SECONDS:.0f} s")
        return Rung("d", self.name, "failed", ended.words)


def _missing_tool(ended: Ended) -> str:
    """The program that a build did not find. That says nothing of the change: it is missing without it too."""
    found = _NO_PROGRAM.search(ended.message) if ended.type == "FileNotFoundError" else None
    return found["name"] if found else ""


def judged(name: str, codes: Sequence[str], gpus: Sequence[str], seconds: float) -> Rung:
    """Whether what was built holds code for every GPU of the host."""
    built = f"{name} compiled in {seconds:.0f} s and loaded, its code is {', '.join(codes) or 'none'}"
    if not gpus:
        return Rung("c", "build", "not possible", f"{built}; the GPUs' compute capability is not known")
    without = [gpu for gpu in gpus if not any(runs_on(code, gpu).value is True for code in codes)]
    if without:
        return Rung("c", "build", "failed", f"{built}: nothing for compute capability {', '.join(without)}")
    return Rung("c", "build", "passed", f"{built}: it runs on compute capability {', '.join(gpus)}")


def capabilities(diagnosis: Diagnosis) -> tuple[str, ...]:
    """The compute capabilities of the host's GPUs, each once."""
    gpus = Gpus.of(Facts({fact.key: fact for fact in diagnosis.facts}))
    if not isinstance(gpus, Gpus):
        return ()
    return tuple(dict.fromkeys(each.compute_capability for each in gpus.devices if each.compute_capability))


def compiles_flashinfer(diagnosis: Diagnosis) -> bool:
    """Whether the failure lies on the way on which FlashInfer compiles its kernels."""
    raised = failing_exception(diagnosis)
    return raised is not None and any("/flashinfer/jit/" in frame.path for frame in raised.frames)
