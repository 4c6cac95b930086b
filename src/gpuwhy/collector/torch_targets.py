"""What ``torch.cuda.get_arch_list()`` would say of the service's torch, read from its library: nothing is imported.

The device code in ``libtorch_cuda.so`` lies in some hundred containers. The list that torch was compiled with is what all of them
have in common; single kernels (those for one generation only) hold more or less than that.
"""

import os
from typing import Any, Dict, FrozenSet, List, Optional

from gpuwhy.collector.probing import Absent, Failed, Notes, Request

LIBRARIES = ("libtorch_cuda.so", "libtorch_cuda_cu.so")
"""The second held the kernels in torch 1.11 to 1.13."""


def torch_targets(_request: Request, notes: Notes, packages: Optional[List[Dict[str, Any]]]) -> Dict[str, Any]:
    """``targets`` of ``library``, machine code first, and how many ``containers`` agree. Raises Absent and Failed."""
    torch = (packages[0] if packages else {}).get("torch")
    if not torch:
        raise Absent("no torch is installed for the service")
    folder = os.path.join(os.path.dirname(str(torch["path"])), "lib")
    path = next((os.path.join(folder, name) for name in LIBRARIES if os.path.exists(os.path.join(folder, name))), None)
    if path is None:
        raise Absent("torch in %s has no library for CUDA" % os.path.dirname(folder))
    notes.subject = "environment:" + str((packages or [{}])[0].get("prefix", ""))
    notes.source(path)
    return of_library(path)


def of_library(path: str) -> Dict[str, Any]:
    """The targets that all containers of a library hold."""
    # only where there is such a library: the readers take a tenth of a second to compile
    from gpuwhy.binaries.code_sets import code_sets, loaded_sets
    from gpuwhy.binaries.examining import examine
    from gpuwhy.binaries.reading import FileSource, Unreadable

    try:
        with FileSource(path) as source:
            binary = examine(source, path, 0)
    except Unreadable as error:
        raise Failed(str(error))
    sets = [each for each in loaded_sets(code_sets(binary)) if each.codes]
    if not sets:
        raise Failed("no device code was found in %s" % path)
    common: FrozenSet[str] = frozenset.intersection(
        *[frozenset(code.architecture for code in each.codes) for each in sets]
    )
    ordered = sorted({code for each in sets for code in each.codes}, key=_order)
    targets = list(dict.fromkeys(code.architecture for code in ordered))
    return {
        "library": path,
        "targets": [each for each in targets if each in common] or targets,
        "agree": bool(common),
        "containers": sum(each.containers for each in sets),
        "complete": binary.is_complete,
    }


def _order(code: Any) -> Any:
    return (code.kind != "cubin", code.arch, code.suffix)
