"""Stands in for torchvision, which SGLang imports for images: nothing of it is ever called here."""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__version__ = "0.0"


class _Anything(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class _Absent(metaclass=_Anything):
    """Any class of torchvision: it can be named and derived from, and each attribute is None."""


class _Part(ModuleType):
    """Any module of torchvision."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent


class _Finder(MetaPathFinder, Loader):
    """Finds every module below torchvision."""

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        is_ours = fullname.startswith("torchvision.")
        return ModuleSpec(fullname, self, is_package=True) if is_ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Part(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


sys.meta_path.append(_Finder())


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Absent
