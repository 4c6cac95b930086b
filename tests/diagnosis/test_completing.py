"""What follows from facts by measured data, and what must not be overwritten by it."""

from __future__ import annotations

from typing import Any

from gpuwhy.diagnosis import completed
from gpuwhy.model.evidence import Evidence, Standing
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.host import Gpus


def facts(**values: Any) -> Facts:
    return Facts(
        {key: Fact(key, value, Evidence(key, str(value), standing=Standing.GIVEN)) for key, value in values.items()}
    )


def test_a_gpu_s_name_gives_its_compute_capability_and_says_so() -> None:
    cc = completed(facts(gpu="NVIDIA RTX PRO 6000 Blackwell Server Edition")).get("cc")
    assert isinstance(cc, Fact)
    assert (cc.value, cc.evidence.standing) == ("12.0", Standing.DERIVED)


def test_a_stated_capability_is_kept_whatever_the_name_says() -> None:
    assert completed(facts(gpu="RTX 5090", cc="8.6")).value("cc") == "8.6"


def test_other_spellings_of_a_capability_are_read() -> None:
    assert completed(facts(cc="sm_120")).value("cc") == "12.0"


def test_listed_devices_get_their_capability() -> None:
    view = Gpus.of(completed(facts(gpus=["0: NVIDIA H100 80GB HBM3", "1: Quadro Nonesuch 1"])))
    assert isinstance(view, Gpus)
    assert [d.compute_capability for d in view.devices] == ["9.0", None]


def test_an_unknown_model_stays_unknown() -> None:
    assert "cc" not in completed(facts(gpu="Voodoo 2"))


def test_a_driver_gives_the_highest_cuda_it_supports() -> None:
    assert completed(facts(driver="570.86.15")).value("driver_cuda") == "12.8"


def test_the_driver_s_own_word_is_kept() -> None:
    assert completed(facts(driver="570.86.15", driver_cuda="12.9")).value("driver_cuda") == "12.9"
