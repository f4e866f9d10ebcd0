"""Readers of other packages: asked behind ours, and what one cannot do is its own affair."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepscope.ingest.entry_points import tell_once
from stepscope.ingest.errors import TraceError, UnknownFormat
from stepscope.ingest.readers import READERS, readers
from stepscope.ingest.readers.installed import loaded
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import open_events, rows, slice_
from tests.packages import stepscope, write_package

READER = """
import polars as pl

from stepscope.ingest.manifest import Manifest


class TallyReader:
    name = "tally of an engine"
    one_per_rank = True

    def sniff(self, head, path):
        return head.startswith(b"tally ")

    def sources(self, path):
        return [path]

    def read(self, path, progress, limits):
        numbers = [int(word) for word in path.read_text().split()[1:]]
        steps = pl.DataFrame({"step": range(len(numbers)), "ts_ns": numbers, "kind": "decode"})
        return {"steps": steps}, Manifest("acme", tables={"steps": "complete"})
"""
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package with a module of readers into a folder on the path."""
    folder, made = tmp_path / "installed", []
    folder.mkdir()

    def installed(package: str, source: str, *points: str) -> Path:
        points = points or (f"one = {package.replace('-', '_')}:TallyReader",)
        made.append(write_package(folder, package, source, "stepscope.readers", *points))
        return folder

    monkeypatch.syspath_prepend(str(folder))
    yield installed
    tell_once.cache_clear()
    loaded.cache_clear()
    for module in made:
        sys.modules.pop(module, None)


def tally(folder: Path, text: str = "tally 3 5 9") -> Path:
    file = folder / "run.tally"
    file.write_text(text)
    return file


def test_a_file_that_none_of_ours_knows_is_read_by_an_installed_reader(
    install: Install, tmp_path: Path
) -> None:
    install("acme-traces", READER)

    trace = Trace.open(tally(tmp_path))

    assert rows(trace, "steps", "step", "ts_ns", "kind") == [
        (0, 3, "decode"), (1, 5, "decode"), (2, 9, "decode"),
    ]  # fmt: skip
    assert trace.manifest.producer == "acme"


def test_every_command_takes_its_files(install: Install, tmp_path: Path) -> None:
    folder, file = install("acme-traces", READER), tally(tmp_path)

    info = stepscope(folder, "info", file)
    sql = stepscope(folder, "sql", file, "select count(*) from steps")
    saved = stepscope(folder, "convert", file, "-o", tmp_path / "run.trace")

    assert (info.code, "producer   acme" in info.out, info.err) == (0, True, "")
    assert "3" in sql.out
    assert saved.code == 0
    assert rows(Trace.open(tmp_path / "run.trace"), "steps", "ts_ns") == [3, 5, 9]


def test_a_folder_of_its_files_is_one_trace_of_their_ranks(
    install: Install, tmp_path: Path
) -> None:
    install("acme-traces", READER)
    for rank in (0, 1):
        (tmp_path / f"run-{rank}").write_text(f"tally {rank} 7")
    sources = [reader.sources(tmp_path) for reader in readers()][-1]

    trace = Trace.open(tmp_path)

    assert rows(trace, "steps", "rank", "ts_ns") == [(0, 0), (0, 7), (1, 1), (1, 7)]
    assert list(sources) == []  # what others read is not kept


def test_what_ours_read_is_read_by_ours_whatever_it_claims(
    install: Install, tmp_path: Path
) -> None:
    install("acme-traces", READER.replace('head.startswith(b"tally ")', "True"))

    trace = open_events(tmp_path, slice_("a", 1, 2))

    assert rows(trace, "spans", "name") == ["a"]


def test_what_it_reads_is_not_kept_as_its_code_may_be_another_tomorrow(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("STEPSCOPE_CACHE", str(cache))
    install("acme-traces", READER)

    trace = Trace.open(tally(tmp_path, "tally " + "7 " * 100_000))

    assert trace.num_rows("steps") == 100_000
    assert not list(cache.rglob("*.parquet"))


def test_who_asks_what_can_be_read_is_told_of_it_and_of_whose_it_is(
    install: Install, tmp_path: Path
) -> None:
    install("acme-traces", READER)

    with pytest.raises(UnknownFormat, match=r"tally of an engine \(of acme-traces\)"):
        Trace.open(tally(tmp_path, "no such thing"))


BROKEN = {
    "fails as it is imported": ("1 / 0", "ZeroDivisionError: division by zero"),
    "ends the program as it is imported": ("raise SystemExit(0)", "SystemExit: 0"),
    "is no Python": ("def (", "SyntaxError"),
    "has no such name": ("", "has no attribute 'TallyReader'"),
    "is no reader at all": ("TallyReader = 7", "has no attribute 'name'"),
    "has no name": (READER.replace('"tally of an engine"', "7"), "7 is not the name of a reader"),
    "has a name that hides": (READER.replace("tally of", "\\x1b[2J"), "the name of a reader"),
    "does not say of what": (READER.replace("= True", "= None", 1), "one file per rank"),
    "cannot read": (READER.replace("def read", "def rad"), "it has no read"),
    "has an error that fails": (
        "class Bad(Exception):\n    def __str__(self):\n        1 / 0\nraise Bad()",
        "Bad: it cannot say what",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
def test_one_that_is_broken_is_one_line_on_stderr_and_all_else_goes_on(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    source, why = BROKEN[how]
    install("acme-traces", source)
    install("beta", READER)

    trace = Trace.open(tally(tmp_path))

    assert rows(trace, "steps", "ts_ns") == [3, 5, 9]
    said = capsys.readouterr().err
    assert said.startswith(
        "stepscope: acme-traces: its reader one (acme_traces:TallyReader) cannot"
    )
    assert why in said
    assert said.count("\n") == 1


def test_the_command_reads_ours_beside_one_that_is_broken(
    install: Install, sample_traces: Path
) -> None:
    folder = install("acme-traces", "import no_such_module")

    run = stepscope(folder, "info", sample_traces / "mix-admission-after.trace")

    assert (run.code, run.err) == (0, "")  # ours is asked first, and nobody else


def test_one_that_fails_as_it_looks_does_not_know_the_file(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("acme-traces", READER.replace('head.startswith(b"tally ")', "1 / 0"))

    with pytest.raises(UnknownFormat):
        Trace.open(tally(tmp_path))

    assert capsys.readouterr().err == (
        "stepscope: acme-traces: its reader cannot look at files: ZeroDivisionError: division by "
        "zero\n"
    )


FAILS = {
    "raises": ("raise KeyError('layout')", "KeyError"),
    "ends the program": ("raise SystemExit(0)", "SystemExit: 0"),
    "gives nothing": ("return None", "TypeError"),
    "gives a manifest that is none": ("return {}, 7", "int is no Manifest"),
    "gives a table that is none": ("return {'joy': 7}, Manifest('a')", "there is no table 'joy'"),
    "gives rows that are none": ("return {'steps': 7}, Manifest('a')", "AttributeError"),
    "gives a column that is none": (
        "return {'steps': pl.DataFrame({'joy': [1]})}, Manifest('a')", "unknown columns 'joy'",
    ),
    "gives a manifest with a clock of its own": (
        "return {}, Manifest('a', clock=ClockInfo('sun'))", "'clock' has the wrong type",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", FAILS)
def test_one_that_fails_as_it_reads_is_a_trace_that_cannot_be_read(
    install: Install, tmp_path: Path, how: str
) -> None:
    body, why = FAILS[how]
    head, _, _ = READER.partition("        numbers =")
    imports = "from stepscope.ingest.manifest import ClockInfo\n"
    install("acme-traces", f"{imports}{head}        {body}\n")

    with pytest.raises(TraceError) as caught:
        Trace.open(tally(tmp_path))

    assert why in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_ours_are_asked_first_and_folders_last(install: Install) -> None:
    install("acme-traces", READER)

    names = [type(reader).__name__ for reader in readers()]

    ours = [name.rpartition(".")[2] for name in READERS]
    assert names == [*ours, "InstalledReader", "RankFolderReader"]
