"""The package data itself: typed, with provenance, fast to load, and up to date with its sources."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from scripts import make_knowledge

from gpuwhy.knowledge import (
    drivers,
    dtypes,
    engine_memory,
    flashinfer,
    gpu_memory_sizes,
    gpus,
    pins,
    switches,
    tables,
    toolkits,
    torch,
    torch_symbols,
    triton,
)

TYPES: dict[str, type[msgspec.Struct]] = {
    "drivers": drivers.DriverTable,
    "engine_memory": engine_memory.EngineMemoryTable,
    "flashinfer": flashinfer.FlashinferTable,
    "gpu_memory_sizes": gpu_memory_sizes.GpuMemoryTable,
    "gpus": gpus.GpuTable,
    "number_formats": dtypes.NumberFormats,
    "pins": pins.PinTable,
    "switches": switches.StoredSwitches,
    "toolkits": toolkits.ToolkitTable,
    "torch": torch.TorchTable,
    "torch_symbols": torch_symbols.SymbolTable,
    "triton": triton.TritonTable,
}
PROVENANCE = re.compile(r"(measured|measured once|documented|derived): ?\S|unchecked$")


def test_every_table_has_a_type() -> None:
    assert {path.stem for path in tables.DATA.glob("*.json")} == set(TYPES)


@pytest.mark.parametrize("name", sorted(TYPES))
def test_table_fits_its_type_and_has_no_other_keys(name: str) -> None:
    text = (tables.DATA / f"{name}.json").read_bytes()
    assert msgspec.to_builtins(msgspec.json.decode(text, type=TYPES[name])) == msgspec.to_builtins(
        msgspec.convert(json.loads(text), TYPES[name])
    )
    document = json.loads(text)
    assert msgspec.json.decode(msgspec.json.encode(tables.read_table(name, TYPES[name]))) == document


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_row_has_provenance(name: str) -> None:
    document = json.loads((tables.DATA / f"{name}.json").read_text())
    for table, rows in document.items():
        if table == "layouts":  # lines of the releases, whose rows carry it
            continue
        assert rows, table
        for row in rows:
            assert PROVENANCE.match(row["provenance"]), (table, row)


@pytest.mark.parametrize("name", sorted(TYPES))
def test_loading_takes_less_than_ten_milliseconds(name: str) -> None:
    timings = []
    for _ in range(5):
        start = time.process_time()
        tables.read_table(name, TYPES[name])
        timings.append(time.process_time() - start)
    assert min(timings) < 0.010


def test_importing_the_package_reads_nothing() -> None:
    program = (
        "import sys, time; start = time.process_time(); import gpuwhy.knowledge; cost = time.process_time() - start;"
        "assert 'msgspec' not in sys.modules and 'packaging' not in sys.modules; print(cost)"
    )
    costs = [
        float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)
        for _ in range(3)
    ]
    assert min(costs) < 0.005


def test_submodules_are_reached_through_the_package() -> None:
    from gpuwhy import knowledge

    assert knowledge.toolkits is toolkits
    with pytest.raises(AttributeError):
        _ = knowledge.no_such_module


def test_the_shipped_data_is_what_its_sources_give() -> None:
    sources = make_knowledge.Sources(make_knowledge.SOURCES)
    for name, (_, make) in make_knowledge.TABLES.items():
        assert (tables.DATA / f"{name}.json").read_text() == make_knowledge.as_text(make(sources)), name


def test_gate_epochs_are_confirmed_by_wheels() -> None:
    table = tables.read_table("flashinfer", flashinfer.FlashinferTable)
    for epoch in table.epochs:
        if epoch.rules:
            assert epoch.wheels_read, epoch.first


def test_a_wheel_that_contradicts_its_epoch_is_refused(tmp_path: Path) -> None:
    for folder in ("measured", "documented"):
        (tmp_path / folder).mkdir()
    for file in make_knowledge.SOURCES.glob("*/flashinfer.json"):
        document = json.loads(file.read_text())
        if file.parent.name == "measured":
            for row in document["rows"]:
                if row["version"] == "0.6.12":
                    row["gate_messages"] = []
        (tmp_path / file.parent.name / file.name).write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"0\.6\.12"):
        make_knowledge.make_flashinfer(make_knowledge.Sources(tmp_path))
