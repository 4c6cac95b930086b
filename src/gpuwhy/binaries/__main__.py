"""``python -m gpuwhy.binaries FILE…``: the architectures of files by the readers alone, one line a file.

What cuobjdump looks at: sections known for device code, no search of ordinary data.
"""

import sys
from typing import Dict, List

from .examining import examine
from .reading import FileSource, Unreadable


def main(paths: List[str]) -> int:
    """Prints a line for each path; answers 2 when one cannot be read."""
    status = 0
    for path in paths:
        try:
            with FileSource(path) as source:
                binary = examine(source, path, searches=0)
        except Unreadable as error:
            sys.stderr.write("%s\n" % error)
            status = 2
            continue
        counts: Dict[str, int] = {}
        for image in binary.device.images():
            counts[image.code.architecture] = counts.get(image.code.architecture, 0) + 1
        for cubin in binary.device.cubins:
            counts[cubin.code.architecture] = counts.get(cubin.code.architecture, 0) + 1
        listed = " ".join("%s:%d" % pair for pair in sorted(counts.items())) or "no device code"
        print("%s: %s: %s%s" % (path, binary.kind, listed, "" if binary.is_complete else " (incomplete)"))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
