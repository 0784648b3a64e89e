"""Linear probes on the layers of one network, compared with the exact posterior of the grammar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.evaluation.core.comparison import score_both, vocabulary_part
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import digest_sentences
from truesource.evaluation.core.transformed import transform_parts
from truesource.evaluation.probing import Kind
from truesource.evaluation.probing.evaluator import ProbingSettings
from truesource.evaluation.probing.experiment import Experiment, LayerResult, WordValues
from truesource.evaluation.probing.results import (
    Probing,
    best_layer,
    confusion_of,
    measure_parts,
    record_fields,
    task_parts,
)
from truesource.evaluation.probing.targets import Targets, span_targets, word_targets
from truesource.generator.abilities import require
from truesource.grammar.support.errors import NothingToMeasureError

if TYPE_CHECKING:
    from truesource.evaluation.core.oracle import Oracle
    from truesource.generator.language_model import LanguageModel
    from truesource.lmtrain.references import ModelReference


def probe_model(
    reference: str | Path | ModelReference,
    setting: Setting,
    settings: ProbingSettings,
    target: Kind,
) -> Probing:
    """Train and measure probes for one target on the layers of a model, and of its snapshots if requested.

    Selectivity, description length and correlations are only of the finished model. Vectors of as many layers are in
    memory as fit `lmtrain.hidden_states.BUDGET`. If the length condition leaves no sentence to correlate,
    a note says that correlations are missing.

    Raises:
        InputError: the model is not a network, or masked although the left context is requested; a snapshot is missing,
            a sentence is too long, there are fewer than two labels, or too few word types.
    """
    from truesource.lmtrain.linear_probe import fit_linear
    from truesource.lmtrain.models import load_model
    from truesource.lmtrain.snapshots import checkpoints_of, has_checkpoints

    model = load_model(reference)
    require(model, "hidden-states", "evaluate probing")
    if settings.given == "left" and model.objective != "causal":
        raise NothingToMeasureError("a masked model reads the whole sentence; given: left needs a causal one", "masked")
    with_snapshots = settings.checkpoints == "all" and has_checkpoints(reference, model)
    steps = checkpoints_of(reference, "evaluate probing", model) if with_snapshots else []
    oracle, sentences, seed = setting.full_oracle(model), setting.sentences, setting.seed
    experiment = Experiment(_targets(oracle, sentences, target, settings, seed), fit_linear, settings, seed)
    values, notes = _word_values(model, setting, experiment.targets, settings)
    layers: list[LayerResult] = []
    for step, load in steps[:-1]:
        layers += _layers(load(), sentences, experiment, settings, step)
    last = steps[-1][0] if steps else None
    final = _layers(model, sentences, experiment, settings, last, full=True, values=values)
    best = best_layer(final)
    return Probing(
        model=model.name,
        objective=model.objective,
        layers=[*layers, *final],
        baselines=experiment.baselines(),
        chance=experiment.chance(next(_vectors(model, sentences, experiment, settings, [best.layer]))[1]),
        labels=experiment.targets.labels,
        confusion=confusion_of(experiment, best),
        parts=_parts(model, oracle, sentences, experiment, settings),
        overrides=measure_parts(experiment),
        fields=record_fields(experiment),
        notes=notes,
    )


def _parts(
    model: LanguageModel,
    oracle: Oracle,
    sentences: Sequence[Sequence[str]],
    experiment: Experiment,
    settings: ProbingSettings,
) -> dict[str, object]:
    excluded = len(experiment.targets.excluded)
    return {
        "objective": model.objective,
        **task_parts(experiment),
        "vectors": _vectors_part(model, experiment.targets.kind, settings),
        "given": oracle.condition,
        **transform_parts(oracle.truth, oracle.transform, model.objective),
        "vocab": vocabulary_part(oracle),
        "sentences": len(sentences) - excluded,
        "excluded": excluded,
        "data": digest_sentences(sentences),
        "grammar": oracle.truth.identity,
    }


def _targets(
    oracle: Oracle, sentences: Sequence[Sequence[str]], target: Kind, settings: ProbingSettings, seed: int
) -> Targets:
    if target == "span":
        return span_targets(oracle, sentences, truth=settings.right, seed=seed)
    return word_targets(oracle, sentences, kind=target, given=settings.given, truth=settings.right, seed=seed)


def _layers(
    model: LanguageModel,
    sentences: Sequence[Sequence[str]],
    experiment: Experiment,
    settings: ProbingSettings,
    step: int | None,
    *,
    full: bool = False,
    values: WordValues | None = None,
) -> list[LayerResult]:
    from truesource.grammar.support.printable import meter

    results = []
    with meter(f"probes of {model.name}", None if settings.layers is None else len(settings.layers)) as bar:
        for layer, vectors in _vectors(model, sentences, experiment, settings, settings.layers):
            results.append(experiment.probe(vectors, layer, step, full=full, values=values))
            del vectors  # before the vectors of the next layer are computed
            bar.advance()
    return results


def _vectors(
    model: LanguageModel,
    sentences: Sequence[Sequence[str]],
    experiment: Experiment,
    settings: ProbingSettings,
    layers: Sequence[int] | None,
) -> Iterator[tuple[int, Any]]:
    """Yield hidden vectors of the items, one layer at a time, (T, D)."""
    from truesource.lmtrain.hidden_states import hidden_layers

    sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    layers = None if layers is None else sorted(layers)
    words = experiment.words(starts)
    layer_vectors = hidden_layers(model, sentences, layers=layers, pooling=settings.pieces, words=words)

    def of_items(layer: tuple[int, Any]) -> tuple[int, Any]:
        return layer[0], experiment.vectors(layer[1], starts)

    return map(of_items, layer_vectors)  # a generator would keep the vectors of a layer until the next are computed


def _word_values(
    model: LanguageModel, setting: Setting, targets: Targets, settings: ProbingSettings
) -> tuple[WordValues | None, tuple[str, ...]]:
    """Return ln P and ln Q of the word of each item, NaN for other sentence lengths; or a note why they are missing."""
    if not settings.correlations or targets.kind == "span":
        return None, ()
    lengths, sentences = setting.lengths, setting.sentences
    if lengths is not None and not any(len(sentences[i]) in lengths for i in set(targets.sentence.tolist())):
        return None, (f"no correlations with word probabilities, because no sentence has {lengths} words",)
    paired = score_both(model, Setting(setting.language, sentences, lengths)).paired
    width = max(len(sentence) for sentence in sentences) + 1
    log_probs = np.full((2, len(sentences) * width), np.nan)
    log_probs[:, paired.sentence.astype(np.int64) * width + paired.position] = paired.oracle, paired.model
    return WordValues(*log_probs[:, targets.sentence * width + targets.first]), ()


def _vectors_part(model: LanguageModel, target: Kind, settings: ProbingSettings) -> str:
    """Return the part of signatures that says which vectors represent an item."""
    pieces = "mean" if settings.pieces == "mean" else "last-piece"
    word = "word" if model.vocabulary is not None else pieces
    return f"ends-of-{word}" if target == "span" else word
