"""How many bytes a weight takes in each format, and which weights a checkpoint keeps in which."""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from gpuwhy.fit.fields import Fields

_DTYPES = {"float32": 4.0, "fp32": 4.0, "float": 4.0, "bfloat16": 2.0, "bf16": 2.0, "float16": 2.0, "fp16": 2.0, "half": 2.0}  # fmt: skip
_FLOAT8 = {"fp8", "float8", "fbgemm_fp8", "fp8_e4m3", "modelopt_fp8", "ptpc_fp8", "w8a8_fp8"}
_MOST_RULES = 2000
_NESTED_REPEAT = re.compile(r"[)\]][*+{]")
_MOST_REPEATS = 3
_NAMED_LAYER = re.compile(r"\blayers\.(\d{1,5})(?:\.|=|\Z)", re.ASCII)
_COUNTS_LAYERS = re.compile(r"(?:\Are:|[*]).{0,200}\d|layers[.]\d.{0,200}[*]", re.ASCII | re.DOTALL)
_MOST_TRIALS = 3000
_MOST_GENERAL = 20_000
_SAMPLES = ("self_attn.q_proj", "mlp.up_proj", "mlp.experts.0.up_proj", "mlp.shared_experts.up_proj")
_LATER_EXPERT = re.compile(r"\bexperts\.(?!0\.)\d{1,6}\.", re.ASCII)


class Format(Struct, frozen=True):
    """A storage format. ``bytes_each`` holds the scales; ``is_known`` false: taken from the number of bits alone."""

    name: str
    bytes_each: float
    is_known: bool = True


class Rule(Struct, frozen=True):
    """Weights whose module a pattern names are kept in ``format``."""

    pattern: str
    format: Format


class Quantization(Struct, frozen=True):
    """What a checkpoint says of its formats. ``dtype`` is that of everything that is not quantised."""

    method: str
    dtype: Format
    rules: tuple[Rule, ...] = ()
    """The first one whose pattern fits a linear layer decides; none: ``dtype``."""
    left_out: tuple[str, ...] = ()
    """Modules that stay in ``dtype``."""
    kv_format: str = ""
    """The format of the KV cache that the checkpoint asks for; "" for none."""
    complaint: str = ""

    @property
    def is_quantized(self) -> bool:
        return bool(self.rules)

    def format_of(self, *modules: str) -> Format:
        """The format of a linear layer, by the names that models give it: ``model.layers.3.mlp.experts.0.up_proj``."""
        if any(names(pattern, module) for pattern in self.left_out for module in modules):
            return self.dtype
        fitting = (rule.format for rule in self.rules if any(names(rule.pattern, module) for module in modules))
        return next(fitting, self.dtype)


def first_alike(quantization: Quantization, layers: Sequence[Hashable]) -> tuple[int, ...]:
    """For each layer the first one that is equal to it, and of whose formats the same is said.

    Checkpoints often keep the first or the last layers as they were.
    """
    first: dict[tuple[Hashable, frozenset[str]], int] = {}
    marks = zip(layers, _marks(quantization, len(layers)), strict=True)
    return tuple(first.setdefault(mark, index) for index, mark in enumerate(marks))


def of_layers(quantization: Quantization, indices: Iterable[int]) -> dict[int, Quantization]:
    """What is said of each of these layers: entries that name another one are left out."""
    wanted = sorted(set(indices))
    rules, left_out = _sorted_by_layer(quantization.rules), _sorted_by_layer(quantization.left_out)
    # a real list of thousands names layers: one that does not is not read to its end for each of many layers
    most = max(1, _MOST_GENERAL // max(1, len(wanted)))
    return {
        index: msgspec.structs.replace(
            quantization,
            rules=(*rules.get(index, ()), *rules.get(None, ())[:most]),
            left_out=(*left_out.get(index, ()), *left_out.get(None, ())[:most]),
        )
        for index in wanted
    }


_Entry = TypeVar("_Entry", str, Rule)


def _sorted_by_layer(entries: tuple[_Entry, ...]) -> dict[int | None, list[_Entry]]:
    found: dict[int | None, list[_Entry]] = {}
    for entry in entries:
        found.setdefault(_layer_named(entry if isinstance(entry, str) else entry.pattern), []).append(entry)
    return found


def _marks(quantization: Quantization, number: int) -> list[frozenset[str]]:
    """What tells layers apart: the rest of the entries that name one, and the expressions that mean it."""
    marks: list[set[str]] = [set() for _ in range(number)]
    expressions: list[str] = []
    for entry in (*quantization.left_out, *(rule.pattern + "=" + rule.format.name for rule in quantization.rules)):
        layer = _layer_named(entry)
        if layer is not None:
            if layer < number:
                marks[layer].add(entry.partition(f"layers.{layer}")[2])
        elif _COUNTS_LAYERS.search(entry):
            expressions.append(entry.partition("=")[0])
    for expression in expressions[: _MOST_TRIALS // max(1, number)]:
        for index, mark in enumerate(marks):
            if any(names(expression, f"model.layers.{index}.{module}") for module in _SAMPLES):
                mark.add(expression)
    return [frozenset(mark) for mark in marks]


def _layer_named(entry: str) -> int | None:
    """The one layer that an entry names by its number."""
    found = None if entry.startswith("re:") else _NAMED_LAYER.search(entry)
    return int(found[1]) if found else None


def plain_format(dtype: str) -> Format | None:
    """``torch.bfloat16``, ``half``: a format without quantisation."""
    name = dtype.rpartition(".")[2].lower()
    size = _DTYPES.get(name)
    return None if size is None else Format(name, size)


def integer_format(bits: int, group: int | None, has_zeros: bool) -> Format:
    """Packed integers with 16-bit scales, and packed zero points when not symmetric."""
    scales = 2 / group + (bits / 8 / group if has_zeros else 0) if group else 0.0
    return Format(f"int{bits}" + (f" g{group}" if group else ""), bits / 8 + scales)


HALF = Format("float16", 2.0)
FP8 = Format("fp8", 1.0)
NVFP4 = Format("nvfp4", 0.5 + 1 / 16)
MXFP4 = Format("mxfp4", 0.5 + 1 / 32)
#: one byte of scale for 64 weights, and a float for 256 of those; or a float at once
NF4, NF4_PLAIN = Format("nf4", 0.5 + 1 / 64 + 4 / (64 * 256)), Format("nf4", 0.5 + 4 / 64)


def read_quantization(config: Fields, dtype: Format) -> Quantization:
    """From ``quantization_config`` (or ``compression_config``, or the content of hf_quant_config.json)."""
    section = config.section("quantization_config", "compression_config", "quantization")
    if section.is_empty:
        return Quantization("", dtype)
    method = (section.text("quant_method", "quant_algo", "producer") or "").lower().replace("-", "_")
    left_out = _left_out(section)
    read = _READERS.get(method)
    rules: tuple[Rule, ...]
    if method in _FLOAT8 or (not method and "fp8" in section.text("qformat_weight").lower()):
        # the latter in Mistral's params.json
        rules = (Rule("", _block_fp8(section)),)
    elif read is not None:
        rules = read(section)
    elif "nvfp4" in method or "fp4" in method:
        rules = (Rule("", MXFP4 if "mx" in method else NVFP4),)
    else:
        rules = _by_bits(section)
    complaint = "" if rules else f"the quantisation method {method or '(none named)'!r} is not known, nor its bits"
    return Quantization(method or "unnamed", dtype, rules, left_out, _kv_format(section), complaint)


def online(name: str, quantization: Quantization) -> Quantization:
    """As if the engine were told to quantise (``--quantization fp8``) weights that are not quantised."""
    wanted = name.lower().replace("-", "_")
    if quantization.is_quantized or not wanted:
        return quantization
    chosen = None
    if wanted in _FLOAT8 or wanted in ("w8a8_int8", "experts_int8", "int8", "mxfp8"):
        chosen = FP8
    elif wanted in ("bitsandbytes", "bnb"):
        chosen = NF4
    elif wanted in ("nvfp4", "modelopt_fp4"):
        chosen = NVFP4
    elif wanted in ("mxfp4", "petit_nvfp4"):
        chosen = MXFP4
    if chosen is None:
        return quantization
    pattern = "experts" if wanted == "experts_int8" else ""
    return Quantization(wanted, quantization.dtype, (Rule(pattern, chosen),), (), quantization.kv_format)


def with_narrow_experts(quantization: Quantization, dtype: str) -> Quantization:
    """``expert_dtype`` of DeepSeek V4 says that its experts are narrower than what quantization_config says of all."""
    if dtype.lower() not in ("fp4", "mxfp4", "float4"):
        return quantization
    return msgspec.structs.replace(quantization, rules=(Rule("experts", MXFP4), *quantization.rules))


def _left_out(section: Fields) -> tuple[str, ...]:
    listed = section.texts("ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules", "exclude", "llm_int8_skip_modules", "exclude_layers")  # fmt: skip
    extra = section.section("extra_config")
    plain = tuple(name for name, each in extra.sections() if (each.count("bits", "w_bits") or 0) >= 16)
    return (*listed, *plain)[:_MOST_RULES]


def _kv_format(section: Fields) -> str:
    scheme = section.section("kv_cache_scheme")
    if not scheme.is_empty:
        return "fp8" if (scheme.count("num_bits") or 8) == 8 else "int4"
    named = section.text("kv_cache_quant_algo", "kv_cache_quant_method", "kv_cache_dtype").lower()
    return "fp8" if "fp8" in named else "fp4" if "fp4" in named else ""


def _block_fp8(section: Fields) -> Format:
    block = section.items("weight_block_size")
    if len(block) == 2 and all(isinstance(side, int) and 0 < side < 10**6 for side in block):
        return Format(f"fp8 {block[0]}x{block[1]}", 1 + 4 / (block[0] * block[1]))
    return FP8


def _packed(section: Fields, default_zeros: bool) -> tuple[Rule, ...]:
    bits = section.count("bits", "w_bit", "wbits", "num_bits", largest=16)
    group = section.count("group_size", "q_group_size", largest=1 << 20)
    symmetric = section.flag("sym", "symmetric")
    zeros = section.flag("zero_point")
    has_zeros = (not symmetric if symmetric is not None else default_zeros) if zeros is None else zeros
    pattern = "" if section.flag("lm_head") else "layers"
    return (Rule(pattern, integer_format(bits, group, has_zeros)),) if bits else ()


def _gptq(section: Fields) -> tuple[Rule, ...]:
    # GPTQ stores zero points even when it is symmetric
    bits = section.count("bits", largest=16)
    group = section.count("group_size", largest=1 << 20)
    return (Rule("lm_head" if section.flag("lm_head") else "layers", integer_format(bits, group, True)), Rule("layers", integer_format(bits, group, True))) if bits else ()  # fmt: skip


def _compressed_tensors(section: Fields) -> tuple[Rule, ...]:
    found: list[Rule] = []
    for _, group in section.section("config_groups").sections():
        weights = group.section("weights")
        bits = weights.count("num_bits", largest=16)
        if bits is None:
            continue
        kind, size = weights.text("type").lower(), weights.count("group_size", largest=1 << 20)
        named = (group.text("format") or section.text("format")).lower()
        chosen = _compressed(bits, kind, size, named, weights)
        targets = group.texts("targets") or ("Linear",)
        # a class of layers is no name: it is all of them
        found += [Rule("" if target.isidentifier() and target[:1].isupper() else target, chosen) for target in targets]
    return tuple(sorted(found, key=lambda rule: not rule.pattern))[:_MOST_RULES] or _by_bits(section)


def _compressed(bits: int, kind: str, size: int | None, named: str, weights: Fields) -> Format:
    if bits == 4 and kind == "float":
        return MXFP4 if "mxfp4" in named or size == 32 else NVFP4
    if bits == 8 and kind == "float":
        return Format("mxfp8", 1 + 1 / 32) if "mxfp8" in named else _block(weights)
    return integer_format(bits, size, weights.flag("symmetric") is False)


def _block(weights: Fields) -> Format:
    block = weights.items("block_structure")
    if len(block) == 2 and all(isinstance(side, int) and 0 < side < 10**6 for side in block):
        return Format(f"fp8 {block[0]}x{block[1]}", 1 + 4 / (block[0] * block[1]))
    return FP8


def _modelopt(section: Fields) -> tuple[Rule, ...]:
    inner = section.section("quantization")
    algorithm = (section.text("quant_algo") or inner.text("quant_algo")).upper()
    layers = section.section("quantized_layers")
    # hundreds of experts a layer are listed one by one: the first stands for them
    listed = itertools.islice((name for name in layers.names() if not _LATER_EXPERT.search(name)), _MOST_RULES)
    each = [
        Rule(name, chosen)
        for name in listed
        if (chosen := _modelopt_format((layer := layers.section(name)).text("quant_algo").upper(), layer))
    ]
    if each:
        return tuple(each)[:_MOST_RULES]
    chosen = _modelopt_format(algorithm, section) or _by_group(section)
    return (Rule("", chosen),) if chosen else ()


def _by_group(section: Fields) -> Format | None:
    rules = _compressed_tensors(section)
    return rules[0].format if rules else None


def _modelopt_format(algorithm: str, section: Fields) -> Format | None:
    if "NVFP4" in algorithm or algorithm == "FP4":
        return NVFP4
    if "MXFP4" in algorithm:
        return MXFP4
    if "W4A" in algorithm or "INT4" in algorithm:
        return integer_format(4, section.count("group_size") or 128, False)
    return FP8 if "FP8" in algorithm or "INT8" in algorithm else None


def _bitsandbytes(section: Fields) -> tuple[Rule, ...]:
    if section.flag("load_in_4bit", "_load_in_4bit"):
        return (Rule("layers", NF4 if section.flag("bnb_4bit_use_double_quant") is not False else NF4_PLAIN),)
    return (Rule("layers", Format("int8", 1.0)),)


def _mxfp4(section: Fields) -> tuple[Rule, ...]:  # noqa: ARG001 - the signature of a reader
    # transformers quantises the experts only
    return (Rule("experts", MXFP4),)


def _by_bits(section: Fields) -> tuple[Rule, ...]:
    bits = section.count("bits", "w_bit", "wbits", "num_bits", "weight_bits", largest=16)
    if bits is None:
        return ()
    made = integer_format(bits, section.count("group_size", largest=1 << 20) or 128, True)
    return (Rule("layers", Format(made.name, made.bytes_each, is_known=False)),)


_READERS = {
    "awq": lambda section: _packed(section, default_zeros=True),
    "awq_marlin": lambda section: _packed(section, default_zeros=True),
    "gptq": _gptq,
    "gptq_marlin": _gptq,
    "auto_round": _gptq,
    "auto_gptq": _gptq,
    "compressed_tensors": _compressed_tensors,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "modelopt_mixed": _modelopt,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _mxfp4,
}


def names(pattern: str, module: str) -> bool:
    """Whether an entry of a list of modules means this one: a name, a part of it, a glob, or ``re:`` and an expression.

    The expressions come with the model: those that could take long are read for the parts of names in them instead.
    """
    if not pattern:
        return True
    if pattern.startswith("re:"):
        return _expression_names(pattern[3:], module)
    if "*" in pattern:
        if pattern.count("*") > _MOST_REPEATS:
            return False
        written = ".*".join(re.escape(part) for part in pattern.split("*"))
        return re.fullmatch(f"(?:.*[.])?{written}(?:[.].*)?", module) is not None
    if "layers." in pattern:
        entry, name = pattern[pattern.index("layers.") :], module[module.find("layers.") :]
        return name == entry or name.startswith(entry + ".")
    return f".{pattern.strip('.')}." in f".{module}."


def _expression_names(expression: str, module: str) -> bool:
    repeats = sum(expression.count(each) for each in "*+{")
    if len(expression) > 200 or repeats > _MOST_REPEATS or _NESTED_REPEAT.search(expression):
        return any(part in module for part in re.findall(r"\w{4,40}", expression[:200]) if part not in ("layers", "model"))  # fmt: skip
    try:
        return re.match(expression, module) is not None
    except (re.error, RecursionError, OverflowError):
        return False
