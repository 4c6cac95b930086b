"""Ask a target about the model that its service serves, where the failure turns on the model's shape and size."""

from __future__ import annotations

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate.record import Record
from gpuwhy.investigate.source import Questioner
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact, Facts

ABOUT_MODELS = frozenset(
    {
        "context-too-long",
        "gpu-memory-taken",
        "gpu-oom-graph-or-activation",
        "gpu-oom-kv-cache",
        "gpu-oom-weights",
        "host-oom-kill",
        "parallel-size-invalid",
        "quantization-unsupported",
    }
)
_LONGEST_VALUE = 20_000
"""Characters: a list of modules that are not quantised can be long, and is no shape."""


def model_facts(judgement: Judgement, facts: Facts, source: Questioner, record: Record, *, is_kept: bool) -> Facts:
    """``model.NAME`` and ``model_bytes`` from the model's files; empty where no finding turns on them, or none can be read.

    ``is_kept``: they are read all the same, so that a snapshot holds them for ``gpuwhy check`` and ``gpuwhy fit``.
    """
    is_asked = any(each.cause in ABOUT_MODELS for each in judgement.findings)
    if not is_asked and not is_kept:
        return Facts()
    # the calculator is read only where there is a model to read
    from gpuwhy.investigate.fitting import described_on, service_of

    service = service_of(facts)
    if service is None:
        return Facts()
    found = described_on(source, service.model, facts)
    if not is_asked:
        if service.settings.speculation is not None:
            described_on(source, service.settings.speculation.draft, facts)
        return Facts()
    record.add(
        "what model is served", service.model, "ok" if found else "absent", found.folder if found else "no config.json"
    )
    if found is None:
        return Facts()
    path = f"{found.folder}/config.json"
    facts_of_model = {
        f"model.{name}": Fact(
            f"model.{name}", value, Evidence(f"{name} of the model", _quote(value), Place("file", path))
        )
        for name, value in found.config.items()
        if name and len(str(value)) <= _LONGEST_VALUE
    }
    if found.total_bytes:
        index = f"{found.folder}/model.safetensors.index.json"
        said = Evidence("the size of all weights", f'"total_size": {found.total_bytes}', Place("file", index))
        facts_of_model["model_bytes"] = Fact("model_bytes", found.total_bytes, said)
    return Facts({key: fact for key, fact in facts_of_model.items() if key not in facts})


def _quote(value: object) -> str:
    return str(value)[:200]
