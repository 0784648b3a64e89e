"""What rows measure beside the evaluators, in the folder of a finished run: functions by the name of a row's ``study``.

Each takes the folder and its configuration, and gives records with a seed where a network is one of several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import Column, mean_scores
from truesource.evaluation.divergence.contexts import measure_contexts
from truesource.evaluation.in_context import documents_read
from truesource.evaluation.told import expected_languages, told_divergence
from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.tilting.rewards import Count, Event, RewardAutomaton, event_of, word_numbers
from truesource.grammar.tilting.tilt import Tilting
from truesource.grammar.truth import load_truth, word_counts
from truesource.lmtrain.models import load_model
from truesource.lmtrain.truth import endless
from truesource.reproduce.found import Found
from truesource.run.config import RunConfig

if TYPE_CHECKING:
    from truesource.chain.models import ModelEntry


def fresh_documents(folder: Path, config: RunConfig) -> list[Found]:
    """The measures of `evaluate documents` on documents of languages that no training has seen, ``on: fresh``.

    Their truth is the family of the configuration, and the reader `pool` knows the languages of the training.
    """
    from truesource.evaluators.documents import DocumentsSettings

    settings = config.evaluation.of(DocumentsSettings)
    assert settings.sentences is not None
    (family,) = (load_truth(reference) for reference in settings.family.values())
    pool, lengths = load_truth(folder / "grammar" / "grammar.npz"), config.corpus.lengths
    documents = next(endless(family, batch=settings.sentences, seed=config.seed, lengths=lengths))
    found = []
    for entry, model in _models(folder, config):
        reading = documents_read(model, Setting(family, documents, lengths), families={"pool": pool})
        found += [_found(entry, {**record, "on": "fresh"}) for record in reading.records()]
    return found


def sentences_until_known(folder: Path, config: RunConfig) -> list[Found]:
    """What models and the perfect reader know of the language of documents, by the number of the sentence.

    Records with ``sentence``, from 1 on, and intervals over documents: ``kl_told``, KL(reader who is told || model),
    nats a token, and ``weight_own``, the weight of the right language in what is expected as the first word. The model
    `reader` is the perfect one; ``kl_above`` of a model is ``kl_told`` less that of the perfect reader.
    """
    truth = load_truth(folder / "grammar" / "grammar.npz")
    assert isinstance(truth, DocumentProcess)
    corpus, split = Corpus.load(folder / "corpus"), config.evaluation.split
    documents = corpus.sentences(split)[: config.evaluation.sentences]
    languages = corpus.languages(split)[: len(documents)]
    reader = Oracle(truth, "causal", vocabulary=truth.terminals)
    told = told_divergence(reader, truth, documents, languages)
    found = [Found({"model": "reader", **record}) for record in _by_sentence(reader, truth, documents, languages, told)]
    for entry, model in _models(folder, config):
        own = told_divergence(model, truth, documents, languages)
        records = _by_sentence(model, truth, documents, languages, own, above=own - told)
        found += [_found(entry, record) for record in records]
    return found


def _by_sentence(
    model: Any,
    truth: DocumentProcess,
    documents: list[list[str]],
    languages: IntArray,
    told: FloatArray,
    *,
    above: FloatArray | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Records of one reader: means of each sentence."""
    shared = {"objective": "causal", "grammar": truth.identity, "sentences": len(documents)}
    document = np.repeat(np.arange(len(documents)), [len(each) + 1 for each in documents])
    sentence = np.concatenate([np.cumsum([0, *(word == SEPARATOR for word in each)]) for each in documents])
    columns = {"kl_told": Column(told, {"unit": "nats/token"})}
    columns |= {} if above is None else {"kl_above": Column(above, {"unit": "nats/token"})}
    expected = expected_languages(model, truth, documents)
    weight = expected.weight[np.arange(len(expected.weight)), languages[expected.document]]
    for number in range(int(sentence.max()) + 1):
        at, begins = sentence == number, expected.string == number
        some = {name: Column(column.values[at], column.parts) for name, column in columns.items()}
        scores = mean_scores(some, document[at], shared, DEFAULT_SEED)
        own = {"weight_own": Column(weight[begins], {"unit": "share"})}
        scores |= mean_scores(own, expected.document[begins], shared, DEFAULT_SEED)
        yield from ({**score.as_record(), "sentence": number + 1} for score in scores.values())


WORDS = 24  #: events that are looked at where the grammar has none of its own, each that a word occurs
PER = 100_000  #: sentences that frequencies are of
TIMES = (1, 4, 16, 64, 256, 1024, 4096, 16384)  #: frequencies that the correlation across words is read at


def construction_frequency(folder: Path, config: RunConfig) -> list[Found]:
    """KL(truth || model), nats a token, in sentences with an event and in all others.

    ``kl_at``: at the word that completes the event; ``kl_within``: after it; ``kl_elsewhere``: in sentences without the
    event. Of a run whose grammar has a tilt, of its event. Of other runs, of up to `WORDS` words, of frequencies that
    are evenly spread up to the last of `TIMES`, each with ``per_100000``; then ``slope`` is that of ln ``kl_within`` on
    the ln frequency across these words, and ``kl_correlated`` is what this line says of `TIMES`.
    """
    truth, lengths = load_truth(folder / "grammar" / "grammar.npz"), config.corpus.lengths
    assert isinstance(truth, PCFG) and config.evaluation.sentences is not None
    tilt, number = config.grammar.tilt, config.evaluation.sentences
    events = _words_by_frequency(truth, lengths) if tilt is None else [event_of(tilt.event)]
    cases = [_Construction(truth, event, lengths, number, config.seed) for event in events]
    found = []
    for entry, model in _models(folder, config):
        within = []
        for case in cases:
            records = {record["name"]: record for record in case.records(model)}
            within.append(records["kl_within"]["value"])
            shared = {"event": case.event.spec, "per_100000": PER * case.probability}
            found += [_found(entry, {**record, **shared}) for record in records.values()]
        if tilt is None:
            slope, base = np.polyfit(np.log([PER * case.probability for case in cases]), np.log(within), 1)
            found.append(_found(entry, {"name": "slope", "value": float(slope)}))
            for times in TIMES:
                value = float(np.exp(base + slope * np.log(times)))
                found.append(_found(entry, {"name": "kl_correlated", "value": value, "times": times}))
    return found


def _words_by_frequency(truth: PCFG, lengths: LengthRange | None) -> list[Event]:
    """The events that each of some words occurs, of which the expected numbers are evenly spread by logarithm."""
    expected = word_counts(truth, lengths)
    order = np.argsort(expected)
    order = order[expected[order] <= TIMES[-1] / PER]
    ascending = expected[order]
    chosen = np.unique(np.searchsorted(ascending, np.geomspace(ascending[0], ascending[-1] * (1.0 - 1e-9), WORDS)))
    return [Count((truth.terminals[order[i]],), 1, None) for i in chosen.tolist()]


class _Construction:
    """An event, and sentences with and without it, drawn from the truth."""

    def __init__(self, truth: PCFG, event: Event, lengths: LengthRange | None, number: int, seed: int) -> None:
        self.truth, self.event, self.lengths = truth, event, lengths
        tilting = Tilting(truth, event)
        self.probability = tilting.event_probability(lengths)
        self.texts = [
            next(endless(tilting.given(holds=holds).pcfg, batch=number, seed=seed, lengths=lengths))
            for holds in (True, False)
        ]
        automaton = event.automaton(truth)
        self.certain = np.array([_first(automaton, word_numbers(truth, each)) for each in self.texts[0]])

    def records(self, model: Any) -> Iterator[Mapping[str, Any]]:
        """The three numbers of a model, with intervals over sentences."""
        parts = {"unit": "nats/token", "grammar": self.truth.identity, "sentences": len(self.certain)}
        for texts, names in zip(self.texts, (("kl_at", "kl_within"), ("kl_elsewhere",)), strict=True):
            oracle = Setting(self.truth, texts, self.lengths).full_oracle(model)
            found = measure_contexts(model, oracle, texts, top=1)
            kl, after = found.column("kl"), found.position - self.certain[found.sentence]
            for name in names:
                kept = {"kl_at": after == 0, "kl_within": after > 0}.get(name, np.ones(len(kl), dtype=np.bool_))
                scores = mean_scores({name: Column(kl[kept], {})}, found.sentence[kept], parts, DEFAULT_SEED)
                yield scores[name].as_record()


def _first(automaton: RewardAutomaton, sentence: Sequence[int]) -> int:
    """Number of the first word after which a sentence may end with the event."""
    state = automaton.start
    for place, word in enumerate(sentence):
        state = automaton.step[state, word]
        if automaton.end[state] > 0.0:
            return place
    raise AssertionError("the sentence has the event")


def _models(folder: Path, config: RunConfig) -> Iterator[tuple[ModelEntry, Any]]:
    for entry in config.entries:
        yield entry, load_model(folder / "models" / entry.name)


def _found(entry: ModelEntry, record: Mapping[str, Any]) -> Found:
    asked = getattr(entry, "replicate_of", entry.name)
    return Found({**record, "of": asked, "model": asked}, getattr(entry, "seed", None))


STUDIES: Mapping[str, Callable[[Path, RunConfig], list[Found]]] = {
    "fresh-documents": fresh_documents,
    "sentences-until-known": sentences_until_known,
    "construction-frequency": construction_frequency,
}
