_Column = tuple[str, object, object]
_Template = tuple[bytes | None, bytes | None, bytes | None, bytes | None, bytes | None]
_Fallback = tuple[int, str, bytes]

def scan(
    window: bytes | memoryview, /
) -> tuple[list[_Column], list[_Template], list[_Fallback], bool] | None: ...
