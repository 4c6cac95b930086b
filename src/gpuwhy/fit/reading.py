"""Reads a model from its folder: config.json, and the sizes that the index, the headers or the files say.

Nothing is downloaded and no weights are read. What is there is used in this order: the headers of safetensors files,
the index's total size, the sizes of files (pointers of Git LFS name them too), else config.json alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from gpuwhy.fit.amount import Amount
from gpuwhy.fit.architecture import Architecture, read_architecture
from gpuwhy.fit.fields import Fields
from gpuwhy.fit.gguf import GgufError, read_gguf_config
from gpuwhy.fit.inventory import Inventory, computed_inventory, scaled_inventory
from gpuwhy.fit.model import Draft, Model
from gpuwhy.fit.tensors import HeaderError, Tensor, inventory_of, read_header

_LARGEST_JSON = 64 << 20
_MOST_FILES = 2000
_POINTER_BYTES = 400
_POINTER = re.compile(rb"\Aversion https://git-lfs[^\n]{0,80}\noid [^\n]{0,120}\nsize (\d{1,15})", re.ASCII)
_PART = re.compile(r"-\d{5}-of-\d{5}", re.ASCII)
_PICKLED = (".bin", ".pt", ".pth")


class ModelError(Exception):
    """No model is where the user said; in words for people."""


def read_model(where: Path, draft: Path | None = None) -> Model:
    """``where``: a folder, its config.json, its index, or a GGUF file. Raises ModelError."""
    config, folder, gguf, missing = _located(where)
    shape = read_architecture(config, _optional_json(folder / "hf_quant_config.json") if folder else None)
    inventory, pickled, more = _inventory(shape, folder, gguf)
    return Model(
        name=_name(where, folder),
        shape=shape,
        inventory=inventory,
        draft=_draft(draft) if draft else None,
        pickled_bytes=pickled,
        missing=(*missing, *more),
    )


def _draft(where: Path) -> Draft:
    model = read_model(where)
    return Draft(model.shape, model.inventory, model.pickled_bytes)


def _name(where: Path, folder: Path | None) -> str:
    if where.suffix == ".gguf" or folder is None:
        return where.name
    name = folder.resolve().name
    # in a cache of the Hugging Face hub the folder is a commit: models--org--name/snapshots/HASH
    parents = [parent.name for parent in folder.resolve().parents]
    hub = next((parent for parent in parents[:2] if parent.startswith("models--")), "")
    return hub.removeprefix("models--").replace("--", "/") if hub else name


def _located(where: Path) -> tuple[Any, Path | None, Path | None, tuple[str, ...]]:
    """The parsed config, the folder, the GGUF file, and what is missing."""
    try:
        is_folder, is_file = where.is_dir(), where.is_file()
    except OSError as error:
        raise ModelError(f"{where}: {error.strerror}") from error
    if is_folder:
        if (where / "config.json").is_file():
            return _json(where / "config.json"), where, _single_gguf(where, must=False), ()
        if (where / "params.json").is_file():
            # as Mistral publishes its models
            return _json(where / "params.json"), where, None, ()
        gguf = _single_gguf(where, must=True)
        if gguf:
            return _gguf_config(gguf), where, gguf, ()
        raise ModelError(f"{where} has no config.json and no GGUF file: give the folder of the model")
    if not is_file:
        raise ModelError(f"{where} is not there. Nothing is downloaded: give the model's folder, or its config.json with the index beside it")  # fmt: skip
    if where.suffix == ".gguf":
        beside = where.parent / "config.json"
        return (_json(beside) if beside.is_file() else _gguf_config(where)), None, where, ()
    if where.name.endswith(".index.json"):
        beside = where.parent / "config.json"
        if beside.is_file():
            return _json(beside), where.parent, None, ()
        return {}, where.parent, None, ("there is no config.json beside the index",)
    return _json(where), where.parent, None, ()


def _gguf_config(path: Path) -> dict[str, Any]:
    try:
        return read_gguf_config(path)
    except GgufError as error:
        raise ModelError(str(error)) from error
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from error


def _json(path: Path) -> Any:
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise ModelError(f"{path} is larger than {_LARGEST_JSON >> 20} MiB: it is no configuration")
        return msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from error
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise ModelError(f"{path} is no JSON: {error}") from error


def _optional_json(path: Path) -> Any:
    try:
        return _json(path) if path.is_file() else None
    except ModelError:
        return None


def _single_gguf(folder: Path, must: bool) -> Path | None:
    """The GGUF file of a folder, the first part of one that is split. Several models are no answer."""
    files = _files(folder, (".gguf",))
    models = sorted({_PART.sub("", file.name) for file in files if "mmproj" not in file.name})
    if len(models) > 1 and must:
        raise ModelError(f"{folder} holds several models: name one of {', '.join(models[:8])}")
    return files[0] if len(models) == 1 else None


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    try:
        found = sorted(file for file in folder.iterdir() if file.suffix in endings)
    except OSError:
        return []
    return found[:_MOST_FILES]


def _inventory(shape: Architecture, folder: Path | None, gguf: Path | None) -> tuple[Inventory, float, tuple[str, ...]]:
    """With the bytes that are in pickled files, and what could not be read."""
    computed = computed_inventory(shape)
    if gguf is not None and not (folder and _files(folder, (".safetensors",))):
        return _of_gguf(computed, gguf)
    if folder is None:
        return computed, 0.0, ()
    files = _safetensors(folder)
    missing: tuple[str, ...] = ()
    if files:
        try:
            largest = max(file.stat().st_size for file in files)
            tensors: list[Tensor] = [tensor for file in files for tensor in read_header(file)]
            if _is_whole(folder, files):
                return inventory_of(tensors, shape, largest), 0.0, ()
            missing = ("some files that the index names are not there: its total size is taken",)
        except HeaderError as error:
            pointed = _sizes(files)
            if pointed and pointed > 10_000 * len(files):
                return scaled_inventory(computed, pointed, pointed / len(files)), 0.0, ()
            missing = (f"{error}: the fields of config.json are used",)
        except OSError as error:
            missing = (f"the weights cannot be read ({error.strerror}): the fields of config.json are used",)
    total, parts = _index_total(folder)
    if total:
        return scaled_inventory(computed, total, total / max(1, parts)), 0.0, missing
    pickled = [file for file in _files(folder, _PICKLED) if not file.name.startswith(("training_args", "optimizer", "scheduler", "rng_state"))]  # fmt: skip
    size = _sizes(pickled)
    if size > 1_000_000:
        return scaled_inventory(computed, size, size / len(pickled)), size, missing
    return computed, 0.0, missing


def _of_gguf(computed: Inventory, gguf: Path) -> tuple[Inventory, float, tuple[str, ...]]:
    parts = [file for file in _files(gguf.parent, (".gguf",)) if _PART.sub("", file.name) == _PART.sub("", gguf.name)]
    size = _sizes(parts or [gguf])
    made = scaled_inventory(computed, size, size / max(1, len(parts)))
    # the formats differ from tensor to tensor, and engines unpack some
    inventory = msgspec.structs.replace(made, spread=Amount(0.97, 1.0, 1.1), source="the size of the GGUF file", missing=())  # fmt: skip
    return inventory, 0.0, ()


def _safetensors(folder: Path) -> list[Path]:
    """The files of the model: those that its index names; without one, not also the same weights in another layout."""
    files = _files(folder, (".safetensors",))
    named = _weight_map(folder)
    if named:
        return [file for file in files if file.name in named]
    usual = [file for file in files if not file.name.startswith("consolidated")]
    return usual or files


def _is_whole(folder: Path, files: list[Path]) -> bool:
    names = {file.name for file in files}
    named = _weight_map(folder)
    return not named or named <= names


def _weight_map(folder: Path) -> set[str]:
    index = Fields(_index(folder))
    entries = index.section("weight_map")
    return {str(entries.text(name)) for name in entries.names()} - {""}


def _index(folder: Path) -> Any:
    for pattern in ("*.safetensors.index.json", "*.bin.index.json"):
        for path in sorted(folder.glob(pattern))[:1]:
            return _optional_json(path)
    return None


def _index_total(folder: Path) -> tuple[float, int]:
    """The total of the index in bytes, and over how many files."""
    index = Fields(_index(folder))
    total = index.section("metadata").number("total_size")
    return total or 0.0, len(_weight_map(folder))


def _sizes(files: list[Path]) -> float:
    """Bytes of files; of a Git LFS pointer those that it stands for."""
    total = 0.0
    for file in files:
        try:
            size = file.stat().st_size
            pointed = _POINTER.match(file.read_bytes()) if size < _POINTER_BYTES else None
        except OSError:
            continue
        total += int(pointed[1]) if pointed else size
    return total
