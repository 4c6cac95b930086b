"""STAND-IN for an inference server: asks the real FlashInfer for its sampler, as SGLang does for the first token.

Up to the point where FlashInfer would compile the sampling kernels everything is real. The compilation itself (minutes, and a
GPU to run the result) is replaced by asking the compiler, with FlashInfer's own command line and `--dryrun`, whether it would
take the job: it answers as in a real build, and compiles nothing.
"""

import argparse
import signal
import subprocess

import torch
from flashinfer import sampling
from flashinfer.jit import core, env


def ask_compiler(spec):
    """In place of `JitSpec.build_and_load`: serves if the compiler takes the job, else fails as the real build does."""
    command = spec.get_compile_commands()[0]["command"]
    answer = subprocess.run(
        f"{command} --dryrun", shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if answer.returncode:
        raise RuntimeError(f"Ninja build failed. Ninja output:\n{answer.stdout}")
    serve()


def serve():
    print("The server is fired up and ready to roll!", flush=True)
    while True:
        signal.pause()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--sampling-backend", choices=["flashinfer", "pytorch"], default="flashinfer")
    backend = arguments.parse_args().sampling_backend
    print("serving from", env.FLASHINFER_WORKSPACE_DIR, flush=True)
    core.JitSpec.build_and_load = ask_compiler
    probabilities = torch.softmax(torch.randn(2, 1000), dim=-1)
    if backend == "pytorch":
        torch.multinomial(probabilities, 1)
        serve()
    sampling.top_k_top_p_sampling_from_probs(
        probabilities, torch.tensor([50, 50]), torch.tensor([0.9, 0.9]), filter_apply_order="joint"
    )


if __name__ == "__main__":
    main()
