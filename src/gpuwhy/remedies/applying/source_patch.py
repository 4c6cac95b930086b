"""A patch of installed source as a file for a person: made from the file that is really installed there, never applied."""

from __future__ import annotations

import ast
import difflib

from gpuwhy.knowledge.source_edits import SourceEdit, edit_of
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying.site import Site


class NoPatchError(Exception):
    """No patch can be written; the message says why, in words for people."""


def source_patch(remedy: Remedy, diagnosis: Diagnosis, site: Site) -> str:
    """A unified diff for ``patch -p0``, headed by what it costs and who else uses what it changes.

    Raises NoPatchError, and :class:`gpuwhy.targets.TargetError` from reading the file there.
    """
    edit = edit_of(remedy.name)
    if remedy.kind != "patch" or edit is None:
        raise NoPatchError(f"for {remedy.name!r} gpuwhy knows no change of source that it could write down")
    path = _installed(edit, diagnosis)
    seen = site.look([path]).files.get(path)
    if seen is None or not seen.text:
        raise NoPatchError(f"{path} could not be read on {site.target.name}")
    said = (remedy.summary, remedy.cost, *(f"undo: {each}" for each in remedy.undo), f"written for: {edit.provenance}")
    heading = "".join(f"# {' '.join(each.split())}\n" for each in said if each)
    return heading + patched(edit, seen.text, path)


def patched(edit: SourceEdit, text: str, path: str) -> str:
    """The difference that the edit makes. Raises NoPatchError where this is not the source that it was written for."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NoPatchError(f"{path} is not understood: {error}") from error
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == edit.function
    ]
    if len(found) != 1:
        raise NoPatchError(f"{path} has {len(found)} functions {edit.function}: another release than the patch is for")
    (function,) = found
    source = ast.get_source_segment(text, function) or ""
    missing = next((each for each in edit.stands if each not in source), "")
    if missing:
        raise NoPatchError(f"{path}: {edit.function} has no {missing!r}: another release than the patch is for")
    has_docstring = ast.get_docstring(function, clean=False) is not None
    first = function.body[1 if has_docstring and len(function.body) > 1 else 0]
    lines = text.splitlines(keepends=True)
    indent = " " * first.col_offset
    added = [f"{indent}{each}\n" if each else "\n" for each in edit.lines]
    after = [*lines[: first.lineno - 1], *added, *lines[first.lineno - 1 :]]
    ast.parse("".join(after))
    return "".join(difflib.unified_diff(lines, after, path, path))


def _installed(edit: SourceEdit, diagnosis: Diagnosis) -> str:
    """Where the file is installed: in the folder that the source was read from, else as a frame of the log names it."""
    package = edit.path.partition("/")[0]
    searched = diagnosis.source.packages if diagnosis.source is not None else ()
    for each in searched:
        if each.name == package and each.folder.startswith("/"):
            return f"{each.folder.rstrip('/').removesuffix('/' + package)}/{edit.path}"
    for event in diagnosis.incident.events:
        for raised in event.exceptions:
            for frame in raised.frames:
                head, found, _ = frame.path.partition(f"/{package}/")
                if found and head.startswith("/") and head.endswith("-packages"):
                    return f"{head}/{edit.path}"
    raise NoPatchError(f"where {package} is installed on the target is not known")
