"""Rows of many lanes that come mixed, put down lane by lane: more of them than are held at once."""

from __future__ import annotations

import io
import shutil
from collections.abc import Mapping, Sequence
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.errors import ConfigError
from stepscope.ingest.storage.cache import users_cache
from stepscope.ingest.times import EARLIEST_NS, FAR_NS

_COLUMNS: dict[str, np.dtype[Any]] = {
    "ts_ns": np.dtype(np.int64), "dispatch_ns": np.dtype(np.int64), "end_ns": np.dtype(np.int64),
    "ref": np.dtype(np.uint32), "state": np.dtype(np.uint8),
}  # fmt: skip
_ROW_BYTES = sum(each.itemsize for each in _COLUMNS.values())
_NO_END = EARLIEST_NS
"""What stands for no end: ends are cut to `FAR_NS` before, and none is so early."""


class MixedRows:
    """Blocks of lanes, each lane in the order in which its blocks came.

    They go to a file without a name in the user's cache, and to memory where there is none.
    """

    def __init__(self, num_rows: Mapping[int, int]) -> None:
        """Make room for so many rows of each lane."""
        self._num_rows = dict(num_rows)
        ends = np.cumsum([0, *num_rows.values()], dtype=np.int64) * _ROW_BYTES
        self._place = dict(zip(num_rows, ends.tolist(), strict=False))
        self._num_put = dict.fromkeys(num_rows, 0)
        self._held = _new_file()

    def add(self, rows: pl.DataFrame, lane: npt.NDArray[np.uint32]) -> None:
        """Put rows behind those before of their lanes: their times, ref and state."""
        if not len(rows):
            return
        rows = rows.with_columns(pl.col("end_ns").clip(-FAR_NS, FAR_NS).fill_null(_NO_END))
        # Numbers of two bytes are sorted by counting them.
        few = lane.astype(np.uint16) if int(lane.max()) < 1 << 16 else lane
        order = np.argsort(few, kind="stable")
        columns = {name: rows[name].to_numpy().take(order) for name in _COLUMNS}
        own = lane.take(order)
        begins = np.flatnonzero(np.diff(own, prepend=own[0] + 1))
        for begin, until in zip(begins.tolist(), [*begins[1:].tolist(), len(own)], strict=True):
            to = int(own[begin])
            for name, array in columns.items():
                self._put(self._place_of(to, name, self._num_put[to]), array[begin:until])
            self._num_put[to] += until - begin

    def of(self, lanes: Sequence[int]) -> pl.DataFrame:
        """The rows of some lanes, one after the other."""
        return pl.concat(self._of_lane(lane) for lane in lanes)

    def close(self) -> None:
        """Let go of all rows."""
        self._held.close()

    def _put(self, place: int, array: npt.NDArray[Any]) -> None:
        try:
            self._held.seek(place)
            self._held.write(array.data)
        except OSError:  # no room there: what was put down goes on in memory
            self._held, full = io.BytesIO(), self._held
            full.seek(0)
            shutil.copyfileobj(full, self._held)
            full.close()
            self._put(place, array)

    def _of_lane(self, lane: int) -> pl.DataFrame:
        num = self._num_rows[lane]
        assert self._num_put[lane] == num
        self._held.seek(self._place[lane])
        content = self._held.read(num * _ROW_BYTES)
        at, found = 0, dict[str, npt.NDArray[Any]]()
        for name, dtype in _COLUMNS.items():
            found[name] = np.frombuffer(content, dtype, num, at)
            at += found[name].nbytes
        end = pl.when(pl.col("end_ns") != _NO_END).then("end_ns")
        return pl.DataFrame(found).with_columns(end_ns=end)

    def _place_of(self, lane: int, column: str, row: int) -> int:
        """Where the item of a row of a lane is: the columns of a lane follow each other."""
        place: int = self._place[lane]
        for name, dtype in _COLUMNS.items():
            if name == column:
                return place + row * dtype.itemsize
            place += self._num_rows[lane] * dtype.itemsize
        raise KeyError(column)


def _new_file() -> IO[bytes]:
    try:
        cache = users_cache()
        if cache and not cache.unusable():
            return TemporaryFile(dir=cache.folder, buffering=0)
    except (ConfigError, OSError):
        pass  # nowhere to put it
    return io.BytesIO()
