"""Text columns of which each different text is a number: what is said of a text is looked up."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl


def numbers() -> pl.Categorical:
    """A type of which the columns know no text of other traces: numbers count from 0 on."""
    return pl.Categorical(pl.Categories.random())


@dataclass(frozen=True, slots=True)
class TextsByNumber:
    """The different texts of a column, the number of each, and the numbers of the rows."""

    texts: tuple[str, ...]
    known: npt.NDArray[np.uint32]
    of_rows: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, column: pl.Series) -> TextsByNumber:
        """Of a column of type `numbers` in which no text is missing."""
        different = column.unique()
        return cls(
            tuple(different.cast(pl.String)),
            different.to_physical().cast(pl.UInt32).to_numpy(),
            column.to_physical().cast(pl.UInt32).to_numpy(),
        )

    def told(self, of_text: Callable[[str], int]) -> npt.NDArray[np.uint8]:
        """What a function says of each row's text, asked once for each different text."""
        by_number = np.zeros(int(self.known.max(initial=0)) + 1, np.uint8)
        by_number[self.known] = [of_text(each) for each in self.texts]
        return by_number[self.of_rows]

    def are(self, among: Set[str]) -> npt.NDArray[np.bool_]:
        """Whether each row's text is one of these."""
        return self.told(lambda text: text in among).astype(np.bool_)
