"""What the maker of the table reads in a source: each form in which a release declares a variable or an option."""

from __future__ import annotations

import pytest
from scripts.switches.declarations import Declarations, declarations


def read(source: str, *prefixes: str) -> Declarations:
    found = declarations(source.encode(), prefixes or ("VLLM_", "SGLANG_", "SGL_", "TRITON_"))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "source",
    [
        'environment_variables = {"VLLM_X": lambda: os.getenv("VLLM_X", "0")}',
        'if os.environ.get("VLLM_X"): pass',
        'value = get_bool_env_var("VLLM_X", "true")',
    ],
)
def test_a_name_in_a_string_of_its_own_is_a_variable(source: str) -> None:
    assert read(source).variables == {"VLLM_X"}


@pytest.mark.parametrize(
    "source",
    [
        '"""Set VLLM_X to 1."""',
        "# VLLM_X",
        'print("VLLM_X is gone")',
        "VLLM_X = 1",
        'gone = {"SGLANG_X": _DeprecatedEnv(note="use --x instead")}',
    ],
)
def test_prose_and_lists_of_what_is_gone_are_no_variables(source: str) -> None:
    assert not read(source).variables


def test_fields_of_sglangs_class_and_names_that_are_forwarded_are_variables() -> None:
    source = 'class Envs:\n    SGLANG_A = EnvBool(True)\nold = {"SGLANG_B": _DeprecatedEnv("SGLANG_A")}'
    assert read(source).variables == {"SGLANG_A", "SGLANG_B"}


def test_tritons_tools_make_a_name() -> None:
    source = 'ptxas_blackwell = env_nvidia_tool("ptxas-blackwell")\nold = _path_to_binary("ptxas")'
    assert read(source).variables == {"TRITON_PTXAS_BLACKWELL_PATH", "TRITON_PTXAS_PATH"}


def test_arguments_with_their_other_names_and_kinds() -> None:
    options = {
        option.names: option.is_switch
        for option in read(
            'group.add_argument("--seed", type=int)\n'
            'parser.add_argument("--tensor-parallel-size", "--tp-size", "-tp", type=int)\n'
            'parser.add_argument("--quick", action="store_true")\n'
            'group.add_argument("--model", **model_kwargs["model"])\n'
            'parser.add_argument("positional")\n'
        ).options
    }
    assert options == {
        ("--seed",): False,
        ("--tensor-parallel-size", "--tp-size", "-tp"): False,
        ("--quick",): True,
        ("--model",): None,
    }


def test_an_option_that_only_ends_the_program_is_none() -> None:
    assert not read('p.add_argument("--gone", action=DeprecatedAction, error_message="use --x")').options
    assert read('p.add_argument("--old", action=DeprecatedStoreTrueAction, new_flag="--x")').options


def test_fields_of_sglangs_configuration_are_options() -> None:
    source = (
        "class Memory(Struct):\n"
        '    mem_fraction_static: A[Optional[float], "The fraction."] = None\n'
        '    disable_radix_cache: A[bool, Arg(help="Off.", resolvable=True)] = False\n'
        '    tp_size: A[int, Arg(help="n", cli_name="--tensor-parallel-size", aliases=["--tp-size"])] = 1\n'
        "    _set: A[bool, Arg(no_cli=True)] = False\n"
        "    plain: int = 1\n"
    )
    assert {option.names: option.is_switch for option in read(source).options} == {
        ("--mem-fraction-static",): False,
        ("--disable-radix-cache",): True,
        ("--tensor-parallel-size", "--tp-size"): False,
    }


def test_fields_of_vllms_frontend_are_options() -> None:
    source = "class BaseFrontendArgs:\n    lora_modules: list[str] | None = None\n    enable_x: bool = False\n"
    assert {option.names: option.is_switch for option in read(source).options} == {
        ("--lora-modules",): False,
        ("--enable-x",): True,
    }


def test_what_cannot_be_parsed_says_so() -> None:
    assert declarations(b"def (", ("VLLM_",)) is None
