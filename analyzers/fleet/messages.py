"""What a worker is asked, and what it answers, as messages that any process can decode.

A message is msgpack of these structs and nothing else: what a file makes a worker say can be wrong,
and is never code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from stepscope.analyzers.check.registry import by_code
from stepscope.analyzers.check.thresholds import thresholds, tune
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.rule import Rule
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.storage.cache_key import code_version

_CODE = Path(__file__).parents[1]


class Settings(msgspec.Struct, frozen=True):
    """How traces are read and checked: each rule's code with its thresholds, and the limits.

    `version` digests these and the code that does it: what another version made is made again.
    """

    rules: tuple[tuple[str, dict[str, Any]], ...]
    limits: Limits = DEFAULTS
    version: str = ""

    @classmethod
    def of(cls, rules: Iterable[Rule], limits: Limits = DEFAULTS) -> Settings:
        """The settings of these rules, by the code that runs here."""
        told = tuple((rule.code, thresholds(rule)) for rule in rules)
        return cls(told, limits, _version(told, limits))

    def chosen(self) -> tuple[Rule, ...]:
        """The rules; raises ConfigError where one is not installed here."""
        return tune((by_code(code) for code, _ in self.rules), dict(self.rules))

    def is_of_this_code(self) -> bool:
        """Whether the code that runs here is the one that they were made by."""
        return self.version == _version(self.rules, self.limits)


def _version(rules: tuple[tuple[str, dict[str, Any]], ...], limits: Limits) -> str:
    stated = json.dumps([rules, msgspec.to_builtins(limits)], sort_keys=True, default=str)
    code = (code_version(), code_version(_CODE))
    return hashlib.sha256(repr((code, stated)).encode()).hexdigest()[:16]


class Place(msgspec.Struct, frozen=True):
    """Where a file or folder is: the bytes of a path, or of a URL that fsspec opens."""

    path: bytes
    is_remote: bool = False


class ToDigest(msgspec.Struct, frozen=True, tag=True):
    """Digest files and folders."""

    places: tuple[Place, ...]


class OneTrace(msgspec.Struct, frozen=True, tag=True):
    """Read and check what is a trace by itself."""

    place: Place
    name: str
    settings: Settings


class OneRank(msgspec.Struct, frozen=True, tag=True):
    """Read the file of one rank, and give what the job needs of it."""

    place: Place
    settings: Settings


class RankPart(msgspec.Struct, frozen=True):
    """A rank's part of a job: where what was read of its file lies, or why nothing was."""

    name: str
    part: bytes | None = None
    why: str = ""


class Job(msgspec.Struct, frozen=True, tag=True):
    """Join the parts of a job's ranks, and check the whole."""

    name: str
    parts: tuple[RankPart, ...]
    num_beyond: int
    settings: Settings


Task = ToDigest | OneTrace | OneRank | Job


class Digested(msgspec.Struct, frozen=True):
    """The digest of a file's bytes and their number; without one, why there is none."""

    sha256: str = ""
    num_bytes: int = 0
    why: str = ""


class Digests(msgspec.Struct, frozen=True, tag=True):
    """The digests that were asked for, in their order."""

    each: tuple[Digested, ...]


class Outcome(msgspec.Struct, frozen=True, tag=True):
    """What a trace came to: its row of a table of many, and its findings as `check` ranks them."""

    row: dict[str, Any]
    findings: tuple[Finding, ...]


class PartMade(msgspec.Struct, frozen=True, tag=True):
    """What a job needs of a rank's file, and why a file is left out of it."""

    part: bytes
    why: str = ""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Why a file cannot be read; where it is the worker that is not set up, all others fail too."""

    reason: str
    is_setup: bool = False


class Died(msgspec.Struct, frozen=True, tag=True):
    """The process that read it ended, and how; to try again is of no use where it took too long."""

    how: str
    is_final: bool = False


Answer = Digests | Outcome | PartMade | Failed | Died

_ENCODER = msgspec.msgpack.Encoder()
_TASKS: msgspec.msgpack.Decoder[Task] = msgspec.msgpack.Decoder(Task)
_ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def encoded(message: Task | Answer) -> bytes:
    """A message as bytes."""
    return _ENCODER.encode(message)


def task_of(message: bytes) -> Task:
    """What is asked; raises msgspec.DecodeError where it is nothing."""
    return _TASKS.decode(message)


def answer_of(message: bytes) -> Answer:
    """What is answered; raises msgspec.DecodeError where it is nothing."""
    return _ANSWERS.decode(message)
