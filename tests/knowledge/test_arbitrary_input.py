"""Look-ups are asked with text from logs and hosts: they answer unknown, they never raise."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwhy.knowledge import (
    capability,
    components,
    drivers,
    dtypes,
    flashinfer,
    gpus,
    pins,
    releases,
    toolkits,
    torch,
    triton,
)

#: arbitrary text, and text that is nearly a version, a target or a name
ANY_TEXT = st.one_of(
    st.text(max_size=60),
    st.from_regex(r"[0-9.+a-z_\- ]{0,12}", fullmatch=True),
    st.from_regex(r"(cuda|sm_|compute_|RTX |v|cu)?[0-9]{1,4}(\.[0-9]{1,3}){0,3}(a|f|\+cu[0-9]{3}|\.post1|rc1)?"),
)


@settings(max_examples=300, deadline=None)
@given(first=ANY_TEXT, second=ANY_TEXT, third=ANY_TEXT)
def test_no_look_up_raises(first: str, second: str, third: str) -> None:
    releases.cuda_release(first)
    releases.public_version(first)
    releases.local_part(first)
    capability.parse(first)
    for has_ptx in (False, True):
        capability.runs_on(first, second, has_ptx)
    toolkits.accepts(first, second)
    toolkits.targets_of(first)
    toolkits.first_release_for(first)
    toolkits.last_release_for(first)
    toolkits.best_target(first, second)
    toolkits.runnable_targets(first, second)
    toolkits.ptx_isa_max(first)
    toolkits.gcc_max(first)
    toolkits.supports_option(first, second)
    gpus.by_name(first)
    gpus.by_pci_device_id(first)
    gpus.generation(first)
    gpus.limits(first)
    drivers.cuda_of(first)
    drivers.required_for(first)
    drivers.shipped_with(first)
    drivers.runs(first, second)
    drivers.ptx_isa_max(first)
    triton.bundled_assemblers(first)
    triton.refuses(first, second)
    triton.override_variable(first, second)
    triton.agrees_to_use(first, second)
    triton.first_release_for(first)
    torch.arch_list(first, second)
    torch.arch_list(first)
    torch.supports(first, second, third)
    torch.supports(first, None, third)
    torch.builds_for(first)
    torch.builds_of(first)
    torch.triton_of(first)
    pins.pin_of(first, second, third)
    pins.flashinfer_of("sglang", first)
    pins.first_release_with("vllm", "torch", first)
    flashinfer.gate(first, second)
    flashinfer.passes_gate(first, second, third)
    flashinfer.versions_with_gate(first, second)
    flashinfer.detected_target(first, second, third)
    flashinfer.arch_list_problem(first, second, third)
    flashinfer.arch_list_problem(first)
    flashinfer.arch_list_value(first, second, third)
    flashinfer.build_requirements(first)
    flashinfer.frame_versions(first, 108, second)
    flashinfer.override_variables(first)
    components.component_of_module(first)
    dtypes.supports(first, second)


@given(st.integers())
def test_numbers(number: int) -> None:
    capability.parse(number)
    drivers.decode_cuda_version_number(number)
    gpus.capabilities_with_shared_limit(number)


@given(text=st.text(max_size=60))
def test_an_unreadable_version_is_unknown_and_never_a_no(text: str) -> None:
    if releases.cuda_release(text) is None:
        assert toolkits.accepts(text, "sm_120").value is None
    if releases.public_version(text) is None:
        assert triton.refuses(text, "12.0").value is None
        assert torch.supports(text, None, "12.0").value is None
        assert flashinfer.passes_gate(text, "12.0", "12.8").value is None
