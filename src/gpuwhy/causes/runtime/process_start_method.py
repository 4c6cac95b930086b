"""process-start-method: worker processes are forked after CUDA began, or spawned from a script without a main guard."""

from __future__ import annotations

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.model.finding import Certainty, Link, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python", "\\lib\\", "<frozen")


@cause(
    "process-start-method",
    family="Run time",
    leads_to=("toolkit-too-old-for-arch", "no-device-visible"),
    signs=[
        says("forked-after-cuda", ("re-initialize cuda in forked", "forked subprocess"), r"Cannot re-?initialize CUDA in (?:a )?forked subprocess"),
        says(
            "no-main-guard",
            ("finished its bootstrapping phase", "bootstrapping phase"),
            r"start a new process before the\s{1,60}(?:current process has finished its bootstrapping phase|$)|current process has finished its bootstrapping phase",
        ),
        says("method-already-set", "context has already been set", r"RuntimeError: context has already been set"),
    ],
)  # fmt: skip
def process_start_method(case: Case) -> Judgement:
    """Worker processes are started in a way that does not go together with CUDA: forked too late, or spawned without a guard.

    How it shows itself
      `RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the
      'spawn' start method`. Some libraries swallow it: FlashInfer's `Failed to get device capability: Cannot re-initialize ...` leaves it
      with no target, and it then blames the GPU. The reverse: `An attempt has been made to start a new process before the
      current process has finished its bootstrapping phase`.

    Why it happens
      A CUDA context does not survive fork. Once a process has touched CUDA (torch.cuda.*, an import that asks for the device,
      a model loaded before the engine), its forked children cannot. With spawn the child imports the main
      script again: a script without `if __name__ == "__main__":` then starts the engine once more.

    How to be sure
      The message names it. What touched CUDA first: everything before the engine is made, imports included; `torch.cuda.is_initialized()`.

    What helps
      spawn: VLLM_WORKER_MULTIPROC_METHOD=spawn, torch.multiprocessing.set_start_method("spawn"); no CUDA call before the engine;
      and the guard around the main part of the script, which spawn needs.

    What does not help
      CUDA_VISIBLE_DEVICES, other drivers or CUDA versions, fewer GPUs.

    Not to be confused with
      no-device-visible (`No CUDA GPUs are available` in a Ray actor), driver-uvm-broken (`unknown error`).
    """
    match = next((m for name in ("forked-after-cuda", "no-main-guard", "method-already-set") for m in case.all(name) if not m.is_code), None)  # fmt: skip
    if match is None:
        return None
    is_fork = match.sign == "forked-after-cuda"
    is_swallowed = is_fork and (match.event is None or match.event.kind != "exception")
    quoted = case.evidence(match, _MEANING[match.sign])
    component = _component(case, match)
    return Verdict(
        certainty=Certainty.LIKELY if is_swallowed or match.sign == "method-already-set" else Certainty.PROVEN,
        component=component,
        title=_TITLES[match.sign],
        chain=_chain(match, is_fork=is_fork, is_swallowed=is_swallowed, case=case),
        evidence=(quoted,),
        explains=case.explains(match, *case.all(match.sign)),
        remedies=_remedies(case, match, component),
        not_remedies=(
            NotARemedy("CUDA_VISIBLE_DEVICES, another driver or CUDA", "the process is at fault, not the GPU"),
            NotARemedy("retrying", "it fails the same way each time"),
        ),
        strength=84 if match.sign != "method-already-set" else 58,
    )  # fmt: skip


_MEANING = {
    "forked-after-cuda": "a forked child asked for CUDA, which its parent had begun",
    "no-main-guard": "the child runs the main script again, and it starts processes at once",
    "method-already-set": "the start method of processes was set twice",
}
_TITLES = {
    "forked-after-cuda": "A process that had begun to use CUDA was forked, and its child cannot use it",
    "no-main-guard": 'The script starts its engine outside `if __name__ == "__main__":`, and spawned workers run it again',
    "method-already-set": "The start method of processes is set a second time",
}


def _chain(match: Match, *, is_fork: bool, is_swallowed: bool, case: Case) -> tuple[Link, ...]:
    quoted = case.evidence(match, _MEANING[match.sign])
    if not is_fork:
        return (Link("The main part of the script is not guarded" if match.sign == "no-main-guard" else "Two parts of the program set the start method", inferred("what the message stands for")), Link("Workers cannot be started", quoted))  # fmt: skip
    root = Link(
        "The parent process used CUDA before it started its workers", inferred("an import or a call before the engine")
    )
    if is_swallowed:
        return (root, Link("The forked worker cannot ask for the device, and goes on without the answer", quoted, is_swallowed=True), Link("What it then says of the GPU is wrong"))  # fmt: skip
    return (root, Link("A forked worker has no usable CUDA context", quoted))


def _component(case: Case, match: Match) -> str:
    """The user's program when one of its files is in the traceback, or no engine is at work; else the engine."""
    own = any(not any(part in frame.path for part in _INSTALLED) and frame.path.endswith(".py") for frame in match.frames)  # fmt: skip
    return "user-program" if own or not case.engine else case.engine


def _remedies(case: Case, match: Match, component: str) -> tuple[Remedy, ...]:
    guard = Remedy(
        kind="patch", name="user program", value='if __name__ == "__main__":', rank=1,
        summary='Put what starts the engine under `if __name__ == "__main__":`: spawned workers import the script',
    )  # fmt: skip
    if match.sign == "no-main-guard":
        return (guard,)
    late = Remedy(
        kind="patch", name="user program", value="no torch.cuda call before the engine exists",
        summary="Touch CUDA only after the workers were started (no torch.cuda.*, no model on a GPU, no such import before)",
    )  # fmt: skip
    spawn = Remedy(
        kind="patch", name="user program", value='torch.multiprocessing.set_start_method("spawn")',
        summary='Start workers by spawn: torch.multiprocessing.set_start_method("spawn", force=True) as the first statement under the main guard',
        rank=-1,
    )  # fmt: skip
    if match.sign == "method-already-set":
        return (spawn,)
    if case.engine == "vllm":
        variable = Remedy(
            kind="env", name="VLLM_WORKER_MULTIPROC_METHOD", value="spawn", summary="Let vLLM spawn its workers",
            limits=("a script that starts the engine needs `if __name__ == \"__main__\":` then",),
        )  # fmt: skip
        return (variable, late, guard) if component == "user-program" else (variable, late)
    return (spawn, late, guard)
