"""Every constant of split-merge training, in one frozen object."""

from __future__ import annotations

import math
from dataclasses import dataclass

from truesource.grammar.support.errors import InputError


@dataclass(frozen=True, slots=True)
class SplitMerge:
    """How to train.

    The defaults are those of Petrov et al. (2006) but for ``noise`` (1% there) and ``smoothing`` (``fixed`` there),
    which were chosen for held-out likelihood and F1 on small treebanks.

    Raises:
        InputError: a count is not a whole number >= 0, or a share is out of its range.
    """

    cycles: int = 5  #: rounds of split, merge, smooth; 0 leaves the relative-frequency grammar
    em_split: int = 50  #: EM iterations after each split
    em_merge: int = 20  #: EM iterations after each merge
    em_smooth: int = 10  #: EM iterations with smoothing, at the end of each cycle
    merge_fraction: float = 0.5  #: share of the sibling pairs of a split that is merged back, 0 to 1
    noise: float = 0.2
    """Largest relative change of a score when a split copies it, 0 to below 1. With little noise EM is still leaving
    the symmetric point when its iterations end.
    """
    smoothing: str = "dirichlet"
    """``dirichlet``: a Dirichlet prior around the siblings' mean, so that substates of few uses are drawn to it most:
    weight ``prior / (uses + prior)``. ``fixed``: the same weight for every substate, as published.
    """
    prior_rules: float = 20.0  #: smoothing ``dirichlet``: uses of binary and unary rules the mean counts as, above 0
    prior_lexicon: float = 50.0  #: smoothing ``dirichlet``: uses of lexical rules the mean counts as, above 0
    smooth_rules: float = 0.01  #: smoothing ``fixed``: weight of the mean in phrasal rules, 0 to below 1
    smooth_lexicon: float = 0.1  #: smoothing ``fixed``: weight of the mean in lexical rules, 0 to below 1
    filter: float = 1e-8  #: rules of the result below this probability are dropped, 0 to below 0.01
    precision: str = "float32"
    """Of the passes over the trees in EM, ``float32`` or ``float64``; sums over trees, merges and the likelihoods of
    the result are float64 in both.
    """
    lexicon: str = "generate"
    """``generate``: maximum likelihood over the words seen, no unknown-word mass. ``parse``: rare words are trained
    as classes by form, from which unknown words get their probability (see `word_classes` and `lexicon`).
    """
    rare: int = 20  #: mode ``parse``: words seen so often or less train a class, 1 or more
    class_types: int = 8  #: mode ``parse``: different rare words that a class needs, 1 or more
    class_prior: float = 10.0  #: mode ``parse``: occurrences in the class that count beside a rare word's own, above 0
    tag_prior: float = 0.5
    """Mode ``parse``: occurrences with the tags of its class that count beside a rare word's own, 0 or more; above 0 it
    may have a tag it was never seen with.
    """

    def __post_init__(self) -> None:
        for name in ("cycles", "em_split", "em_merge", "em_smooth"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError(f"split-merge needs a whole number >= 0 for {name}, got {value!r}")
        for name in ("rare", "class_types"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"split-merge needs a whole number >= 1 for {name}, got {value!r}")
        for name in ("class_prior", "prior_rules", "prior_lexicon", "tag_prior"):
            prior, least = getattr(self, name), 0.0 if name == "tag_prior" else math.ulp(0.0)
            if not isinstance(prior, int | float) or isinstance(prior, bool) or not (least <= prior < math.inf):
                raise InputError(
                    f"split-merge needs a number {'>= 0' if not least else 'above 0'} for {name}, got {prior!r}"
                )
        shares = ("merge_fraction", "noise", "smooth_rules", "smooth_lexicon")
        limits = {**dict.fromkeys(shares, 1.0), "filter": 0.01}
        for name, limit in limits.items():
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            closed = name == "merge_fraction"
            if not number or not (0.0 <= value < limit or (closed and value == limit)):
                bound = "to" if closed else "to below"
                raise InputError(f"split-merge needs 0 {bound} {limit:g} for {name}, got {value!r}")
        if self.lexicon not in ("generate", "parse"):
            raise InputError(f"split-merge knows the lexicon modes 'parse' and 'generate' only, got {self.lexicon!r}")
        if self.smoothing not in ("fixed", "dirichlet"):
            raise InputError(f"split-merge smooths 'fixed' or 'dirichlet' only, got {self.smoothing!r}")
        if self.precision not in ("float32", "float64"):
            raise InputError(f"split-merge knows the precisions 'float32' and 'float64' only, got {self.precision!r}")

    @property
    def iterations(self) -> int:
        """EM iterations of a whole run."""
        return self.cycles * (self.em_split + self.em_merge + self.em_smooth)
