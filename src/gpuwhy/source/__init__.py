"""Installed Python source -> answers: guards, origins of values, swallowed exceptions, switches, replay with facts.

Nothing is imported or executed, and the source may come from another machine: a :class:`Root` lists and reads files, a
:class:`FedRoot` takes them one by one. See docs/trace.md.
"""

from gpuwhy.source.answers import Absence, Guard, Moved, Step, Swallow, Switch, Trace
from gpuwhy.source.cache import Cache
from gpuwhy.source.facts import FileFacts, FunctionFacts, Said
from gpuwhy.source.messages import Template
from gpuwhy.source.roots import FedRoot, FolderRoot, Root, packages_in, site_packages
from gpuwhy.source.trees import Tree, Trees

__all__ = [
    "Absence",
    "Cache",
    "FedRoot",
    "FileFacts",
    "FolderRoot",
    "FunctionFacts",
    "Guard",
    "Moved",
    "Root",
    "Said",
    "Step",
    "Swallow",
    "Switch",
    "Template",
    "Trace",
    "Tree",
    "Trees",
    "packages_in",
    "site_packages",
]
