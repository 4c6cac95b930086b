"""Lists of variables in manifests: Kubernetes, Compose, ``kubectl describe``.

env:                               environment:                  Environment:
- name: NCCL_DEBUG                   - NCCL_DEBUG=INFO             NCCL_DEBUG:  INFO
  value: "INFO"                      VLLM_USE_V1: "0"
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength
from gpuwhy.logs.stated.environment import variable

OPENING = ("env:", "environment:", "Environment:", "- name: ")
_HEADER = Pattern(r"^(?P<indent>\s{0,40})(?:- )?(?:env|environment|Environment):\s*$")
_ITEM = Pattern(r"^\s{0,60}- name:\s{1,4}[\"']?(?P<name>[A-Z_][A-Z0-9_]{1,80})[\"']?\s*$")
_FLOW = Pattern(
    r"^\s{0,60}- \{ ?[\"']?name[\"']?: [\"']?(?P<name>[A-Z_][A-Z0-9_]{1,80})[\"']?, ?[\"']?value[\"']?: (?P<value>[^{}]{1,400}?) ?\}\s*$"
)
_VALUE = Pattern(r"^\s{1,60}value:\s{1,4}(?P<value>\S.{0,1000}?)\s*$")
_ASSIGNED = Pattern(r"^\s{0,60}- [\"']?(?P<name>[A-Za-z_][A-Za-z0-9_]{1,80})=(?P<value>.{0,1000}?)[\"']?\s*$")
_MAPPED = Pattern(r"^\s{1,60}(?P<name>[A-Z_][A-Z0-9_]{1,80}):\s{1,40}(?P<value>\S.{0,1000}?)\s*$")
_PASSED_OVER = Pattern(
    r"^\s{1,60}(?:valueFrom|fieldRef|secretKeyRef|configMapKeyRef|key|name|fieldPath|optional|apiVersion|resourceFieldRef|resource)\b|^\s*#|^\s{1,60}- [A-Z_][A-Z0-9_]{1,80}\s*$"
)
_COMMENT = Pattern(r"\s+#.{0,400}$")


def opened(text: str) -> Block | None:
    header = _HEADER.match(text[:200])
    if header is not None:
        return _Variables(len(header["indent"]))
    item = _ITEM.match(text[:200])
    return _Variables(0, item["name"]) if item is not None else None


class _Variables:
    shares = False

    def __init__(self, indent: int, name: str = "") -> None:
        self._indent = indent
        self._name = name
        self._lines = 0

    def read(self, text: str) -> list[Statement] | None:
        shown = text[:1200]
        self._lines += 1
        if self._lines > 400 or len(shown) - len(shown.lstrip()) < self._indent:
            return None
        item = _ITEM.match(shown)
        if item is not None:
            self._name = item["name"]
            return []
        value = _VALUE.match(shown)
        if value is not None and self._name:
            name, self._name = self._name, ""
            return list(variable(name, _plain(value["value"]), Strength.REPORTED))
        found = _FLOW.match(shown) or _ASSIGNED.match(shown) or _MAPPED.match(shown)
        if found is not None:
            return list(variable(found["name"], _plain(found["value"]), Strength.REPORTED))
        return [] if _PASSED_OVER.match(shown) else None


def _plain(value: str) -> str:
    """A YAML scalar: without quotes, without a comment behind it."""
    if value[:1] in "\"'":
        end = value.find(value[0], 1)
        return value[1:end] if end > 0 else value[1:]
    return _COMMENT.sub("", value)
