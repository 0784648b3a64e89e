"""What models generate: how many of their strings the language has, and how they differ from each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from truesource.grammar.pcfg import PCFG
from truesource.grammar.truth import load_truth
from truesource.lmtrain.decoding.decode import draw
from truesource.lmtrain.decoding.settings import Decoding
from truesource.reproduce.found import Found
from truesource.reproduce.studies.shared import found_of, models_of
from truesource.run.config import RunConfig


def generated_strings(folder: Path, config: RunConfig) -> list[Found]:
    """Ancestral samples of each model, as many as ``evaluation.sentences``.

    ``accuracy``: share of them that the grammar can make, with an exact binomial interval; ``distinct``: share of
    different strings among these, none where there are none.
    """
    truth, number = load_truth(folder / "grammar" / "grammar.npz"), config.evaluation.sentences
    assert isinstance(truth, PCFG) and number is not None
    found = []
    for entry, model in models_of(folder, config):
        sampled = draw(model, number, Decoding(), seed=config.seed).sentences
        some = [sentence for sentence in sampled if sentence]
        possible = np.isfinite(truth.exact.string_log_probs(some))
        right = [sentence for sentence, holds in zip(some, possible, strict=True) if holds]
        ends = binomtest(len(right), number).proportion_ci()
        record = {"name": "accuracy", "value": len(right) / number, "low": ends.low, "high": ends.high}
        found.append(found_of(entry, {**record, "sentences": number}))
        if right:
            distinct = len({tuple(sentence) for sentence in right}) / len(right)
            found.append(found_of(entry, {"name": "distinct", "value": distinct, "sentences": len(right)}))
    return found
