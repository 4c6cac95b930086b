"""trust-remote-code: the checkpoint brings its own code, and the loader that asks was not permitted to run it."""

from __future__ import annotations

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.configuration import _program as program
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_ASKS = says(
    "asks-for-permission",
    ("pass the argument `trust_remote_code=true`", "passing the argument `trust_remote_code=true`", "set the option `trust_remote_code=true`", "set `trust_remote_code=true`", "trust_remote_code=true` to", "please pass trust_remote_code", "--trust-remote-code` to", "with `trust_remote_code=true`"),
    r"(?:pass|passing|set|setting|with|specify)\b.{0,40}[`'\"]?--?trust[-_]remote[-_]code|(?:pass|passing|set|setting|with|specify)\b.{0,40}[`'\"]?trust_remote_code[ =]{1,3}True",
)  # fmt: skip
_CUSTOM = says(
    "custom-code",
    ("contains custom code which must be executed", "requires you to execute", "requires to execute some code in that repo", "wish to run the custom code", "execute the configuration file in that repo", "contains custom code"),
    r"contains custom code which must be executed|requires (?:you )?to execute (?:the (?:configuration|tokenizer|modeling|processor|image processor|feature extractor)|some code|the) .{0,40}in that repo|[Dd]o you wish to run the custom code"
    r"|contains custom code",
)  # fmt: skip
_MODULE = says(
    "module-of-the-repository",
    "transformers_modules",
    r"(?:ModuleNotFoundError|ImportError).{0,20}: No module named '?transformers_modules",
)
_SUGGESTED = says(
    "suggested",
    (
        "consider setting `trust_remote_code=true`",
        "consider setting trust_remote_code",
        "using the `--trust-remote-code` flag",
    ),
    r"consider setting `?trust_remote_code=True`?|using the `--trust-remote-code` flag",
)

_GIVEN = lazy_pattern(
    r"--trust[-_]remote[-_]code\b(?!['\"]?[= ]{1,2}['\"]?[Ff]alse)|\btrust_remote_code['\"]?[=:] ?True\b"
)
_TAKEN_BACK = lazy_pattern(
    r"(?i)no longer supported|not supported anymore|isn't based on a loading script|is ignored|deprecated|remove `?trust_remote_code|`?trust_remote_code`? is (?:set|not supported)|Trusting that model"
)
_MESSAGE = lazy_pattern(
    r"(?i)pass the argument|passing the argument|set the option|consider setting|to (?:allow|remove|dismiss|silence)"
)
_DATASET = lazy_pattern(r"load the dataset|load_dataset|datasets/")
FLAGS = {"vllm": "--trust-remote-code", "sglang": "--trust-remote-code", "text-generation-inference": "--trust-remote-code",
         "tensorrt-llm": "--trust_remote_code", "lmdeploy": "--trust-remote-code", "aphrodite": "--trust-remote-code", "ktransformers": "--trust-remote-code"}  # fmt: skip
"""The option of engines whose command line has one."""


@cause("trust-remote-code", family="Model and configuration", signs=[_ASKS, _CUSTOM, _MODULE, _SUGGESTED])
def trust_remote_code(case: Case) -> Judgement:
    """The checkpoint needs its own code, and the loader that asks was not given the permission to run it.

    How it shows itself
      `The repository for X contains custom code which must be executed to correctly load the model ... Please pass the
      argument `trust_remote_code=True` to allow custom code to be run`, `Loading X requires you to execute the configuration
      file in that repo`. Where standard input is closed, the question `Do you wish to run the custom code? [y/N]` ends in
      `EOFError: EOF when reading a line`. On several nodes: `No module named 'transformers_modules'`.

    Why it happens
      config.json names classes in Python files of the repository (`auto_map`). Running them means running a stranger's
      code, so every loader asks. A program has several: configuration, tokenizer, processor, draft model, a benchmark's client;
      one of them may not get the permission that the others got.

    How to be sure
      The sentence names the repository. Look whether the option was given, and in which function the traceback begins:
      AutoConfig, AutoTokenizer, AutoProcessor.

    What helps
      Read the repository's Python files, then give the permission: `--trust-remote-code`. If it was given already, a release
      of the program that passes it on to every loader. For some models a newer transformers has the class itself.

    What does not help
      Giving the flag once more where it is not passed on. Answering the prompt in a service: nobody is there to type.

    Not to be confused with
      gated-or-auth (the hub refuses), model-arch-unsupported (no code anywhere), other EOFErrors: without the sentence
      they mean that a worker process died.
    """
    match = program.best(case, _ASKS.name, _CUSTOM.name)
    if match is not None and _TAKEN_BACK.search(match.text) and not _CUSTOM_WORDS.search(match.text):
        match = None
    if match is not None:
        return _asked(case, match)
    hidden = program.best(case, _MODULE.name)
    if hidden is not None and program.in_event(hidden):
        return _not_carried(case, hidden)
    return _only_suggested(case)


_CUSTOM_WORDS = lazy_pattern(r"contains custom code|requires (?:you )?to execute")


def _asked(case: Case, match: Match) -> Judgement:
    custom = program.best(case, _CUSTOM.name)
    first = _sentence(case, match)
    is_certain = custom is not None or _CUSTOM_WORDS.search(match.text) is not None
    who = program.program_of(case, match)
    given = _given(case, match)
    call = _call_without(case, match) if who != "user-program" else None
    is_dataset = custom is not None and _DATASET.search(custom.text) is not None
    what = "data set" if is_dataset else "model"
    seen = case.evidence(first, f"a loader asks for permission to run the {what}'s own code")
    certainty = Certainty.PROVEN if is_certain else Certainty.LIKELY
    return Verdict(
        certainty=certainty,
        component=who,
        title=f"The {what} brings its own code, and {'the permission did not reach the loader that asks' if given else 'the permission to run it was not given'}",
        chain=(
            Link(f"The {what} names Python files of its repository", case.evidence(custom, "it says so") if custom is not None else inferred("auto_map in config.json")),
            Link("One loader did not get trust_remote_code" if given else "trust_remote_code was not given", given or inferred("no option in the command or the log")),
            Link("It refuses, or asks a question that nobody can answer", seen),
        ),
        evidence=(seen, *((given,) if given else ())),
        explains=case.explains(match, custom, _prompt(case)),
        remedies=_remedies(who, call or ("AutoConfig.from_pretrained" if given else None)),
        not_remedies=_in_vain(who, is_given=given is not None),
        notes=("Read the Python files of the repository before: they run with the rights of the service",),
        strength=88,
    )  # fmt: skip


def _sentence(case: Case, match: Match) -> Match:
    """The sentence that names the option, which says the most; else the one that was found."""
    asks = program.best(case, _ASKS.name)
    return asks if asks is not None and not _TAKEN_BACK.search(asks.text) else match


def _prompt(case: Case) -> Match | None:
    """The EOFError of a prompt that nobody answered: a consequence."""
    for event in case.incident.events:
        if event.kind == "exception" and "EOF when reading a line" in event.text:
            found = case.found(_ASKS.name, _CUSTOM.name)
            if found is not None:
                return Match(found.sign, found.line, found.place, {}, event)
    return None


def _given(case: Case, match: Match) -> Evidence | None:
    command = str(case.facts.value("command") or "")
    if _GIVEN.search(command[:8000]):
        return case.fact_evidence("command", "trust_remote_code was given")
    if case.facts.value("server_args.trust_remote_code") is True:
        return case.fact_evidence("server_args.trust_remote_code", "trust_remote_code was given")
    for _, line in case.lines():
        text = line.text[:4000]
        if "trust" not in text or line is match.line or _MESSAGE.search(text):
            continue
        if _GIVEN.search(text):
            return Evidence("trust_remote_code was given", text.strip()[:300])
    return None


def _not_carried(case: Case, match: Match) -> Judgement:
    """The module was made in the cache of one process; another unpickles an object of it."""
    seen = case.evidence(match, "the code of the repository is not in this process's cache")
    who = program.program_of(case, match)
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component=who,
        title="The model's own code reached one process, and not the worker that unpacks its objects",
        chain=(
            Link("The repository's code was loaded in the first process only", inferred("the usual way: Ray or spawned workers have a cache of their own")),
            Link("A worker unpacks an object of that code", seen),
        ),
        evidence=(seen,),
        explains=case.explains(match),
        rivals=("api-drift",),
        missing=tuple(m for m in (case.missing("command", "whether trust_remote_code was given, and to which process", "tr '\\0' ' ' < /proc/PID/cmdline"),) if m is not None),
        remedies=(
            *_remedies(who, "AutoConfig.from_pretrained"),
            Remedy(kind="env", name="HF_MODULES_CACHE", value="a folder that all nodes share", rank=2, is_sure=False, summary="Let every node see the same folder of generated modules"),
        ),
        strength=55,
    )  # fmt: skip


def _only_suggested(case: Case) -> Judgement:
    """vLLM adds this advice to any model it cannot read; alone it shows nothing."""
    match = program.best(case, _SUGGESTED.name)
    if match is None or not program.in_event(match) or _given(case, match) is not None:
        return None
    is_tokenizer = "okenizer" in match.text
    seen = case.evidence(match, "the engine suggests it among other things")
    who = program.program_of(case, match)
    asked = case.missing("files.config.json", "whether config.json has auto_map", "grep auto_map MODEL/config.json")
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component=who,
        title=f"The {'tokenizer' if is_tokenizer else 'model'} may need its own code",
        chain=(Link("The permission to run the repository's code was not given", inferred("suggested only")), Link("The loader knows no class for it", seen)),
        evidence=(seen,),
        explains=case.explains(match),
        missing=(asked,) if asked is not None else (),
        rivals=("model-arch-unsupported", "weights-missing-or-corrupt"),
        remedies=_remedies(who, None),
        strength=45 if is_tokenizer else 25,
    )  # fmt: skip


def _call_without(case: Case, match: Match) -> str | None:
    """A whole call of a loader in the quoted source that passes no permission on: ``AutoProcessor.from_pretrained``."""
    for line in case.lines_around(match, 25, 15):
        call = _CALL.search(line.text[:600])
        if call is not None and "trust_remote_code" not in call["arguments"]:
            return call["name"]
    return None


_CALL = lazy_pattern(r"(?P<name>\bAuto\w{3,40}\.from_pretrained)\((?P<arguments>[^()]{0,200})\)")


def _remedies(who: str, unforwarded: str | None) -> tuple[Remedy, ...]:
    """``unforwarded``: the loader that does not get the permission, whatever the program is given; None when unknown."""
    flag = FLAGS.get(who)
    permission = (
        Remedy(kind="flag", name=flag, value="set", summary=f"Permit it: {flag}", risk="medium", cost="code of the repository runs in the service", is_sure=unforwarded is None) if flag
        else Remedy(kind="config", name="trust_remote_code", value="true", summary="Pass trust_remote_code=True to the loader that asks", risk="medium", cost="code of the repository runs in the program")
    )  # fmt: skip
    if unforwarded is None:
        return (permission,)
    passes_on = Remedy(
        kind="package",
        name=who,
        value="newer",
        summary=f"A release of {who} that passes the permission on to every loader",
    )
    patch = Remedy(
        kind="patch",
        name=unforwarded,
        value="forward trust_remote_code",
        summary=f"Forward trust_remote_code to {unforwarded} where {who} calls it",
    )
    return (passes_on, patch, permission) if flag is not None else (passes_on, patch)


def _in_vain(who: str, *, is_given: bool) -> tuple[NotARemedy, ...]:
    waiting = NotARemedy("waiting for the prompt, or a longer timeout", "the question goes to standard input, which a service does not have")  # fmt: skip
    if not is_given:
        return (waiting,)
    return (
        NotARemedy(f"giving the option to {who} once more", "it is set, and not passed on to the loader that asks"),
        waiting,
    )
