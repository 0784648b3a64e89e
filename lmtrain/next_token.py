"""What a causal model of words expects after a prefix."""

from __future__ import annotations

from typing import NamedTuple

from truesource.grammar.support.arrays import FloatArray


class NextTokenProbabilities(NamedTuple):
    """Probabilities of what follows a prefix; everything together is 1."""

    words: FloatArray  #: (V,) probability of each word, in the order of the model's ``vocabulary``
    unk: float  #: probability of ``<unk>``
    eos: float  #: probability that the sentence ends
    special: float  #: probability lost on ``<pad>``, ``<bos>`` and ``<mask>``, which no sentence contains
