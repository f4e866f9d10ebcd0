"""Names of kernels as people say them: without types, namespaces and arguments."""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST = 4_096
"""Letters of a name that are looked at: a trace may hold any text for a name."""
INNER = re.compile(r"<[^<>]*>|\([^()]*\)|\{[^{}]*\}")
MARKED = re.compile(r"\(anonymous namespace\)::|(?:^|\s)(?:void|static)\s+")
BUILTIN = re.compile(
    r"(?:const|unsigned|signed|true|false|bool|char|short|int|long|float|double|void|half|[\s*&\d.-]"
    r"|u?int\d*_t|float\d+|[0-9]+u?l*|__nv_bfloat16|bfloat16|__half|std|c10|BFloat16|Half)*"
)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
CPLUSPLUS = re.compile(r"::|<|\S\(|^_Z")
WRAPPER = "gpu_kernel_impl"
"""What PyTorch wraps every elementwise operation in."""
MANGLED = re.compile(r"_ZN?K?([0-9]+)")


@lru_cache(maxsize=8_192)
def short_name(name: str) -> str:
    """`vectorized_elementwise_kernel<CUDAFunctor_add>` for the whole name of that kernel.

    Of a template, the first argument that is no number and no built-in type is named with it: many
    kernels differ by it alone. What reads as no C++ name stays as it is.
    """
    if not CPLUSPLUS.search(name[:LONGEST]):
        return name
    plain = MARKED.sub("", _demangled(name[:LONGEST])).strip()
    head = re.split(r"[<(]", plain, maxsplit=1)[0].strip()
    called = head.rpartition("::")[2].strip()
    if not IDENTIFIER.fullmatch(called):
        return name
    own = _first_own(plain[len(head) :]) if plain[len(head) :].startswith("<") else ""
    return f"{called}<{own}>" if own else called


def _first_own(text: str) -> str:
    """The first template argument that is a name of its own; empty where none is."""
    for argument in _arguments(text[1:]):
        parts = re.split(r"::|\s", _bare(argument))
        named = [part for part in parts if IDENTIFIER.fullmatch(part) and not _says_nothing(part)]
        if named and WRAPPER in named[-1]:
            inner = argument.partition(WRAPPER)[2].partition("<")
            return _first_own(f"<{inner[2]}") or named[-1]
        if named:
            return named[-1]
    return ""


def _bare(argument: str) -> str:
    """An argument without all that stands in brackets."""
    before, bare = "", argument
    while before != bare:
        before, bare = bare, INNER.sub("", bare)
    return re.split(r"[<({]", bare, maxsplit=1)[0]


def _says_nothing(part: str) -> bool:
    return part in ("operator", "lambda", "const") or BUILTIN.fullmatch(part) is not None


def _arguments(text: str) -> list[str]:
    """The arguments of a template, as far as it goes, without those of templates in them."""
    depth, found = 0, [""]
    for letter in text:
        if letter in "<({":
            depth += 1
        elif letter in ">)}":
            depth -= 1
            if depth < 0:
                break
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found


def _demangled(name: str) -> str:
    """The nested name that a mangled one begins with, by the Itanium ABI: `_ZN2at3addE` is at::add.

    Its types are left out; a name that says less stays as it is.
    """
    if not MANGLED.match(name):
        return name
    rest, parts = re.sub(r"^_ZN?K?", "", name), []
    while (told := re.match(r"[0-9]{1,4}", rest)) and len(rest) >= told.end() + int(told[0]):
        length = int(told[0])
        parts.append(rest[told.end() : told.end() + length])
        rest = rest[told.end() + length :]
    own = [part for part in parts if not part.startswith("_GLOBAL__N_")]
    return "::".join(own) or name
