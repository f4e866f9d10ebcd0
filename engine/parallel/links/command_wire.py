"""How commands are put on a link and taken off it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stepscope.engine.parallel.links.link import Label, Link
from stepscope.engine.parallel.protocol import DECODE, Codebook, as_word

SLOT = "slot"


@dataclass(frozen=True, slots=True)
class Command:
    """A command off the wire; `word` is the token where it is one to decode."""

    name: str
    word: int
    slot: int


@dataclass(slots=True)
class Wire:
    """One end of the protocol, which speaks version `version`."""

    link: Link
    version: int = 2
    codebook: Codebook = field(default_factory=Codebook)

    def send_slot(self, slot: int) -> None:
        """Say which slot the next command is for, where the version has slots."""
        if self.version > 1:
            word = as_word(slot)
            self.link.send([word], SLOT, word)

    def send_command(self, word: int, slot: int | None) -> None:
        """Say a command, or a token to decode, and what the layers behind it are for."""
        self.begin(self.codebook.command(word), slot)
        self.link.send([as_word(word)], self.codebook.command(word), self.link.slot)

    def send_words(self, words: Sequence[int], what: str) -> None:
        """Say what the last command needs."""
        self.link.send([as_word(word) for word in words], self._part(what), self.link.slot)

    def receive_command(self) -> Command:
        """Return the head's next command, with the slot that it is for."""
        slot = 0
        self.link.slot = None
        if self.version > 1:
            (slot,) = self.link.receive(1, lambda words: (SLOT, words[0]), SLOT)
        (word,) = self.link.receive(1, lambda words: self._label(words[0], slot))
        name = self.codebook.command(word)
        self.begin(name, slot)
        return Command(name, word, slot)

    def receive_words(self, num_words: int, what: str) -> list[int]:
        """Return what the last command needs."""
        part = self._part(what)
        return self.link.receive(num_words, lambda _: (part, self.link.slot), part)

    def begin(self, command: str, slot: int | None) -> None:
        """Let the collectives that follow be for this command; v1 knows of no slot."""
        self.link.command = command
        self.link.slot = self._seen(command, slot)

    def _label(self, word: int, slot: int) -> Label:
        command = self.codebook.command(word)
        return command, self._seen(command, slot)

    def _seen(self, command: str, slot: int | None) -> int | None:
        is_of_no_slot = self.version == 1 or command in {"decode-batch", "shutdown"}
        return None if is_of_no_slot or slot is None else as_word(slot)

    def _part(self, what: str) -> str:
        return f"{self.link.command}: {what}"


__all__ = ["DECODE", "SLOT", "Command", "Wire"]
