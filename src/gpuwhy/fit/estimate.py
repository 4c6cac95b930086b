"""Whether a model starts: the parts of one GPU's memory, then the checks in the order in which the start reaches them."""

from __future__ import annotations

from gpuwhy.fit.ground import ground_of
from gpuwhy.fit.hardware import Hardware
from gpuwhy.fit.measured import Measured
from gpuwhy.fit.model import Model
from gpuwhy.fit.results import Estimate
from gpuwhy.fit.settings import Settings
from gpuwhy.fit.sglang_estimate import sglang_estimate
from gpuwhy.fit.vllm_estimate import vllm_estimate

NOTHING_MEASURED = Measured()


def estimate(model: Model, hardware: Hardware, settings: Settings, measured: Measured = NOTHING_MEASURED) -> Estimate:
    """The memory of the fullest GPU under these settings. Figures of a log take the place of what they measured.

    Never raises on a configuration, however wrong: what is not known or not usable is in ``missing``.
    """
    ground = ground_of(model, hardware, settings, measured)
    return vllm_estimate(ground) if settings.engine == "vllm" else sglang_estimate(ground)
