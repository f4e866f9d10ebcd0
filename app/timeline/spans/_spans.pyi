from typing import Any

from numpy.typing import NDArray as Array

Buffer = Array[Any]

def pack(
    numbers: Buffer, per_block: int, from_least: bool, base: Buffer, width: Buffer, rows: Buffer, /
) -> int: ...
def add_up(
    first: Buffer,
    base: Buffer,
    rows: Buffer,
    per_block: int,
    state: Buffer,
    column_of: Buffer,
    num_spans: int,
    sofar: Buffer,
    totals: Buffer,
    /,
) -> None: ...
def weave(
    held: Buffer,
    begin: Buffer,
    until: Buffer,
    own_state: Buffer,
    own_ref: Buffer,
    held_state: int,
    start: Buffer,
    end: Buffer,
    state: Buffer,
    ref: Buffer,
    /,
) -> int: ...
def arrange(
    lane: Buffer,
    start: Buffer,
    end: Buffer,
    order: Buffer,
    sublane: Buffer,
    num_sublanes: Buffer,
    /,
) -> bool: ...
