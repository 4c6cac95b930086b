"""Messages that are never a cause: wrappers, launchers, and programs that report another's death.

Each points to something earlier (or, for build tools, to the lines around it). They are data: a regular expression
for the first line of an event's text, matched anywhere in it, upper and lower case as programs print them.
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern

POINTING_BACKWARDS = (
    # engines
    r"Engine core initialization failed",
    r"EngineCore(?:_\w+)? (?:failed to start|encountered (?:a fatal error|an issue)|hit an exception|died)",
    r"EngineCore failed",
    r"(?:Async)?EngineDeadError",
    r"Engine loop is not running\.|unhandled errors in a TaskGroup",
    r"Background loop (?:has errored|is stopped|is not running)|AsyncEngineDeadError",
    r"Worker\s?[Pp]roc(?:ess)? .{0,80}(?:died|terminated)",
    r"WorkerProc (?:initialization failed|was terminated|hit an exception|failed to start)",
    r"Received sigquit from a child|SIGQUIT received|Received SIG(?:TERM|QUIT|INT)\b",
    r"Scheduler or DataParallelController .{0,60} (?:died|terminated)",
    r"Rank \d+ scheduler (?:is dead|died)|scheduler is dead",
    r"Capture (?:cuda|CUDA) graphs? failed",
    r"Initialization failed\. (?:warmup error|controller_init_state|router_init_state)",
    r"\[sgl_kernel\] CRITICAL: Could not load any common_ops",
    r"No module named 'common_ops'",
    r"'_OpNamespace' '\w+' object has no attribute",
    r"No available shared memory broadcast block found",
    r"Executor failed|Executor: shutting down|shutting down executor",
    r"timed out waiting for llama runner to start\s*$|llama runner (?:process has terminated|started)",
    r"Failed to start (?:the )?(?:server|engine)\b",
    r"Engine process failed to start|RPCServer process died before responding|MQEngine (?:is )?dead|MQEngineDeadError",
    r"Error in model execution\b",
    # build tools
    r"ninja: build stopped",
    r"FAILED: (?:\[code=(?:1|2|127|255)\] )?(?!\[code=)",
    r"(?:Ninja build failed|Error building extension|Error compiling objects for extension)",
    r"CalledProcessError\b.{0,2000}non-zero exit status",
    r"CalledProcessError: (?:Command|…)",
    r"^CalledProcessError",
    r"subprocess-exited-with-error|metadata-generation-failed|Failed (?:building wheel|to build installable wheels)",
    r"This error originates from a subprocess",
    r"collect2: error: ld returned|compilation terminated|compilation aborted",
    r"NVCC compilation failed\s*$|\"NVCC compilation failed\"|nvcc compilation failed\s*$",
    r"^g?make(?:\[\d+\])?: \*\*\*",
    r"error: command '.{1,400}' failed",
    r"(?:Build|build) failed with exit code|CMake Error at .{0,300}Call Stack",
    # process groups
    r"resource_tracker: There appear to be",
    r"Producer process has been terminated",
    r"[Cc]onnection (?:was )?closed by (?:remote )?peer|Connection reset by peer|Broken pipe|BrokenPipeError",
    r"Gloo connectFullMesh failed",
    r"ActorHandleNotFoundError|ActorDiedError|ActorUnavailableError|RayActorError|shutdown_barrier",
    r"ChildFailedError|torch\.distributed\.elastic\.multiprocessing",
    r"ProcessRaisedException|ProcessExitedException|BrokenProcessPool|WorkerLost",
    r"leaked (?:shared_memory|semaphore) objects",
    r"TCPStore.{0,80}(?:recvValue|sendBytes|recvValueWithTimeout) failed|Failed to recv, got 0 bytes",
    r"error waiting for container: context canceled",
    r"operation not permitted when stream is capturing",
    r"EOFError: EOF when reading a line",
    r"^\S{1,200}: .{0,200} raised:\s*$|RayTaskError",
    r"operation failed due to a previous error",
    r"CUDA kernel errors might be asynchronously reported",
)
NOISE = (
    r"libnccl-net\.so|NET/Plugin ?: ?No plugin found|Plugin load .{0,40}returned 2|NET/IB ?: ?No device found",
    r"ras/client_support\.cc",
    r"\b(?:Syntax|Future|Deprecation|PendingDeprecation|Resource)Warning\b",
    r"No module named 'intel_extension_for_pytorch'",
    r"Setup Custom allreduce failed",
    r"FlashInfer is not available\. Falling back",
    r"NV_WARN_NOTHING_TO_DO",
    r"Prebuilt kernels not found, using JIT backend",
    r"unauthenticated requests to the HF Hub",
    r"There are no \S+ version bounds defined",
    r"pynvml package is deprecated",
    r"`torch_dtype` is deprecated",
    r"Ignored the following (?:versions|yanked versions) that require|Ignored the following yanked versions",
    r"is over 95% full, available space: (?:[5-9]|\d{2,9})\.\d{1,6} GB",
    r"Using default (?:MoE|W8A8|MoE kernel|W8A8 Block FP8 kernel) .{0,20}config\b.{0,40}sub-optimal|Not enough SMs to use max_autotune_gemm",
    r"TORCH_CUDA_ARCH_LIST is not set, all archs for visible cards|OutOfMemoryError caught, trying smaller batch",
    r"MoE config file not found|Fused weight gradient accumulation is not available|Running on a system without NVSwitch",
    r"Need to compile C\+\+ extensions to use all xFormers features|A matching Triton is not available",
    r"destroy_process_group\(\) was not called before program exit|Unable to resolve hostname to a \(local\) address\. Using the loopback",
    r"add_prefix_space|Special tokens have been added",
)
QUOTATIONS = (
    r"^Input: \{|\b[Rr]eceived request \S{1,200}: prompt: ['\"]|\"prompt(?:_preview|_text)?\": ?\"",
    r"^\S{0,300}::test_.{0,300} (?:PASSED|XFAIL|XPASS|SKIPPED)\b",
)
"""Lines that hold words of others: a prompt that is logged, the name of a test that passed."""
TELLING = (
    r"(?i)not compatible|incompatible|cannot|can't|could not|unable to|not enough|insufficient|no longer|failed|error\b|not supported|unsupported|was (?:built|compiled) (?:for|using|against)"
    r"|mismatch|corrupt|missing|no space|out of memory|too old|invalid|denied"
)
"""What a warning of Python's says when it tells of something that does not work; the others give advice."""
ECHO_XIDS = frozenset({45, 154})
"""Xid 45 is a clean-up after another fault, 154 the driver's verdict about recovery."""

_BACKWARDS = Pattern("|".join(POINTING_BACKWARDS))
_NOISE = Pattern("|".join(NOISE))
_TELLING = Pattern(TELLING)
_QUOTATIONS = Pattern("|".join(QUOTATIONS))
LONGEST = 4000


def points_backwards(text: str) -> bool:
    """Whether a message only tells that something else failed."""
    return _BACKWARDS.search(text[:LONGEST]) is not None


def is_noise(text: str) -> bool:
    """Whether a warning is one that reporters blame and that harms nobody."""
    return _NOISE.search(text[:LONGEST]) is not None


def is_quotation(text: str) -> bool:
    """Whether a line only passes on what somebody wrote: a user's prompt can be a whole crash."""
    shown = text[:LONGEST]
    return ("rompt" in shown or "::test_" in shown) and _QUOTATIONS.search(shown) is not None


def is_telling(text: str) -> bool:
    """Whether a Python warning tells of something that does not work, rather than giving advice."""
    return _TELLING.search(text[:LONGEST]) is not None
