"""Rung e beyond "active": the health endpoint, and one request through the path that failed."""

from __future__ import annotations

import time

from gpuwhy.remedies.applying.verification import Rung, Trial
from gpuwhy.remedies.setting import Setting
from gpuwhy.remedies.verifying.checker import asked

REQUEST_SECONDS = 120.0
CONTAINER_GRACE = 20.0
SHORT = 5.0
"""Seconds to wait for a port that nobody named, of a program that may be no server."""

_SERVERS = frozenset(
    {"sglang.launch_server", "sglang", "vllm", "vllm.entrypoints.openai.api_server", "trtllm-serve", "llama-server",
     "lmdeploy", "text-generation-launcher"}
)  # fmt: skip


class ContainerStays:
    """The container that was made anew runs, and goes on without a restart."""

    name = "active"
    needs_change = True

    def verify(self, trial: Trial) -> Rung | None:
        setting = trial.setting
        if setting.kind not in ("docker", "compose") or trial.plan is None:
            return None
        grace = CONTAINER_GRACE if trial.grace is None else trial.grace
        begun = time.monotonic()
        first = trial.site.container(setting.engine, setting.container, tools=False)
        while True:
            seen = trial.site.container(setting.engine, setting.container, tools=False)
            state = seen.container
            is_same = state.get("restarts") == first.container.get("restarts") and state.get("id") == first.container.get("id")  # fmt: skip
            if seen.status != "ok" or not state.get("is_running") or state.get("is_restarting") or not is_same:
                told = seen.reason or f"exit status {state.get('exit_code')}, {state.get('restarts')} restarts"
                return Rung("e", self.name, "failed", f"{setting.container} does not stay up: {told}")
            if time.monotonic() - begun >= grace:
                return Rung(
                    "e", self.name, "passed", f"{setting.container} runs, up for {grace:.0f} s without a restart"
                )
            time.sleep(0.5)


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
