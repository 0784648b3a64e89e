"""What figures draw of one sample."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truesource.evaluation.measures.discrete_tests import atoms
from truesource.evaluation.tendencies.findings import SampleCurves
from truesource.evaluation.tendencies.measured import Sample
from truesource.evaluation.tendencies.rank_frequency import RankFrequency
from truesource.evaluation.tendencies.type_token import HeapsLaw, TypeCounts, length_distances
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError


def curves_of(
    sample: Sample,
    by_rank: IntArray,
    ranks: RankFrequency | None,
    null: Mapping[str, FloatArray],
    *,
    base: TypeCounts | None = None,
    law: HeapsLaw | None = None,
    seed: int = DEFAULT_SEED,
) -> SampleCurves:
    """Gather them.

    Args:
        sample: what is drawn.
        by_rank: its counts by rank.
        ranks: its laws.
        null: draws of its measures.
        base: types of the text it is compared with, or of samples of the truth.
        law: of the truth's types.
        seed: of the tests at each length.
    """
    try:
        by_length = length_distances(sample.types, base, law=law, seed=seed)
    except InputError:  # no law where all sentences are of one length
        by_length = []
    shares = {}
    for name in sample.classes:
        values, (counts,) = atoms(sample.shares(name))
        shares[name] = values, counts
    return SampleCurves(
        lengths=np.bincount(sample.corpus.lengths, minlength=sample.longest + 1),
        types=sample.types,
        bigram_types=sample.bigram_types,
        by_length=by_length,
        by_rank=by_rank,
        ranks=ranks,
        heaps=sample.heaps,
        shares=shares,
        null=null,
    )
