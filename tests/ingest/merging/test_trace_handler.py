"""What torch.profiler calls when a trace is ready."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import stepscope
from stepscope.ingest.trace import Trace
from tests.tiers import slow


class Written:
    """A profile that writes what it is told, and remembers where."""

    def __init__(self, write: Callable[[Path], object]) -> None:
        self.paths: list[Path] = []
        self._write = write

    def export_chrome_trace(self, path: str) -> None:
        self.paths.append(Path(path))
        self._write(Path(path))


def test_files_are_named_as_torch_s_own_handler_names_them(tmp_path: Path) -> None:
    handle = stepscope.trace_handler(tmp_path / "a" / "b")
    profile = Written(lambda path: path.write_text("{}"))

    handle(profile)
    handle(profile)

    own = re.escape(f"{socket.gethostname()}_{os.getpid()}")
    names = [file.name for file in sorted((tmp_path / "a" / "b").iterdir())]
    assert len(names) == 2
    assert all(re.fullmatch(rf"{own}\.\d{{19}}\.pt\.trace\.json", name) for name in names)


def test_a_worker_has_a_name_and_a_file_may_be_compressed(tmp_path: Path) -> None:
    stepscope.trace_handler(tmp_path, "rank3", use_gzip=True)(
        Written(lambda path: path.write_text("{}"))
    )

    (file,) = tmp_path.iterdir()
    assert re.fullmatch(r"rank3\.\d+\.pt\.trace\.json\.gz", file.name)


def test_a_file_that_could_not_be_written_whole_is_not_there(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("{")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        stepscope.trace_handler(tmp_path)(Written(fail))
    assert not list(tmp_path.iterdir())


def test_no_reader_sees_a_draft(tmp_path: Path) -> None:
    seen: list[str] = []
    profile = Written(lambda _: seen.extend(file.name for file in tmp_path.glob("[!.]*")))

    with pytest.raises(FileNotFoundError):
        stepscope.trace_handler(tmp_path)(profile)
    assert seen == []
    assert profile.paths[0].parent == tmp_path


def test_a_folder_that_cannot_be_made_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")

    with pytest.raises(RuntimeError, match="cannot make the folder"):
        stepscope.trace_handler(tmp_path / "taken" / "a")(Written(lambda _: None))


def test_it_loads_neither_polars_nor_torch() -> None:
    code = (
        "import sys, stepscope; stepscope.trace_handler('x');"
        "assert not {'polars', 'torch', 'msgspec'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


PROFILED = """
import sys, torch, stepscope
from torch.profiler import ProfilerActivity, profile, record_function, schedule

with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=0, warmup=1, active=2, repeat=2),
    on_trace_ready=stepscope.trace_handler(sys.argv[1], use_gzip=True),
) as profiler:
    for _ in range(6):
        with record_function("decode[bs=2 tok=2]"):
            torch.ones(4).sum()
        profiler.step()
"""


@slow
def test_torch_s_profiler_writes_through_it_what_opens(tmp_path: Path) -> None:
    # In a process of its own, as an engine is: beside what other tests load torch may crash.
    subprocess.run([sys.executable, "-c", PROFILED, str(tmp_path)], check=True)

    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    assert [Trace.open(file).num_rows("steps") for file in files] == [2, 2]
    assert Trace.open(files[0]).manifest.clock.epoch_ns > 0
