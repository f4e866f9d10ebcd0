"""A folder of Perfetto files: each a rank, or several, of one trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.perfetto import write_perfetto
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.perfetto_files import event, pack
from tests.ingest.readers.chrome.test_folder import ENDS_US, assert_moved, first_ns, rank_file
from tests.ingest.real_files import profile
from tests.tiers import slow

KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def perfetto_file(
    folder: Path, name: str, *processes: str, late_ns: int = 0, epoch_ns: int | None = None
) -> None:
    """Processes that leave all-reduces `late_ns` after others do, by the file's clock."""
    packets: list[dict[str, Any]] = []
    if epoch_ns is not None:
        clocks = [{"clock_id": 6, "timestamp": 0}, {"clock_id": 1, "timestamp": epoch_ns}]
        packets.append({"clock_snapshot": {"clocks": clocks}})
    for pid, process in enumerate(processes, start=1):
        described = {"uuid": pid, "process": {"pid": pid, "process_name": process}}
        packets.append({"track_descriptor": described})
        for number, end_us in enumerate(ENDS_US):
            end_ns = end_us * 1000 + late_ns
            args = {"External id": number + 1, "Seq": number + 1, "In msg nelems": 64 + number}
            told = [{"name": name, "int_value": value} for name, value in args.items()]
            op = [{"name": "Collective name", "string_value": "allreduce"},
                  {"name": "Process Group Name", "string_value": "tp"}]  # fmt: skip
            call = {"track_uuid": pid, "debug_annotations": [*told, *op]}
            kernel = {"track_uuid": pid, "debug_annotations": told[:1]}
            packets += [
                event(end_ns - 300_000, 1, "record_param_comms", **call),
                event(end_ns - 260_000, 2, track_uuid=pid),
                event(end_ns - 40_000, 1, KERNEL, **kernel),
                event(end_ns, 2, track_uuid=pid),
            ]
    (folder / name).write_bytes(pack(*packets))


def test_each_file_is_the_rank_that_its_process_or_its_name_says(tmp_path: Path) -> None:
    perfetto_file(tmp_path, "a.pftrace", "rank 3")
    perfetto_file(tmp_path, "trace_rank-5.pftrace", "engine")
    perfetto_file(tmp_path, "z.pftrace", "engine")

    trace = Trace.open(tmp_path)

    assert trace.manifest.ranks == (0, 3, 5)
    assert trace.manifest.config["files"] == {
        "0": "z.pftrace", "3": "a.pftrace", "5": "trace_rank-5.pftrace",
    }  # fmt: skip
    assert first_ns(trace).keys() == {0, 3, 5}
    assert report_of(trace).read["begin"] == 30


def test_what_names_no_rank_is_of_the_one_that_all_else_names(tmp_path: Path) -> None:
    perfetto_file(tmp_path, "a.pftrace", "rank 3", "engine")

    assert Trace.open(tmp_path / "a.pftrace").manifest.ranks == (3,)


def test_ranks_of_one_file_whose_windows_begin_elsewhere_are_numbered_alike(tmp_path: Path) -> None:
    """Rank 1 lacks the first of five; of which no two are alike."""
    packets: list[dict[str, Any]] = []
    for pid, since in ((1, 0), (2, 1)):
        process = {"pid": pid, "process_name": f"rank {pid - 1}"}
        packets.append({"track_descriptor": {"uuid": pid, "process": process}})
        for number, end_us in list(enumerate(ENDS_US))[since:]:
            told = [{"name": "In msg nelems", "int_value": 64 + number}]
            said = {"track_uuid": pid, "debug_annotations": told}
            packets.append(event(end_us * 1000 - 40_000, 1, KERNEL, **said))
            packets.append(event(end_us * 1000, 2, track_uuid=pid))
    (tmp_path / "both.pftrace").write_bytes(pack(*packets))

    trace = Trace.open(tmp_path / "both.pftrace")

    found = rows(trace, "collectives", "rank", "ordinal", "num_elements")
    assert {(ordinal, size) for _, ordinal, size in found} == {(n, 64 + n) for n in range(5)}
    assert [ordinal for rank, ordinal, _ in found if rank == 1] == [1, 2, 3, 4]


def test_a_clock_that_is_late_by_the_ends_of_collectives_is_moved(tmp_path: Path) -> None:
    perfetto_file(tmp_path, "a.pftrace", "rank 0")
    perfetto_file(tmp_path, "b.pftrace", "rank 1", late_ns=2_500_000)

    assert_moved(Trace.open(tmp_path))


def test_files_that_say_when_their_clock_began_are_put_on_one(tmp_path: Path) -> None:
    base = 1_700_000_000_000_000_000
    perfetto_file(tmp_path, "a.pftrace", "rank 0", epoch_ns=base)
    perfetto_file(tmp_path, "b.pftrace", "rank 1", epoch_ns=base + 10**9, late_ns=10**6)

    trace = Trace.open(tmp_path)

    assert trace.manifest.clock.epoch_ns == base
    assert any("rank 1 is moved by -1001.000 ms" in note for note in report_of(trace).notes)


def test_a_rank_that_several_files_have_stays_apart(tmp_path: Path) -> None:
    perfetto_file(tmp_path, "a.pftrace", "rank 0", "rank 1")
    perfetto_file(tmp_path, "b.pftrace", "rank 1", "rank 2")

    trace = Trace.open(tmp_path)

    assert trace.manifest.ranks == (0, 1, 2, 3)
    assert trace.manifest.config["files"] == {
        "0": "a.pftrace", "1": "a.pftrace", "2": "b.pftrace", "3": "b.pftrace",
    }  # fmt: skip
    assert "b.pftrace is of rank 1, as is another file: shown as rank 3" in report_of(trace).notes
    assert set(rows(trace, "spans", "rank")) == {0, 1, 2, 3}


def test_profiles_of_both_formats_are_one_trace(tmp_path: Path) -> None:
    rank_file(tmp_path, "a.json", 0)
    perfetto_file(tmp_path, "b.pftrace", "rank 1")
    (tmp_path / "notes.txt").write_text("remember the milk")

    trace = Trace.open(tmp_path)

    assert trace.manifest.ranks == (0, 1)
    assert report_of(trace).skipped == {"files of another format": 1}
    assert any(note.startswith("clock of rank 1 agrees") for note in report_of(trace).notes)


def test_a_folder_of_files_that_are_cut_off_at_once_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.pftrace").write_bytes(pack(event(1, 3, "a" * 200))[:-5])

    with pytest.raises(TraceError, match=r"no file in it can be read: cut\.pftrace: cut off"):
        Trace.open(tmp_path)


@slow
@pytest.mark.parametrize(
    "names", [("gloo_rank0", "gloo_rank1"), ("hta_sampled_rank-0", "hta_sampled_rank-1")]
)
def test_ranks_written_apart_come_back_together(tmp_path: Path, names: tuple[str, ...]) -> None:
    whole = []
    for rank, name in enumerate(names):
        one = Trace.open(profile(name))
        write_perfetto(one, tmp_path / f"{rank}.pftrace")
        whole.append(one)

    trace = Trace.open(tmp_path)

    assert trace.manifest.ranks == (0, 1)
    for table in ("steps", "spans", "collectives"):
        assert trace.num_rows(table) == sum(one.num_rows(table) for one in whole)
