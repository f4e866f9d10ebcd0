import numpy as np
import numpy.typing as npt

_Bytes = npt.NDArray[np.uint8]
_Words = npt.NDArray[np.uint32]

def scan(
    window: bytes | memoryview,
    numbers: npt.NDArray[np.int64],
    form: _Words,
    flags: _Bytes,
    args: _Bytes,
    ids: _Bytes,
    forms: _Words,
    table: _Words,
    odd: _Words,
    /,
) -> tuple[int, int, int, int, int, bool] | None: ...
