"""Who asked whom for a name: the package that lacks it, and the one whose code wants it."""

from __future__ import annotations

import re
import sys

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.knowledge import components
from gpuwhy.model.event import Frame

USER_PROGRAM = "user-program"
_BOOTSTRAP = lazy_pattern(r"<frozen |importlib[/\\](?:__init__|_bootstrap)|<string>|<stdin>|/cloudpickle/|/pickle\.py")
_NOTEBOOK_FRAME = lazy_pattern(
    r"^\s{0,4}(?P<path>[\w./+@~<>-]{2,300}\.py) in (?:\w|<)|^\s*File (?P<file>[\w./+@~-]{2,300}\.py):\d"
)
_PATH = lazy_pattern(r"[\w.+@~/-]{1,200}/[\w.+-]{1,80}\.py\b")
_OF_CLASSES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("vllm", lazy_pattern(r"(?:Vllm|Model|Cache|Parallel|Scheduler|Compilation|Speculative|LoRA|Load|Device|Decoding|Observability|KVTransfer|Multimodal)Config|(?:Async)?EngineArgs|(?:Async)?LLM(?:Engine)?|SamplingParams|SchedulerOutput|ForwardContext|FlashAttention(?:Metadata|Impl)|GPUModelRunner|FusedMoE\w{0,20}|RequestOutput")),
    ("sglang", lazy_pattern(r"ServerArgs|PortArgs|ForwardBatch|ScheduleBatch|ModelRunner|TokenizerManager|GenerateReqInput")),
    ("flashinfer", lazy_pattern(r"(?:CUDAGraph)?Batch(?:Prefill|Decode|Attention|MLA)\w{0,60}|\w{0,40}PagedKVCacheWrapper|MultiLevelCascade\w{0,30}|BlockSparse\w{0,30}Wrapper")),
    ("transformers", lazy_pattern(r"\w{1,60}(?:Tokenizer|TokenizerFast|Processor|ProcessorFast|ForCausalLM|ForConditionalGeneration|PreTrainedModel)|(?:Dynamic|Static|Hybrid|SlidingWindow|EncoderDecoder|Offloaded|Quantized)Cache|(?:PreTrained|Pretrained|Generation)Config|TokenizersBackend|BatchEncoding|BatchFeature|(?!Lora|Peft|Quant)[A-Z][a-z]{1,20}[\w]{0,30}(?:Text|Vision|Thinker|VL|Moe|MoE|\d)?Config")),
    ("transformers", lazy_pattern(r"(?:Llama|Mistral|Mixtral|Qwen\d?|Gemma\d?|Phi\d?|Cohere\d?|Olmo\d?|Granite|Glm\d?)\w{0,20}(?:Attention|DecoderLayer|RotaryEmbedding|Model)")),
    ("starlette", lazy_pattern(r"Router|Starlette")),
    ("httpx", lazy_pattern(r"(?:Async)?Client|(?:Async)?HTTPTransport")),
    ("httpcore", lazy_pattern(r"(?:Async)?ConnectionPool")),
    ("triton", lazy_pattern(r"CompiledKernel|JITFunction|Autotuner|KernelMetadata|CudaDriver|ASTSource|AttrsDescriptor")),
    ("lmcache", lazy_pattern(r"LMCache\w{1,40}")),
    ("nixl", lazy_pattern(r"[Nn]ixl[_A-Za-z]{0,30}")),
    ("peft", lazy_pattern(r"(?:Lora|Peft)\w{0,30}")),
    ("xgrammar", lazy_pattern(r"TokenizerInfo|GrammarCompiler|GrammarMatcher|CompiledGrammar")),
    ("llguidance", lazy_pattern(r"LLTokenizer|LLMatcher|LLInterpreter")),
    ("outlines", lazy_pattern(r"RegexGuide|CFGGuide|RegexFSM|CFGFSM")),
    ("compressed-tensors", lazy_pattern(r"QuantizationArgs|QuantizationScheme|CompressionFormat")),
)  # fmt: skip
"""Classes by whose package they are. Their names are part of no path in a message."""
_DISTRIBUTIONS_OF_MODULES = {"cuda": "cuda-python", "PIL": "pillow", "yaml": "pyyaml", "cv2": "opencv-python", "sklearn": "scikit-learn", "google": "protobuf", "pkg_resources": "setuptools", "grpc": "grpcio", "attr": "attrs", "pynvml": "nvidia-ml-py"}  # fmt: skip
_NAMESPACES = {"_C": "vllm", "_C_cache_ops": "vllm", "_moe_C": "vllm", "_vllm_fa2_C": "flash-attn", "_vllm_fa3_C": "flash-attn", "sgl_kernel": "sgl-kernel", "_flash_attn": "flash-attn", "trtllm": "tensorrt-llm"}  # fmt: skip


_ALWAYS_THERE = {
    "torch": frozenset({"cuda", "nn", "Tensor", "tensor", "__version__", "device", "no_grad", "float16", "bfloat16"}),
    "triton": frozenset({"jit", "language", "autotune", "Config", "cdiv", "__version__"}),
    "transformers": frozenset({"AutoModel", "AutoTokenizer", "AutoConfig", "AutoModelForCausalLM", "PreTrainedModel", "__version__"}),
    "numpy": frozenset({"array", "ndarray", "zeros", "__version__", "float32"}),
    "vllm": frozenset({"LLM", "SamplingParams", "__version__"}),
    "flash_attn": frozenset({"__version__"}),
    "queue": frozenset({"Queue", "SimpleQueue", "LifoQueue", "Empty"}),
    "random": frozenset({"Random", "randint", "random", "choice", "seed"}),
    "logging": frozenset({"getLogger", "Logger", "Handler", "INFO", "NullHandler"}),
    "types": frozenset({"SimpleNamespace", "ModuleType", "FunctionType", "GenericAlias", "MappingProxyType"}),
    "enum": frozenset({"Enum", "IntEnum", "IntFlag"}),
    "copy": frozenset({"copy", "deepcopy"}),
    "signal": frozenset({"signal", "SIGTERM", "SIGINT", "Signals"}),
    "socket": frozenset({"socket", "AF_INET", "gethostname"}),
    "inspect": frozenset({"signature", "getmembers", "isclass"}),
    "json": frozenset({"dumps", "loads"}),
    "platform": frozenset({"system", "machine", "python_version"}),
    "profile": frozenset({"run", "Profile"}),
    "operator": frozenset({"attrgetter", "itemgetter", "index"}),
    "string": frozenset({"Template", "ascii_letters", "digits"}),
    "token": frozenset({"EXACT_TOKEN_TYPES", "NAME"}),
    "select": frozenset({"select", "epoll", "poll"}),
    "flashinfer": frozenset({"__version__"}),
    "sgl_kernel": frozenset({"__version__"}),
}  # fmt: skip
"""Names that every release of a package has: when one is missing, something else answers to the package's name."""


def is_always_there(module: str, name: str) -> bool:
    """Whether every release of the package has the name, so that its absence is no change of its interface."""
    return name in _ALWAYS_THERE.get(module, ())


class Asking(msgspec.Struct, frozen=True):
    """``provider`` lacks what ``consumer`` asks for; both are components, None when the report does not tell.

    ``consumer_frame`` is the frame that asks. ``is_remote_code`` marks code of a model's repository.
    """

    provider: str | None
    consumer: str | None
    consumer_frame: Frame | None = None
    is_remote_code: bool = False

    @property
    def out_of_step(self) -> str | None:
        """Of the two, the one that a fix names: what disagrees with the engine, else with torch, else what lacks the name."""
        provider, consumer = self.provider, self.consumer
        if provider in parts.ENGINES:
            return consumer if consumer not in (None, provider) else provider
        if consumer in parts.ENGINES:
            return provider or consumer
        if provider in ("torch", "python") and consumer not in (None, USER_PROGRAM):
            return consumer
        return provider or consumer


def package_of(module: str) -> str | None:
    """The component of a dotted module: a known one, else the distribution's name made of its first part."""
    first = module.partition(".")[0]
    if not first or first in sys.stdlib_module_names or first.startswith("transformers_modules"):
        return None
    named = _DISTRIBUTIONS_OF_MODULES.get(first)
    return named or components.component_of_module(module) or first.strip("_").lower().replace("_", "-") or None


def owner_of_class(name: str) -> str | None:
    """The package that a class of this name belongs to."""
    bare = name.rpartition(".")[2]
    return next((owner for owner, pattern in _OF_CLASSES if pattern.fullmatch(bare)), None)


def owner_of_operators(namespace: str) -> str | None:
    """The package that registers operators in a namespace of torch.ops."""
    return _NAMESPACES.get(namespace) or components.canonical(namespace)


def asking(case: Case, match: Match, provider: str | None) -> Asking:
    """Who asks: the innermost frame that is not the provider's own, else the code named around the line."""
    for frame in reversed(parts.frames_of(match)):
        if _BOOTSTRAP.search(frame.path) or _looks_up(frame):
            continue
        if "transformers_modules" in frame.path:
            return Asking(provider, USER_PROGRAM, frame, is_remote_code=True)
        own = _component_of_frame(frame)
        if own is not None and own != provider:
            return Asking(provider, own, frame)
    named = _named_around(case, match, provider)
    return Asking(provider, named or (provider if parts.frames_of(match) else None))


def _looks_up(frame: Frame) -> bool:
    """torch's modules answer for every attribute that they lack; who asked stands one frame above."""
    return frame.function == "__getattr__" and frame.path.endswith("torch/nn/modules/module.py")


def _component_of_frame(frame: Frame) -> str | None:
    own = components.component_of_module(frame.path)
    if own is not None:
        return own
    is_library = re.search(r"/python\d\.\d+/|/lib/python", frame.path) is not None
    return None if is_library else USER_PROGRAM


def _named_around(case: Case, match: Match, provider: str | None) -> str | None:
    for line in case.lines_around(match, 30, 6):
        found = _NOTEBOOK_FRAME.search(line.text[:600]) or _PATH.search(line.text[:600])
        if found is None:
            continue
        path = found.group("path") or found.group("file") if found.re is _NOTEBOOK_FRAME else found.group(0)
        own = components.component_of_module(path or "")
        if own not in (None, provider, "python"):
            return own
    before = match.text.partition("cannot import")[0] if "cannot import" in match.text else match.text[:40]
    for word in re.findall(r"[A-Za-z][\w-]{3,30}", before[:200]):
        own = components.canonical(word)
        if own is not None and own != provider:
            return "unsloth-zoo" if own == "unsloth" and provider == "vllm" else own
    return None
