"""What the verb and the stage measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from truesource.evaluation.naturalness.compare import Naturalness, compare_naturalness
from truesource.evaluators.naturalness.settings import NaturalnessSettings

if TYPE_CHECKING:
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG


def measure(
    sources: Mapping[str, Sequence[Sequence[str]]],
    grammars: Mapping[str, PCFG],
    settings: NaturalnessSettings,
    *,
    lengths: LengthRange | None,
    seed: int,
) -> Naturalness:
    """Compare the first sentences; see `truesource.evaluation.naturalness.compare.compare_naturalness`.

    Args:
        sources: sentences by name, the reference first.
        grammars: by name of the source that each generated under ``lengths``.
        settings: of the comparison.
        lengths: condition of the grammars.
        seed: of all that is random.
    """
    used = {name: sentences[: settings.sentences] for name, sentences in sources.items()}
    high = max((len(sentence) for sentences in used.values() for sentence in sentences), default=0)
    return compare_naturalness(
        used,
        next(iter(used)),
        exact={name: pcfg.exact.length_pmf(high, lengths) for name, pcfg in grammars.items()},
        variant=settings.definitions,
        seed=seed,
    )
