"""Which toolkit each library takes in the service's environment, by that library's own order of search.

Mirrors of FlashInfer's ``get_cuda_path`` and ``get_cuda_version`` (0.5.0 to 0.7.4), PyTorch's ``_find_cuda_home``,
SGLang's JIT (0.5.23), DeepGEMM's ``_find_cuda_home`` and Triton's ``env_nvidia_tool``.
"""

import os
from typing import Any, Dict, List, Optional

from gpuwhy.collector.launching import which
from gpuwhy.collector.probing import Absent, Notes, Request
from gpuwhy.collector.tool_versions import version_of

DEFAULT_ROOT = "/usr/local/cuda"


def resolutions(
    _request: Request,
    _notes: Notes,
    environment: Optional[Dict[str, Any]],
    packages: Optional[List[Dict[str, Any]]],
    environments: Optional[List[Dict[str, Any]]],
) -> Dict[str, Any]:
    """For each consumer: the folder, the CUDA version it believes in, the step that decided, all steps in words."""
    if environment is None:
        raise Absent("the environment that decides is not known")
    variables: Dict[str, str] = environment["variables"]
    torch = packages[0]["torch"] if packages else None
    torch_cuda = torch["cuda"] if torch else None
    is_cpu_torch = torch is not None and torch["cuda"] is None
    found = {
        "flashinfer": flashinfer(variables, torch_cuda),
        "torch": torch_extensions(variables, is_cpu_torch),
        "sglang": flashinfer(variables, torch_cuda),
        "deepgemm": deepgemm(variables),
    }
    folders = [folder for each in environments or [] for folder in each["folders"]]
    for consumer, tool, variable in (
        ("triton", "ptxas", "TRITON_PTXAS_PATH"),
        ("triton-blackwell", "ptxas-blackwell", "TRITON_PTXAS_BLACKWELL_PATH"),
    ):
        resolved = triton(tool, variable, variables, folders)
        if resolved is not None:
            found[consumer] = resolved
    return {"consumers": found, "nvcc_on_path": which("nvcc", variables)}


class _Search:
    """The steps taken on the way to a toolkit."""

    def __init__(self, variables: Dict[str, str]) -> None:
        self.steps: List[str] = []
        self.root: Optional[str] = None
        self.by = "none"
        self._variables = variables

    def variable(self, *names: str) -> "_Search":
        """``os.environ.get(A) or os.environ.get(B)``: an empty A counts as unset, an empty B is taken as it is."""
        for name in names:
            value = self._variables.get(name)
            if self.root is not None:
                return self
            if value is None:
                self.steps.append("%s is unset" % name)
            elif not value and name == names[-1]:
                self.steps.append("%s is empty, and taken as it is" % name)
                self.root, self.by = "", name
            elif not value:
                self.steps.append("%s is empty, which counts as unset" % name)
            else:
                self.steps.append("%s=%s" % (name, value))
                self.root, self.by = value, name
        return self

    def path(self) -> "_Search":
        if self.root is None:
            nvcc = which("nvcc", self._variables)
            if nvcc is None:
                self.steps.append("no nvcc on PATH=%s" % self._variables.get("PATH", os.defpath))
            else:
                self.steps.append("nvcc on PATH is %s" % nvcc)
                self.root, self.by = os.path.dirname(os.path.dirname(nvcc)), "PATH"
        return self

    def default(self) -> "_Search":
        if self.root is None:
            if os.path.exists(DEFAULT_ROOT):
                self.steps.append("%s exists" % DEFAULT_ROOT)
                self.root, self.by = DEFAULT_ROOT, DEFAULT_ROOT
            else:
                self.steps.append("%s does not exist" % DEFAULT_ROOT)
        return self

    def result(self, version: Optional[str], by: Optional[str] = None, **more: Any) -> Dict[str, Any]:
        return dict({"root": self.root, "version": version, "by": by or self.by, "steps": self.steps}, **more)


def flashinfer(variables: Dict[str, str], torch_cuda: Optional[str]) -> Dict[str, Any]:
    """A missing nvcc, and one that prints nothing useful, silently give way to ``torch.version.cuda``.

    An nvcc that may not be executed raises instead: ``nvcc_problem`` is then ``not executable``.
    """
    search = _Search(variables).variable("CUDA_HOME", "CUDA_PATH").path().default()
    if search.root is not None:
        nvcc = os.path.join(search.root, "bin/nvcc")
        version = version_of(nvcc)
        if version.release is not None:
            search.steps.append("%s --version says %s" % (nvcc, version.full or version.release))
            return search.result(version.release, full_version=version.full, nvcc_problem="")
        search.steps.append("%s %s" % (nvcc, version.problem))
        if version.kind in ("not executable", "denied", "timed out"):
            return search.result(None, nvcc_problem=version.kind)
    problem = "missing" if search.root is None else version.kind
    if torch_cuda is None:
        search.steps.append("torch names no CUDA version either")
        return search.result(None, "none", nvcc_problem=problem)
    search.steps.append("torch.version.cuda is %s" % torch_cuda)
    return search.result(torch_cuda, "torch.version.cuda", nvcc_problem=problem)


def torch_extensions(variables: Dict[str, str], is_cpu_torch: bool) -> Dict[str, Any]:
    """What ``torch.utils.cpp_extension`` builds with. A torch without CUDA takes none at all."""
    search = _Search(variables).variable("CUDA_HOME", "CUDA_PATH").path().default()
    if is_cpu_torch:
        search.steps.append("this torch was built without CUDA and takes no toolkit")
        search.root = None
        return search.result(None, "none")
    return _with_nvcc(search)


def deepgemm(variables: Dict[str, str]) -> Dict[str, Any]:
    """DeepGEMM: ``DG_JIT_NVCC_COMPILER`` names the compiler, else the order of torch."""
    compiler = variables.get("DG_JIT_NVCC_COMPILER")
    search = _Search(variables)
    if compiler:
        version = version_of(compiler)
        search.root, search.by = os.path.dirname(os.path.dirname(compiler)), "DG_JIT_NVCC_COMPILER"
        search.steps.append("DG_JIT_NVCC_COMPILER=%s" % compiler)
        return search.result(version.release, full_version=version.full, nvcc_problem=version.kind)
    return _with_nvcc(search.variable("CUDA_HOME", "CUDA_PATH").path().default())


def _with_nvcc(search: _Search) -> Dict[str, Any]:
    if search.root is None:
        return search.result(None)
    nvcc = os.path.join(search.root, "bin/nvcc")
    version = version_of(nvcc)
    said = "--version says %s" % (version.full or version.release) if version.release else version.problem
    search.steps.append("%s %s" % (nvcc, said))
    return search.result(version.release, full_version=version.full, nvcc_problem=version.kind)


def triton(tool: str, variable: str, variables: Dict[str, str], folders: List[str]) -> Optional[Dict[str, Any]]:
    """Triton's assembler: the one the variable names if it runs, else the one in the package. None without either."""
    steps: List[str] = []
    named = variables.get(variable)
    candidates = [(named, variable)] if named else []
    if not named:
        steps.append("%s is unset" % variable)
    candidates += [(path, "bundled") for path in bundled(tool, folders)]
    for path, by in candidates:
        version = version_of(path)
        if version.release is not None:
            steps.append("%s says %s" % (path, version.full or version.release))
            return {"root": path, "version": version.release, "full_version": version.full, "by": by, "steps": steps}
        steps.append("%s %s" % (path, version.problem))
    return {"root": None, "version": None, "by": "none", "steps": steps} if named else None


def bundled(tool: str, folders: List[str]) -> List[str]:
    """The copies of a CUDA tool inside the installed Triton, of any release."""
    places = ("triton/backends/nvidia/bin", "triton/third_party/cuda/bin", "triton/common/../third_party/cuda/bin")
    paths = [os.path.normpath("%s/%s/%s" % (folder, place, tool)) for folder in folders for place in places]
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


def assemblers(_request: Request, notes: Notes, environments: Optional[List[Dict[str, Any]]]) -> List[Dict[str, Any]]:
    """Every assembler that comes with the environments' own packages, with its version."""
    folders = [folder for each in environments or [] for folder in each["folders"]]
    paths = bundled("ptxas", folders) + bundled("ptxas-blackwell", folders)
    paths += [folder + "/torch/bin/ptxas" for folder in folders if os.path.exists(folder + "/torch/bin/ptxas")]
    if not paths:
        raise Absent("no assembler is bundled with the packages")
    found: List[Dict[str, Any]] = []
    for path in paths:
        notes.source(path + " --version")
        version = version_of(path)
        found.append(
            {
                "path": path,
                "name": os.path.basename(path),
                "version": version.release,
                "full_version": version.full,
                "note": version.problem,
            }
        )
    return found
