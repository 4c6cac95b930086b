"""Runs inside the service's own interpreter, in a fresh process: calls a check, builds a module, launches a kernel.

It is started by its path, with ``request.json`` beside it, and leaves ``answer.json`` there. Of gpuwhy nothing else is
in this process.
"""

import importlib
import json
import os
import sys
import traceback
from typing import Any, Dict

Answer = Dict[str, Any]


def call(request: Answer) -> Answer:
    """``names`` from a module on, called with ``arguments`` where it is to be called; without names: only imported."""
    found: Any = importlib.import_module(request["module"])
    for name in request["names"]:
        found = getattr(found, name)
    value = found(*request["arguments"], **request["keywords"]) if request["is_call"] else None
    return {"value": repr(value)[:200]}


def build(request: Answer) -> Answer:
    """A module of FlashInfer by its own generator, compiled, linked and loaded."""
    specification = getattr(importlib.import_module(request["module"]), request["function"])()
    specification.build_and_load()
    finder = getattr(specification, "get_library_path", None)
    path = finder() if finder is not None else specification.jit_library_path
    return {"path": str(path), "name": str(specification.name)}


def launch(_request: Answer) -> Answer:
    """One kernel on the first GPU, and its result read back."""
    torch = importlib.import_module("torch")
    result = (torch.ones(1024, device="cuda") * 2).sum()
    torch.cuda.synchronize()
    if float(result) != 2048.0:
        raise RuntimeError("the GPU computed %r in place of 2048" % float(result))
    return {"device": torch.cuda.get_device_name(0)}


def launch_built(_request: Answer) -> Answer:
    """A kernel of FlashInfer's cheapest module on the first GPU, and its result compared with the CPU's."""
    torch = importlib.import_module("torch")
    bits = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0] * 32, dtype=torch.bool)
    packed = importlib.import_module("flashinfer").packbits(bits.cuda(), "little").cpu()
    if packed.tolist() != [0b01001101] * 32:
        raise RuntimeError("the GPU packed %r" % packed.tolist()[:4])
    return {"device": torch.cuda.get_device_name(0), "kernel": "flashinfer.packbits"}


ACTS = {"call": call, "build": build, "launch": launch, "launch_built": launch_built}


def main(folder: str) -> None:
    with open(os.path.join(folder, "request.json")) as stream:
        request = json.load(stream)
    sys.path[:1] = []  # our own folder is no place of the service's modules
    try:
        answer = ACTS[request["act"]](request)
        answer["status"] = "returned"
    except BaseException as error:
        kind = type(error)
        module = "" if kind.__module__ in ("builtins", "__main__") else kind.__module__ + "."
        frames = traceback.extract_tb(error.__traceback__)
        answer = {
            "status": "raised",
            "type": module + kind.__qualname__,
            "message": str(error)[:2000],
            "frames": [[frame.filename, frame.lineno, frame.name] for frame in frames][-6:],
        }
    temporary = os.path.join(folder, "answer.new")
    with open(temporary, "w") as stream:
        json.dump(answer, stream)
    os.rename(temporary, os.path.join(folder, "answer.json"))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # what a library does at exit is no part of the trial


if __name__ == "__main__":
    main(os.path.dirname(os.path.abspath(__file__)))
