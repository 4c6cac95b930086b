"""Rung e beyond "active": the health endpoint, and one request through the path that failed."""

from __future__ import annotations

from gpuwhy.remedies.applying.verification import Rung, Trial
from gpuwhy.remedies.setting import Setting
from gpuwhy.remedies.verifying.checker import asked

REQUEST_SECONDS = 120.0
SHORT = 5.0
"""Seconds to wait for a port that nobody named, of a program that may be no server."""

_SERVERS = frozenset(
    {"sglang.launch_server", "sglang", "vllm", "vllm.entrypoints.openai.api_server", "trtllm-serve", "llama-server",
     "lmdeploy", "text-generation-launcher"}
)  # fmt: skip


class AnswersHealth:
    """The service answers on its own port of this machine's loopback, and it is the service that does."""

    name = "health"
    needs_change = True

    def verify(self, trial: Trial) -> Rung | None:
        setting = trial.setting
        if setting.kind != "systemd" or setting.is_container or setting.port is None or not trial.plan_unit:
            return None
        seconds = trial.deadline if is_server(setting) else SHORT
        said = asked(trial, "health", seconds, port=setting.port, manager=_manager(setting))
        outcome = {"ok": "passed", "failed": "failed"}.get(said.status, "not possible")
        return Rung("e", self.name, outcome, f"{said.reason} (port {setting.port})")  # type: ignore[arg-type]


class AnswersRequest:
    """One completion with temperature above 0 and top_p below 1: it goes through the sampler, as users' requests do."""

    name = "request"
    needs_change = True

    def verify(self, trial: Trial) -> Rung | None:
        setting = trial.setting
        if setting.kind != "systemd" or setting.is_container or setting.port is None or not trial.plan_unit:
            return None
        if not any(rung.name == "health" and rung.outcome == "passed" for rung in trial.climbed):
            return None
        said = asked(trial, "request", REQUEST_SECONDS, port=setting.port, manager=_manager(setting))
        outcome = {"ok": "passed", "failed": "failed"}.get(said.status, "not possible")
        return Rung("e", self.name, outcome, said.reason)  # type: ignore[arg-type]


def is_server(setting: Setting) -> bool:
    """Whether the port is certain: the start command names it, or is that of a known engine."""
    words = setting.command
    is_named = any(word == "--port" or word.startswith("--port=") for word in words)
    return is_named or any(word in _SERVERS or word.rpartition("/")[2] in _SERVERS for word in words)


def _manager(setting: Setting) -> str:
    return "user" if setting.is_user_unit else "system"
