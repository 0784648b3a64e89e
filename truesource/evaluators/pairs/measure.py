"""What the verb and the stages share: the pairs, and an example of each phenomenon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truesource.evaluation.pairs.generate import GeneratedPairs, make_pairs
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.odds import with_truth
from truesource.evaluation.pairs.pair import filter_pairs, read_pairs
from truesource.evaluation.pairs.settings import PairSettings

if TYPE_CHECKING:
    from truesource.evaluation.pairs.pair import Pair
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG


def pairs_of(pcfg: PCFG, settings: PairSettings, *, lengths: LengthRange | None, seed: int) -> GeneratedPairs:
    """The pairs of the file that the settings name, or generated ones.

    Raises:
        NothingToMeasureError: there are none.
        InputError: as `truesource.evaluation.pairs.pair.read_pairs` and `filter_pairs`.
    """
    if settings.file is None:
        return make_pairs(pcfg, lengths, settings, seed=seed)
    pairs = with_truth(read_pairs(settings.file, pcfg.terminals, lengths), Lexicon(pcfg, lengths))
    kept = filter_pairs(
        pairs, settings.file, phenomena=settings.phenomena, number=settings.number, possible=settings.possible
    )
    return GeneratedPairs(kept, [])


def examples(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """The first pair of each phenomenon, with two possible sentences where there is one, and how many there are."""
    found = []
    for name in dict.fromkeys(pair.phenomenon for pair in pairs):
        own = [pair for pair in pairs if pair.phenomenon == name]
        first = next((pair for pair in own if pair.possible), own[0])
        impossible = sum(not pair.possible for pair in own)
        found.append({**first.as_record(), "pairs": len(own), "impossible_pairs": impossible})
    return found
