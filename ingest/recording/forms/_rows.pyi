from collections.abc import Callable, Mapping, Sequence
from typing import Any

_Column = tuple[str, str, bool, int, int]

class Packer:
    def __init__(
        self,
        place: list[Any],
        ids: Mapping[str, int],
        mend: Callable[..., Any],
        amend: Callable[..., None] | None,
        next: Callable[[], int],
        missing: object,
        columns: tuple[_Column, ...],
        later: tuple[_Column, ...],
        num_same: int,
        num_each: int,
        /,
    ) -> None: ...
    def record(self, *args: Any, **columns: Any) -> Any: ...
    def record_all(self, *args: Any) -> None: ...
    def complete(self, opened: Any, /, *args: Any, **columns: Any) -> None: ...

def keys_left(before: Mapping[str, Any], now: Mapping[str, Any], /) -> list[str] | None: ...
def places_left(before: list[str] | None, now: list[str], /) -> list[int] | None: ...
def write_bytes(place: list[Any], raw: bytes, /) -> int | None: ...
def write_left(
    place: list[Any], before: int, counter: int, left: Sequence[int], /
) -> int | None: ...
