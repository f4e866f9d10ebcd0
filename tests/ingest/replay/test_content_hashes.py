from __future__ import annotations

from stepscope.ingest.replay.vllm.content_hashes import ContentHashes
from tests.looped import looped


@looped(("size", "num_alike"), [(16, 2), (4, 8), (8, 4), (32, 1), (64, 0)])
def test_requests_have_as_many_tokens_alike_whatever_the_size_of_a_hashed_block(
    size: int, num_alike: int
) -> None:
    hashes = ContentHashes(size, 16)

    one, other = hashes.of((0, 1, 2, 3), 0, 64), hashes.of((0, 1, 7, 8), 0, 64)

    assert [mine == yours for mine, yours in zip(one, other, strict=True)] == (
        [True] * num_alike + [False] * (64 // size - num_alike)
    )
    assert len(set(one)) == 64 // size


def test_what_is_not_known_is_like_no_other_and_known_hashes_stay() -> None:
    hashes = ContentHashes(16, 16)

    assert hashes.of((), 0, 40) != hashes.of((), 0, 40)
    assert hashes.of((5, 6), 1, 40) == hashes.of((5, 6), 0, 40)[1:]
    assert hashes.of((5, 6), 0, 15) == []
