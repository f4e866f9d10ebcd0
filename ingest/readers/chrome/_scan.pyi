_Column = tuple[str, object, object]
_Form = tuple[bytes | None, bytes | None, bytes | None, bytes | None, bytes | None]
_Odd = tuple[int, str, bytes]

def scan(
    window: bytes | memoryview, /
) -> tuple[list[_Column], list[_Form], list[_Odd], bool] | None: ...
