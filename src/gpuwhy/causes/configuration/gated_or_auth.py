"""gated-or-auth: the hub or registry refuses an anonymous or unauthorised request."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.configuration import _program as program
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_GATED = says(
    "gated",
    ("gated repo", "gatedrepo", "gated model", "is restricted and you are not", "is restricted. you must have access", "is restricted", "awaiting a review", "not in the authorized list", "public gated repositories", "ask for access", "has been rejected by the repo"),
    r"access(?:ing)? (?:a )?gated repo|Cannot access gated repo|GatedRepoError|Access to (?:model|dataset) \S{1,160} is restricted|request to access (?:model|dataset) \S{1,160} (?:is awaiting|has been rejected)"
    r"|not in the authorized list|access to public gated repositories|gated model|is a gated (?:model|repo)|visit \S{1,160} to ask for access",
)  # fmt: skip
_STATUS = says(
    "refused-by-hub",
    ("401 client error", "403 client error", "401 unauthorized", "403 forbidden", "status code 401", "status code 403", "error: 401", "error: 403", "response 401", "response 403", "(401", "(403", "401, message", "http 401", "http 403", "status: 401", "status: 403", "error 401", "error 403"),
    r"40[13]\b.{0,300}?(?:huggingface\.co|hf\.co|hf-mirror|modelscope|ngc\.nvidia|nvcr\.io|/resolve/|api/models)"
    r"|(?:huggingface\.co|hf\.co|hf-mirror|modelscope|ngc\.nvidia|nvcr\.io)\S{0,200}.{0,80}\b40[13]\b",
)  # fmt: skip
_NOT_FOUND = says(
    "repository-not-visible",
    (
        "repositorynotfounderror",
        "repository not found for url",
        "not a valid model identifier listed on",
        "private or gated repo",
        "a private repository",
        "private repo",
    ),
    r"Repository Not Found for url|RepositoryNotFoundError|not a valid model identifier listed on|access(?:ing)? a private or gated repo|If this is a private repository",
)
_TOKEN = says(
    "bad-token",
    ("could not read username for", "could not read password for", "authentication failed for 'https", "password authentication in git", "invalid username or password", "invalid credentials in authorization header", "token is required", "invalid user token", "invalid token passed", "localtokennotfounderror", "user access token", "no token found", "token has expired", "ngc_api_key", "unable to locate credentials", "nocredentialserror", "invalidaccesskeyid", "you must be authenticated", "requires authentication", "hf_token", "api key is invalid", "fine-grained token", "hugging_face_hub_token"),
    r"(?:could not read (?:Username|Password) for|Authentication failed for) 'https://(?:[\w.-]{1,60}@)?(?:huggingface\.co|hf\.co)|Password authentication in git is no longer supported|Invalid username or password|Invalid credentials in Authorization header|Token is required.{0,80}but no token found|Invalid (?:user )?token|LocalTokenNotFoundError|User Access Token .{0,60}(?:expired|invalid)"
    r"|NGC_API_KEY.{0,80}(?:not set|missing|invalid|required|must be|is not|is invalid|unset)|(?:Missing|Invalid|No).{0,40}NGC_API_KEY|Unable to locate credentials|NoCredentialsError|InvalidAccessKeyId|API key is invalid"
    r"|(?:HF_TOKEN|HUGGING_FACE_HUB_TOKEN|HUGGINGFACE_TOKEN).{0,60}(?:not set|missing|required|is invalid|must be set|not found|is empty)|fine-grained token",
)  # fmt: skip
_REGISTRY = says(
    "registry",
    ("pull access denied", "requested access to the resource is denied", "unauthorized: authentication required", "no basic auth credentials", "authorization required", "failed to authorize", "incorrect username or password", "denied: denied", "unauthorized: incorrect"),
    r"pull access denied for (?P<image>\S{1,200})|requested access to the resource is denied|unauthorized: (?:authentication required|incorrect username|<html>)|no basic auth credentials"
    r"|(?:failed to authorize|denied: denied).{0,300}|401 Authorization Required",
)  # fmt: skip

_HARMLESS = lazy_pattern(r"(?i)unauthenticated requests to the HF Hub|\bHEAD /|additional_chat_templates|telemetry|usage[-_ ]stats|/v1/(?:chat|completions|models|messages|embeddings)|\"(?:GET|POST) /|api\.openai|api\.anthropic|wandb|skopeo hint|cas-server\.xethub|CAS service error|To log in|No (?:HF_TOKEN|token) (?:set|found|provided), (?:using|continuing|rates)|Please set a HF_TOKEN to enable higher")  # fmt: skip
_GATED_WORDS = lazy_pattern(r"(?i)gated|restricted|awaiting a review|authorized list|ask for access")
_NAME_WRONG = lazy_pattern(r"\b404\b")
_IS_PATH = lazy_pattern(r"^(?:[./~]|[A-Za-z]:[\\/])|\.(?:gguf|bin|safetensors)$|/.{1,200}/")
_NOT_GRANTED = lazy_pattern(
    r"awaiting a review|not in the authorized list|has been rejected by|visit \S{1,160} to ask for access"
)
TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")
_WORKER = lazy_pattern(r"EngineCore|ServeReplica|RayWorker|WorkerProc|Worker_|VllmWorker|\(raylet|RayTrainWorker|ray::")


class Refusal(msgspec.Struct, frozen=True):
    """A refused request. ``host`` is what refused: ``hub``, ``registry``, ``store``; ``is_gated`` when access must be asked for."""

    match: Match
    host: str
    is_gated: bool
    certainty: Certainty
    strength: int


@cause(
    "gated-or-auth",
    family="Model and configuration",
    leads_to=("weights-missing-or-corrupt",),
    signs=[_GATED, _STATUS, _NOT_FOUND, _TOKEN, _REGISTRY],
)
def gated_or_auth(case: Case) -> Judgement:
    """The hub (or registry) refuses a request that carries no token, or one without the right.

    How it shows itself
      `You are trying to access a gated repo`, `401 Client Error: Unauthorized for url: https://huggingface.co/...`, `403 Client
      Error ... you are not in the authorized list`, `Repository Not Found` for a private repository, `X is not a local folder
      and is not a valid model identifier`. NGC: `401` from nvcr.io, a missing NGC_API_KEY. Images: `pull access denied`.

    Why it happens
      The model's licence was not accepted, the token is missing, expired or of a kind that may not read gated
      repositories. Often the token is set in a shell or launcher, and the process that fetches never gets it: a systemd
      unit, a container, a Ray worker, a spawned engine process.

    How to be sure
      `tr '\\0' '\\n' < /proc/PID/environ | grep HF_` of the failing process, not of the login shell. `hf auth whoami` with the
      same token. The model's page says whether it is gated.

    What helps
      Accept the licence on the model's page with the account of the token. Set HF_TOKEN in the environment of the process
      that fetches. Or fetch the model beforehand and give a local folder.

    What does not help
      Logging in on the host for a container. A proxy, a mirror, more retries: the hub was reached and said no.

    Not to be confused with
      download-blocked (no answer, or an answer of another server), trust-remote-code (the files are here), a name with a
      typing error (404; the hub answers 401 for repositories that do not exist, too).
    """
    refusal = _refusal(case)
    if refusal is None:
        return None
    match = refusal.match
    model = program.model_of(case, match)
    token = _token(case)
    seen = case.evidence(match, _STATEMENTS[refusal.host])
    who = _component(case, refusal)
    asked = _missing(case, refusal)
    return Verdict(
        certainty=refusal.certainty,
        component=who,
        title=_title(refusal, model),
        chain=(
            Link("Access to the model was not granted, or the process has no valid token", token or inferred("the token of the failing process is not known")),
            Link(_STATEMENTS[refusal.host], seen),
            Link("The model's files cannot be read, and the start ends"),
        ),
        evidence=(seen, *((token,) if token else ())),
        explains=case.explains(match, *_of_one_answer(case, match)),
        missing=(asked,) if asked is not None else (),
        rivals=() if refusal.certainty is Certainty.PROVEN else ("download-blocked", "weights-missing-or-corrupt"),
        remedies=_remedies(case, refusal, who),
        not_remedies=_IN_VAIN,
        strength=refusal.strength,
    )  # fmt: skip


_STATEMENTS = {
    "hub": "the hub was reached, and refuses",
    "registry": "the registry was reached, and refuses",
    "store": "the store of the model was asked without valid credentials",
}


def _refusal(case: Case) -> Refusal | None:
    gated = _first(case, _GATED.name)
    if gated is not None:
        sure = program.in_event(gated) or gated.line.level in ("error", "critical")
        return Refusal(gated, "hub", True, Certainty.PROVEN if sure else Certainty.LIKELY, 90)
    token = _first(case, _TOKEN.name)
    if token is not None and program.in_event(token):
        return Refusal(token, _host(token), False, Certainty.LIKELY, 82)
    status = _first(case, _STATUS.name)
    if status is not None:
        near = _near(case, status, _GATED_WORDS) is not None
        is_failure = program.is_failure(status)
        return Refusal(status, _host(status), near, Certainty.PROVEN if is_failure and near else Certainty.LIKELY if is_failure else Certainty.POSSIBLE, 84 if is_failure else 45)  # fmt: skip
    registry = _first(case, _REGISTRY.name)
    if registry is not None:
        return Refusal(registry, "registry", False, Certainty.LIKELY, 78)
    if token is not None:
        return Refusal(token, _host(token), False, Certainty.POSSIBLE, 55)
    return _invisible(case)


def _invisible(case: Case) -> Refusal | None:
    """A repository that does not exist for this user: private, gated, or a wrong name."""
    for match in sorted(case.all(_NOT_FOUND.name), key=lambda m: (not program.in_event(m), m.line.number)):
        if match.is_code or _HARMLESS.search(match.text):
            continue
        model = program.model_of(case, match) or _named(match)
        if model is not None and _IS_PATH.search(model):
            return None
        refused = _near(case, match, re.compile(r"\b40[13]\b")) is not None
        if not refused and _near(case, match, _NAME_WRONG) is not None:
            return Refusal(match, "hub", False, Certainty.POSSIBLE, 40)
        certainty = Certainty.LIKELY if refused else Certainty.POSSIBLE
        return Refusal(match, "hub", False, certainty, 72 if refused else 42)
    return None


def _named(match: Match) -> str | None:
    found = re.search(r"(?:OSError: |: )?['\"]?([\w./~-]{2,200})['\"]? is not a local folder", match.text[:600])
    return found[1] if found else None


def _first(case: Case, sign: str) -> Match | None:
    matches = [
        m
        for m in case.all(sign)
        if not m.is_code and not _HARMLESS.search(m.text) and m.line.level not in ("info", "debug")
    ]
    return min(matches, key=lambda m: (not program.in_event(m), m.line.number), default=None)


def _near(case: Case, match: Match, pattern: re.Pattern[str]) -> Match | None:
    for line in (match.line, *case.lines_around(match, 40, 12)):
        if pattern.search(line.text[:1500]):
            return match
    return None


def _host(match: Match) -> str:
    if re.search(r"(?i)nvcr\.io|docker|registry|image", match.text[:1500]):
        return "registry"
    return "store" if re.search(r"(?i)credentials|AccessKey|s3", match.text[:1500]) else "hub"


def _of_one_answer(case: Case, match: Match) -> tuple[Match, ...]:
    """The other lines of the same refusal: a status, a gated notice, the exception that passes it on."""
    related = case.all(_GATED.name, _STATUS.name, _NOT_FOUND.name, _TOKEN.name)
    return tuple(other for other in related if other.event is not None and other.line is not match.line)


def _token(case: Case) -> Evidence | None:
    for name in TOKEN_VARIABLES:
        fact = case.fact(f"env.{name}")
        if isinstance(fact, Fact):
            told = f"{name} is not set in the failing process" if not fact.value else f"{name} is set"
            return msgspec.structs.replace(fact.evidence, statement=told)
    return None


def _component(case: Case, refusal: Refusal) -> str:
    if refusal.host == "registry":
        return "container-image"
    return program.program_of(case, refusal.match, "huggingface-hub")


def _title(refusal: Refusal, model: str | None) -> str:
    if refusal.host == "registry":
        return "The registry refuses to hand out the image without a valid login"
    named = f" {model}" if model else ""
    if refusal.is_gated:
        return f"The model{named} is gated, and this process has no right to read it"
    return f"The hub refuses the request for the model{named}: no valid token"


def _missing(case: Case, refusal: Refusal) -> Missing | None:
    if refusal.host != "hub" or _token(case) is not None:
        return None
    return case.missing("env.HF_TOKEN", "whether the failing process itself has a token", "tr '\\0' '\\n' < /proc/PID/environ | grep ^HF_TOKEN=")  # fmt: skip


def _remedies(case: Case, refusal: Refusal, who: str) -> tuple[Remedy, ...]:
    if refusal.host == "registry":
        nvidia = "nvcr.io" in " ".join(
            line.text[:400] for line in (refusal.match.line, *case.lines_around(refusal.match, 12, 12))
        )
        return (
            Remedy(kind="container", name="login", value="nvcr.io with $oauthtoken and the NGC key" if nvidia else "a login with the right to pull", summary="Log in to the registry as the user that pulls (docker login; an imagePullSecret in Kubernetes)"),
            Remedy(kind="container", name="image", value="an existing name and tag", rank=1, is_sure=False, summary="Check the image's name and tag: registries answer alike for names that do not exist"),
        )  # fmt: skip
    if refusal.host == "store":
        return (Remedy(kind="env", name="AWS_ACCESS_KEY_ID", value="in the failing process", summary="Give the process credentials of the store that holds the model"),)  # fmt: skip
    variable = "NGC_API_KEY" if "NGC" in refusal.match.text else "HF_TOKEN"
    access = Remedy(kind="config", name="model access", value="accept the licence on the model's page", summary="Accept the licence (or ask for access) on the model's page, with the account that the token belongs to", rank=-1)  # fmt: skip
    has_token = (
        _NOT_GRANTED.search(refusal.match.text) is not None or _near(case, refusal.match, _NOT_GRANTED) is not None
    )
    token = Remedy(
        kind="env", name=variable, value="in the failing process", summary=f"Set {variable} in the environment of the process that fetches (unit file, container, Ray workers), not in a shell",
        check=("tr '\\0' '\\n' < /proc/PID/environ | grep ^HF_TOKEN=",),
    )  # fmt: skip
    local = Remedy(
        kind="files",
        name="weights",
        value="download with the hub client",
        summary="Or fetch the model once with a login (hf download MODEL), and give the local folder",
    )
    if has_token:  # who is answered by name has sent a token that is valid
        return (access, msgspec.structs.replace(token, rank=1, is_sure=False), local)
    if _is_in_worker(case, refusal):
        parameter = Remedy(kind="config", name="hf_token in engine_kwargs" if who == "vllm" else "hf_token", value="token", summary="Pass the token as a parameter of the engine: it reaches the worker, which does not inherit the launcher's variables")  # fmt: skip
        newer = Remedy(
            kind="package",
            name=who,
            value="newer",
            summary=f"A release of {who} that hands the token on to its workers",
            is_sure=False,
        )
        return (token, parameter, newer, access, local)
    return (token, access, local)


def _is_in_worker(case: Case, refusal: Refusal) -> bool:
    """The request was made in a worker, while a token was given to something else."""
    lines = (refusal.match.line, *case.lines_around(refusal.match, 30, 5))
    return any(_WORKER.search(line.raw[:600]) for line in lines)


_IN_VAIN = (
    NotARemedy("a mirror, a proxy, more retries", "the server was reached, and answered: it wants another token, or a right that the account does not have"),
    NotARemedy("logging in on the host for a service in a container or a worker", "the file with the token and the variables of a shell do not reach it"),
)  # fmt: skip
