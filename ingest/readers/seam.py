"""What a reader of a format is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress

HEAD_BYTES = 64 << 10
"""Of a file, decompressed: by so much of it formats are told apart."""


class Reader(Protocol):
    """Reads one format. `name` is how a message calls it: "stepscope trace directory"."""

    @property
    def name(self) -> str:
        """How a message calls the format."""

    @property
    def one_per_rank(self) -> bool:
        """Whether its files are of one rank each: a folder of them is then one trace."""

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell by content whether the file is of this format.

        `head` is its first 64 KiB, decompressed when gzipped, and empty for a directory. What is
        beside a file says nothing of its format: what was kept of a file that is read alone is
        found again without asking.
        """

    def sources(self, path: Path) -> Sequence[Path]:
        """Every file that `read` looks at: what it gives is kept until one of them changes.

        None where nothing is to be kept.
        """

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[Mapping[str, Frame], Manifest]:
        """Read the tables and the manifest; raises `TraceError`, `LimitExceeded` among them."""


class OneFile:
    """What readers have in common of whose formats a file is read alone."""

    def sources(self, path: Path) -> list[Path]:
        """The file alone."""
        return [path]
