"""Logs of programs that are well, with the noise that they have; and the same logs when something fails at their end."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import gpuwhy

from gpuwhy.investigate import diagnose_log

DATA = Path(__file__).parents[1] / "data" / "logs" / "healthy"
HEALTHY = sorted(DATA.glob("*.log"))
FAILURES = {
    "gpu-lost": "[91234.123456] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
    "host-oom-kill": "[91234.123456] Out of memory: Killed process 18231 (python3) total-vm:702345120kB, anon-rss:431992012kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n",
    "port-in-use": "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n",
    "library-missing": """\
Traceback (most recent call last):
  File "/srv/app/serve.py", line 3, in <module>
    import cv2
  File "/srv/app/venv/lib/python3.12/site-packages/cv2/__init__.py", line 153, in bootstrap
    native_module = importlib.import_module("cv2")
ImportError: libGL.so.1: cannot open shared object file: No such file or directory
""",
    "driver-too-old": """\
Traceback (most recent call last):
  File "/srv/app/venv/lib/python3.12/site-packages/torch/cuda/__init__.py", line 412, in _lazy_init
    torch._C._cuda_init()
RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx
""",
    "gated-or-auth": """\
Traceback (most recent call last):
  File "/srv/app/venv/lib/python3.12/site-packages/huggingface_hub/utils/_http.py", line 409, in hf_raise_for_status
    response.raise_for_status()
huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-1)

Cannot access gated repo for url https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct/resolve/main/config.json.
Access to model meta-llama/Llama-3.1-8B-Instruct is restricted. You must have access to it and be authenticated to access it. Please log in.
""",
}  # fmt: skip
"""What each cause prints when it is real."""


def test_there_are_enough_of_them() -> None:
    assert len(HEALTHY) >= 41


@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
def test_a_healthy_log_is_no_failure(path: Path) -> None:
    diagnosis = diagnose_log(path.read_bytes(), path.name)
    primary = diagnosis.incident.primary_event
    assert primary is None, primary
    assert not diagnosis.incident.is_failure
    assert [(finding.cause, finding.evidence[0].quote) for finding in diagnosis.findings] == []


@pytest.mark.parametrize("name", ["sglang-tp8", "dmesg-corrected-errors", "vllm-0.10-lora-bad-clients"])
def test_the_command_says_so(name: str) -> None:
    done = gpuwhy("diagnose", str(DATA / f"{name}.log"))
    assert (done.status, done.err) == (0, "")
    assert "no failure in what was examined" in " ".join(done.out.splitlines()[:3])


@pytest.mark.parametrize("cause", FAILURES)
@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
def test_a_failure_at_its_end_is_found_and_not_the_noise(path: Path, cause: str) -> None:
    text = path.read_text(encoding="utf-8").rstrip("\n") + "\n" + FAILURES[cause]
    diagnosis = diagnose_log(text.encode(), path.name)
    assert diagnosis.incident.is_failure
    causes = [finding.cause for finding in diagnosis.findings]
    assert causes[:1] == [cause]
    primary = diagnosis.incident.primary_event
    assert primary is not None
    assert primary.span.last > len(path.read_text(encoding="utf-8").splitlines())
