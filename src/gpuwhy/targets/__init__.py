"""Reaches the place where the stack runs: this machine, a host over the user's OpenSSH, or a file that stands for one."""

from gpuwhy.targets.file import PathTarget
from gpuwhy.targets.interface import Ask, Connection, FileTarget, HostTarget, Query, Reply, Target, TargetError
from gpuwhy.targets.where import parse_where

__all__ = [
    "Ask",
    "Connection",
    "FileTarget",
    "HostTarget",
    "PathTarget",
    "Query",
    "Reply",
    "Target",
    "TargetError",
    "parse_where",
]
