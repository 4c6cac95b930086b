"""At which stage of a server's life GPU memory ran out: the frames say it, else the last progress line before."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable

from msgspec import Struct

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.model.event import LogLine
from gpuwhy.model.evidence import Evidence, Place


class Stage(enum.Enum):
    """The stages in the order in which a server goes through them."""

    START = "creating the CUDA context"
    LOADING = "loading weights"
    PROFILING = "measuring the peak of a forward pass"
    POOL = "allocating the KV cache"
    CAPTURE = "capturing CUDA graphs"
    WARMUP = "warming up"
    SERVING = "serving a request"
    UNKNOWN = "unknown"


class StageRead(Struct, frozen=True):
    """The stage, and the line that shows it. ``is_by_frame``: the failing call itself stands in it."""

    stage: Stage
    line: LogLine | None = None
    is_by_frame: bool = False


_F = re.IGNORECASE
_IN_FRAMES: tuple[tuple[Stage, re.Pattern[str]], ...] = (
    (
        Stage.WARMUP,
        lazy_pattern(r"\bwarming up sampler|_dummy_sampler_run|_dummy_pooler_run|compile_or_warm_up_model|kernel_warmup|\bwarm_?up\w{0,20}\b(?=['\")]|$)|prewarm_sampl|warmup_model|Not enough memory to handle \d+ (?:prefill|total) tokens", _F),
    ),
    (
        Stage.CAPTURE,
        lazy_pattern(r"Capture cuda graph failed|in (?:capture|capture_model|capture_one_batch_size|_capture_cudagraphs|_capture_graph|capture_graph|capture_begin|init_device_graphs|init_cuda_graphs|_run_capture\w{0,20}|_capture\w{0,20})\b|(?:cuda_?graph_?runner|cuda_?graph)\w{0,20}\.py|Captur(?:e|ing)\b.{0,60}graph.{0,40}(?:fail|out of memory)", _F),
    ),
    (
        Stage.POOL,
        lazy_pattern(r"\bBlockManager\.(?:cc|h)\b|\bkvCacheManager\.(?:cpp|h)\b|in (?:allocate_kv_cache\w{0,20}|_allocate_kv_cache\w{0,20}|initialize_kv_cache\w{0,20}|_allocate_kv_cache_tensors|initialize_cache|init_memory_pool|_create_buffers|_init_cache_engine|allocate_gpu_cache|_init_kv_cache\w{0,20})\b|\bcache_engine\.py|mem_cache[/\\]memory_pool\.py|llama_kv_cache\w{0,20}:.{0,60}fail|buffer for (?:the )?kv cache|kv_cache_init\(\) failed|could not be created: (?:Initial )?KV cache|kvCacheManager\.cpp", _F),
    ),
    (
        Stage.PROFILING,
        lazy_pattern(r"in (?:profile_run|_profile_run|determine_available_memory|determine_num_available_blocks|profile_num_available_blocks|profile_cudagraph_memory|_profile_multimodal|profile_encoder)\b", _F),
    ),
    (
        Stage.SERVING,
        lazy_pattern(r"in (?:allocate_slots|_handle_prefix\w{0,20}|event_loop_\w{1,30}|process_input_requests|run_busy_loop|_process_engine_step|forward_batch_generation|_forward_step|run_engine_loop|engine_step|step_async|_generate_stream|process_batch_result|execute_model_ray|generate_token|decode_step|prefill_step)\b|in (?:Prefill|Decode)$|VAE decoding|in function (?:launch_fattn|ggml_cuda_op_mul_mat\w{0,20}|ggml_cuda_mul_mat\w{0,30}|alloc)\b|update_slots|in generate\b|in sample\b|in (?:backward|training_step|compute_loss|inner_training_loop)\b|optim[/\\][a-z]{2,20}\.py", _F),
    ),
    (
        Stage.LOADING,
        lazy_pattern(r"Failed to load model - not enough GPU memory|in (?:load_model|_load_model|load_weights\w{0,20}|create_weights\w{0,20}|get_model|initialize_model|_initialize_model|process_weights_after_loading|load_checkpoint|from_pretrained|_load_pretrained_model|_load_state_dict_into_\w{1,20}|load_state_dict|_load_weights\w{0,20}|safetensors_weights_iterator|load_model_gpu|load_models_gpu|set_module_tensor_to_device|dispatch_model|partially_load|load_and_quantize\w{0,20}|marlin_moe_permute_scales|gptq_marlin_repack|awq_marlin_repack|from_engine|deserialize_cuda_engine|_materialize\w{0,20})\b"
                   r"|model_loader[/\\]|\berror loading model\b|unable to allocate (?:CUDA\d|backend) ?buffer|load_tensors:|llama_model_load|alloc_tensor_range|unable to load model|could not be created: (?:Model engine|Draft model engine|Drafter)|(?<![\w\"'])(?:create|load)_weights\w{0,20}(?:\(|\s{0,4}$)|in get_(?:sharded|partial_sharded|multi_weights\w{0,10}|weights\w{0,10})\b|utils[/\\]weights\.py|transformers[/\\]modeling_utils\.py|deserializeCudaEngine|memory layout cannot be allocated|Insufficient VRAM for model|Insufficient space in device allocation", _F),
    ),
    (
        Stage.SERVING,
        lazy_pattern(r"failed to allocate (?:CUDA\d+ )?compute|compute (?:pp )?buffers|graph_reserve|could not be created: Model resources|createExecutionContext|enqueueV3|in (?:execute_model|forward_extend|forward_decode|step|generate|run_batch|_get_workspace_buffer|_get_logits|compute_logits|_get_prompt_logprobs\w{0,10})\b", _F),
    ),
    (
        Stage.START,
        lazy_pattern(r"in (?:_lazy_init|_cuda_init|set_device|init_device|init_torch_distributed|synchronize_device|cudart)\b|torch\._C\._cuda_(?:init|setDevice)|cuInit|cuCtxCreate|cuDevicePrimaryCtxRetain|cublasCreate|Cannot allocate context", _F),
    ),
)  # fmt: skip
"""What the failing call is, the most telling first: a profile run passes through the model's forward as well."""
_PROGRESS: tuple[tuple[Stage, re.Pattern[str]], ...] = (
    (
        Stage.SERVING,
        lazy_pattern(r"Application startup complete|Uvicorn running on|fired up and ready to roll|server is listening on|HTTP server (?:is )?listening|all slots are idle|llama runner started in|\"(?:POST|GET) /(?:v1|generate|api)\S{0,60} HTTP|Avg prompt throughput|(?:Prefill|Decode) batch[,.\[]|Started inference server|model loaded and ready|warmup: \d|main loop|slot (?:launch_slot_|update_slots)", _F),
    ),
    (Stage.CAPTURE, lazy_pattern(r"Captur(?:e|ing)\b.{0,60}graphs?\b(?!.{0,80}(?:finished|end\.))", _F)),
    (
        Stage.WARMUP,
        lazy_pattern(r"Graph capturing finished|Capture\b.{0,60}graph end|Memory pool end|KV Cache is allocated|GPU KV cache size|# (?:GPU|cuda) blocks: [1-9]|Available KV cache memory: [\d.]|max_total_num_tokens=|Maximum concurrency for|Warming up|\[BlockManager\] max_block_count|Allocated .{0,20}GiB for max tokens in paged KV cache|KV self size|llama_kv_cache: size", _F),
    ),
    (
        Stage.PROFILING,
        lazy_pattern(r"(?:Model loading|Loading model weights|Loading weights) took|Load weight end|Memory profiling takes|Initial profiling|init engine \(profile|Encoder cache will be initialized", _F),
    ),
    (
        Stage.LOADING,
        lazy_pattern(r"Starting to load model|Loading (?:safetensors|pt|checkpoint|drafter|weights|model)\b|Load weight begin|checkpoint shards:|Loading weights with|loading blk\.\d+|loading model tensors|load_tensors|offloading \d+ repeating layers|Init torch distributed ends|Using model weights format|Loading engine from|loading model part|init_model|Convert to turbomind format|Using \w{1,30} (?:MoE backend|kernel for)", _F),
    ),
    (Stage.START, lazy_pattern(r"Init torch distributed begin|world_size=\d+ rank=\d+|Initializing a(?:n LLM| V1 LLM) engine|ggml_cuda_init: found|server_args=", _F)),
)  # fmt: skip
"""What a progress line says of the stage that follows it."""
BEFORE = 80
AFTER = 30
PROGRESS_BEFORE = 600
JUST_ABOVE = 12
"""Lines within which a call without its frame is still that of the failure."""


def stage_of(case: Case, match: Match) -> StageRead:
    """The stage in which the matched failure stands."""
    own = list(_own_lines(case, match))
    for stage, pattern in _IN_FRAMES:
        found = [line for line in own if pattern.search(line.text[:600])]
        if found and not (stage is Stage.START and _is_a_handle(found)):
            return StageRead(stage, _telling(stage, found, own), is_by_frame=True)
    for line in case.lines_around(match, PROGRESS_BEFORE, 0):  # nearest first
        for stage, pattern in _PROGRESS:
            if pattern.search(line.text[:600]):
                return StageRead(stage, line)
    if any(_HANDLE.search(line.text[:600]) for line in own):
        return StageRead(Stage.START, match.line, is_by_frame=True)
    for line in case.lines_around(match, 0, 10):
        if _ANSWERED.search(line.text[:300]):
            return StageRead(Stage.SERVING, line)
    return StageRead(Stage.UNKNOWN)


_HANDLE = lazy_pattern(r"(?:cublas|cudnn|cusolver\w{0,4}|cublasLt)Create\b")
"""A library's handle is made at its first use: at the start of a program, or when a server captures or answers."""


def _is_a_handle(lines: list[LogLine]) -> bool:
    return all(_HANDLE.search(line.text[:600]) for line in lines)


_ANSWERED = lazy_pattern(r"\"(?:POST|GET) /\S{1,60} HTTP/1\.\d\" 5\d\d")
"""A request that ends in an error: the server was up."""
_FRAME = lazy_pattern(r'^\s*File "|^\s*(?:\S+ERROR\S* )?File "|\.py", line \d+|\.py:\d+|^[a-z_]{3,60}: ')
_BARE_CALL = lazy_pattern(r"(?<![\w\"'])(?:create|load)_weights\w{0,20}(?:\(|\s{0,4}$)")
"""What is left of a frame where only its code, or only its function's name, was pasted."""
_MODEL_FILE = lazy_pattern(r"[/\\]models[/\\](?!registry|utils|loader)\w{2,60}\.py|[/\\]layers[/\\]\w{2,60}", _F)


def _telling(stage: Stage, found: list[LogLine], own: list[LogLine]) -> LogLine:
    """The line to quote: a frame of the model that is being built says more than the loader around it."""
    if stage is Stage.LOADING:
        models = [line for line in own if _MODEL_FILE.search(line.text[:600])]
        if models:
            return models[0]
    return found[-1]


def _own_lines(case: Case, match: Match) -> Iterable[LogLine]:
    """The lines of the failure itself: its event, the frames pasted above it, what the wrappers around it say."""
    number = match.line.number
    event = match.event
    first, last = (event.span.first, event.span.last) if event is not None else (number, number)
    around = sorted(
        case.lines_around(match, max(BEFORE, min(400, number - first)), AFTER), key=lambda each: each.number
    )
    before = [
        line
        for line in around
        if line.number < number
        and (
            line.number >= first
            or _FRAME.search(line.text[:300])
            or (number - line.number <= JUST_ABOVE and _BARE_CALL.search(line.text[:300]))
        )
    ]
    after = [line for line in around if line.number > number and (line.number <= last or _is_consequence(line.text))]
    return [*before, match.line, *after]


_CONSEQUENCE = lazy_pattern(
    r"warming up sampler|Capture cuda graph failed|error loading model|failed to (?:load|create|initialize)|unable to load|deserializeCudaEngine|failed to allocate|could not be created|Failed to load model|kv_cache_init|Not enough memory to handle|in function|_Error\b|^\s{0,8}File \"|\.py\", line \d+",
    _F,
)  # fmt: skip


def _is_consequence(text: str) -> bool:
    return _CONSEQUENCE.search(text[:600]) is not None


def shown(case: Case, match: Match, stage: StageRead, statement: str, before: Match | None = None) -> Evidence:
    """Evidence that quotes the failure, and under it the frame that shows the stage.

    ``before``: the failed allocation, where the matched line is what the program says of it.
    """
    if before is not None and before.line is not match.line and abs(before.line.number - match.line.number) < 40:
        return Evidence(statement, f"{before.text}\n{match.text}", before.place)
    line = stage.line
    if line is None or not stage.is_by_frame or line is match.line:
        return case.evidence(match, statement)
    return Evidence(statement, f"{match.text}\n{line.text.strip()}", match.place)


def passed(match: Match, stage: StageRead) -> Evidence | None:
    """The progress line that stands before the failure, where no frame shows the stage."""
    if stage.line is None or stage.is_by_frame:
        return None
    place = Place(match.place.source, match.place.path, stage.line.number)
    return Evidence(f"the last step before the failure: {stage.stage.value}", stage.line.text.strip()[:500], place)
