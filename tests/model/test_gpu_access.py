"""The views of what answers where, and of how a container was started."""

from __future__ import annotations

from typing import Any

import pytest

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.gpu_access import ContainerSetup, GpuAccess


def facts(values: dict[str, Any]) -> Facts:
    return Facts({key: Fact(key, value, Evidence(key, str(value))) for key, value in values.items()})


def test_nothing_known_is_unknown() -> None:
    assert isinstance(GpuAccess.of(facts({})), Unknown)
    assert isinstance(ContainerSetup.of(facts({})), Unknown)


def test_answers_are_read_as_works_or_fails() -> None:
    access = GpuAccess.of(
        facts({"nvidia_smi.host": "ok", "nvidia_smi.container": "Unknown Error", "cuinit.host": 0, "cuinit.container": "999"})
    )  # fmt: skip
    assert isinstance(access, GpuAccess)
    assert (access.smi_host, access.smi_container, access.cuinit_host, access.cuinit_container) == (True, False, True, False)  # fmt: skip
    assert not access.is_libcuda_known
    assert [evidence.quote for evidence in access.shown("cuinit.container", "libcuda_path")] == ["999"]


def test_a_libcuda_that_was_looked_for_in_vain_is_known() -> None:
    access = GpuAccess.of(facts({"libcuda_path": None}))
    assert isinstance(access, GpuAccess)
    assert access.is_libcuda_known
    assert access.libcuda is None
    assert access.smi_host is None


@pytest.mark.parametrize(("values", "has_no_gpus", "lacks_compute"), [
    ({"container.gpus": None}, True, False),
    ({"container.gpus": "void"}, True, False),
    ({"container.gpus": "all"}, False, False),
    ({"container.capabilities": "utility"}, False, True),
    ({"container.capabilities": "compute,utility"}, False, False),
    ({"container.capabilities": "all"}, False, False),
    ({"container.capabilities": None}, False, False),
])  # fmt: skip
def test_what_a_container_was_given(values: dict[str, Any], has_no_gpus: bool, lacks_compute: bool) -> None:
    setup = ContainerSetup.of(facts(values))
    assert isinstance(setup, ContainerSetup)
    assert setup.is_inside is True
    assert (setup.has_no_gpus, setup.lacks_compute) == (has_no_gpus, lacks_compute)


def test_a_host_is_no_container() -> None:
    setup = ContainerSetup.of(facts({"container.in_container": False}))
    assert isinstance(setup, ContainerSetup)
    assert setup.is_inside is False
