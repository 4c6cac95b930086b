"""C++ names made readable; the expected names are what c++filt of binutils prints, without types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.knowledge.mangling import demangle


@pytest.mark.parametrize(("symbol", "readable"), [
    ("_ZN3c105ErrorC2ENS_14SourceLocationESs", "c10::Error::Error"),
    ("_ZNK3c106SymInt6sym_neERKS0_", "c10::SymInt::sym_ne"),
    ("_ZN18transformer_engine6getenvIiEET_RKSsRKS1_", "transformer_engine::getenv"),
    ("_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEENS2_8optionalINS2_10ScalarTypeEEENS6_INS2_6LayoutEEE", "at::_ops::zeros::call"),
    ("_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb", "c10::cuda::c10_cuda_check_implementation"),
    ("_ZSt28__throw_bad_array_new_lengthv", "std::__throw_bad_array_new_length"),
    ("_ZTVN10__cxxabiv117__class_type_infoE", "vtable for __cxxabiv1::__class_type_info"),
    ("_ZN10flashinfer3fooILb1ELi2EEEvi", "flashinfer::foo"),
    ("_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev", "std::__cxx11::basic_stringstream::basic_stringstream"),
    ("_ZN3c1017RegisterOperatorsD1Ev", "c10::RegisterOperators::~RegisterOperators"),
    ("_Z14flash_attn_fwdRN2at6TensorE", "flash_attn_fwd"),
    ("__ZN3c105ErrorC1Ei", "c10::Error::Error"),
])  # fmt: skip
def test_a_name_is_read_without_its_types(symbol: str, readable: str) -> None:
    found = demangle(symbol)
    assert found is not None
    assert found.text == readable


@pytest.mark.parametrize("symbol", ["ncclCommRegister", "__nvJitLinkAddData_12_1", "llama_decode", "", "_Z"])
def test_a_name_of_c_has_no_parts(symbol: str) -> None:
    assert demangle(symbol) is None


def test_the_two_string_types_are_told_apart() -> None:
    old, new = (
        demangle("_ZN3c105ErrorC2ENS_14SourceLocationESs"),
        demangle("_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
    )
    assert old is not None
    assert new is not None
    assert (old.old_strings, old.new_strings) == (True, False)
    assert (new.old_strings, new.new_strings) == (False, True)


def test_letters_of_a_name_are_no_string_type() -> None:
    found = demangle("_ZN3c104SsSsEi")
    assert found is not None
    assert not found.old_strings


@given(st.text(alphabet="_ZNSsICEDLXJ0123456789tabKRP", max_size=300))
def test_arbitrary_text_is_read_without_a_crash(text: str) -> None:
    demangle("_Z" + text)


@pytest.mark.parametrize("text", ["Z", "_Z", "_ZZ", "_ZZN", "_ZSt", "_ZN", "_Z" + "Z" * 100_000, "_ZN" + "N" * 50_000, "_ZI" + "I" * 50_000])  # fmt: skip
def test_names_that_end_early_or_never_are_no_crash(text: str) -> None:
    demangle(text)
