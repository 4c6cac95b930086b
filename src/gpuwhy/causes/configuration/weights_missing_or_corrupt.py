"""weights-missing-or-corrupt: files of the model are absent, truncated, or Git LFS pointers."""

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
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_HEADER = says(
    "safetensors-header",
    ("headertoolarge", "headertoosmall", "metadataincompletebuffer", "invalidheader", "error while deserializing header", "header too large", "header too small", "incomplete metadata, file not fully covered", "invalid json in header", "invalid header deserialization"),
    r"(?P<fault>HeaderTooLarge|header too large|HeaderTooSmall|header too small|MetadataIncompleteBuffer|incomplete metadata|InvalidHeader\w{0,20}|invalid JSON in header|Error while deserializing header)",
)  # fmt: skip
_POINTER = says(
    "lfs-pointer",
    ("git-lfs", "git lfs", "git lfs pointer", "invalid load key, 'v'", "version https://git-lfs", "lfs pointer", "magic characters: 'vers'", "magic characters 'vers'", "magic: 'vers'", "'vers', expected 'gguf'", "magic number 73726576", "73726576"),
    r"cloned a repository without having git-lfs|invalid load key, 'v'|version https://git-lfs|(?i:lfs pointer)|magic\D{0,30}['\"]vers['\"]|'vers', expected 'GGUF'|73726576|git[- ]lfs (?:install|pull)|have (?:git-)?lfs installed",
)  # fmt: skip
_DAMAGED = says(
    "damaged",
    ("pytorchstreamreader failed", "failed finding central directory", "inline_container.cc", "invalid load key", "unexpected eof, expected", "ran out of input", "is not a valid json file", "not within the file bounds", "corrupted or incomplete", "invalid magic", "failed to read magic", "bad magic", "invalid file magic", "failed to read tensor data", "unexpectedly reached end of file", "digest mismatch", "consistency check failed", "invalid protobuf", "protobuf parsing failed", "file is corrupt", "is corrupted", "could be corrupted", "might be corrupted", "kplan_magic_tag", "file is truncated", "unexpected end of file", "checksum mismatch", "sha256 mismatch", "hash mismatch", "file size mismatch", "corrupted safetensors", "read error:", "size of file", "file too small", "truncated", "could not parse modelproto", "unable to load vocabulary from file", "unable to load weights from pytorch checkpoint", "jsondecodeerror"),
    r"PytorchStreamReader failed (?:reading|locating)|failed finding central directory|enforce fail at inline_container\.cc:\d{1,5}\] \. (?:file not found|invalid header|PytorchStreamReader)|invalid load key, '(?P<key>[^']{1,8})'|unexpected EOF, expected \d{1,20} more bytes|Ran out of input|is not a valid JSON file"
    r"|not within the file bounds|corrupted or incomplete|invalid (?:file )?magic(?: characters| number)?|failed to read magic|\bbad magic\b|failed to read tensor data|unexpectedly reached end of file|digest mismatch"
    r"|could not parse ModelProto|Unable to load vocabulary from file|Unable to load weights from pytorch checkpoint file|JSONDecodeError: |Consistency check failed|INVALID_PROTOBUF|Protobuf parsing failed|kPLAN_MAGIC_TAG|(?:checksum|sha256|hash|file size) mismatch"
    r"|(?:file|shard|checkpoint|weights?|model|safetensors)\b.{0,200}\b(?:is corrupt(?:ed)?|is truncated|could be corrupted|might be corrupted|seems? (?:to be )?corrupt\w{0,3}|truncated)"
    r"|(?:corrupt(?:ed)?|truncated|incomplete) (?:safetensors|checkpoint|weights?|shard|model|gguf)",
)  # fmt: skip
_ABSENT = says(
    "absent",
    ("cannot find any model weights", "no file named", "does not appear to have a file named", "does not appear to have files named", "not the path to a directory containing a file named", "no safetensors", "no supported config format", "invalid repository id or local directory", "repo id must be in the form", "incorrect path_or_model_id", "is not a valid model path", "model path does not exist", "model file not found", "no model weights found", "weights were not initialized from", "failed to open gguf", "split file", "failed to load gguf split", "failed to open '", "missing shard", "can't load the configuration of", "can't load tokenizer for", "could not locate the tokenizer", "no such file or directory", "filenotfounderror", "file does not exist", "does not exist", "nosuchfile", "unable to load model", "can't load the model for", "unrecognized model in", "error retrieving file list", "no such file", "is not a directory", "not a local folder", "couldn't find a", "config.json not found", "failed to load config", "no .safetensors", "no .bin", "engine file", "load model from", "missing keys", "not found in the checkpoint", "must use alphanumeric chars", "unable to open file", "error opening engine file", "not found: "),
    r"Cannot find any model weights (?:with|in) [`'\"]?(?P<path>[^`'\"\s]{1,300})|Error no file named .{0,400}? found in directory (?P<path2>\S{1,300})|(?P<path3>\S{1,300}) does not appear to have (?:a file|files) named"
    r"|Repo id must use alphanumeric chars.{0,160}?: '(?P<path15>[^']{1,300})'|Unable to open file '(?P<path16>[^']{1,300})' in model|Error opening engine file: (?P<path17>\S{1,300})|No supported config format found in (?P<path4>\S{1,300})|Invalid repository ID or local directory specified: ?'?(?P<path5>[^'\s]{1,300})"
    r"|Repo id must be in the form .{0,60}?: '(?P<path6>[^']{1,300})'|Incorrect path_or_model_id: '(?P<path7>[^']{1,300})'|Model path does not exist: (?P<path8>\S{1,300})"
    r"|failed to open (?:GGUF file )?'?(?P<path9>[^'\s]{1,300}(?:gguf|bin|safetensors))|[Cc]an't load (?:the )?(?:configuration of|tokenizer for|(?:the )?model for|image processor for|feature extractor for) '(?P<path10>[^']{1,300})'"
    r"|(?:No such file or directory|FileNotFoundError|NoSuchFile|File doesn't exist|file does not exist|[Nn]o such file).{0,40}?['\"` :](?P<path11>[^'\"`\s]{1,300}(?:\.safetensors|\.bin|\.gguf|\.pt|\.pth|config\.json|tokenizer\.(?:json|model)|tokenizer_config\.json|\.index\.json|\.engine|\.onnx|\.plan|preprocessor_config\.json|generation_config\.json))"
    r"|(?P<path12>[^'\"`\s]{1,300}(?:\.(?:safetensors|bin|gguf|pt|pth|engine|onnx)|tokenizer\.(?:model|json)))['\"`]?[: ]{1,3}.{0,40}?(?:No such file or directory|does not exist|not found|File doesn't exist)"
    r"|Unrecognized model in (?P<path13>\S{1,300})\. Should have a `?model_type|[Ww]eights were not initialized from (?:the )?checkpoint|no safetensors (?:files|weights)|No (?:model weights|\.safetensors|\.bin|safetensors).{0,60}found|[Mm]issing shard|[Uu]nable to load model:? (?P<path14>\S{1,300}/blobs/\S{1,200})"
    r"|(?:invalid|illegal) split file(?: idx)?: \d{1,4}|[Ff]ailed to load GGUF split from '?(?P<path18>[^'\s]{1,300})|RuntimeError: weight [\w.]{3,160} does not exist"
    r"|Error retrieving file list|Could not locate the tokenizer|[Mm]odel file (?:was )?not found|[Ee]ngine file .{0,200}(?:not|doesn't) (?:found|exist)|pull model manifest: file does not exist"
    r"|(?:model|checkpoint|weights?|tokenizer)[- _]?(?:path|dir|directory|folder|file)\b.{0,200}?(?:does not exist|not found|is not a directory|doesn't exist)|config\.json not found",
)  # fmt: skip
_SHAPES = says(
    "shapes-differ",
    ("size mismatch for", "error(s) in loading state_dict", "attempted to load weight", "missing key(s) in state_dict"),
    r"size mismatch for [\w.]{2,160}|Error\(s\) in loading state_dict for \w{2,80}|Attempted to load weight \(|Missing key\(s\) in state_dict",
)
_NO_FORMATS = lazy_pattern(r"(?i)\.so\b|\.cu\b|nvcc|ptxas|libcuda|\.whl\b|triton_kernel|\.cubin|/usr/bin|torch_extensions|node_modules|cmake|Dockerfile|jinja|chat[-_ ]template|\.sock|/dev/|\.pid\b|\.log\b|moe_configs|E=\d{1,4},N=\d|tuned|/proc/|/sys/|site-packages/\w{1,60}/(?:config|tuned)|vocab_file|\.cache/(?:vllm|flashinfer|triton|torch_compile)|extra_?model_paths|settings\.|launch_params|lora|adapter_config")  # fmt: skip
_OF_MODEL = lazy_pattern(
    r"(?i)safetensors|\.bin\b|\.gguf|\.pth?\b|\.ckpt|\.onnx|\.engine|\.plan|checkpoint|weights?\b|model|tokenizer|config\.json|torch\.load|load_state_dict|unpickl|pytorch_model|state_dict|shard|blobs/|ggml|gguf|llama_|PytorchStreamReader|file must be downloaded again|kPLAN_MAGIC|\[TRT\]"
)
_CACHE_OF_JIT = lazy_pattern(
    r"(?i)torch_compile_cache|inductor|triton|flashinfer|\.cubin|compile cache|aot_|dynamo|\.so\b|fxgraph|pickle cache|torch_aot|shm|SharedMemory|shared memory|multiprocessing"
)
_PLAIN_PATH = lazy_pattern(r"^(?:/|\./|\.\./|~|[A-Za-z]:[\\/])")
_OFFLINE = lazy_pattern(
    r"HF_HUB_OFFLINE|offline mode|LocalEntryNotFound|couldn't connect|cannot find the requested files in the local cache|Max retries|ConnectionError|client error: 40|40[134] Client Error|gated repo",
    re.I,
)
_HARMLESS = lazy_pattern(
    r"(?i)generation_config|not found.{0,20}using default|falling back|will be downloaded|using (?:the )?default|Did not find|additional_chat_templates|custom_generate|adapter_config|\.incomplete|retrying|processor_config"
)
_LIKE_A_POINTER = lazy_pattern(r"(?i)Header ?Too ?Large|InvalidHeader|magic")
"""What a pointer's text gives when it is read as weights: its first eight bytes are a giant length, or no magic."""
_POINTER_TEXT = lazy_pattern(
    r"invalid load key, 'v'|version https://git-lfs|'vers|73726576|cloned a repository without|(?i:lfs pointer)"
)
"""The beginning of a pointer, as a loader or a person quotes it."""
_POINTER_SIZE = 1024
"""Bytes: a Git LFS pointer has about 130; no file of weights is so small."""


class Damage(msgspec.Struct, frozen=True):
    """What is wrong with a file. ``kind``: ``pointer``, ``page`` (HTML in its place), ``damaged``, ``absent``, ``name`` (a path taken for a name), ``shapes``."""

    match: Match
    kind: str
    certainty: Certainty
    strength: int
    path: str | None = None
    shown: Evidence | None = None


@cause(
    "weights-missing-or-corrupt",
    family="Model and configuration",
    signs=[_HEADER, _POINTER, _DAMAGED, _ABSENT, _SHAPES],
)
def weights_missing_or_corrupt(case: Case) -> Judgement:
    """Files of the model are absent, truncated, of another model, or Git LFS pointers in their place.

    How it shows itself
      `SafetensorError: Error while deserializing header: HeaderTooLarge` or `MetadataIncompleteBuffer`, `invalid load key, 'v'`,
      `PytorchStreamReader failed reading zip archive`, `invalid magic characters`, `data is not within the file bounds, model is
      corrupted or incomplete`. Absent: `Cannot find any model weights`, `Error no file named model.safetensors ... found in
      directory`, `does not appear to have a file named config.json`, and for a path that does not exist in the container
      `Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/x'`.

    Why it happens
      git clone without git-lfs leaves text files of 130 bytes. A download was cut off or the disk filled up. A folder was
      not mounted, mounted under another name, or holds another format. A shard of several is lacking.

    How to be sure
      `ls -lL` of the folder: sizes against the hub's file list; `head -c 100 FILE`: `version https://git-lfs` is a pointer,
      `<html` or `{"error"` a page of a server. Inside the container, not on the host.

    What helps
      `git lfs pull`, or the hub's client, which resumes and checks (`hf download MODEL --local-dir DIR`). Mount the folder, give the
      path as the process sees it.

    What does not help
      Another release of transformers, safetensors or the engine. trust_remote_code. More memory.

    Not to be confused with
      model-arch-unsupported (the files are read and their architecture is not known), library-corrupt (a shared library),
      download-blocked (the file was to be fetched at this start), gated-or-auth (the hub refused).
    """
    damage = _damage(case)
    if damage is None:
        return None
    contrary = _contrary(case, damage)
    if contrary is not None:
        return contrary
    seen = case.evidence(damage.match, _STATEMENTS[damage.kind])
    shown = damage.shown
    asked = _missing(case, damage)
    return Verdict(
        certainty=damage.certainty,
        component="model-files",
        title=_title(damage),
        chain=(
            Link(_ROOTS[damage.kind], shown or inferred(_WAYS[damage.kind])),
            Link(_STATEMENTS[damage.kind], seen),
            Link("The loader stops"),
        ),
        evidence=(seen, *((shown,) if shown else ())),
        explains=case.explains(damage.match, *_of_one_failure(case, damage)),
        missing=(asked,) if asked is not None else (),
        rivals=_rivals(damage),
        remedies=_remedies(case, damage),
        not_remedies=_IN_VAIN,
        strength=damage.strength,
    )


_STATEMENTS = {
    "pointer": "a Git LFS pointer stands in place of the file",
    "page": "a page of a server stands in place of the file",
    "damaged": "the file cannot be read as what it should be",
    "absent": "files of the model are not where the program looks",
    "name": "a path that does not exist here is taken for the name of a repository",
    "shapes": "the tensors in the file are not those the model's configuration asks for",
}
_ROOTS = {
    "pointer": "The repository was fetched without Git LFS",
    "page": "The download stored an error page",
    "damaged": "The file is truncated, damaged, or a Git LFS pointer",
    "absent": "The folder lacks files, or the program sees another folder",
    "name": "The folder does not exist for this process",
    "shapes": "Configuration and weights are of different models or formats",
}
_WAYS = {
    "pointer": "the first bytes are those of a pointer",
    "page": "the first bytes are those of a page",
    "damaged": "size and first bytes of the file are not known",
    "absent": "nobody listed the folder",
    "name": "usual: not mounted in the container, or a typing error",
    "shapes": "nobody compared them",
}


def _damage(case: Case) -> Damage | None:
    for read in (_pointer, _header, _damaged, _absent, _shapes):
        found = read(case)
        if found is not None:
            return _with_files(case, found)
    return None


def _in_order(case: Case, sign: str) -> list[Match]:
    return sorted((m for m in case.all(sign) if not m.is_code), key=lambda m: (not program.in_event(m), m.line.number))


def _header(case: Case) -> Damage | None:
    for match in _in_order(case, _HEADER.name):
        if "gguf" in match.text.lower():
            continue
        certain = program.in_event(match)
        return Damage(match, "damaged", Certainty.PROVEN if certain else Certainty.LIKELY, 88, _path_near(case, match))
    return None


def _pointer(case: Case) -> Damage | None:
    for match in _in_order(case, _POINTER.name):
        if _POINTER_TEXT.search(match.text) is None:
            continue
        return Damage(match, "pointer", Certainty.PROVEN, 92, _path_near(case, match))
    return None


def _damaged(case: Case) -> Damage | None:
    for match in _in_order(case, _DAMAGED.name):
        text = match.text
        if (
            not program.is_failure(match)
            or _HARMLESS.search(text)
            or _CACHE_OF_JIT.search(text)
            or not _speaks_of_model(case, match)
        ):
            continue
        if "JSONDecodeError" in text and not _reads_model(match):
            continue
        key = match.group("key")
        if key in ("<", "\\n", "{") or (key is not None and key.startswith("\\xef")):
            return Damage(match, "page", Certainty.PROVEN, 88, _path_near(case, match))
        is_pickle = "Ran out of input" in text
        certainty = (
            Certainty.POSSIBLE if is_pickle else Certainty.PROVEN if program.in_event(match) else Certainty.LIKELY
        )
        return Damage(match, "damaged", certainty, 60 if is_pickle else 84, _path_near(case, match))
    return None


_READS_MODEL = lazy_pattern(
    r"transformers/(?:configuration_utils|tokenization_\w{3,40}|processing_utils|utils/hub)|get_config_dict|safetensors_weights_iterator|weight_utils|/tokenization"
)


def _reads_model(match: Match) -> bool:
    """JSON that the loader of a configuration or tokenizer could not read, and not that of a request or an option."""
    return any(_READS_MODEL.search(f"{frame.path} {frame.function}") for frame in match.frames)


def _speaks_of_model(case: Case, match: Match) -> bool:
    """Not any damaged file: the line, its frames or its neighbours speak of weights."""
    if _CACHE_OF_JIT.search(" ".join(f"{frame.path} {frame.function}" for frame in match.frames[-6:])):
        return False
    texts = [match.text, *(f"{frame.path} {frame.function} {frame.code}" for frame in match.frames)]
    if any(_OF_MODEL.search(text[:600]) for text in texts):
        return True
    return any(_OF_MODEL.search(line.text[:400]) for line in case.lines_around(match, 8, 4))


def _absent(case: Case) -> Damage | None:
    for match in _in_order(case, _ABSENT.name):
        if not program.is_failure(match) or _HARMLESS.search(match.text):
            continue
        path = next((value for name, value in match.groups.items() if name.startswith("path")), None)
        text = match.text[:1200]
        if _NO_FORMATS.search(text) or (path is None and not _speaks_of_model(case, match)):
            continue
        if _is_of_hub(case, match, path):
            continue
        if re.search(r"Repo id must|path_or_model_id", text):
            is_path = path is not None and _PLAIN_PATH.search(path) is not None
            return Damage(
                match, "name", Certainty.LIKELY if is_path else Certainty.POSSIBLE, 80 if is_path else 55, path
            )
        if re.search(r"Unrecognized model in|weights were not initialized", text) or "/blobs/" in (path or ""):
            return Damage(match, "absent", Certainty.POSSIBLE, 52, path)
        is_named = (
            path is not None
            or re.search(r"Cannot find any|no file named|does not appear to have|shard", text) is not None
        )
        if re.search(r"[Cc]an't load|Invalid repository ID|No supported config|retrieving file list", text):
            is_local = path is not None and _PLAIN_PATH.search(path) is not None
            return Damage(
                match, "absent", Certainty.LIKELY if is_local else Certainty.POSSIBLE, 74 if is_local else 50, path
            )
        return Damage(
            match,
            "absent",
            Certainty.PROVEN if is_named and program.in_event(match) else Certainty.LIKELY,
            78 if is_named else 62,
            path,
        )
    return None


def _is_of_hub(case: Case, match: Match, path: str | None) -> bool:
    """The hub was asked and did not answer, or refused: what it did not send is missing for that reason."""
    if path is not None and _PLAIN_PATH.search(path):
        return False
    return any(_OFFLINE.search(line.text[:800]) for line in (match.line, *case.lines_around(match, 40, 15)))


def _shapes(case: Case) -> Damage | None:
    match = program.best(case, _SHAPES.name)
    if match is None or not program.in_event(match):
        return None
    return Damage(match, "shapes", Certainty.POSSIBLE, 45)


def _with_files(case: Case, damage: Damage) -> Damage:
    """With what is known of the file: its size, and its first bytes."""
    for path, fact in case.facts.group("files").items():
        told = _told(fact)
        if told is None:
            continue
        text = told.lower()
        if "git-lfs" in text or "lfs pointer" in text or _size(fact) in range(1, _POINTER_SIZE):
            shown = case.fact_evidence(f"files.{path}", "the file is a Git LFS pointer")
            return msgspec.structs.replace(damage, kind="pointer", certainty=Certainty.PROVEN, path=path, shown=shown)
        if any(word in text for word in ("truncated", "absent", "missing", "not found", "incomplete", "shorter")):
            shown = case.fact_evidence(f"files.{path}", "the file is not whole")
            return msgspec.structs.replace(damage, certainty=Certainty.PROVEN, path=path, shown=shown)
    return damage


def _told(fact: Fact) -> str | None:
    return None if fact.value is None else str(fact.value)


def _size(fact: Fact) -> int:
    value = fact.value
    if isinstance(value, dict):
        value = value.get("size_bytes", value.get("size"))
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _contrary(case: Case, damage: Damage) -> RuledOut | None:
    """A known folder with what was looked for, and a file that a check found whole."""
    for path, fact in case.facts.group("files").items():
        text = (_told(fact) or "").lower()
        if re.search(r"\b(?:complete|checksum (?:ok|matches)|sha256 (?:ok|matches)|intact)\b", text) and re.search(
            r"(?i)safetensors|gguf|\.bin|model|weight", path
        ):
            shown = case.fact_evidence(f"files.{path}", "the file is whole")
            return RuledOut(
                "the files of the model are whole",
                (case.evidence(damage.match, "the message"), *((shown,) if shown else ())),
            )
    return None


def _path_near(case: Case, match: Match) -> str | None:
    pattern = re.compile(r"(?P<path>[\w./@+~-]{3,300}\.(?:safetensors|gguf|bin|pth?|onnx|engine))\b")
    for line in (match.line, *case.lines_around(match, 12, 6)):
        found = pattern.search(line.text[:1500])
        if found is not None and not found["path"].startswith("."):
            return found["path"]
    return None


def _of_one_failure(case: Case, damage: Damage) -> tuple[Match, ...]:
    """The other lines that say the same of these files."""
    same = case.all(_HEADER.name, _POINTER.name, _DAMAGED.name, _ABSENT.name)
    return tuple(match for match in same if program.in_event(match) and match.line is not damage.match.line)


def _title(damage: Damage) -> str:
    named = f" {damage.path}" if damage.path else ""
    return {
        "pointer": f"A Git LFS pointer stands in place of the weights{named}",
        "page": f"A server's page was stored in place of the weights{named}",
        "damaged": f"A file of the model is damaged or incomplete{named and ':'}{named}",
        "absent": f"Files of the model are missing{named and ':'}{named}",
        "name": f"The model's folder{named} does not exist for this process",
        "shapes": "Weights and configuration of the model do not belong together",
    }[damage.kind]


def _missing(case: Case, damage: Damage) -> Missing | None:
    if damage.shown is not None or damage.kind in ("pointer", "page"):
        return None
    path = damage.path or "MODEL"
    return case.missing(f"files.{path}", "size and first bytes of the file, as the failing process sees it", f"ls -lL {path}; head -c 100 {path} | cat -v")  # fmt: skip


def _rivals(damage: Damage) -> tuple[str, ...]:
    if damage.certainty is Certainty.PROVEN:
        return ()
    return (
        ("model-arch-unsupported", "parallel-size-invalid")
        if damage.kind == "shapes"
        else ("download-blocked", "model-arch-unsupported")
    )


def _remedies(case: Case, damage: Damage) -> tuple[Remedy, ...]:
    fetch = Remedy(
        kind="files", name="weights", value="download with the hub client", summary="Fetch the files again with the hub's client, which resumes and checks sizes",
        commands=("hf download MODEL --local-dir DIR",), cost="the download", rank=1, check=("ls -lL DIR",),
    )  # fmt: skip
    pull = Remedy(kind="files", name="weights", value="git lfs pull", summary="Fetch the real files: git lfs install, then git lfs pull in the clone", commands=("git lfs install", "git lfs pull"), rank=0)  # fmt: skip
    mount = Remedy(kind="container", name="bind mount", value="the model's folder, at the path that is given", summary="Mount the folder into the container, and give the path as the process sees it")  # fmt: skip
    path = Remedy(
        kind="flag",
        name="--model",
        value="an existing folder or a repository's name",
        summary="Give the path as the process sees it, or the repository's name",
        rank=1,
    )
    if damage.kind in ("absent", "name"):
        engine = program.engine_of(case, damage.match)
        named = msgspec.structs.replace(path, name="--model-path" if engine == "sglang" else path.name)
        is_local = damage.path is not None and _PLAIN_PATH.search(damage.path) is not None
        if _IS_IN_PART.search(damage.match.text):
            return (fetch, msgspec.structs.replace(pull, rank=2, is_sure=False))
        return (mount, named, fetch) if damage.kind == "name" else (fetch, mount, named) if is_local else (fetch, named)
    if damage.kind == "shapes":
        return (Remedy(kind="files", name="weights", value="config.json and weights of one repository", summary="Take configuration and weights from one revision of one repository"), fetch)  # fmt: skip
    if damage.kind == "page":
        return (fetch,)
    is_cut_off = damage.kind == "damaged" and _LIKE_A_POINTER.search(damage.match.text) is None
    if is_cut_off:
        pull = msgspec.structs.replace(pull, rank=2, is_sure=False)
    whole = Remedy(kind="cache", name="huggingface", value="delete", summary="Delete the damaged copy in the cache, so that it is fetched again", is_sure=False, rank=2) if ".cache/huggingface" in (damage.path or "") else None  # fmt: skip
    return (pull, fetch, *((whole,) if whole else ()))


_IS_IN_PART = lazy_pattern(r"[Ww]eights were not initialized|found in directory|[Mm]issing shard")
"""The folder was found and read: what is in it is not whole, and another path is no help."""
_IN_VAIN = (
    NotARemedy("another release of transformers, safetensors or the engine", "the file on disk stays what it is"),
    NotARemedy("more memory, or trust_remote_code", "the loader stops at the file itself"),
)
