"""What is measured of a grammar and of each of its variants."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class GrammarMeasures:
    """Exact figures of one grammar; None where the spectral radius is 1 or more and no length range is given."""

    rules: int
    words: int
    lengths: LengthRange | None  #: what the rest is conditioned on
    mean_length: float | None  #: tokens
    entropy_per_sentence: float | None  #: of derivations, nats
    entropy_per_token: float | None  #: the same over the mean length
    log_mass: float  #: ln P(length in the range), nats; 0 without a range
    uses: FloatArray | None  #: (rules,) expected number in a derivation: binary, unary, lexical
    logp: FloatArray  #: (rules,) nats, in the same order

    def as_dict(self) -> dict[str, float | int | None]:
        """The scalar figures, for JSON."""
        return {
            "rules": self.rules,
            "words": self.words,
            "mean_length": self.mean_length,
            "entropy_per_sentence": self.entropy_per_sentence,
            "entropy_per_token": self.entropy_per_token,
            "log_mass": self.log_mass,
        }


def measure(pcfg: PCFG, lengths: LengthRange | None = None) -> GrammarMeasures:
    """Expected rule counts and derivational entropy (see `grammar.inference.entropy`), given ``lengths`` or not.

    Raises:
        InputError: no sentence has a length in the range.
    """
    logp = np.concatenate([pcfg.binary_logp, pcfg.unary_logp, pcfg.lexical_logp])
    sizes = pcfg.n_rules, len(pcfg.terminals), lengths
    if lengths is None and pcfg.exact.spectral_radius >= 1.0:
        return GrammarMeasures(*sizes, None, None, None, 0.0, None, logp)
    counts = expected_counts(pcfg, lengths)
    uses = np.concatenate([counts.binary, counts.unary, counts.lexical])
    entropy = max(math.log(counts.mass) - float(uses @ logp), 0.0)
    return GrammarMeasures(
        *sizes, counts.length, entropy, entropy / counts.length, math.log(counts.mass), np.maximum(uses, 0.0), logp
    )
