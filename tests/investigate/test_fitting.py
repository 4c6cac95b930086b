"""The memory of a host's service: its command and GPUs as facts, config.json and index read from the host itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fit.models import KIMI_BYTES, write_kimi

from gpuwhy.collector import serving
from gpuwhy.fit.results import Verdict
from gpuwhy.investigate.checks.forecasting import forecast
from gpuwhy.investigate.checks.results import Forecast, Problem
from gpuwhy.investigate.fitting import facts_on, fit_service, hardware_on, model_on, service_of
from gpuwhy.model.fact import Facts
from gpuwhy.reports.check import render
from gpuwhy.reports.check_json import render as render_json
from gpuwhy.snapshot.given import given
from gpuwhy.targets import Ask, Reply
from gpuwhy.targets.local import LocalTarget

GPU = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
HOST: dict[str, Any] = {
    "gpus": [f"{number}: {GPU} (12.0)" for number in range(8)],
    "packages.sglang": "0.5.23",
    "mem_total_bytes": 1_000_000_000_000,
}


class Disk:
    """Files of this machine, answered as the collector answers on a host."""

    def __init__(self) -> None:
        self.asked: list[Ask] = []

    def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]:
        self.asked += asks
        answers = [serving.answer({"id": 1, **msgspec.to_builtins(each)}) for each in asks]
        return [Reply(status=each["status"], reason=each["reason"], value=each["value"]) for each in answers]


@pytest.fixture
def kimi(tmp_path: Path) -> str:
    return str(write_kimi(tmp_path / "Kimi-K2.6"))


def facts(command: str, **more: Any) -> Facts:
    return given({**HOST, "command": command, **more}).facts


def launch(model: str, flags: str = "") -> str:
    return f"python3 -m sglang.launch_server --model-path {model} --tp 8 {flags}".strip()


def checked(known: Facts) -> Forecast:
    return forecast("host", known, source=Disk())


def memory_problem(found: Forecast) -> Problem | None:
    return next((each for each in found.problems if each.cause.startswith(("gpu-oom", "parallel", "host-oom", "gpu-memory"))), None)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "engine", "model", "tensor"),
    [
        ("python -m sglang.launch_server --model-path /m/K --tp 8", "sglang", "/m/K", 8),
        ("sglang serve --model-path=/m/K --tp-size 4", "sglang", "/m/K", 4),
        ("/opt/venv/bin/vllm serve org/name --tensor-parallel-size 2", "vllm", "org/name", 2),
        ("python3 -m vllm.entrypoints.openai.api_server --model /m/K -tp 2", "vllm", "/m/K", 2),
        ("/bin/bash -c 'source /venv/bin/activate && exec vllm serve org/name -tp 2'", "vllm", "org/name", 2),
        ("bash -lc 'cd /x && python -m sglang.launch_server --model-path /m/K --tp 8'", "sglang", "/m/K", 8),
        (
            "docker run --rm --gpus all --shm-size 32g --ipc host -v /m:/m -e A=1 -p 1:1 vllm/vllm-openai:v0.20.2 --model /m/K -tp 4",
            "vllm",
            "/m/K",
            4,
        ),
    ],
)
def test_the_command_says_engine_and_model(command: str, engine: str, model: str, tensor: int) -> None:
    service = service_of(given({"command": command}).facts)
    assert service is not None
    assert (service.engine, service.model, service.settings.tensor) == (engine, model, tensor)


@pytest.mark.parametrize("command", ["nginx -g daemon", "python train.py --model x", "vllm serve --help", "", "'"])
def test_other_commands_say_nothing(command: str) -> None:
    assert service_of(given({"command": command}).facts) is None


def test_the_model_is_read_with_its_size(kimi: str) -> None:
    disk = Disk()
    model = model_on(disk, kimi)
    assert model is not None
    assert model.name == "Kimi-K2.6"
    assert model.inventory.checkpoint_bytes == pytest.approx(KIMI_BYTES, rel=0.001)
    assert all((each.last or 0) <= 4000 for each in disk.asked), "an index of many thousand tensors stays there"


def test_a_default_fraction_that_is_too_small_is_a_problem_before_the_start(kimi: str) -> None:
    found = checked(facts(launch(kimi)))
    problem = memory_problem(found)
    assert problem is not None
    assert problem.cause == "gpu-oom-kv-cache"
    assert problem.remedies[0].name == "--mem-fraction-static"
    assert 0.8 <= float(problem.remedies[0].value) < 0.95
    assert any("Loaded weights leave no GPU memory" in each.quote for each in problem.evidence)
    assert "weights  " in render(found)
    assert json.loads(render_json(found))["estimate"]["verdict"] == "fails"


def test_a_start_that_fits_passes_with_its_tokens(kimi: str) -> None:
    found = checked(facts(launch(kimi, "--mem-fraction-static 0.86")))
    assert memory_problem(found) is None
    assert any("fits the memory" in each.what and "tokens" in each.why for each in found.passed)


def test_a_context_beyond_the_models_own_is_refused_unless_the_service_allows_it(kimi: str) -> None:
    command = launch(kimi, "--mem-fraction-static 0.86 --context-length 400000")
    problem = memory_problem(checked(facts(command)))
    assert problem is not None
    assert any("is greater than the derived context_length" in each.quote for each in problem.evidence)
    allowed = {"env.SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}
    found = memory_problem(checked(facts(command, **allowed)))
    assert found is None or not any("derived context_length" in each.quote for each in found.evidence)


def test_what_others_hold_counts_and_what_the_server_itself_holds_does_not(kimi: str) -> None:
    command = launch(kimi, "--mem-fraction-static 0.86")
    own = facts(command, gpu_processes=["GPU 0: process 7 (python3 -m sglang.launch_server) holds 90000 MiB"])
    assert memory_problem(checked(own)) is None
    other = facts(command, gpu_processes=["GPU 3: process 9 (python train.py) holds 30000 MiB"])
    hardware = hardware_on(other)
    assert hardware is not None
    assert hardware.taken_gib == pytest.approx(29.3, abs=0.1)
    assert memory_problem(checked(other)) is not None


def test_a_size_that_does_not_divide_is_told_with_the_message(tmp_path: Path) -> None:
    config = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
              "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
              "max_position_embeddings": 32768, "torch_dtype": "bfloat16"}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config, indent=1))
    known = facts(f"vllm serve {tmp_path} -tp 8", **{"packages.vllm": "0.20.2"})
    problem = memory_problem(checked(known))
    assert problem is not None
    assert problem.cause == "parallel-size-invalid"
    assert "must be divisible by tensor parallel size (8)" in problem.evidence[0].quote


def test_the_cache_of_the_hub_is_looked_at_for_a_name(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--moonshotai--Kimi-K2.6" / "snapshots" / "abc"
    write_kimi(snapshot)
    fit = fit_service(facts(launch("moonshotai/Kimi-K2.6"), **{"env.HF_HOME": str(tmp_path)}), Disk())
    assert fit is not None
    assert fit.estimate is not None
    assert fit.estimate.verdict is Verdict.FAILS


@pytest.mark.parametrize(
    "content", ["", "no json", "[1]", '{"num_hidden_layers": 1e99, "hidden_size": "x"}', "{" * 5000]
)
def test_a_hostile_config_is_no_crash_and_no_pass(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    found = checked(facts(launch(str(tmp_path))))
    assert not any("fits the memory" in each.what for each in found.passed)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    found = checked(facts(launch(str(tmp_path / "nowhere"))))
    assert any("config.json" in each.why for each in found.unchecked)


def test_without_a_service_nothing_is_said() -> None:
    found = checked(given(HOST).facts)
    said = [each.what for each in found.passed] + [each.what for each in found.unchecked]
    assert not any("fits the memory" in each for each in said)


def test_a_host_is_asked_over_one_connection_for_facts_and_model(kimi: str) -> None:
    known, model = facts_on(LocalTarget(), 60, kimi)
    assert model is not None
    assert model.inventory.checkpoint_bytes == pytest.approx(KIMI_BYTES, rel=0.001)
    assert isinstance(known.value("mem_total_bytes"), int)
