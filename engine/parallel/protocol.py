"""What head and workers say to each other: 32-bit words, one broadcast each.

A command is a word. What it needs follows, again in broadcasts, and then come the collectives of
the layers that both compute. Under v2 a word with the slot goes before each command; v1 sends none
and so can have one sequence only.

| command | word | what follows |
|---|---|---|
| decode | the token: up to FFFFFFEF, but for decode-batch | the layers, one row |
| decode-batch | FFFFFFE0 | B(N), B(slots[N]), B(tokens[N]), then the layers, N rows |
| prefill | FFFFFFF0 | B(chunk length), B(start), B(full length), B(tokens), then the layers |
| allocate | FFFFFFF1 | nothing: a new one gets the slot, and an occupant is freed first |
| free | FFFFFFF5 | nothing: the slot's occupant is freed, until it is allocated again |
| verify-2, -3, -4 | FFFFFFF2 to F4 | B(tokens[K]), the layers, K rows, B(how many were kept) |
| shutdown | FFFFFFFF | nothing |

Under v1 the one slot goes from a sequence to the next by `allocate` alone; under v2 a slot is freed
when its sequence has ended. The words are configuration: another codebook is another `Codebook`.
Source: report 003, which splits allocate and free and does not say the word of the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from stepscope.ingest.errors import ConfigError, StepscopeError

NUM_WORDS = 1 << 32
VERSIONS = (1, 2)

DECODE, DECODE_BATCH, PREFILL, ALLOCATE = "decode", "decode-batch", "prefill", "allocate"
FREE = "free"
VERIFY_2, VERIFY_3, VERIFY_4, SHUTDOWN = "verify-2", "verify-3", "verify-4", "shutdown"
VERIFY_OF = {2: VERIFY_2, 3: VERIFY_3, 4: VERIFY_4}
WIDTH_OF = {name: width for width, name in VERIFY_OF.items()}


class ProtocolError(StepscopeError):
    """A rank was told something that its side of the protocol does not allow."""


@dataclass(frozen=True, slots=True)
class Codebook:
    """Which words are commands; every other word is a token to decode."""

    prefill: int = 0xFFFFFFF0
    allocate: int = 0xFFFFFFF1
    free: int = 0xFFFFFFF5
    verify_2: int = 0xFFFFFFF2
    verify_3: int = 0xFFFFFFF3
    verify_4: int = 0xFFFFFFF4
    decode_batch: int = 0xFFFFFFE0
    shutdown: int = 0xFFFFFFFF

    def __post_init__(self) -> None:
        words = self.words
        if len(set(words.values())) < len(words):
            raise ConfigError("two commands of the codebook are the same word")
        for name, word in words.items():
            if not 0 <= word < NUM_WORDS:
                raise ConfigError(f"codebook: {name}={word:#x} does not fit 32 bits")

    @property
    def words(self) -> dict[str, int]:
        """The word of each command, by its name."""
        return {name.replace("_", "-"): word for name, word in asdict(self).items()}

    def word(self, command: str) -> int:
        """Return the word of a command."""
        return self.words[command]

    def command(self, word: int) -> str:
        """Return the command that a word is; what is none of the others is a token."""
        return next((name for name, code in self.words.items() if code == word), DECODE)

    def check(self, vocab_size: int, num_slots: int) -> None:
        """Raise ConfigError where a token or a slot would be taken for a command."""
        for name, word in self.words.items():
            if word < max(vocab_size, num_slots):
                raise ConfigError(f"codebook: {name}={word:#x} is a token or a slot too")

    def as_dict(self) -> dict[str, str]:
        """Return the words as text, for a manifest."""
        return {name: f"{word:#010x}" for name, word in self.words.items()}

    @classmethod
    def parse(cls, text: str) -> Codebook:
        """Return the codebook that `prefill=0xFFFFFFF0,...` changes; what is left out stays."""
        pairs = (pair.partition("=") for pair in text.split(",") if pair.strip())
        return cls.from_dict({name.strip(): word.strip() for name, _, word in pairs})

    @classmethod
    def from_dict(cls, words: Mapping[str, Any]) -> Codebook:
        """Return the codebook that `as_dict` gave."""
        known = cls().words
        for name in words:
            if name not in known:
                raise ConfigError(f"codebook: no command is {name!r}: choose {', '.join(known)}")
        try:
            return cls(**{name.replace("-", "_"): int(word, 16) for name, word in words.items()})
        except ValueError:
            raise ConfigError("codebook: a word is not a number in base 16") from None


def as_word(number: int) -> int:
    """Return the low 32 bits of a number, which is what the wire carries of it."""
    return number % NUM_WORDS


def as_signed(word: int) -> int:
    """Return the word read as a signed 32-bit number, as tensors and tables hold it."""
    return word - NUM_WORDS if word >= NUM_WORDS // 2 else word


def as_signed_words(words: Iterable[int]) -> list[int]:
    """Return each number's low 32 bits, read as signed."""
    return [as_signed(as_word(word)) for word in words]
