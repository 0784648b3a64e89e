"""KL inside and outside a construction of a known frequency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.contexts import measure_contexts
from truesource.evaluation.divergence.means import Column, mean_scores
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.tilting.rewards import Count, Event, RewardAutomaton, event_of, word_numbers
from truesource.grammar.tilting.tilt import Tilting
from truesource.grammar.truth import load_truth, word_counts
from truesource.lmtrain.truth import endless
from truesource.run.config import RunConfig
from truesource.studies.reproduce.run_records import RunRecord, models_of, record_of

WORDS = 24  #: events without a tilt of the grammar, each that a word occurs
PER = 100_000  #: sentences that frequencies are of
TIMES = (1, 4, 16, 64, 256, 1024, 4096, 16384)  #: frequencies that the correlation across words is read at


def construction_frequency(folder: Path, config: RunConfig) -> list[RunRecord]:
    """Return KL(truth || model), nats a token, in sentences with an event and in all others.

    ``kl_at``: at the word that completes the event; ``kl_within``: after it; ``kl_elsewhere``: in sentences without the
    event. The event is the one of the grammar's tilt. Without a tilt, the events are up to `WORDS` words, of
    frequencies that are evenly spread up to the last of `TIMES`, each with ``per_100000``; then ``slope`` is the slope
    of ln ``kl_within`` on the ln frequency across these words, and ``kl_correlated`` the value of this line at `TIMES`.
    """
    truth, lengths = load_truth(folder / "grammar" / "grammar.npz"), config.corpus.lengths
    assert isinstance(truth, PCFG) and config.evaluation.sentences is not None
    tilt, number = config.grammar.tilt, config.evaluation.sentences
    events = _words_by_frequency(truth, lengths) if tilt is None else [event_of(tilt.event)]
    cases = [_Construction(truth, event, lengths, number, config.seed) for event in events]
    results = []
    for entry, model in models_of(folder, config):
        within = []
        for case in cases:
            scores = {score.name: score for score in case.scores_of(model)}
            within.append(scores["kl_within"].value)
            shared = {"event": case.event.spec, "per_100000": PER * case.probability}
            results += [record_of(entry, {**score.as_record(), **shared}) for score in scores.values()]
        if tilt is None:
            slope, base = np.polyfit(np.log([PER * case.probability for case in cases]), np.log(within), 1)
            results.append(record_of(entry, {"name": "slope", "value": float(slope)}))
            for times in TIMES:
                value = float(np.exp(base + slope * np.log(times)))
                results.append(record_of(entry, {"name": "kl_correlated", "value": value, "times": times}))
    return results


def _words_by_frequency(truth: PCFG, lengths: LengthRange | None) -> list[Event]:
    """Return events that a word occurs, for words with evenly spread logarithms of expected numbers."""
    expected = word_counts(truth, lengths)
    order = np.argsort(expected)
    order = order[expected[order] <= TIMES[-1] / PER]
    ascending = expected[order]
    chosen = np.unique(np.searchsorted(ascending, np.geomspace(ascending[0], ascending[-1] * (1.0 - 1e-9), WORDS)))
    return [Count((truth.vocabulary[order[i]],), 1, None) for i in chosen.tolist()]


class _Construction:
    """An event, and sentences with and without it, drawn from the truth."""

    def __init__(self, truth: PCFG, event: Event, lengths: LengthRange | None, number: int, seed: int) -> None:
        self.truth, self.event, self.lengths = truth, event, lengths
        tilting = Tilting(truth, event)
        self.probability = tilting.event_probability(lengths)
        self.texts = [
            next(endless(tilting.given(holds=holds, lengths=lengths).pcfg, batch=number, seed=seed, lengths=lengths))
            for holds in (True, False)
        ]
        automaton = event.automaton(truth)
        self.certain = np.array([_first(automaton, word_numbers(truth, each)) for each in self.texts[0]])

    def scores_of(self, model: Any) -> Iterator[Score]:
        """Yield the three numbers of a model, with intervals over sentences."""
        parts = {"unit": "nats/token", "grammar": self.truth.identity, "sentences": len(self.certain)}
        for texts, names in zip(self.texts, (("kl_at", "kl_within"), ("kl_elsewhere",)), strict=True):
            oracle = Setting(self.truth, texts, self.lengths).full_oracle(model)
            contexts = measure_contexts(model, oracle, texts, top=1)
            kl, after = contexts.column("kl"), contexts.position - self.certain[contexts.sentence]
            for name in names:
                mask = {"kl_at": after == 0, "kl_within": after > 0}.get(name, np.ones(len(kl), dtype=np.bool_))
                scores = mean_scores({name: Column(kl[mask], {})}, contexts.sentence[mask], parts, DEFAULT_SEED)
                yield scores[name]


def _first(automaton: RewardAutomaton, sentence: Sequence[int]) -> int:
    """Return the number of the first word after which a sentence may end with the event."""
    state = automaton.start
    for place, word in enumerate(sentence):
        state = automaton.step[state, word]
        if automaton.end[state] > 0.0:
            return place
    raise AssertionError("the sentence has the event")
