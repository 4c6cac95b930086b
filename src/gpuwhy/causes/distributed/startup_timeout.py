"""startup-timeout: healthy ranks that are slow to start exceed a fixed wait of the others."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.distributed._hang_order import Order, order
from gpuwhy.causes.distributed._log_lines import first, is_before, matching, quoted_fact
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_STATUS = lazy_pattern(r"exit(?:ed)? (?:code|status):? ?-?[1-9]|OOMKilled|Killed process|\bXid\b", re.IGNORECASE)
_SLOW_STORAGE = lazy_pattern(
    r"(?i)\b(?:NFS|ceph\w*|lustre|gpfs|s3fs|gcsfuse|blobfuse|FUSE|network (?:drive|share|storage|disk)|slow (?:disk|storage|weight|hdd|network)|HDD|spinning)\b|/mnt/(?:nfs|s3)"
)
_STORAGE_WORDS = (
    "NFS",
    "nfs",
    "eph",
    "ustre",
    "gpfs",
    "GPFS",
    "s3",
    "S3",
    "fuse",
    "FUSE",
    "network ",
    "Network ",
    "low ",
    "HDD",
    "hdd",
    "spinning",
)
_LOADING = lazy_pattern(r"Loading (?:safetensors|pt) checkpoint shards:\s{0,3}\d{1,3}% Completed|Loading (?:model|weights)|load weight begin|shards:\s{0,3}\d{1,2}%", re.IGNORECASE)  # fmt: skip


_ANNOUNCED = lazy_pattern(
    r"(?i)autotun\w{1,3} (?:process|start|in progress)|JIT[- ]compil|start\w{0,3} (?:to )?(?:compil|autotun)|compiling (?:a |the )?(?:graph|kernels?)|DeepGEMM"
)
"""A program announces a compilation; other mentions of one can be advice."""
LATE = 2000
"""Sequence number of a collective that no first forward pass reaches."""


class Wait(msgspec.Struct, frozen=True):
    """The wait that ended. ``limit`` names the setting that lengthens it, as a remedy."""

    match: Match | None
    what: str
    component: str | None
    limit: Remedy
    certainty: Certainty
    strength: int


@cause(
    "startup-timeout",
    family="Distributed",
    signs=[
        says("compile-banner", "jit pre-compile session", r"Entering DeepGEMM JIT Pre-Compile session"),
        says(
            "engine-not-ready",
            ("waiting for engine", "engine_ready_timeout", "waiting for the engine", "engine core initialization timed out", "did not become ready", "not become healthy"),
            r"Timed out waiting for engine core processes to start|Timed out waiting for (?:the )?engine|VLLM_ENGINE_READY_TIMEOUT_S|engine core initialization timed out|(?:did|has) not become (?:ready|healthy) (?:within|in) \d",
        ),
        says(
            "handshake",
            ("response from front-end process", "ready message from front-end", "handshake message"),
            r"Did not receive (?:response|ready message|init message|handshake message) from front-?end(?: process)? within \d{1,4}",
        ),
        says("scheduler-watchdog", "watchdog_timeout=", r"[Ww]atchdog timeout \(self\.watchdog_timeout=(?P<seconds>\d{1,7})"),
        says(
            "others-loading",
            ("didn't finish loading", "did not finish loading"),
            r"could finish the model loading, but there are other ranks that didn't finish loading",
        ),
        says(
            "runner-not-started",
            "timed out waiting for llama runner",
            r"timed out waiting for llama runner to start(?P<rest>:? ?- ?progress (?P<progress>[\d.]{1,8}))?",
        ),
        says(
            "probe",
            ("startup probe", "liveness probe", "will be restarted", "start operation timed out", "health check"),
            r"(?:failed|fails) (?:startup|liveness) probe, will be restarted|Startup probe failed|Liveness probe failed:.{0,200}(?:refused|timeout|deadline|503|500)|start operation timed out\. Terminating|did not pass the ping health check",
        ),
        says(
            "store-wait",
            ("waiting for clients", "wait timeout after", "store->get", "socket timeout", "monitoredbarrier", "clients joined", "unbound_buffer"),
            r"Timed out after \d{1,6} seconds waiting for clients|wait timeout after \d{1,9}\s?ms, keys: \S{0,200}|store->get\('[^']{0,80}'\) got error.{0,40}(?:Socket Timeout|[Ww]ait timeout|timed out)|failed to pass monitoredBarrier|unbound_buffer\.cc:\d{1,5}\] Timed out waiting \d{1,12}ms for (?:recv|send) operation",
        ),
        says(
            "dispatch-wait",
            ("deepep error", "deepep timeout", "cpu recv timeout", "dispatch cpu timeout", "forward_deepep", "timeout check failed"),
            r"DeepEP (?:error: )?(?:timeout|CPU recv timeout)|(?:CPU recv|dispatch (?:CPU )?|combine )timeout|timeout check failed|in forward_deepep",
        ),
        says("warm-up", "read timed out", r"HTTPConnectionPool\(host='(?:127\.0\.0\.1|0\.0\.0\.0|localhost)'.{0,80}Read timed out"),
        says("watchdog", "watchdog caught collective operation timeout"),
        says(
            "rpc-wait",
            ("rpc call to", "execute_model timed out", "timed out after", "shared memory broadcast block"),
            r"RPC call to \w{1,40} timed out|execute_model timed out|No available shared memory broadcast block found",
        ),
    ],
)  # fmt: skip
def startup_timeout(case: Case) -> Judgement:
    """Healthy but slow ranks exceed a fixed wait of the others: kernels are being compiled, or weights read slowly.

    How it shows itself
      `Timed out waiting for engine core processes to start` (vLLM), `TP rank 3 could finish the model loading, but there are
      other ranks that didn't finish loading` (SGLang), `timed out waiting for llama runner to start - progress 0.42` (ollama),
      a watchdog or dispatch time-out during the first forward pass, below a banner of a compilation. Kubernetes: `failed
      startup probe, will be restarted`. No rank died.

    Why it happens
      At the first start, after an upgrade, or with an empty cache, thousands of kernels are compiled (DeepGEMM, torch.compile,
      FlashInfer: 10 to 20 minutes). Or hundreds of GB of weights come over a slow file system. The ranks are not done at the same
      time, and those that are wait no longer than a limit allows.

    How to be sure
      At the moment of expiry nvcc, cicc, ptxas or compile workers run on the other ranks, or their disks read at full speed; and
      none of them has an error, an exit status or a line in the kernel log. A second start, with warm caches, succeeds.

    What helps
      Compile beforehand and keep the cache (`python -m sglang.compile_deep_gemm` with the server's arguments). Faster storage or
      fewer loading threads per disk. A longer limit: the one that expired.

    What does not help
      Less GPU memory (the text of SGLang suggests it), another network, NCCL_P2P_DISABLE.

    Not to be confused with
      collective-mismatch, p2p-iommu, rdma-link-fault, and above all a rank that died: each of them is to be excluded first, as a
      longer limit only delays their end. jit-cache-stale: it waits for a lock and no compiler runs.
    """
    asked = order(case)
    wait = _wait(case, asked)
    if wait is None or asked.decided_by in ("a", "b", "d"):
        return None
    died = _died(case, wait)
    if died is not None:
        return died
    busy = _busy(case, asked)
    lead = _lead(case, wait, asked)
    tried = _tried(case)
    slow = asked.compilers or tried or _is_slow_storage(case)
    certainty = _certainty(wait, asked, bool(slow))
    evidence = tuple(dict.fromkeys(each for each in (lead, _of(case, wait), busy, tried) if each is not None))
    return Verdict(
        certainty=certainty,
        component=_component(case, wait, asked),
        title=f"{wait.what} ended while others were still starting",
        chain=(
            Link("Some ranks compile kernels or read weights for longer than the rest", busy or _banner(case) or inferred("nobody looked at the other ranks")),
            Link("Those that are done wait for them, but not longer than a fixed limit"),
            Link("The limit ends the start", _of(case, wait) or lead),
        ),
        evidence=evidence,
        explains=_explains(case),
        missing=_missing(case, wait) if certainty is not Certainty.PROVEN else (),
        rivals=() if certainty is Certainty.PROVEN else ("collective-mismatch", "host-oom-kill", "p2p-iommu"),
        remedies=_remedies(case, wait),
        not_remedies=_IN_VAIN,
        notes=("The rank that complains is the one that was ready; look at the others.",),
        strength=wait.strength,
    )  # fmt: skip


def _wait(case: Case, asked: Order) -> Wait | None:
    """The wait that expired, the most telling one first."""
    ready = case.found("engine-not-ready")
    if ready is not None and not ready.is_code:
        return Wait(ready, "The front end's wait for the engine", case.engine or "vllm", _longer_env("VLLM_ENGINE_READY_TIMEOUT_S", "1800"), Certainty.LIKELY, 75)  # fmt: skip
    runner = _runner(case)
    if runner is not None:
        return Wait(runner, "ollama's wait for the model", "ollama", _longer_env("OLLAMA_LOAD_TIMEOUT", "30m"), Certainty.LIKELY, 70)  # fmt: skip
    loading = case.found("others-loading")
    if loading is not None and not loading.is_code:
        return Wait(loading, "SGLang's barrier after loading", "sglang", _longer_config(), Certainty.POSSIBLE, 60)
    handshake = case.found("handshake")
    if handshake is not None and not handshake.is_code:
        return Wait(handshake, "An engine's wait for the front end", "vllm", _patched_handshake(), Certainty.POSSIBLE, 55)  # fmt: skip
    probe = case.found("probe")
    if probe is not None and not asked.was_serving:
        return Wait(probe, "The supervisor's wait for the server", case.engine or None, _probe(probe), Certainty.POSSIBLE, 55)  # fmt: skip
    warm = case.found("warm-up")
    if warm is not None and not warm.is_code and _is_of_warm_up(case, warm):
        return Wait(warm, "The wait for the first answer", case.engine or None, _longer_config(), Certainty.POSSIBLE, 50)  # fmt: skip
    banner = case.found("compile-banner")
    dispatch = case.found("dispatch-wait")
    watchdog = case.found("watchdog")
    store = case.found("store-wait")
    calls = sorted(case.all("rpc-wait"), key=lambda match: ("No available shared memory" in match.text, match.is_code))
    expired = dispatch or watchdog or store or next(iter(calls), None)
    if banner is not None and (expired is not None or case.incident.is_failure) and not asked.was_serving:
        strength = 70 if expired is not None else 50
        return Wait(expired or banner, "A collective's wait during compilation", "deepgemm", _longer_config(), Certainty.POSSIBLE, strength)  # fmt: skip
    if expired is None and asked.other_failure is None:
        return _scheduler(case, asked)
    if expired is None or expired.is_code or asked.was_serving or asked.other_failure is not None:
        return None
    strength = {"dispatch-wait": 50, "watchdog": 40, "store-wait": 40}.get(expired.sign, 20)
    if asked.compiling is not None or asked.compilers:
        strength += 20
    elif any((report.sequence or 0) > LATE for report in asked.reports):
        strength -= 15
    return Wait(expired, "A wait of the other ranks", case.engine or None, _longer(case, expired), Certainty.POSSIBLE, strength)  # fmt: skip


def _scheduler(case: Case, asked: Order) -> Wait | None:
    """SGLang's own watchdog: one forward pass took longer than its limit. It tells nothing of why."""
    watchdog = case.found("scheduler-watchdog")
    if watchdog is None or watchdog.is_code:
        return None
    seconds = watchdog.group("seconds") or "300"
    longer = Remedy(kind="flag", name="--watchdog-timeout", value=str(int(seconds) * 4), summary=f"Allow a forward pass more than {seconds} seconds: --watchdog-timeout, in seconds", cost="a real hang is noticed later", is_sure=False)  # fmt: skip
    strength = 45 if asked.compiling is not None or asked.compilers else 20 if asked.was_serving else 30
    return Wait(watchdog, "The scheduler's watchdog", "sglang", longer, Certainty.POSSIBLE, strength)


def _is_of_warm_up(case: Case, match: Match) -> bool:
    """The server's own first request, which has to wait for compilations."""
    near = (
        match.text,
        *(frame.function for frame in match.frames),
        *(line.text[:300] for line in case.lines_around(match, 12, 12)),
    )
    return any("warmup" in text.lower() or "warm_up" in text.lower() for text in near)


def _runner(case: Case) -> Match | None:
    """ollama puts the reason behind a colon when it knows one; a progress is none."""
    for match in case.all("runner-not-started"):
        rest = match.text.partition("to start")[2].strip(" :\"'")
        if not match.is_code and (match.group("progress") or not rest or rest.startswith(("-", "[GIN]"))):
            return match
    return None


def _died(case: Case, wait: Wait) -> Judgement:
    """A failure of its own before the wait ended: then the others waited for a dead rank, and this is no answer."""
    line = wait.match.line.number if wait.match is not None else 0
    for event in case.incident.events:
        if not event.is_fatal or event.is_echo or event.kind == "warning" or event.span.first >= line:
            continue
        if wait.match is not None and wait.match.event is not None and event.id == wait.match.event.id:
            continue
        if re.search(r"(?i)time[d-]? ?out|monitoredBarrier|DistStoreError|DistBackendError|NCCL", event.text[:2000]):
            continue
        return RuledOut("a rank had failed before the wait ended", (Evidence("an earlier failure", event.text.splitlines()[0][:400], event.place),))  # fmt: skip
    log = case.fact("kernel_log")
    if isinstance(log, Fact):
        killed = next((str(text) for text in log.value or () if _STATUS.search(str(text)[:1600])), None)
        if killed is not None:
            return RuledOut("the kernel killed a process or reported a GPU", (quoted_fact(log, killed, "not a slow rank"),))  # fmt: skip
    return None


def _busy(case: Case, asked: Order) -> Evidence | None:
    fact = case.fact("processes")
    if asked.compilers and isinstance(fact, Fact):
        return quoted_fact(fact, asked.compilers, "other ranks were compiling when the limit expired")
    if asked.compiling is not None:
        return asked.compiling.evidence("kernels are being compiled")
    return _is_slow_storage(case)


def _is_slow_storage(case: Case) -> Evidence | None:
    """A file system over a network, in the facts or in the reporter's words, while weights are being loaded."""
    for key, fact in case.facts.group("fs").items():
        if re.search(r"(?i)nfs|ceph|lustre|fuse|cifs|smb", str(fact.value)):
            return case.fact_evidence(f"fs.{key}", "the weights come over a network file system")
    told = next((each for each in matching(case, _SLOW_STORAGE, _STORAGE_WORDS) if not each.line.level), None)
    if told is None or first(case, _LOADING, ("oading", "shards", "load weight")) is None:
        return None
    return told.evidence("the weights come from slow storage")


def _tried(case: Case) -> Evidence | None:
    """An experiment with a longer limit, or with warm caches, that succeeded."""
    for name, fact in case.facts.group("tests").items():
        told = f"{name} {fact.value}"
        if re.search(r"(?i)time-?_?out|limit|longer|second start|warm|cached", told) and re.search(
            r"(?i)succe|works|starts|\bok\b|completes", told
        ):
            return fact.evidence
    return None


def _certainty(wait: Wait, asked: Order, is_busy: bool) -> Certainty:
    if asked.compilers and not asked.was_serving:
        return Certainty.LIKELY if asked.earlier_failure is not None else Certainty.PROVEN
    if is_busy and wait.certainty is Certainty.POSSIBLE:
        return Certainty.LIKELY
    return wait.certainty


def _banner(case: Case) -> Evidence | None:
    banner = case.found("compile-banner")
    return case.evidence(banner, "a compilation of many minutes has begun") if banner is not None else None


def _of(case: Case, wait: Wait) -> Evidence | None:
    return case.evidence(wait.match, "a fixed wait ended") if wait.match is not None else None


def _lead(case: Case, wait: Wait, asked: Order) -> Evidence | None:
    """What the slow ranks were doing, when they said so before the wait ended; else the end of the wait."""
    banner = _banner(case)
    if banner is None and asked.compiling is not None and wait.match is not None and not asked.was_serving:
        begun = asked.compiling
        if is_before(begun.place, wait.match.place) and _ANNOUNCED.search(begun.text):
            return begun.evidence("a compilation of many minutes has begun")
    return banner or _of(case, wait)


def _component(case: Case, wait: Wait, asked: Order) -> str | None:
    if case.found("compile-banner") is not None:
        return "deepgemm"
    if asked.compiling is not None and re.search(r"flashinfer|\[Autotuner\]", asked.compiling.line.raw[:400]):
        return "flashinfer"
    return "storage" if _is_slow_storage(case) is not None else wait.component


def _explains(case: Case) -> tuple[int, ...]:
    ids = set(case.explains(*case.all("engine-not-ready", "runner-not-started", "others-loading", "dispatch-wait", "watchdog", "store-wait", "rpc-wait", "probe", "warm-up", "handshake", "scheduler-watchdog")))  # fmt: skip
    primary = case.incident.primary_event
    if primary is not None and case.found("compile-banner") is not None:
        ids.add(primary.id)
    return tuple(sorted(ids))


def _missing(case: Case, wait: Wait) -> tuple[Missing, ...]:
    is_of_loading = wait.match is not None and wait.match.sign in (
        "engine-not-ready",
        "others-loading",
        "runner-not-started",
    )
    storage = Missing("fs.MODEL_PATH", "findmnt -T MODEL_PATH; dd if=A_WEIGHT_FILE of=/dev/null bs=16M count=100 iflag=direct", "whether the weights come from slow storage")  # fmt: skip
    wanted = (
        case.missing("processes", "whether the other ranks were compiling or reading when the wait ended", "ps -eo pid,etime,pcpu,args | grep -E 'nvcc|cicc|ptxas|ninja|compile_worker'"),
        case.missing("kernel_log", "whether a rank was killed", "journalctl -k -b | grep -iE 'killed process|xid'"),
    )  # fmt: skip
    asked = tuple(each for each in wanted if each is not None)
    return (*asked, storage) if is_of_loading and not case.facts.group("fs") else asked


def _longer_env(name: str, value: str) -> Remedy:
    return Remedy(kind="env", name=name, value=value, summary=f"Wait longer: {name}={value}", cost="a real failure is noticed later", rank=0)  # fmt: skip


def _longer_config() -> Remedy:
    return Remedy(
        kind="config", name="process-group or dispatch timeout", value="longer",
        summary="Wait longer for the other ranks", cost="a real failure is noticed later", limits=("helps only while no rank is dead",),
    )  # fmt: skip


def _patched_handshake() -> Remedy:
    return Remedy(kind="patch", name="vllm", value="HANDSHAKE_TIMEOUT_MINS higher", summary="The limit is a constant, HANDSHAKE_TIMEOUT_MINS of vllm/v1/engine/core.py; start the front end and all engines within it, or raise it", is_sure=False)  # fmt: skip


def _longer(case: Case, expired: Match) -> Remedy:
    if "RPC call" in expired.text or "execute_model" in expired.text:
        return _longer_env("VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "1800")
    if case.engine == "sglang":
        return Remedy(kind="flag", name="--dist-timeout", value="3600", summary="Wait longer for the other ranks: --dist-timeout, in seconds", cost="a real failure is noticed later")  # fmt: skip
    return _longer_config()


def _probe(probe: Match) -> Remedy:
    if "start operation" in probe.text:
        return Remedy(kind="config", name="TimeoutStartSec", value="infinity", summary="Let the unit take its time to start", commands=())  # fmt: skip
    return Remedy(
        kind="config", name="startupProbe.failureThreshold", value="higher",
        summary="Give the pod a startupProbe that allows for the whole start (failureThreshold x periodSeconds)", cost="a real failure is noticed later",
    )  # fmt: skip


def _remedies(case: Case, wait: Wait) -> tuple[Remedy, ...]:
    remedies = [wait.limit]
    if case.found("compile-banner") is not None:
        remedies.insert(0, Remedy(
            kind="cache", name="deep_gemm kernels", value="compile beforehand",
            summary="Compile once before serving, with the server's arguments, and keep the cache", commands=("python3 -m sglang.compile_deep_gemm ARGUMENTS_OF_THE_SERVER",),
            cost="10 to 20 minutes once",
            limits=("SGLANG_JIT_DEEPGEMM_PRECOMPILE=false moves the compilation to the first requests instead",),
        ))  # fmt: skip
    elif (is_slow := _is_slow_storage(case) is not None) or (
        wait.match is not None and wait.match.sign == "others-loading"
    ):
        remedies.append(Remedy(kind="files", name="weights", value="local disk", summary="Copy the weights to a local disk first", is_sure=is_slow))  # fmt: skip
    return tuple(remedies)


_IN_VAIN = (
    NotARemedy("less GPU memory", "nothing says that memory is short; the text of the time-out only guesses"),
    NotARemedy("NCCL_P2P_DISABLE, another interface", "the ranks can talk; some have nothing to say yet"),
)
