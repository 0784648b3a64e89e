"""KL from the truth where a network was first trained on another language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.files import digest_json
from truesource.grammar.truth import Truth, load_truth
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.models import load_model
from truesource.lmtrain.training import train
from truesource.lmtrain.training_record import weights_digest
from truesource.lmtrain.truth import endless
from truesource.run.config import RunConfig
from truesource.run.folder import RunFolder
from truesource.run.models.stage import resolved
from truesource.studies.reproduce.run_records import RunRecord, models_of, record_of

SHUFFLE = "shuffle-dyck"
#: the same words, as often, in strings of the same lengths
BRACKETS = {SHUFFLE: "shuffle-dyck:k=16,depth=8", "dyck": "dyck:k=16,depth=8"}
LENGTHS = LengthRange(20, 60)  #: of their strings
PART = 2  #: the second phase has so many times the steps of the first
AT_ONCE = 1000  #: sentences

Text = Sequence[Sequence[str]]


def first_languages(folder: Path, config: RunConfig) -> list[RunRecord]:
    """Return KL(truth || model), nats a token, of the networks of a run by what they were trained on ``first``.

    ``none``: the networks of the run. All others have the same training on the corpus of the run, from the weights of a
    first phase of 1 / `PART` of its steps, with a new optimiser: on strings of `BRACKETS`; on ``words``, the words of
    shuffle-Dyck in random order, independent of each other; or on ``language``, fresh sentences of the run's own.
    Finished trainings are kept in ``first/`` of the run, and not repeated.
    """
    run = RunFolder(config, folder, Path.cwd())
    corpus, split, number = run.corpus, config.evaluation.split, config.evaluation.sentences
    monitor = OracleMonitor.on_corpus(run.truth, corpus, split=split, sentences=number or 200)

    @cache
    def texts(tokens: int) -> dict[str, Text]:
        return dict(_texts(run.truth, config, tokens))

    def record(entry: Any, model: Any, first: str) -> RunRecord:
        kl = {"name": "kl", "value": monitor(model)["kl"], "unit": "nats/token"}
        return record_of(entry, {**kl, "first": first, "grammar": run.truth.identity})

    records = []
    for entry, model in models_of(folder, config):
        records.append(record(entry, model, "none"))
        shape, training = resolved(run, entry)
        assert training is not None and training.max_steps is not None
        begin = training.model_copy(update={"max_steps": max(1, training.max_steps // PART)})
        seed, place = run.seed_of(entry), folder / "first" / entry.name
        for name, text in texts((begin.max_steps or 0) * begin.batch_tokens * begin.accumulation).items():
            first = _trained(text, shape, begin, place / f"{name}-first", seed)
            trained = _trained(corpus, shape, training, place / name, seed, weights=first)
            records.append(record(entry, load_model(trained), name))
    return records


def _texts(truth: Truth, config: RunConfig, tokens: int) -> Iterator[tuple[str, Text]]:
    """Yield the texts of first phases by name, of so many tokens each, or a few more."""
    for name, reference in BRACKETS.items():
        text = _sampled(load_truth(reference), LENGTHS, tokens, config.seed)
        yield name, text
        if name == SHUFFLE:
            yield "words", _in_random_order(text, config.seed)
    yield "language", _sampled(truth, config.corpus.lengths, tokens, config.seed)


def _sampled(truth: Truth, lengths: LengthRange | None, tokens: int, seed: int) -> Text:
    """Draw sentences with so many words and ends together, or the fewest more."""
    text: list[list[str]] = []
    for batch in endless(truth, batch=AT_ONCE, seed=seed, lengths=lengths):
        for sentence, total in zip(batch, accumulate(len(each) + 1 for each in batch), strict=True):
            text.append(sentence)
            if total >= tokens:
                return text
        tokens -= total
    raise AssertionError("there are always more")


def _in_random_order(text: Text, seed: int) -> Text:
    """Return all words of a text in random order, in sentences of the same lengths."""
    order = iter(np.random.default_rng(seed).permutation([word for sentence in text for word in sentence]).tolist())
    return [[next(order) for _ in sentence] for sentence in text]


def _trained(
    source: Corpus | Text,
    shape: ModelConfig,
    training: TrainConfig,
    out: Path,
    seed: int,
    weights: Path | None = None,
) -> Path:
    """Train a network, unless it exists; return its folder, whose name ends with a digest of its request."""
    depends = {
        "model": shape.model_dump(mode="json"),
        "training": training.model_dump(mode="json"),
        "seed": seed,
        "text": source.digest if isinstance(source, Corpus) else digest_json([*map(list, source)]),
        "weights": None if weights is None else weights_digest(weights),
    }
    place = out.with_name(f"{out.name}-{digest_json(depends)[:8]}")
    if not place.is_dir():
        train(source, shape, training, place, seed=seed, weights=weights, force=True)
    return place
