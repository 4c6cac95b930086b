"""The files, the program and the process that the commands of the documents name, in one folder."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

from tests.docs.pages import ROOT, Shown, files_of
from tests.fleet.generating import generate

DATA = ROOT / "tests" / "data"
SNAPSHOT = DATA / "snapshots" / "schema-0.1.json"
CONFIGURATION = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
}
NCCL = "gpu-a:77:91 [3] NCCL WARN Call to connect returned Connection refused\n"
KERNEL = "[  912.4] Out of memory: Killed process 4711 (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB\n"


class Done(NamedTuple):
    status: int
    out: str
    err: str


class Stage:
    """A folder with what the pages name. ``run`` does what a reader does: types a line into a shell there."""

    def __init__(self, folder: Path, page: Path) -> None:
        self.folder = folder
        self._waiting = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self._replaced = {
            "/opt/sglang": str(folder / "venv"),
            "/opt/cuda": str(folder),
            "4711": str(self._waiting.pid),
            ".venv/bin/gpuwhy": "gpuwhy",
        }
        _lay_out(folder)
        if " incident" in page.read_text(encoding="utf-8"):
            generate(folder / "incident", 3, 1, crashes=1)
        for name, text in files_of(page).items():
            (folder / name).write_text(text, encoding="utf-8")

    def close(self) -> None:
        self._waiting.kill()
        self._waiting.wait()

    def typed(self, command: str) -> str:
        """``command`` with what exists here in place of the reader's own folders and process numbers."""
        for theirs, ours in self._replaced.items():
            command = command.replace(theirs, ours)
        return command

    def run(self, shown: Shown) -> Done:
        """What came of it; one that goes on for too long is a fault of the page, which should say that it is not run."""
        done = subprocess.run(
            ["timeout", "100", "bash", "-o", "pipefail", "-c", self.typed(shown.command)],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "XDG_CACHE_HOME": str(self.folder / "cache"),
                "XDG_STATE_HOME": str(self.folder / "state"),
                "COLUMNS": "120",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def _lay_out(folder: Path) -> None:
    program = folder / "bin" / "gpuwhy"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gpuwhy "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    shutil.copytree(DATA / "logs", folder / "tests" / "data" / "logs")
    for name in ("crash.log", "engine.log", "sglang.log", "report.md"):
        shutil.copy(DATA / "logs" / "sglang.log", folder / name)
    (folder / "dmesg.txt").write_text(KERNEL)
    (folder / "nccl.rank3.txt").write_text(NCCL)
    (folder / "facts.yaml").write_text('cc: "12.0"\ncuda_toolkit: "12.8"\n')
    (folder / "requirements.txt").write_text("vllm==0.11.0\ntorch==2.8.0\n")
    shutil.copy(SNAPSHOT, folder / "host.gpuwhy")
    (folder / "yesterday.gpuwhy").write_text(_of_another_day(), encoding="utf-8")
    site = folder / "venv" / "lib" / "python3.12" / "site-packages" / "sgl_kernel"
    build = folder / "build"
    for place in (folder, site, build):
        place.mkdir(parents=True, exist_ok=True)
        for name in ("flash_ops.abi3.so", "_C.abi3.so"):
            shutil.copy(DATA / "binaries" / "libk.so", place / name)
    library = (DATA / "binaries" / "libk.so").read_bytes()
    for name in ("torch-2.8.0-cp312-cp312-manylinux_2_28_x86_64.whl", "some.whl"):
        with zipfile.ZipFile(folder / name, "w") as wheel:
            wheel.writestr("torch/lib/libtorch_cuda.so", library)
            wheel.writestr("torch-2.8.0.dist-info/METADATA", METADATA)
    (folder / "tests" / "cases").mkdir()
    model = folder / "Kimi-K2.6"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(CONFIGURATION))


METADATA = "Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0\nRequires-Dist: filelock\n"


def _of_another_day() -> str:
    document = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    packages = next(each for each in document["probes"] if each["probe"] == "packages")
    packages["value"][0]["versions"]["flashinfer-python"] = "0.6.11"
    return json.dumps(document)
