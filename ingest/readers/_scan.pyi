def scan(
    window: bytes | memoryview, /
) -> (
    tuple[object, object, list[tuple[bytes | None, ...]], list[tuple[int, str, bytes]], bool] | None
): ...
