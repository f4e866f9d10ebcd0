from typing import Any

from numpy.typing import NDArray as Array

Buffer = Array[Any]

def paint(
    start_first: Buffer,
    start_base: Buffer,
    start_rows: Buffer,
    length_first: Buffer,
    length_base: Buffer,
    length_rows: Buffer,
    state: Buffer,
    kinds: Buffer,
    totals: Buffer,
    offsets: Buffer,
    lanes: Buffer,
    edges: Buffer,
    hidden: Buffer,
    shown_state: Buffer,
    density: Buffer,
    count: Buffer,
    num_spans: int,
    per_block: int,
    /,
) -> None: ...
