"""``gpuwhy fit`` as a user runs it: the chart, the JSON and its schema, the exit status, the words for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from tests.cli.running import gpuwhy
from tests.fit.models import write_kimi

from gpuwhy.snapshot import Probe, Snapshot, Subject, write

SEED = ("--gpu", "RTX PRO 6000 Blackwell", "--gpus", "8")


@pytest.fixture(scope="module")
def kimi(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_kimi(tmp_path_factory.mktemp("models") / "Kimi-K2.6"))


def test_a_start_that_works_is_shown_as_a_chart(kimi: str) -> None:
    done = gpuwhy("fit", kimi, *SEED, "--engine", "sglang==0.5.23", "--tp", "8", "--mem-fraction-static", "0.86", "--trust-remote-code")  # fmt: skip
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("Starts: Kimi-K2.6 on 8 x NVIDIA RTX PRO 6000 Blackwell")
    assert all(len(line) <= 80 for line in done.out.splitlines())
    assert "\x1b" not in done.out
    chart = next(line for line in done.out.splitlines() if line.lstrip().startswith("weights  "))
    assert chart.count("#") > 20


def test_a_start_that_fails_shows_what_the_engine_prints(kimi: str) -> None:
    done = gpuwhy("fit", kimi, *SEED, "--engine", "vllm==0.33.0", "-tp", "8")
    assert done.status == 1
    assert "To serve at least one request with the model's max seq len" in " ".join(done.out.split())


def test_too_close_is_an_exit_status_of_its_own(kimi: str) -> None:
    done = gpuwhy("fit", kimi, *SEED, "--engine", "sglang==0.5.9", "--tp=8")
    assert done.status == 3
    assert done.out.startswith("Too close to call: Kimi-K2.6")


def test_the_document_is_that_of_the_schema(kimi: str) -> None:
    done = gpuwhy("fit", kimi, *SEED, "--engine", "sglang==0.5.15", "--tp", "8", "--speculative-algorithm", "EAGLE3", "--format", "json")  # fmt: skip
    document = json.loads(done.out)
    schema = json.loads((Path(__file__).parents[2] / "docs" / "fit.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["estimate"]["fraction"]["name"] == "--mem-fraction-static"
    assert {part["kind"] for part in document["estimate"]["parts"]} >= {"weights", "draft", "kv-cache", "graphs"}


def test_a_draft_folder_is_read(kimi: str, tmp_path: Path) -> None:
    shape = {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 7168, "num_hidden_layers": 1,
             "num_attention_heads": 64, "num_key_value_heads": 64, "head_dim": 128, "intermediate_size": 12288,
             "vocab_size": 163840, "draft_vocab_size": 32000}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(shape))
    done = gpuwhy("fit", kimi, *SEED, "--engine", "sglang==0.5.23", "--tp", "8", "--mem-fraction-static", "0.86", "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(tmp_path), "--format", "json")  # fmt: skip
    estimate = json.loads(done.out)["estimate"]
    draft = next(part for part in estimate["parts"] if part["kind"] == "draft")
    assert draft["source"] == "the draft model's config.json"
    assert not any("not at hand" in each for each in estimate["missing"])


def test_a_small_host_fails_a_load_without_mmap(kimi: str) -> None:
    flags = ("--engine", "sglang==0.5.23", "--tp", "8", "--mem-fraction-static", "0.86", "--weight-loader-disable-mmap")
    assert gpuwhy("fit", kimi, *SEED, *flags, "--host-memory", "256").status == 1
    roomy = gpuwhy("fit", kimi, *SEED, *flags[:-1], "--host-memory", "1024")
    assert roomy.status == 0


def test_every_format_of_a_report_can_be_written_and_what_was_saved_be_shown_again(kimi: str, tmp_path: Path) -> None:
    flags = ("--engine", "sglang==0.5.23", "--tp", "8", "--mem-fraction-static", "0.72")
    page, document = tmp_path / "fit.html", tmp_path / "fit.json"
    assert gpuwhy("fit", kimi, *SEED, *flags, "--format", "html", "-o", str(page)).status == 1
    assert "Fails: Kimi-K2.6" in page.read_text(encoding="utf-8")
    assert gpuwhy("fit", kimi, *SEED, *flags, "--format", "json", "-o", str(document)).status == 1
    issue = gpuwhy("show", str(document), "--format", "markdown").out
    assert issue.startswith("## Fails: ")
    assert "Kimi-K2.6" in issue


def test_a_format_that_shows_no_estimate_is_refused_with_those_that_do(kimi: str) -> None:
    done = gpuwhy("fit", kimi, *SEED, "--engine", "sglang==0.5.23", "--format", "junit")
    assert done.status == 2
    assert "markdown" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere", *SEED, "--engine", "sglang==0.5.23"), "Nothing is downloaded"),
        (("MODEL", "--gpu", "abacus", "--engine", "vllm"), "name its memory too"),
        (("MODEL", *SEED, "--engine", "tgi==3"), "sglang==VERSION or vllm==VERSION"),
        (("MODEL", *SEED, "--engine", "vllm", "--tensor-parallel-size", "eight"), "no number"),
        (("--tp", "8", "MODEL", *SEED, "--engine", "vllm"), "name the model first"),
        (("MODEL", "--gpus", "8", "--engine", "vllm"), "--gpu"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(kimi: str, arguments: tuple[str, ...], said: str) -> None:
    done = gpuwhy("fit", *(kimi if each == "MODEL" else each for each in arguments))
    assert done.status == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_control_characters_of_a_config_reach_no_terminal(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": "\x1b[2J\u202e", "model_type": "x\x07"}))
    done = gpuwhy("fit", str(tmp_path), "--gpu", "H100", "--engine", "vllm==0.33.0")
    assert done.status == 3
    assert not {"\x1b", "\x07", "\u202e"} & set(done.out)


def test_settings_that_fit_are_proposed(kimi: str) -> None:
    done = gpuwhy("fit", kimi, *SEED, "--engine", "sglang==0.5.23", "--tp", "8", "--optimise", "context")
    assert done.status == 1
    assert "1. --mem-fraction-static 0.8" in done.out
    assert "costs: less is left for graphs and peaks" in done.out


def test_the_search_is_in_the_document(kimi: str) -> None:
    done = gpuwhy("fit", kimi, *SEED, "--engine", "vllm==0.33.0", "-tp", "8", "--optimise", "concurrency", "--format", "json")  # fmt: skip
    document = json.loads(done.out)
    schema = json.loads((Path(__file__).parents[2] / "docs" / "fit.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["search"]["goal"] == "concurrency"
    assert all(each["verdict"] == "starts" for each in document["search"]["proposals"])


def snapshot(folder: Path, *, held: int = 0) -> str:
    """Of a host with eight of the GPUs, on the first of which a training job may hold memory."""
    memory = 97887 << 20
    gpus = [{"index": number, "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition", "compute_capability": "12.0", "memory_total": memory} for number in range(8)]  # fmt: skip
    processes = [{"gpu": 0, "pid": 9, "command": ["python", "train.py"], "memory": held}] if held else []
    probes = (
        Probe(name="gpus", status="ok", value={"gpus": gpus, "processes": processes}),
        Probe(name="memory", status="ok", value={"total": 2 << 40, "available": 1 << 40}),
    )
    path = folder / "host.gpuwhy"
    write(Snapshot(target=Subject("local", "here"), started=0.0, probes=probes), path)
    return str(path)


def test_a_snapshot_gives_the_gpus(kimi: str, tmp_path: Path) -> None:
    flags = ("--engine", "sglang==0.5.23", "--tp", "8", "--mem-fraction-static", "0.86")
    done = gpuwhy("fit", kimi, "--on", snapshot(tmp_path), *flags)
    assert (done.status, done.err) == (0, "")
    assert "8 x NVIDIA RTX PRO 6000 Blackwell" in " ".join(done.out.split())
    taken = gpuwhy("fit", kimi, "--on", snapshot(tmp_path, held=40 << 30), *flags)
    assert taken.status == 1
    assert "other processes        40.00" in taken.out


def test_what_a_place_cannot_tell_is_asked_for(kimi: str, tmp_path: Path) -> None:
    done = gpuwhy("fit", kimi, "--on", snapshot(tmp_path))
    assert done.status == 2
    assert "--engine" in done.err
    assert gpuwhy("fit", kimi, "--engine", "vllm==0.33.0").status == 2
    assert gpuwhy("fit", "/nowhere/at/all", "--on", snapshot(tmp_path), "--engine", "vllm==0.33.0").status == 2
    (tmp_path / "text.log").write_text("no snapshot")
    assert "no snapshot" in gpuwhy("fit", kimi, "--on", str(tmp_path / "text.log")).err
