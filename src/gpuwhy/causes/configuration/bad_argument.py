"""bad-argument: an option or value does not exist in this release, or the entrypoint is given twice."""

from __future__ import annotations

import re

import msgspec
from packaging.version import Version

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.configuration import _program as program
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.knowledge import components, renamed_switches, switches
from gpuwhy.knowledge.renamed_switches import Change
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_PARSER = says(
    "parser",
    (": error: argument ", "invalid value for '--", "unrecognized arguments", "unrecognised arguments", "invalid choice", "the following arguments are required", "expected one argument", "expected at least one argument", "invalid int value", "invalid float value", "invalid value", "ambiguous option", "ignored explicit argument", "not allowed with argument", "no such option", "got unexpected extra argument", "unexpected argument", "unknown flag", "unknown shorthand flag", "unknown command", "unknown argument", "invalid argument:", "error while handling argument", "unknown command line flag", "required arguments were not provided", "unknown option", "cannot be converted to", "invalid loads value", "unrecognized option", "invalid option", "missing option", "requires an argument", "missing argument", "flag provided but not defined", "isn't valid for", "invalid_value", "expects a value"),
    r"(?:^|[\s|\]])(?P<program>[\w./-]{1,80}(?: \w{2,20})?): error: (?:[Nn]o such option:? (?P<option14>-\S{1,80})|unrecognized arguments: (?P<extra>.{1,400})|argument (?P<option>[\w/, -]{1,80}?): (?:invalid choice: (?P<choice>.{1,80}?) \(|.{0,200})|the following arguments are required: (?P<required>.{1,200})|ambiguous option: (?P<option2>\S{1,80})|.{0,200})"
    r"|(?:error: )?unrecognized arguments: (?P<extra2>.{1,400})"
    r"|[Nn]o such option: (?P<option3>-\S{1,80})|unexpected argument '(?P<option4>[^']{1,80})'(?: found)?|[Uu]nknown (?:shorthand )?flag: '?(?P<option5>[^\s']{1,80})|error: (?:invalid|unknown) argument: (?P<option6>\S{1,80})"
    r"|error while handling argument \"(?P<option7>[^\"]{1,80})\"|Unknown command line flag '(?P<option8>[^']{1,80})'|required arguments were not provided|[Gg]ot unexpected extra argument|flag provided but not defined: (?P<option9>\S{1,80})"
    r"|Invalid value for '(?P<option15>--[\w-]{2,60})[^']{0,60}': (?P<refusal>.{1,200})|invalid value '(?P<choice2>[^']{0,80})' for '(?P<option10>[^']{1,80})'|^(?:\S{1,40}: )?unrecognized option '?(?P<option11>[^\s']{1,80})|unknown command \"(?P<command>[^\"]{1,60})\" for|exec: (?P<option12>--?[\w-]{0,60}): invalid option|unknown option:? [\"'`]?(?P<option13>--?[a-zA-Z][\w-]{1,60})",
)  # fmt: skip
_ENTRYPOINT = says(
    "entrypoint",
    ("executable file not found in $path", "command not found", "cannot be directly executed", "can't open file", "no such file or directory: unknown", "is a package and cannot be", "exec format error", "unable to start container process"),
    r"exec: \"(?P<executed>[^\"]{1,400})\": (?:executable file not found|stat|no such file)|exec \"?(?P<executed2>--?[\w-]{1,60})\"?:? |(?P<option>--[a-z][\w-]{2,60}): command not found|is a package and cannot be directly executed|can't open file '(?P<file>[^']{1,200})'",
)  # fmt: skip
_VALIDATION = says(
    "validation",
    ("validation error for", "validation errors for", "type=literal_error", "type=extra_forbidden", "type=unexpected_keyword", "extra inputs are not permitted", "unexpected keyword argument", "input should be"),
    r"(?P<count>\d{1,3}) validation errors? for (?P<class>\w{2,60}(?:Config|Args|Params|Settings|Parameters)\w{0,20})|type=(?P<type>literal_error|extra_forbidden|unexpected_keyword_argument|enum|int_parsing|float_parsing|bool_parsing)"
    r"|(?P<class2>(?:Async)?EngineArgs|ServerArgs|LLM|Engine|AsyncEngineArgs|LlmArgs|SamplingParams|TurbomindEngineConfig|PytorchEngineConfig)(?:\.__init__)?\(?\)? got an unexpected keyword argument '(?P<name>\w{1,80})'|Extra inputs are not permitted",
)  # fmt: skip
_VALUE = says(
    "value",
    ("unknown attention backend", "is greater than max_", "cannot find the config file for", "invalid value '", "invalid tool call parser", "requires --tool-call-parser", "reasoning parser", "appears to be a uri", "'tcp://", "argumentvalidation", "invalid literal for int", "unknown load format", "unknown load_format", "does not match the quantization", "invalid device string", "invalid attention backend", "unknown tool", "unknown chat template", "is not in list", "is not a valid", "invalid value for", "valid options are", "must be one of", "supported values are", "chose from", "choose from", "unsupported value", "invalid backend", "invalid dtype", "unknown dtype", "unknown kv_cache_dtype", "must be in the range", "should be between", "jsondecodeerror", "invalid json", "must be between", "cannot parse", "invalid log level", "unknown distributed executor backend", "unknown speculative method", "unsupported speculative", "must be greater than 0", "must be positive", "must be in (0", "must be less than 1", "must be less than or equal", "cannot find the config file for"),
    r"(?:Unknown|Invalid|unknown|invalid|Unsupported|unsupported) (?P<kind>attention backend|tool call parser|reasoning parser|load[ _]format|backend|dtype|kv_cache_dtype|log level|distributed executor backend|speculative method|scheduling policy|schedule policy|device string|device|tool parser|chat template|data type|guided decoding backend|logging level|sampling backend|grammar backend)[:=]? ?['\"`]?(?P<value>[^\s'\"`,(]{0,80})"
    r"|requires --tool-call-parser|(?P<port>[A-Z][A-Z0-9_]{2,40}_PORT)\W.{0,80}?tcp://|'?(?P<uri>tcp://[\d.]{7,15}:\d{1,5})'? ?appears to be a URI|invalid literal for int\(\) with base 10: '(?P<uri2>tcp://[\w.:-]{3,60})'"
    r"|ArgumentValidation\(\"(?P<said>.{1,200}?)\"\)|does not match the quantization method specified in the `?quantization`? argument|Cannot find the config file for \w{2,30}|Invalid value '(?P<value5>[^']{0,80})' for (?P<variable>[A-Z][A-Z0-9]{1,20}_[A-Z0-9_]{2,60})"
    r"|[Rr]easoning parser ['\"]?(?P<value2>\S{1,60}?)['\"]? not found|(?P<option>[a-z][a-z_]{2,50}|--[a-z][\w-]{2,50}) (?:must be (?:in|one of|between|greater than 0|positive|less than)|should be between).{0,120}[Gg]ot:? ?(?P<value3>\S{1,40})"
    r"|KeyError: ['\"]invalid \w{2,20} (?:call )?parser|'(?P<value4>[^']{1,60})' is not a valid (?P<class>\w{3,60}(?:Backend|Method|Format|Mode|Type|Policy|Strategy|Dtype|Impl))\b|\b(?P<need>[A-Z][\w ]{2,30}?) (?P<value6>\d{1,9}) is greater than (?P<bound>max_(?!model|position|seq_len|tokens|context|num_batched|new|total)\w{2,30}) \d{1,9}\b",
)  # fmt: skip

_COMPILERS = lazy_pattern(
    r"(?i)\bnvcc\b|\bptxas\b|\bcicc\b|\bgcc\b|\bg\+\+|\bcc1|\bclang|\bld\b|\bld:|\bar:|nvlink|fatbinary|cmake|ninja|\bmake\b|docker: |\bpip3?\b|setup\.py|\bconda\b|\bgit\b|\buv\b|apt(?:-get)?\b|collect2|\btar:|nvidia-smi|pytest|modprobe|ibv_|dmesg|journalctl|^(?:sudo|sed|grep|find|curl|wget)\b|helm|kubectl"
)
_BUILD_OPTION = lazy_pattern(
    r"^-(?:std|W|f|m|O|gencode|Xcompiler|arch|diag|G|I|L|D)\b|-compress|--generate-|--ptxas|-static-global|--device-c"
)
_SERVE = lazy_pattern(
    r"^(?:serve\b|vllm\b|python3?\b|sglang\b|bash\b|sh\b|/bin/|launch_server|-m vllm|-m sglang|ollama\b|llama-server|trtllm-serve|/opt/|/usr/|exec\b|-c\b)"
)
_ENGINE_OF_PROGRAM = (("api_server", "vllm"), ("vllm", "vllm"), ("launch_server", "sglang"), ("sglang", "sglang"), ("lmdeploy", "lmdeploy"), ("trtllm", "tensorrt-llm"), ("text-generation-launcher", "text-generation-inference"), ("llama-", "llama.cpp"), ("main", ""), ("ollama", "ollama"), ("docker", "container-engine"))  # fmt: skip
_REQUEST = lazy_pattern(
    r"/v1/|HTTP/1\.1|BadRequest|request body|\"(?:POST|GET)|ChatCompletionRequest|CompletionRequest|EmbeddingRequest"
)
_CODE_TROUBLE = lazy_pattern(
    r"contains custom code|trust_remote_code|does not recognize this architecture|architectures|greater than the derived|gated repo|not found|Repository|out of memory|quantization method|divisible|capability|no longer|max_model_len|Failed to load|connect",
    re.I,
)


class Argument(msgspec.Struct, frozen=True):
    """What was given wrongly. ``kind``: ``entrypoint``, ``unknown``, ``value``, ``missing``, ``line`` (a torn command) or ``service`` (a variable of Kubernetes)."""

    match: Match
    kind: str
    certainty: Certainty
    strength: int
    engine: str = ""
    option: str = ""
    value: str = ""
    change: Change | None = None


@cause("bad-argument", family="Model and configuration", signs=[_PARSER, _ENTRYPOINT, _VALIDATION, _VALUE])
def bad_argument(case: Case) -> Judgement:
    """An option or a value does not exist in this release, is malformed, or the image's entrypoint is given twice.

    How it shows itself
      `error: unrecognized arguments: ...`, `argument --x: invalid choice: 'y'`, `the following arguments are required`, `No such
      option`, `unexpected argument '--x' found`, `unknown flag: --x`, `error: invalid argument: --x`. In containers: the words
      `serve MODEL` as the remainder, or `exec: "--model": executable file not found`. From Python: `got an unexpected keyword
      argument`, `1 validation error for ModelConfig ... type=literal_error`.

    Why it happens
      Options are renamed and dropped between releases; recipes are written for one release or another engine. An image whose
      entrypoint already is the server takes the command as more arguments; one without an entrypoint takes the first
      option as the program. A Kubernetes service called vllm sets VLLM_PORT to a URL.

    How to be sure
      `vllm serve --help=all`, `python -m sglang.launch_server --help` of the installed release. The remainder in the message says
      which words were not understood.

    What helps
      Drop or rename the option as the release spells it. Leave out the program after the image's name, or override the
      entrypoint. Quote JSON values; look for a missing backslash or hyphen.

    What does not help
      Reinstalling the same release. Warnings above the usage text are noise.

    Not to be confused with
      backend-combination-unsupported (each option is right alone), api-drift (a package calls another one with an argument
      that it lacks), toolkit-too-old-for-library (`nvcc fatal: Unknown option`).
    """
    argument = _argument(case)
    if argument is None:
        return None
    who = _component(case, argument)
    seen = case.evidence(argument.match, _statement(argument))
    history = _history(case, argument)
    known = _known(argument) or history.evidence
    missing = _missing(case, argument, who)
    return Verdict(
        certainty=argument.certainty,
        component=who,
        title=_title(argument, who),
        chain=(
            Link(_ROOTS[argument.kind], known or inferred("the start command is for another release, engine or image")),
            Link(_statement(argument), seen),
            Link("The program prints its usage and ends"),
        ),
        evidence=(seen, *((known,) if known else ())),
        explains=case.explains(argument.match),
        missing=(missing,) if missing is not None else (),
        rivals=() if argument.certainty is Certainty.PROVEN else ("backend-combination-unsupported", "api-drift"),
        remedies=(*_remedies(argument, who, history), *_of_the_others(argument, who)),
        not_remedies=(
            NotARemedy(
                f"reinstalling the same release of {who}",
                "the release has no such option, or the image starts the program itself",
            ),
        ),
        strength=argument.strength,
    )


_ROOTS = {
    "entrypoint": "The image starts the program itself, and the command names it once more (or the image starts none)",
    "unknown": "The command was written for another release or engine",
    "value": "An option was given a value that this release does not take",
    "missing": "An option that is needed was not given",
    "line": "The command was torn: a line of it ran as a command of its own",
    "service": "Kubernetes sets variables for each service, and one of them has the name of an option",
}


def _argument(case: Case) -> Argument | None:
    for read in (_service_variable, _parsed, _entrypoint, _validated, _valued):
        found = read(case)
        if found is not None:
            return found
    return None


def _in_order(case: Case, sign: str) -> list[Match]:
    return sorted((m for m in case.all(sign) if not m.is_code), key=lambda m: m.line.number)


def _group(match: Match, kind: str) -> str:
    return next(
        (value.strip() for name, value in match.groups.items() if name.rstrip("0123456789") == kind and value), ""
    )


def _parsed(case: Case) -> Argument | None:
    for match in _in_order(case, _PARSER.name):
        text = match.text[:1600]
        who, option, extra = match.group("program") or "", _group(match, "option"), _group(match, "extra")
        if (
            _COMPILERS.search(f"{who} {text.partition('--')[0][:200]}")
            or _BUILD_OPTION.search(option or extra)
            or _is_of_build(match)
        ):
            continue
        engine = _engine(case, who or _of_usage(case, match), match)
        if _SERVE.match(extra):
            return Argument(match, "entrypoint", Certainty.PROVEN, 90, engine, value=extra)
        if match.group("option12") is not None:
            return Argument(match, "entrypoint", Certainty.PROVEN, 86, engine, value=match.group("option12") or "")
        wanted = _first_option(extra) or option.split("/")[0].split(",")[0].strip()
        change = renamed_switches.change_of(engine, wanted) if wanted else None
        choice = _group(match, "choice").strip("'\"")
        if _group(match, "required") or "required arguments" in text:
            return Argument(match, "missing", Certainty.PROVEN, 84, engine, _group(match, "required"))
        if choice:
            return Argument(match, "value", Certainty.PROVEN, 86, engine, wanted, choice, change)
        is_value = (
            re.search(
                r"Invalid value for '--|Invalid JSON|expected (?:one|at least one) argument|invalid \w{2,20} value|cannot be converted|error while handling|explicit argument",
                text,
            )
            is not None
        )
        if is_value:
            return Argument(match, "value", Certainty.PROVEN, 84, engine, wanted, "", change)
        if extra and not wanted and engine:
            return Argument(match, "unknown", Certainty.PROVEN, 80, engine, extra.split()[0][:80])
        if not wanted and not extra and not match.group("command"):
            if (
                who
                and re.search(r": error: ", text)
                and (engine or who.endswith(".py"))
                and not _CODE_TROUBLE.search(text)
            ):
                return Argument(match, "value", Certainty.LIKELY, 62, engine)
            continue
        return Argument(
            match, "unknown", Certainty.PROVEN, 86, engine, wanted or match.group("command") or "", "", change
        )
    return None


_USAGE = lazy_pattern(
    r"^[Uu]sage:\s{1,4}(?:python3? -m )?(?P<program>[\w./-]{1,80})|^(?:See|Run|Try) ['\"](?P<program2>[\w./-]{1,80})"
)


def _of_usage(case: Case, match: Match) -> str:
    """The program that prints its usage beside the error."""
    for line in case.lines_around(match, 15, 10):
        found = _USAGE.search(line.text[:300])
        if found is not None:
            return str(found["program"] or found["program2"])
    return ""


def _is_of_build(match: Match) -> bool:
    return match.event is not None and match.event.kind == "build"


def _first_option(extra: str) -> str:
    found = re.search(r"(?:^|\s)(--?[A-Za-z][\w-]{0,60})", extra)
    return found[1] if found is not None else ""


_OPTIONS_OF_ENGINES = (
    ("vllm", lazy_pattern(r"--(?:max-model-len|gpu-memory-utilization|tensor-parallel-size|enforce-eager|max-num-seqs|served-model-name|speculative-config)\b|vllm")),
    ("sglang", lazy_pattern(r"--(?:mem-fraction-static|model-path|context-length|tp-size|chunked-prefill-size|max-running-requests)\b|sglang")),
    ("llama.cpp", lazy_pattern(r"--(?:ctx-size|n-gpu-layers|flash-attn|cache-type-k|mmproj)\b|-ngl\b|^error while handling argument|^error: (?:invalid|unknown) argument: |llama-(?:server|cli)")),
    ("text-generation-inference", lazy_pattern(r"--(?:model-id|num-shard|max-batch-prefill-tokens)\b|text-generation-launcher|ArgumentValidation")),
)  # fmt: skip


def _engine(case: Case, who: str, match: Match | None = None) -> str:
    lowered = who.lower()
    for part, engine in _ENGINE_OF_PROGRAM:
        if engine and part in lowered:
            return engine
    found = program.engine_of(case, match)
    if found or match is None:
        return found
    text = f"{match.text[:1600]} {str(case.facts.value('command') or '')[:4000]}"
    return next((engine for engine, pattern in _OPTIONS_OF_ENGINES if pattern.search(text)), "")


def _entrypoint(case: Case) -> Argument | None:
    for match in _in_order(case, _ENTRYPOINT.name):
        engine = _engine(case, "", match)
        if match.group("option") is not None:
            return Argument(match, "line", Certainty.PROVEN, 84, engine, match.group("option") or "")
        executed = _group(match, "executed")
        if executed.startswith("-"):
            return Argument(match, "entrypoint", Certainty.PROVEN, 88, engine, value=executed)
        if " " in executed and re.search(r"vllm|sglang|python|serve|llama|trtllm", executed):
            return Argument(match, "entrypoint", Certainty.PROVEN, 84, engine, value=executed)
        if "cannot be directly executed" in match.text:
            return Argument(match, "unknown", Certainty.PROVEN, 80, engine)
        file = match.group("file") or ""
        if re.search(r"/(?:serve|vllm|sglang|bash|python3?)$", file):
            return Argument(match, "entrypoint", Certainty.PROVEN, 84, engine, value=file.rpartition("/")[2])
    return None


def _validated(case: Case) -> Argument | None:
    """Python's own form of an unknown option or value, where the caller is the user's program."""
    for match in sorted(
        (m for m in case.all(_VALIDATION.name) if not m.is_code),
        key=lambda m: ("type" not in m.groups and "name" not in m.groups, m.line.number),
    ):
        if not program.in_event(match) or _REQUEST.search(match.text[:600]):
            continue
        text = " ".join(line.text[:400] for line in (match.line, *case.lines_around(match, 3, 6)))
        name = match.group("name")
        if name is None and (match.group("type") is None and "Extra inputs" not in match.text):
            continue  # other validations have a message of their own, which another cause reads
        if _REQUEST.search(text):
            continue
        engine = program.engine_of(case, match) or _owner(match) or _validated_class(case)
        if name is not None:
            if not _is_called_by_user(case, match):
                continue
            option = f"--{name.replace('_', '-')}"
            return Argument(
                match, "unknown", Certainty.LIKELY, 74, engine, option, "", renamed_switches.change_of(engine, option)
            )
        kind = (
            "unknown"
            if match.group("type") in ("extra_forbidden", "unexpected_keyword_argument") or "Extra inputs" in match.text
            else "value"
        )
        return Argument(match, kind, Certainty.LIKELY, 74, engine)
    return None


def _validated_class(case: Case) -> str:
    """The engine of the class whose validation failed, named in the headline above the field."""
    headlines = (match for match in case.all(_VALIDATION.name) if match.group("class") is not None)
    return next((engine for match in headlines if (engine := program.engine_of(case, match))), "")


def _owner(match: Match) -> str:
    named = match.group("class2") or ""
    return {
        "ServerArgs": "sglang",
        "LlmArgs": "tensorrt-llm",
        "TurbomindEngineConfig": "lmdeploy",
        "PytorchEngineConfig": "lmdeploy",
    }.get(named, "vllm" if named else "")


def _is_called_by_user(case: Case, match: Match) -> bool:
    """Not one package calling another: the innermost frames outside the engine are the user's own or the engine's."""
    own = {program.engine_of(case), _owner(match), None}
    callers = [components.component_of_module(frame.path) for frame in match.frames]
    return all(caller in own for caller in callers if caller not in ("torch",))


def _valued(case: Case) -> Argument | None:
    for match in _in_order(case, _VALUE.name):
        text = match.text[:1600]
        if not (
            program.in_event(match) or match.line.level in ("error", "critical") or "ArgumentValidation" in text
        ) or _REQUEST.search(text):
            continue
        if _COMPILERS.search(text[:120]) or _is_of_build(match):
            continue
        engine = program.engine_of(case, match)
        if "does not match the quantization" in text or "Cannot find the config file for" in text:
            return Argument(match, "value", Certainty.PROVEN, 80, engine, "--quantization", "remove")
        if "--tool-call-parser" in text:
            return Argument(match, "missing", Certainty.PROVEN, 84, engine or "vllm", "--tool-call-parser")
        variable = match.group("variable")
        if variable is not None:
            return Argument(match, "value", Certainty.PROVEN, 82, engine, variable, _group(match, "value"))
        option = _option_of(match)
        if not option and match.group("said") is None:
            continue
        certainty, strength = _sureness_of_value(case, match, option)
        return Argument(match, "value", certainty, strength, engine, option, _group(match, "value"))
    return None


_ALSO_OF_KERNELS = frozenset({"dtype", "data type", "device", "device string", "backend"})
"""What kernels and loaders refuse in the same words, whatever was given on the command line."""


def _sureness_of_value(case: Case, match: Match, option: str) -> tuple[Certainty, int]:
    """A refused value is the user's where the command has the option, or where only a command line has such a thing."""
    is_given = option in str(case.facts.value("command") or "") if option else False
    kind = (match.group("kind") or "").lower()
    if match.group("said") is not None or (
        program.in_event(match) and (is_given or (kind and kind not in _ALSO_OF_KERNELS))
    ):
        return Certainty.PROVEN, 72
    if kind in _ALSO_OF_KERNELS or not program.in_event(match):
        return Certainty.POSSIBLE, 45
    return Certainty.LIKELY, 60


_OPTIONS_OF_KINDS = {
    "attention backend": "--attention-backend", "tool call parser": "--tool-call-parser", "tool parser": "--tool-call-parser", "reasoning parser": "--reasoning-parser", "load format": "--load-format",
    "load_format": "--load-format", "kv_cache_dtype": "--kv-cache-dtype", "dtype": "--dtype", "distributed executor backend": "--distributed-executor-backend", "speculative method": "--speculative-config",
    "device string": "--device", "device": "--device", "log level": "--log-level", "scheduling policy": "--scheduling-policy", "schedule policy": "--schedule-policy", "chat template": "--chat-template",
    "sampling backend": "--sampling-backend", "grammar backend": "--grammar-backend", "guided decoding backend": "--guided-decoding-backend",
}  # fmt: skip


def _option_of(match: Match) -> str:
    kind = (match.group("kind") or "").lower()
    if kind in _OPTIONS_OF_KINDS:
        return _OPTIONS_OF_KINDS[kind]
    named = match.group("option") or match.group("bound") or ""
    if named:
        return named if named.startswith("-") else f"--{named.replace('_', '-')}"
    if "easoning parser" in match.text:
        return "--reasoning-parser"
    if "call parser" in match.text:
        return "--tool-call-parser"
    own = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", match.group("class") or "").lower()
    return f"--{own}" if own else ""


def _service_variable(case: Case) -> Argument | None:
    for match in _in_order(case, _VALUE.name):
        uri = _group(match, "uri")
        variable = match.group("port") or (
            "VLLM_PORT" if "vllm" in program.engine_of(case) or "VLLM_PORT" in match.text else ""
        )
        if (
            (uri or match.group("port"))
            and variable
            and (program.in_event(match) or match.line.level in ("error", "critical"))
        ):
            return Argument(
                match,
                "service",
                Certainty.PROVEN,
                86,
                program.engine_of(case) or variable.partition("_")[0].lower(),
                variable,
                uri,
            )
    return None


def _component(case: Case, argument: Argument) -> str:
    if argument.engine:
        return argument.engine
    if argument.kind == "entrypoint":
        return "container-image"
    return program.program_of(case, argument.match)


class History(msgspec.Struct, frozen=True):
    """Which releases have an option. ``first`` and ``last`` of those that were read, ``""`` where none was found.

    ``is_foreign``: no release of the engine has it; ``similar`` is then the option whose name is nearest to it.
    ``came_later``, ``went_before``: on which side of the installed release those with the option lie.
    """

    first: str = ""
    last: str = ""
    is_foreign: bool = False
    similar: str = ""
    came_later: bool = False
    went_before: bool = False
    evidence: Evidence | None = None


def _history(case: Case, argument: Argument) -> History:
    """What the options of the engine's releases tell of one that the installed release refuses."""
    option, engine = argument.option, argument.engine
    if argument.kind != "unknown" or not option.startswith("--") or switches.is_option_of(engine, option) is None:
        return History()
    releases = switches.releases_with(engine, option)
    if releases is None:
        similar = switches.similar_option(engine, option) or ""
        return History(is_foreign=True, similar=similar, evidence=_recorded(f"no release of {engine} has {option}"))
    first, last = releases
    installed = parts.version_of(case, parts.distribution_of(engine))
    answer = switches.has_option(engine, installed, option) if installed else None
    if installed is None or answer is None or answer.value is not False:
        newest = switches.releases_of(engine)[-1]
        return History(first, last, evidence=_recorded(f"{engine} has {option} from {first} to {last}") if last != newest else None)  # fmt: skip
    went = Version(last) < Version(installed)
    came = Version(first) > Version(installed)
    return History(first, last, went_before=went, came_later=came, evidence=_recorded(answer.why))


def _recorded(statement: str) -> Evidence:
    return Evidence(statement, "measured: the options of the released wheels")


def _known(argument: Argument) -> Evidence | None:
    change = argument.change
    if change is None:
        return None
    told = f"now {change.instead}; " if change.instead else ""
    return Evidence(f"{change.name} of {change.engine}: {told}{change.why}", "documented: release notes and help texts")


def _statement(argument: Argument) -> str:
    if argument.kind == "entrypoint":
        return f"the words {argument.value[:80]} arrive where options of the program are expected"
    named = argument.option or "an option"
    return {
        "unknown": f"this release has no {named}",
        "value": f"{named} does not take {argument.value or 'this value'}",
        "missing": f"{named} is needed",
        "line": f"{named} was run as a command",
        "service": f"{named} holds a URL where a number is expected",
    }[argument.kind]


def _title(argument: Argument, who: str) -> str:
    if argument.kind == "entrypoint":
        return "The image's entrypoint and the command do not fit: the program is named twice, or not at all"
    if argument.kind == "service":
        return f"{argument.option} was set by Kubernetes for a service, and {who} reads it as its own"
    return f"{_statement(argument)[0].upper()}{_statement(argument)[1:]} ({who})"


def _missing(case: Case, argument: Argument, who: str) -> Missing | None:
    if argument.certainty is Certainty.PROVEN or parts.version_of(case, parts.distribution_of(who)) is not None:
        return None
    return case.missing("command", "the start command and the release it is for", "tr '\\0' ' ' < /proc/PID/cmdline")


def _remedies(argument: Argument, who: str, history: History) -> tuple[Remedy, ...]:
    if argument.kind == "entrypoint":
        return _of_entrypoint(argument)
    if argument.kind == "service":
        return (
            Remedy(kind="env", name=argument.option, value="unset", summary=f"Set {argument.option} to a number, or unset it, in the container"),
            Remedy(kind="config", name="enableServiceLinks", value="false", summary="Keep Kubernetes from setting variables for services (enableServiceLinks: false in the pod)"),
            Remedy(kind="service", name="kubernetes service", value="rename", summary=f"Or give the service another name than {argument.option.partition('_')[0].lower()}"),
        )  # fmt: skip
    if argument.kind == "line":
        return (
            Remedy(
                kind="config",
                name="start command",
                value="one line",
                summary=f"Join the lines: the one before {argument.option} lacks its backslash, or has a blank after it",
            ),
        )
    if argument.kind == "missing":
        option = argument.option.split(",")[0].split("/")[-1].strip() or "--model"
        return (Remedy(kind="flag", name=option, value="set", summary=f"Give {option}", check=(_help(argument),)),)
    return _of_option(argument, who, history)


def _has_option(argument: Argument) -> bool:
    """Whether only the value is refused: the option is one of the engine's, and another release takes no other JSON."""
    return argument.kind == "value" and switches.is_option_of(argument.engine, argument.option) is True


def _of_entrypoint(argument: Argument) -> tuple[Remedy, ...]:
    is_executed = argument.match.sign == _ENTRYPOINT.name and argument.match.group("file") is None
    if is_executed or argument.value.startswith("-"):
        value = "the program before its options, each word by itself"
        return (
            Remedy(kind="container", name="command", value=value, summary="Name the program after the image: the image starts none by itself (each word an entry of its own)"),
            Remedy(kind="flag", name="--entrypoint", value="override", summary="Or name it with --entrypoint (in Kubernetes: command, not args)"),
        )  # fmt: skip
    named = " ".join(argument.value.split()[:1])
    dropped = "vllm serve" if argument.engine == "vllm" and named in ("serve", "vllm") else named
    return (
        Remedy(kind="container", name="command", value=f"without '{dropped}'", summary=f"Leave out {dropped} after the image's name: the image runs it itself; begin with the model or the options"),
        Remedy(kind="flag", name="--entrypoint", value="override", summary="Or override the image's entrypoint (in Kubernetes: command, not args)"),
    )  # fmt: skip


def _of_option(argument: Argument, who: str, history: History) -> tuple[Remedy, ...]:
    change, option = argument.change, argument.option or "the option"
    remedies: list[Remedy] = []
    if change is not None and change.instead:
        name, _, value = change.instead.partition(" ")
        remedies.append(
            Remedy(
                kind="flag",
                name=name,
                value=value or "set",
                rank=-1,
                summary=f"Use {change.instead} in place of {option}",
                check=(_help(argument),),
            )
        )
    elif history.similar:
        remedies.append(
            Remedy(kind="flag", name=history.similar, value="set", rank=-1, is_sure=False, summary=f"Perhaps {history.similar} was meant: {option} is no option of {who}", check=(_help(argument),))
        )  # fmt: skip
    if argument.match.group("bound") is not None and argument.value.isdigit():
        remedies.append(Remedy(kind=_kind(option), name=option, value=argument.value, summary=f"Allow as much as is asked for: {option} {argument.value}", check=(_help(argument),)))  # fmt: skip
    elif argument.kind == "value":
        remedies.append(
            Remedy(
                kind=_kind(option),
                name=option,
                value="remove" if argument.value == "remove" else "a value of the list",
                summary=f"Give {option} a value that this release takes, or leave it out",
                check=(_help(argument),),
            )
        )
    else:
        remedies.append(
            Remedy(
                kind="flag",
                name=option,
                value="remove",
                summary=f"Leave {option} out{f': {change.why}' if change is not None and not change.instead else ''}",
                check=(_help(argument),),
            )
        )
    if history.came_later:
        remedies.append(
            Remedy(kind="package", name=who, value=f">={history.first}", summary=f"Or upgrade {who}: {option} came with {history.first}")
        )  # fmt: skip
    elif change is None and not (history.went_before or history.is_foreign or _has_option(argument)):
        remedies.append(
            Remedy(
                kind="package",
                name=who,
                value="newer",
                is_sure=False,
                summary=f"If the option is of a later release: upgrade {who} (an older one if it was dropped)",
            )
        )
    return tuple(remedies)


def _of_the_others(argument: Argument, who: str) -> tuple[Remedy, ...]:
    """One message names all options that were not understood: each has to be renamed or left out."""
    extra = _group(argument.match, "extra")
    if argument.kind != "unknown" or not argument.option.startswith("-"):
        return ()
    named = dict.fromkeys(re.findall(r"(?:^|\s)(--[A-Za-z][\w-]{1,60})", extra[:400]))
    found: list[Remedy] = []
    for option in [each for each in named if each != argument.option][:4]:
        change = renamed_switches.change_of(argument.engine, option)
        instead = change.instead if change is not None and change.instead else switches.similar_option(argument.engine, option) or ""  # fmt: skip
        name, _, value = instead.partition(" ")
        summary = f"The same for {option}: {f'use {instead}' if instead else f'leave it out, it is no option of {who}'}"
        found.append(Remedy(kind="flag", name=name or option, value=(value or "set") if instead else "remove", summary=summary, is_sure=False, rank=2, check=(_help(argument),)))  # fmt: skip
    return tuple(found)


def _help(argument: Argument) -> str:
    return {
        "vllm": "vllm serve --help=all",
        "sglang": "python -m sglang.launch_server --help",
        "lmdeploy": "lmdeploy serve api_server --help",
        "tensorrt-llm": "trtllm-serve --help",
        "text-generation-inference": "text-generation-launcher --help",
        "llama.cpp": "llama-server --help",
        "ollama": "ollama --help",
    }.get(argument.engine, "PROGRAM --help")


def _kind(name: str) -> str:
    return "env" if name.isupper() else "flag"
