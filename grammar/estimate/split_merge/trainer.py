"""One phase of split-merge training after another, and the record of every iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truesource.grammar.estimate.split_merge.config import SplitMerge
from truesource.grammar.estimate.split_merge.encode import Forest
from truesource.grammar.estimate.split_merge.estep import Likelihood, expected_entries, likelihood
from truesource.grammar.estimate.split_merge.merge import merge
from truesource.grammar.estimate.split_merge.parameters import Parameters
from truesource.grammar.estimate.split_merge.sparse import SparseRules, Weight
from truesource.grammar.estimate.split_merge.split import split
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.progress import Meter

PHASES = ("split", "merge", "smooth")
SMALLEST = 1e-36  #: probabilities below are taken as zero in training; those above may still grow
WAKE = 8  #: dormant probabilities (see `sparse.DORMANT`) take part in every so many iterations


class Validation:
    """Held-out trees, ready to be scored."""

    def __init__(self, forests: Sequence[Forest], unknown: int) -> None:
        self._forests = forests
        self._unknown = unknown

    def score(self, grammar: Parameters | SparseRules) -> Likelihood:
        """Their likelihood, impossible trees counted apart."""
        return likelihood(self._forests, grammar, unknown=self._unknown)


class SplitMergeTrainer:
    """The grammar in training, and its trace."""

    def __init__(
        self,
        config: SplitMerge,
        forests: Sequence[Forest],
        validation: Validation,
        parameters: Parameters,
        progress: Meter,
    ) -> None:
        self.rules = SparseRules.of(parameters)  #: what the last phase left, or the start
        self.trace: list[dict[str, Any]] = []
        self._config = config
        self._forests = forests
        self._validation = validation
        self._progress = progress

    @property
    def parameters(self) -> Parameters:
        """The grammar with every probability at its place: large, so it is made only where it is needed."""
        return self.rules.parameters()

    def iterations(self, phase: str) -> int:
        """EM iterations of a phase."""
        return int(getattr(self._config, f"em_{phase}"))

    def start(self) -> None:
        """Record the grammar before the first cycle."""
        self._record(self.rules, (0, "start", 0), likelihood(self._forests, self.rules), None)

    def run(self, cycle: int, phase: str, generator: np.random.Generator) -> None:
        """One phase of one cycle; record 0 is the grammar the phase starts from."""
        config, forests = self._config, self._forests
        if phase == "split":
            self.rules = SparseRules.of(split(self.parameters, config.noise, generator))
        elif phase == "merge":
            self.rules = SparseRules.of(merge(forests, self.rules, config.merge_fraction))
        total = self.iterations(phase)
        rules = self.rules.astype(config.precision)
        unsmoothed: Likelihood | None = None
        for iteration in range(total):
            slept = 1 if phase == "smooth" or iteration == 0 else WAKE if iteration % WAKE == 0 else 0
            score, counts = expected_entries(forests, rules, asleep_too=slept > 0)
            self._record(rules, (cycle, phase, iteration), score, unsmoothed)
            before = rules
            rules = rules.maximised(counts, SMALLEST, slept=slept)
            if phase == "smooth":
                unsmoothed = likelihood(forests, rules)
                rules = rules.smoothed(*self.weights(before, counts), SMALLEST)
            self._progress.advance()
        self._record(rules, (cycle, phase, total), likelihood(forests, rules), unsmoothed)
        # from its full form, so that a run taken up again has the same order of entries
        self.rules = SparseRules.of(Parameters.of_scores(rules.layout, rules.flat(rules.prob), rules.trees))

    def weights(self, rules: SparseRules, counts: FloatArray) -> tuple[Weight, Weight]:
        """Of the siblings' mean in the rules and in the lexicon, by the expected uses of each entry."""
        config = self._config
        if config.smoothing == "fixed":
            return config.smooth_rules, config.smooth_lexicon
        uses = np.asarray(np.bincount(rules.rows, counts, rules.layout.n_rows), dtype=np.float64)
        return config.prior_rules / (uses + config.prior_rules), config.prior_lexicon / (uses + config.prior_lexicon)

    def _record(
        self,
        rules: SparseRules,
        when: tuple[int, str, int],
        score: Likelihood,
        unsmoothed: Likelihood | None,
    ) -> None:
        cycle, phase, iteration = when
        held_out = self._validation.score(rules)
        self.trace.append(
            {
                "cycle": cycle,
                "phase": phase,
                "iteration": iteration,
                "log_likelihood": score.per_token,
                "unsmoothed": None if unsmoothed is None else unsmoothed.per_token,
                "held_out": held_out.per_token,
                "held_out_impossible": held_out.impossible,
                "substates": rules.layout.n_rows,
                "rules": len(rules.prob),
            }
        )
        note = "" if score.per_token is None else f"cycle {cycle} {phase} {score.per_token:.4f} nats/token"
        if note:
            self._progress.advance(0, note)
