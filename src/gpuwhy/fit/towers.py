"""The encoders of images and sounds that come with a text model, and what leads from them to the text."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from gpuwhy.fit.fields import Fields
from gpuwhy.fit.layers import MOST_LAYERS
from gpuwhy.knowledge import config_defaults, nested_config_defaults
from gpuwhy.knowledge.model_architectures import normalised

_SECTIONS = (
    ("vision", ("vision_config", "visual", "vision_tower_config", "vit_config", "vision_encoder", "vision_model_config")),
    ("audio", ("audio_config", "audio_encoder_config", "whisper_config")),
)  # fmt: skip
_GATED = ("silu", "swiglu")
_PIXEL_SHUFFLE = 4


class Tower(Struct, frozen=True, kw_only=True):
    """An encoder of images or sounds with what leads from it to the text. Widths in elements."""

    kind: str
    layers: int
    width: int
    inner: int
    is_gated: bool
    is_moon: bool = False
    """Written with the vt_ fields of MoonViT: the engines shard its attention only."""
    merged: int = 1
    """So many neighbouring patches become one token."""
    mergers: int = 1
    """Layers from whose output a merger of its own leads to the text (Qwen3-VL)."""
    is_merger_sharded: bool = False
    projected: int | None = None
    """The width that the tower hands on, where that is not its own."""
    extra: int = 0
    """Weights that its layers do not account for."""


def read_towers(whole: Fields, known_as: str) -> tuple[Tower, ...]:
    """``known_as``: the model's type, for towers that no section of its config.json describes."""
    # omni models keep their towers one level down
    holders = (whole, whole.section("thinker_config"))
    found = []
    for kind, names in _SECTIONS:
        section = next((s for holder in holders if not (s := holder.section(*names)).is_empty), None)
        defaults = nested_config_defaults.tower_defaults_of_whole(known_as) if kind == "vision" else {}
        tower = _tower(kind, section, whole, defaults) if section is not None else None
        if tower:
            found.append(tower)
    if not found and "encoder_layers" in whole and "decoder_layers" in whole:
        # Whisper: the encoder is described beside the decoder
        made = _tower("audio", whole, whole, {})
        width = made.width
        found.append(msgspec.structs.replace(made, layers=_encoder_layers(whole), is_gated=False, projected=0, extra=10 * width * width))  # fmt: skip
    if not found:
        described = config_defaults.undescribed_towers(known_as)
        found = [
            Tower(kind=kind, layers=1, width=1, inner=1, is_gated=False, extra=weights)
            for kind, field, weights in described
            if field in whole or field in whole.section("embd_layer")
        ]
    return tuple(found)


def _tower(kind: str, section: Fields, whole: Fields, usual: dict[str, Any]) -> Tower:
    model_type = normalised(section.text("model_type"))
    if kind == "vision" and model_type.startswith(("glm4v", "glm46v", "glmga")):
        return _glm_vision(section)
    known = config_defaults.tower_parameters(model_type)
    if known:
        return Tower(kind=kind, layers=1, width=1, inner=1, is_gated=False, extra=known)
    defaults = Fields({**usual, **config_defaults.tower_defaults_of(model_type)})
    layers, width = _layers(section) or _layers(defaults), _width(section) or _width(defaults)
    if layers is None or width is None:
        # the class defaults of CLIP-like towers are large ones
        return Tower(kind=kind, layers=layers or 27, width=width or 1152, inner=4304, is_gated=False)
    inner = _inner(section) or _inner(defaults)
    if inner is None:
        inner = round(width * min(section.number("mlp_ratio") or 4.0, 64.0))
    is_pixtral = "pixtral" in model_type or "PixtralVision" in section.text("architectures") or "vision_encoder" in whole  # fmt: skip
    merge = section.count("spatial_merge_size", largest=16) or whole.count("spatial_merge_size", largest=16)
    is_own_merger = not is_pixtral and merge is not None and (layers > 30 or "out_hidden_size" in section)
    shuffles = whole.number("downsample_ratio") is not None
    return Tower(
        kind=kind,
        layers=layers + (section.count("num_global_layers", largest=MOST_LAYERS) or 0),
        width=width,
        inner=inner,
        is_gated=section.text("hidden_act", "hidden_activation") in _GATED or is_pixtral,
        is_moon="vt_hidden_size" in section,
        merged=merge**2 if merge and is_own_merger else _PIXEL_SHUFFLE if shuffles and kind == "vision" else 1,
        mergers=1 + len(section.indices("deepstack_visual_indexes", "deepstack_visual_indices")),
        is_merger_sharded=is_own_merger,
        projected=section.count("vision_output_dim", largest=10**6) if "num_global_layers" in section else None,
        extra=_tile_positions(section, width),
    )


def _encoder_layers(whole: Fields) -> int:
    return whole.count("encoder_layers", largest=MOST_LAYERS) or 1


def _layers(section: Fields) -> int | None:
    return section.count("vt_num_hidden_layers", "num_hidden_layers", "depth", "layers", "encoder_layers", "n_layers", "num_layers", "conf_num_hidden_layers", largest=MOST_LAYERS)  # fmt: skip


def _width(section: Fields) -> int | None:
    width = section.count("vt_hidden_size", "embed_dim", "hidden_size", "width", "d_model", largest=10**6)
    if "depth" in section and "embed_dim" not in section:
        return section.count("hidden_size", largest=10**6) or width
    return width


def _inner(section: Fields) -> int | None:
    return section.count("vt_intermediate_size", "intermediate_size", "encoder_ffn_dim", largest=10**7)


def _glm_vision(section: Fields) -> Tower:
    """Its intermediate size is that of the merger; its layers are as wide inside as what they hand on."""
    width, handed = section.count("hidden_size", largest=10**6) or 1536, section.count("out_hidden_size", largest=10**6) or 4096  # fmt: skip
    inner = section.count("intermediate_size", largest=10**7) or 13696
    merger = handed * handed + 3 * handed * inner + 4 * width * handed
    layers = section.count("depth", "num_hidden_layers", largest=MOST_LAYERS) or 24
    return Tower(kind="vision", layers=layers, width=width, inner=handed, is_gated=True, projected=0, extra=merger)


def _tile_positions(section: Fields, width: int) -> int:
    """Llama 3.2: a learned position for each patch of each tile in each of nine arrangements of tiles."""
    tiles, image, patch = (section.count(name, largest=10**5) for name in ("max_num_tiles", "image_size", "patch_size"))
    if not (tiles and image and patch and "num_global_layers" in section):
        return 0
    return 9 * tiles * ((image // patch) ** 2 + 1) * width


def tower_parameters(tower: Tower, hidden: int) -> tuple[float, float]:
    """Weights that are sharded over tensor parallel ranks, and those that every rank holds."""
    if tower.layers == 1 and tower.extra:
        return float(tower.extra), 0.0
    attention = 4 * tower.width**2
    feed = (3 if tower.is_gated else 2) * tower.width * tower.inner
    if tower.is_moon:
        merged = 4 * tower.width
        return tower.layers * attention, tower.layers * feed + merged * merged + merged * hidden
    layers = tower.layers * (attention + feed) + tower.extra
    patches = tower.width * 14 * 14 * 3
    if tower.projected is not None:
        return layers, tower.projected * hidden + patches
    merged = tower.merged * tower.width
    if tower.is_merger_sharded:
        return layers + tower.mergers * (merged * merged + merged * hidden), patches
    return layers, merged * hidden + hidden * hidden + patches
