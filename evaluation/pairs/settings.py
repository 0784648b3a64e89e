"""What pairs are made, and how many."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from truesource.grammar.errors import InputError

PHENOMENA = ("subject-verb", "determiner-noun", "subcategorisation", "attachment", "word-order")
NUMBER = 200


@dataclass(frozen=True)
class PairSettings:
    """How pairs are drawn.

    Raises:
        InputError: a value is out of range, or a phenomenon is unknown.
    """

    number: int = NUMBER  #: at most so many pairs of each phenomenon
    phenomena: tuple[str, ...] = PHENOMENA
    seed: int = 1
    tries: int = 10  #: at most so many sentences are drawn for each pair wanted
    tolerance: float = 0.5  #: nats by which the unigram log probabilities of exchanged words may differ
    frame_margin: float = (
        1.0  #: nats that the context must add to the odds of a verb and one that does not fit its frame
    )
    sure: float = 0.9  #: posterior from which a tag or a phrase is nearly sure
    attached: float = 0.8  #: posterior from which an attachment is
    moved: float = 0.7  #: posterior of the other attachment that the exchange must reach
    possible: bool = False  #: only pairs whose two sentences the grammar can make
    forms: Path | None = None  #: a file of forms in place of the English ones

    def __post_init__(self) -> None:
        if min(self.number, self.tries) < 1:
            raise InputError("the number of pairs and of tries is 1 or more")
        if not self.tolerance > 0.0 or not self.frame_margin > 0.0:
            raise InputError("the tolerance of frequency and the margin of frames are nats above 0")
        if not (0.5 < self.sure < 1.0 and 0.5 <= self.attached < 1.0 and 0.5 <= self.moved < 1.0):
            raise InputError("a posterior that is nearly sure lies above 0.5 and below 1")
        unknown = [name for name in self.phenomena if name not in PHENOMENA]
        if unknown or not self.phenomena or len(set(self.phenomena)) < len(self.phenomena):
            what = f"unknown phenomenon {unknown[0]!r}" if unknown else "name each phenomenon once"
            raise InputError(f"{what}; there are {', '.join(PHENOMENA)}")
