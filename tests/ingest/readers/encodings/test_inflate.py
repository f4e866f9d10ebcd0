"""Compressed files: whole, cut, damaged, or made to inflate without end."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.encodings import inflate
from stepscope.ingest.readers.encodings.compressed import BLOCK_BYTES
from stepscope.ingest.readers.encodings.inflate import Inflater, inflated
from stepscope.ingest.readers.encodings.unzstd import unzstd
from tests.ingest.zstd_frames import framed, streamed
from tests.tiers import slow

TEXT = b"".join(b'{"ph":"X","name":"%d"},' % number for number in range(60_000))
NOISE = hashlib.shake_256(b"noise").digest(300_000)
Compress = Callable[[bytes], bytes]


def skippable(content: bytes) -> bytes:
    return b"\x5a\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content


def frames(content: bytes, size: int = 1000) -> tuple[bytes, str | None]:
    found = unzstd(lambda: (content[at : at + size] for at in range(0, len(content), size)))
    return b"".join(found), found.damage


def read(folder: Path, content: bytes, limits: Limits | None = None) -> tuple[bytes, str | None]:
    file = folder / "file"
    file.write_bytes(content)
    found = Inflater(file, limits=limits or Limits())
    return b"".join(found), found.damage


@pytest.mark.parametrize("compress", [gzip.compress, framed, bytes])
def test_what_comes_out_is_what_went_in(tmp_path: Path, compress: Compress) -> None:
    for content in (b"", b"a", TEXT, NOISE, bytes(9 << 20)):
        assert read(tmp_path, compress(content)) == (content, None)


@slow
@given(
    st.lists(st.integers(1, 9 << 20), min_size=1, max_size=4),
    st.sampled_from([gzip.compress, framed, bytes]),
)
def test_a_buffer_is_filled_with_whatever_comes_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], compress: Compress
) -> None:
    file = tmp_path_factory.mktemp("cut") / "file"
    content = NOISE + TEXT
    file.write_bytes(compress(content))
    found, at = Inflater(file), 0
    for size in sizes:
        buffer = memoryview(bytearray(size))
        num = found.readinto(buffer)
        assert num == min(size, len(content) - at), "only the end leaves room in a buffer"
        assert buffer[:num] == content[at : at + num]
        at += num


def by_zlib(content: bytes) -> list[bytes]:
    """What zlib gives of gzip for each byte of it, until there is no more or an error."""
    member, found = zlib.decompressobj(31), list[bytes]()
    with suppress(zlib.error):
        for at in range(len(content)):
            found.append(member.decompress(content[at : at + 1]))
    return found


@slow
@pytest.mark.parametrize("level", [0, 1, 9])
def test_gzip_cut_anywhere_keeps_every_byte_that_can_be_had(tmp_path: Path, level: int) -> None:
    whole = gzip.compress(NOISE[:500] + TEXT[:5_000], level)
    parts = by_zlib(whole)
    for length in range(len(b"\x1f\x8b"), len(whole), 7):
        kept = b"".join(parts[:length])
        assert read(tmp_path, whole[:length]) == (kept, "the gzip data is cut off")


@given(st.integers(10, 600), st.integers(1, 255))
def test_what_is_before_the_damage_in_gzip_is_kept(
    tmp_path_factory: pytest.TempPathFactory, at: int, flipped: int
) -> None:
    whole = bytearray(gzip.compress(NOISE[:500] + TEXT[:5_000]))
    whole[at] ^= flipped

    found, damage = read(tmp_path_factory.mktemp("damaged"), bytes(whole))

    assert found == b"".join(by_zlib(bytes(whole)))
    assert damage is not None
    assert damage.startswith("the gzip data is ")


@slow
def test_the_second_member_of_gzip_may_be_damaged_alone(tmp_path: Path) -> None:
    second = bytearray(gzip.compress(NOISE))
    second[100_000] ^= 1

    found, damage = read(tmp_path, gzip.compress(TEXT) + bytes(second))

    assert found == TEXT + b"".join(by_zlib(bytes(second)))
    assert damage is not None


@slow
@pytest.mark.parametrize("size", [1, 3, 70_000])
def test_zstd_frames_of_every_kind_follow_each_other(size: int) -> None:
    several = [
        framed(TEXT[:200_000]),
        skippable(b"an index"),
        streamed(NOISE),
        framed(bytes(1_000_000), is_sized=False),
        framed(b""),
    ]

    assert frames(b"".join(several), size) == (TEXT[:200_000] + NOISE + bytes(1_000_000), None)


@slow
def test_zstd_cut_anywhere_keeps_all_whole_blocks() -> None:
    content = TEXT[:400_000]
    whole = framed(content)
    kept = 0
    for length in range(len(whole)):
        found, damage = frames(whole[:length])
        assert content.startswith(found)
        assert len(found) >= kept
        assert (damage == "the zstd data is cut off") is (length > 0)
        kept = len(found)

    assert kept == len(content)  # the last four bytes are the sum


def test_what_is_before_the_damage_in_zstd_is_kept() -> None:
    whole = bytearray(framed(NOISE))
    whole[150_000] ^= 1

    found, damage = frames(bytes(whole))

    assert found[:131_072] == NOISE[:131_072]
    assert damage is not None
    assert damage.startswith("the zstd data is damaged")


def test_what_follows_zstd_and_is_none_is_said() -> None:
    assert frames(framed(b"abc") + b"rubbish") == (b"abc", "what follows the zstd data is none")


def test_a_window_of_gigabytes_is_not_made() -> None:
    # 0xa8: a window of 2 << 30 bytes, by section 3.1.1.1.2 of the format.
    found, damage = frames(b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\x00\x00" * 3)

    assert found == b""
    assert damage is not None
    assert "too much memory" in damage


@given(st.binary(max_size=200), st.integers(1, 50))
def test_arbitrary_bytes_behind_the_magic_are_no_error(content: bytes, size: int) -> None:
    frames(b"\x28\xb5\x2f\xfd" + content, size)


@pytest.mark.parametrize("compress", [gzip.compress, framed])
def test_a_file_that_inflates_beyond_its_ratio_is_read_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: Compress
) -> None:
    monkeypatch.setattr(inflate, "FREE_BYTES", 1 << 20)
    bomb = compress(bytes(20 << 20))

    found, damage = read(tmp_path, bomb, Limits(ratio=100))

    assert 100 * len(bomb) - BLOCK_BYTES <= max(len(found), 1 << 20) <= 20 << 20
    assert damage == "it inflates to more than 100 times its size (--max ratio=N raises it)"
    assert read(tmp_path, bomb, Limits(ratio=100_000)) == (bytes(20 << 20), None)


@pytest.mark.parametrize("compress", [gzip.compress, framed])
def test_a_file_that_inflates_beyond_its_size_is_read_up_to_there(
    tmp_path: Path, compress: Compress
) -> None:
    found, damage = read(tmp_path, compress(TEXT), Limits(inflated=len(TEXT) - 1))

    assert TEXT.startswith(found)
    assert (
        damage == f"it inflates to more than {len(TEXT) - 1:,} bytes (--max inflated=N raises it)"
    )


@pytest.mark.parametrize("compress", [gzip.compress, framed])
def test_the_head_of_a_bomb_is_as_long_as_was_asked_for(compress: Compress) -> None:
    assert inflated(compress(bytes(50 << 20))[:4096], 1000) == bytes(1000)
