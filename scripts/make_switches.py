"""Make the table of environment variables and options by release, from the wheels of the package index.

    nice python -m scripts.make_switches --cache FOLDER

Of a wheel only its directory and the Python files that declare variables and options are read, by range requests. Index,
proxies and certificates are those of pip's own configuration. See scripts/README.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from gpuwhy.knowledge.switches import PackageSwitches, StoredSwitches
from scripts.fingerprinting.index import Index, opened_index
from scripts.fingerprinting.members import Members, SourceCache
from scripts.switches.coverage import PACKAGES, Declared
from scripts.switches.declarations import Declarations, Option, declarations

DATA = Path(__file__).parent.parent / "src/gpuwhy/knowledge/data/switches.json"
_NO_EFFECT = Declarations()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--cache", type=Path, required=True, help="keeps the Python files read; may be that of make_fingerprints"
    )
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    with opened_index() as index:
        made = tuple(_made(declared, index, SourceCache(options.cache)) for declared in PACKAGES.values())
    written = _written(StoredSwitches(made))
    options.out.write_text(written, encoding="utf-8")
    print(f"{options.out.name}: {len(written)} bytes", file=sys.stderr)
    return 0


def _written(table: StoredSwitches) -> str:
    """JSON with one name a line, so that a new release is a readable difference."""
    packages = []
    for package in table.packages:
        members = [
            f'"{key}": {_rows(value) if isinstance(value, Mapping) else _compact(value)}'
            for key, value in msgspec.structs.asdict(package).items()
        ]
        packages.append("{\n" + ",\n".join(members) + "\n}")
    return '{"packages": [\n' + ",\n".join(packages) + "\n]}\n"


def _rows(rows: Mapping[str, Sequence[object]]) -> str:
    lines = [f'"{name}": {_compact(rows[name])}' for name in sorted(rows)]
    return "{\n" + ",\n".join(lines) + "\n}" if lines else "{}"


def _compact(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _made(declared: Declared, index: Index, cache: SourceCache) -> PackageSwitches:
    """Read every release of one package, and say for each name in which of them it is."""
    package = declared.package
    releases: list[str] = []
    variables: dict[str, list[int]] = {}
    options: dict[str, list[int]] = {}
    kinds: dict[str, set[bool | None]] = {}
    aliases: dict[str, set[str]] = {}
    read: dict[str, Declarations] = {}
    for release in package.chosen(index.releases(package.name)):
        members = Members(index, release, package)
        number = len(releases)
        releases.append(release.version)
        files = {path: key for path, key in members.read_into(cache).items() if package.records(path)}
        for path, key in files.items():
            if key not in read:
                read[key] = _of(cache.get(key), declared, path)
        found = {path: read[key] for path, key in files.items()}
        for name in sorted({name for file in found.values() for name in file.variables}):
            variables.setdefault(name, []).append(number)
        for option, is_switch in _options(declared, found).items():
            for name in option.names:
                known = options.setdefault(name, [])
                if number not in known:
                    known.append(number)
                kinds.setdefault(name, set()).add(is_switch)
                aliases.setdefault(name, set()).update(other for other in option.names if other != name)
        print(f"{package.name} {release.version}: {members.described}", file=sys.stderr, flush=True)
    return PackageSwitches(
        name=package.name,
        provenance=f"measured: the wheels of {package.name} {releases[0]} to {releases[-1]}",
        releases=tuple(releases),
        variables={name: _spans(numbers) for name, numbers in variables.items()},
        options={name: _spans(numbers) for name, numbers in options.items()},
        without_value=tuple(sorted(name for name, said in kinds.items() if said == {True})),
        aliases={name: tuple(sorted(others)) for name, others in aliases.items() if others},
    )


def _of(source: bytes, declared: Declared, path: str) -> Declarations:
    """What a file declares; most hold nothing that is looked for, and parsing them all would take half an hour."""
    below = path.removeprefix(declared.package.folder + "/")
    is_wanted = declared.declares_options(below) or any(prefix.encode() in source for prefix in declared.prefixes)
    if not is_wanted:
        return _NO_EFFECT
    found = declarations(source, declared.prefixes)
    if found is None:
        print(f"{path} cannot be parsed by this Python: left out", file=sys.stderr)
    return found or _NO_EFFECT


def _options(declared: Declared, found: Mapping[str, Declarations]) -> dict[Option, bool | None]:
    """The options that a server's own files add, each with whether it is a switch."""
    if not declared.options:
        return {}
    booleans = {name for file in found.values() for name in file.booleans}
    others = {name for file in found.values() for name in file.others}
    below = {path.removeprefix(declared.package.folder + "/"): file for path, file in found.items()}
    return {
        option: _is_switch(option, booleans, others)
        for path, file in below.items()
        if declared.declares_options(path)
        for option in file.options
    }


def _is_switch(option: Option, booleans: set[str], others: set[str]) -> bool | None:
    if option.is_switch is not None or not option.field:
        return option.is_switch
    if option.field in booleans and option.field not in others:
        return True
    return False if option.field in others else None


def _spans(numbers: Sequence[int]) -> tuple[int, ...]:
    """First and last of each run: 3, 4, 5, 9 become 3, 5, 9, 9."""
    spans: list[int] = []
    for number in numbers:
        if spans and spans[-1] == number - 1:
            spans[-1] = number
        else:
            spans += [number, number]
    return tuple(spans)


if __name__ == "__main__":
    sys.exit(main())
