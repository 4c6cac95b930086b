"""What a cause reads of a failure's surroundings is found behind thousands of healthy lines as well."""

from __future__ import annotations

from collections.abc import Callable

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
HEALTHY = "".join(f"INFO 11-29 10:{at // 60 % 60:02d}:{at % 60:02d} step {at} done\n" for at in range(6000))


def test_the_isolated_build_that_pip_makes(judge_report: Judge, finding: Find) -> None:
    text = (
        '  File "/t/pip-build-env-ab/overlay/lib/python3.10/site-packages/torch/utils/cpp_extension.py", line 415, in _check_cuda_version\n'
        "    raise RuntimeError(CUDA_MISMATCH_MESSAGE.format(cuda_str_version, torch.version.cuda))\n"
        "RuntimeError: The detected CUDA version (13.0) mismatches the version that was used to compile PyTorch (12.8). Please make sure to use the same CUDA versions.\n"
    )
    found = finding(judge_report(HEALTHY + text), "toolkit-torch-mismatch")
    assert "--no-build-isolation" in [remedy.name for remedy in found.remedies]
