"""What programs say themselves when installed releases do not belong together, as data.

Each check has a pattern with the groups ``package`` (whose release is wrong), ``have``, ``want`` and ``other`` (with
whom it disagrees), as far as the message names them. Wordings are from the programs' sources.
"""

from __future__ import annotations

import msgspec

from gpuwhy.causes._signs import Sign, says

_V = r"\d{1,4}(?:\.\w{1,12}){0,4}(?:[+-][\w.]{1,20})?"
_NAME = r"[A-Za-z][\w.-]{1,60}(?:\[[\w,-]{1,60}\])?"


class Check(msgspec.Struct, frozen=True):
    """One wording. ``package`` and ``other`` stand in where the pattern does not capture them.

    ``is_exact``: the message states the conflict itself, so that it proves it when a failure carries it.
    ``direction`` is what the wrong package needs when no release is named: ``newer``, ``older``, ``match:NAME``, ``remove``.
    """

    sign: Sign
    title: str
    package: str = ""
    other: str = ""
    is_exact: bool = True
    strength: int = 80
    direction: str = ""
    why: str = "the program compares the two releases"


def _check(
    name: str, literals: str | tuple[str, ...], pattern: str, title: str, package: str = "", other: str = "", *,
    is_exact: bool = True, strength: int = 80, direction: str = "", why: str = "the program compares the two releases",
) -> Check:  # fmt: skip
    return Check(says(name, literals, pattern), title, package, other, is_exact, strength, direction, why)


CHECKS: tuple[Check, ...] = (
    _check(
        "xformers-built-for", "xformers was built for",
        rf"xFormers was built for:?\s{{0,8}}(?:PyTorch )?(?P<want>\d\.\d{{1,2}}[\w.+]{{0,20}})?(?: with CUDA \w{{1,8}})?(?: \(you have (?P<have>{_V})\))?",
        "xformers was built for another torch than the one installed", "xformers", "torch", direction="match:torch", strength=84,
    ),
    _check(
        "xformers-built-for-lines", "(you have",
        rf"PyTorch (?P<want>\d\.\d{{1,2}}[\w.+]{{0,20}}) with CUDA \w{{1,8}} \(you have (?P<have>{_V})\)",
        "xformers was built for another torch than the one installed", "xformers", "torch", direction="match:torch", strength=86,
    ),
    _check(
        "xformers-without-cuda", ("wasn't build with cuda support", "wasn't built with cuda support"),
        r"xFormers wasn't buil[dt] with CUDA support",
        "xformers' compiled operators are not loaded: its build does not fit the installed torch", "xformers", "torch",
        is_exact=False, strength=70, direction="match:torch", why="every operator is refused because its compiled part was not loaded",
    ),
    _check(
        "flashinfer-parts", ("does not match flashinfer version", "flashinfer-cubin version", "flashinfer-jit-cache version"),
        rf"(?P<package>flashinfer[-_](?:cubin|jit[-_]cache)) version \(?(?P<have>{_V})\)? does not match flashinfer version \(?(?P<want>{_V})\)?",
        "two packages of FlashInfer are of different releases", "flashinfer-cubin", "flashinfer", direction="match:flashinfer-python", strength=88,
    ),
    _check(
        "installed-too-old", ("less than the minimum required version", "with minimum required version"),
        rf"(?P<package>{_NAME}) is installed with version (?P<have>{_V}),? which is less than the minimum required version (?P<want>{_V})|(?P<package2>{_NAME}) with minimum required version (?P<want2>{_V}) is not installed",
        "an installed package is older than the engine requires", direction="newer", strength=88,
    ),
    _check(
        "required-but-found", ("is required for a normal functioning of this module", "is required but found"),
        rf"(?P<package>{_NAME})(?P<spec>[<>=!~][^ ]{{1,60}}) is required(?: for a normal functioning of this module,)? but found (?:{_NAME})==(?P<have>{_V})",
        "an installed package is outside the range that another requires", strength=88,
    ),
    _check(
        "requires-but-found", "found",
        rf"\brequires (?P<package>{_NAME})(?: version)? ?(?P<spec>[<>=!~]=?[^\n]{{1,60}}?),? (?:but )?found (?:{_NAME}==)?(?P<have>{_V})",
        "an installed package is outside the range that another requires", strength=86,
    ),
    _check(
        "executable-stack", "cannot enable executable stack",
        r"(?:^|[ /])(?P<package>[\w.]{3,60}?)(?:-[0-9a-f]{8})?\.(?:cpython-\S{3,40}\.)?so[.\d]{0,20}: cannot enable executable stack",
        "the library asks for an executable stack, which this system's glibc (2.41 and later) or kernel refuses", is_exact=False, strength=60, direction="newer",
        why="the loader of a newer system refuses what the older build asks for",
    ),
    _check(
        "registered-already", ("is already used by a transformers", "is already registered by", "already registered for"),
        r"'(?P<key>[\w.-]{1,80})' is already used by a Transformers (?:config|model|processor|tokenizer)",
        "transformers brings a model that the engine registers itself: it is newer than the engine expects", "transformers", "the engine", direction="older", strength=84,
        why="a name that the engine adds is there already",
    ),
    _check(
        "version-conflict", ("versionconflict", "distributionnotfound"),
        rf"(?:Contextual)?VersionConflict: \((?P<package>{_NAME}) (?P<have>{_V}) \([^)]{{0,200}}\), Requirement\.parse\('(?P<spec>{_NAME}[^']{{1,80}})'\)(?:, \{{'(?P<other>{_NAME})'\}})?|DistributionNotFound: The '(?P<spec2>[^']{{2,80}})' distribution was not found and is required by (?P<other2>{_NAME})",
        "an installed package does not fit what another requires",
    ),
    _check(
        "pip-incompatible", "which is incompatible",
        rf"(?P<other>{_NAME}) {_V} (?:requires|has requirement) (?P<spec>{_NAME}[^,]{{0,80}}), but you(?:'ll)? have (?P<package>{_NAME}) (?P<have>{_V}) which is incompatible",
        "an installed package does not fit what another requires", strength=74,
        why="pip compares what is installed with what is required",
    ),
    _check(
        "uv-unresolvable",
        "depends on",
        rf"[Bb]ecause .{{0,300}}?(?P<other>{_NAME}) ?(?:==|[<>]=?){_V}.{{0,20}}? depends on (?P<spec>{_NAME}[<>=!~][^ ,]{{0,40}}).{{0,200}}?(?:you require|unsatisfiable|cannot be used|incompatible)",
        "the requirements of the packages to install exclude each other",
        strength=74,
        why="the installer finds no set of releases that fits",
    ),
    _check(
        "pip-unresolvable", ("conflicting dependencies", "resolutionimpossible", "no solution found when resolving", "version solving failed", "unsatisfiableerror", "libmambaunsatisfiable", "requirements are unsatisfiable", "are incompatible"),
        rf"Cannot install (?P<other>{_NAME}).{{0,300}}? because these package versions have conflicting dependencies|ResolutionImpossible|No solution found when resolving|[Vv]ersion solving failed|UnsatisfiableError|Because .{{0,300}}(?P<other2>{_NAME})(?:==|[<>]=?){_V}.{{0,20}} depends on (?P<spec>{_NAME}[<>=!~][^ ]{{0,40}})|your requirements are unsatisfiable",
        "the requirements of the packages to install exclude each other", strength=72, why="the installer finds no set of releases that fits",
    ),
    _check(
        "torchvision-operators", "operator torchvision::", r"operator torchvision::\w{1,40} does not exist",
        "torchvision belongs to another torch than the one installed", "torchvision", "torch", direction="match:torch", strength=80,
        why="torchvision's compiled operators were not loaded",
    ),
    _check(
        "torchvision-custom-ops", ("couldn't load custom c++ ops", "pytorch and torchvision versions are incompatible"),
        r"Couldn't load custom C\+\+ ops|PyTorch and torchvision versions are incompatible",
        "torchvision belongs to another torch than the one installed", "torchvision", "torch", direction="match:torch", strength=80,
    ),
    _check(
        "different-cuda", ("compiled with different cuda", "was compiled with different cuda"),
        r"Detected that PyTorch and (?P<package>\w{3,40}) (?:were|was) compiled with different CUDA (?:major )?versions\.?(?:.{0,20}PyTorch has CUDA [Vv]ersion ?=? ?(?P<want>\d{1,2}[.\d]{0,5}))?(?:.{0,60}?has CUDA [Vv]ersion ?=? ?(?P<have>\d{1,2}[.\d]{0,5}))?",
        "an extension and torch were compiled with different CUDA versions", other="torch", direction="match:torch", strength=84,
    ),
    _check(
        "cudnn-incompatible", ("cudnn version incompatibility", "loaded runtime cudnn library"),
        rf"cuDNN version incompatibility: PyTorch was compiled +against \((?P<want>[\d, ]{{3,16}})\) but found runtime version \((?P<have>[\d, ]{{3,16}})\)|Loaded runtime CuDNN library: (?P<have2>{_V}) but source was compiled with: (?P<want2>{_V})",
        "another cuDNN is loaded than the program was compiled for", "cudnn", "torch", direction="match:torch", strength=84,
    ),
    _check(
        "protobuf-gencode", ("incompatible protobuf gencode", "descriptors cannot", "generated code is out of date"),
        rf"Detected (?:incompatible|mismatched) Protobuf Gencode/Runtime(?: \w{{3,10}})? versions when loading .{{0,200}}gencode (?P<want>{_V}) runtime (?P<have>{_V})|Descriptors cannot (?:not )?be created directly|generated code is out of date and must be regenerated",
        "the installed protobuf does not fit code that was generated for another release", "protobuf", strength=84,
    ),
    _check(
        "grpc-generated", "but the generated code in",
        rf"grpc package installed is at version (?P<have>{_V}),? but the generated code in \S{{1,120}} depends on grpcio>=(?P<want>{_V})",
        "the installed grpcio is older than generated code needs", "grpcio", direction="newer",
    ),
    _check(
        "pydantic-core", "the installed pydantic-core version",
        rf"installed pydantic-core version \((?P<have>{_V})\) is incompatible with the current pydantic version, which requires (?P<want>{_V})",
        "pydantic-core and pydantic are of different releases", "pydantic-core", "pydantic", direction="match:pydantic",
    ),
    _check(
        "numba-numpy", "numba needs numpy",
        rf"Numba needs NumPy (?P<want>{_V}) or (?P<direction>less|greater)(?:\. Got NumPy (?P<have>{_V}))?", "NumPy is outside the range that numba requires", "numpy", "numba",
    ),
    _check(
        "jaxlib", ("incompatible with jax version", "this version of jax requires", "compatible with the installed jaxlib"),
        rf"jaxlib (?:version|is version) (?P<have>{_V}),? (?:is newer than and incompatible with jax version|but this version of jax requires version >=) (?P<want>{_V})|JAX plugin (?P<package>\w{{3,40}}) version (?P<have2>{_V}) is installed, but it is not compatible with the installed jaxlib version (?P<want2>{_V})",
        "jax, jaxlib and its plug-ins are of different releases", "jaxlib", "jax", direction="match:jax",
    ),
    _check(
        "ray-cluster-lines",
        "version mismatch: the cluster was started with",
        rf"[Vv]ersion mismatch: The cluster was started with:? .{{0,40}}?Ray: (?P<want>{_V})",
        "the nodes of the Ray cluster run different releases of Ray or Python",
        "ray",
        "the other nodes",
        direction="match:cluster",
        strength=87,
    ),
    _check(
        "ray-cluster", ("version mismatch: the cluster was started with", "this process on node"),
        r"[Vv]ersion mismatch: The cluster was started with:?", "the nodes of the Ray cluster run different releases of Ray or Python", "ray", "the other nodes", direction="match:cluster", strength=86,
    ),
    _check(
        "tensorrt-engine", ("expecting library version", "version tag does not match", "engine plan file is not compatible", "engine version"),
        rf"engine plan file is not compatible with this version of TensorRT,? ?(?:expecting library version (?P<want>{_V}) got (?P<have>{_V}))?|Version tag does not match.{{0,40}}Current Version: (?P<have2>\d{{1,4}}), Serialized Engine Version: (?P<want2>\d{{1,4}})|Engine version (?P<want3>{_V}|\w{{1,12}}) (?:found in the config file )?(?:does not match|!=|is different from).{{0,40}}(?:TensorRT-LLM|version) ?(?P<have3>{_V})?",
        "the engine file was built by another release of TensorRT than reads it", "tensorrt", "the engine file", direction="rebuild", strength=80,
    ),
    _check(
        "two-registrations", ("only a single torch_library", "with the same name and overload name multiple times", "is already registered!", "registered more than once", "already a kernel registered from python"),
        r"Only a single TORCH_LIBRARY can be used to register the namespace (?P<package>\w{1,60})|Tried to register an operator \((?P<package2>\w{1,40})::.{1,300}with the same name and overload name multiple times|generic_type: (?:type|cannot initialize type) \"(?P<type>[\w:]{1,80})\" is already registered|CommandLine Error: Option '(?P<option>[\w-]{1,60})' registered more than once",
        "two copies of one compiled library are loaded into the process", direction="remove", strength=76, why="each copy registers the same names",
    ),
    _check(
        "two-openmp", ("already initialized", "is incompatible with libgomp"),
        r"OMP: Error #15: Initializing (?P<have>[\w.-]{3,40}), but found (?P<want>[\w.-]{3,40}) already initialized|MKL_THREADING_LAYER=INTEL is incompatible with (?P<want2>libgomp[\w.-]{0,20})",
        "two OpenMP run times are loaded into the process", "openmp", strength=76, why="the second one refuses to start beside the first",
    ),
    _check(
        "two-cupy", "multiple cupy packages", r"multiple CuPy packages are installed", "several CuPy packages are installed beside each other", "cupy", direction="remove", strength=66,
    ),
    _check(
        "bitsandbytes-binary", ("configured cuda binary not found", "required library version not found", "library not loaded: libbitsandbytes", "libbitsandbytes_cuda"),
        r"(?:Required library version not found: |Configured (?:CUDA|ROCm) binary not found at \S{0,200}?|(?:cannot|can't|could not) (?:find|load|open).{0,60})libbitsandbytes_cuda\d{2,3}|libbitsandbytes_cuda\d{2,3}\w{0,12}\.so: cannot open",
        "bitsandbytes has no binary for torch's CUDA version", "bitsandbytes", "torch", direction="newer", strength=80, why="it looks for a file named after torch's CUDA version",
    ),
    _check(
        "transformer-engine-parts",
        "transformerengine package version mismatch",
        rf"TransformerEngine package version mismatch\. Found .{{0,160}}?(?P<have>{_V})",
        "the parts of Transformer Engine are of different releases",
        "transformer-engine",
        direction="reinstall",
        strength=86,
    ),
    _check(
        "numpy-required",
        "a numpy version",
        rf"ImportError: .{{0,80}}A NumPy version (?P<spec>>=\S{{3,12}}(?: and <\S{{3,12}})?) is required.{{0,80}}\(detected version (?P<have>{_V})",
        "NumPy is outside the range that another package requires",
        "numpy",
    ),
    _check(
        "requires-release", ("requires version", "please install", "version is wrong", "or later is required", "or higher is required", "or newer is required", "needs to be at least", "please upgrade", "is required, but", "package version to be greater or equal", "requires the latest", "must install", "need to install", "must have", "` requires `", "requires `",  "is not compatible with", "but version"),
        rf"(?:ImportError|RuntimeError|ValueError|AssertionError|Exception|SystemError|PackageNotFoundError|NotImplementedError|VersionError): .{{0,200}}?(?:"
        rf"(?:[Pp]lease|[Yy]ou (?:must|need to)|[Mm]ust) (?:install|upgrade|use|update|have)(?: to)? [`'\"]?(?P<package>{_NAME}?) ?(?P<spec>(?:[<>=!~]=?)\s?{_V})"
        rf"|(?P<package2>{_NAME})[`']? (?:package )?version (?:to be greater or equal(?: than| to)?|must be (?:at least|>=)|needs to be at least|>=) ?(?P<want2>{_V})(?:.{{0,40}}?Detected version (?P<have2>{_V}))?"
        rf"|requires [`'\"]?(?P<package3>{_NAME}?) ?(?P<spec3>(?:>=|==|<=|~=|<|>)\s?{_V})[^.]{{0,40}}(?:but|found|installed|got|you have).{{0,40}}?(?P<have3>{_V})"
        rf"|requires (?:the )?[`'\"](?P<package5>{_NAME}?)(?P<spec5>[<>=!~]=\s?{_V})[`'\"]"
        rf"|(?<![\w.-])(?!(?i:cuda|nvcc|driver|capability|toolkit|sm_?\d*)\b)(?P<package4>{_NAME})(?: version)? (?P<want4>{_V}) or (?:later|higher|newer|above) is required(?:.{{0,60}}?(?P<have4>{_V}))?)",
        "an installed package is of a release that another refuses", strength=70,
    ),
    _check(
        "attention-release-required", ("flash attention", "flash-attention", "flash_attn", "flash-attn"),
        r"\brequire[sd]? (?:the )?[Ff]lash[ _-]?[Aa]tt(?:entio)?n (?:version )?(?:>=)? ?(?P<want>[2-4]\.\d[\w.]{0,12}) or (?:later|newer|higher|above)",
        "a program requires a newer flash-attn than the one installed, or none is installed", "flash-attn", is_exact=False, strength=62, direction="newer",
        why="the program looks for a release of flash-attn and finds none that suits",
    ),
    _check(
        "provider-not-built-in", "is not in available provider names",
        r"Specified provider '(?:CUDA|Tensorrt)ExecutionProvider' is not in available provider names",
        "the installed onnxruntime is a build without CUDA, or the build for the CPU lies over the other", "onnxruntime", is_exact=False, strength=62,
        why="the list of its providers has none for the GPU",
    ),
    _check(
        "torch-without-nccl", ("not compiled with nccl support", "have nccl built in"),
        r"(?i)PyTorch was not compiled with NCCL support|Distributed package doesn't have NCCL built[ -]?in",
        "the installed torch is a build without NCCL (for Windows, macOS, Jetson, or for the CPU)", "torch", is_exact=False, strength=58,
        why="torch has no NCCL inside",
    ),
    _check(
        "no-metadata", "no package metadata was found for",
        rf"PackageNotFoundError: No package metadata was found for (?P<package>{_NAME})", "a package that another asks for is not installed", is_exact=False, strength=48, direction="newer",
        why="its metadata is looked for in vain",
    ),
    _check(
        "version-mismatch", ("version mismatch", "versions do not match", "incompatible version", "version of"),
        rf"(?:^|[:\s])(?P<package>{_NAME})[ _]version mismatch.{{0,80}}?(?P<want>{_V}).{{0,60}}?(?P<have>{_V})|[Ii]ncompatible versions? of (?P<package2>{_NAME}).{{0,60}}?(?P<have2>{_V})",
        "two packages are of releases that do not belong together", strength=60, is_exact=False,
    ),
    _check(
        "torch-libraries-not-loaded",
        ("libtorch.so", "libc10.so", "libtorch_cpu.so", "libtorch_python.so"),
        r"lib(?:torch|c10|torch_cpu|torch_python)\.so: cannot open shared object",
        "an extension is loaded without torch: torch is not installed where it looks, or is imported after it",
        other="torch",
        is_exact=False,
        strength=55,
        direction="match:torch",
        why="the library is in the folder of torch, which only torch itself puts on the search path",
    ),
    _check(
        "keras-3",
        "is keras 3",
        r"installed version of Keras is Keras 3, but this is not yet supported",
        "Keras is newer than transformers supports",
        "keras",
        "transformers",
        direction="<3",
        strength=80,
    ),
    _check(
        "torch-libraries-absent", ("libtorch_cuda.so", "libc10_cuda.so", "libtorch_cuda_cpp.so", "libtorch_cuda_cu.so"),
        r"lib(?:torch_cuda(?:_cpp|_cu)?|c10_cuda)\.so: cannot open shared object",
        "an extension with CUDA code meets a torch without it (a CPU build)", "torch", direction="CUDA build", strength=72, is_exact=False,
        why="only torch's CUDA builds hold this library",
    ),
    _check(
        "torchao-operators", "due to incompatible torch version",
        rf"Skipping import of cpp extensions due to incompatible torch version (?P<have>{_V}) for torchao version (?P<have2>{_V})",
        "torchao's compiled operators were built for another torch and are left out", "torchao", "torch", is_exact=False, strength=56, direction="match:torch",
        why="torchao compares torch's release before it loads them",
    ),
    _check(
        "torch-without-cuda", "torch not compiled with cuda enabled", r"Torch not compiled with CUDA enabled",
        "the installed torch is a CPU build", "torch", direction="CUDA build", strength=78, why="torch says how it was compiled",
    ),
    _check(
        "bitsandbytes-without-gpu", ("compiled without gpu support", "cget_col_row_stats", "cquantize_blockwise"),
        r"installed version of bitsandbytes was compiled without GPU support|'NoneType' object has no attribute '(?:cget_col_row_stats|cquantize_blockwise\w{0,12}|cdequantize_blockwise\w{0,12}|cadam\w{0,20})'"
        r"|libbitsandbytes_cpu\.so: undefined symbol: c(?:get_col_row_stats|quantize_blockwise|dequantize_blockwise|adam)",
        "bitsandbytes loaded its CPU library: it has none for the CUDA that is installed, or finds no CUDA", "bitsandbytes", "torch", is_exact=False,
        strength=62, direction="newer", why="without a library for torch's CUDA it takes the one for the CPU",
    ),
    _check(
        "python-too-old", ("requires a different python", "requires-python", "requires python", "this package requires python"),
        rf"(?:Package '(?P<other>{_NAME})' requires a different Python: (?P<have>3\.\d{{1,2}}[.\d]{{0,4}}) not in '(?P<spec>[^']{{2,60}})'|requires Python ?(?P<spec2>[<>=!~][^ ]{{1,40}}).{{0,40}}(?:but|current|running).{{0,40}}(?P<have2>3\.\d{{1,2}}))",
        "a package does not support the Python that runs", "python", direction="another", strength=70, why="the installer compares Python's release",
    ),
    _check(
        "torch-beside-engine", ("was compiled with pytorch", "built with torch", "built against torch", "built for torch", "built for pytorch", "compiled for torch"),
        rf"(?P<package>{_NAME})(?: v?\d[\w.+]{{0,20}})? (?:was|is) (?:compiled|built) (?:with|against|for) (?:PyTorch|torch) (?P<want>{_V}).{{0,60}}(?:found|have|installed|running)(?: is)? (?:PyTorch |torch )?(?P<have>{_V})",
        "a package was built for another torch than the one installed", other="torch", direction="match:torch", strength=84,
    ),
)  # fmt: skip
