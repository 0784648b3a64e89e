"""Probing a model folder: hidden states from the network, targets from the grammar, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truesource.evaluation.core.comparison import oracle_for, score_both, vocabulary_part
from truesource.evaluation.core.signature import digest_sentences
from truesource.evaluation.probing.experiment import Experiment, LayerResult, ProbeSettings, WordValues
from truesource.evaluation.probing.results import Probing, best_layer, confusion_of, measure_parts, task_parts
from truesource.evaluation.probing.spans import span_targets
from truesource.evaluation.probing.targets import Given, Kind, Targets, Truth, word_targets
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.errors import InputError
from truesource.grammar.pcfg import PCFG

if TYPE_CHECKING:
    from truesource.evaluation.core.oracle import Oracle
    from truesource.lmtrain.models import TrainedModel

Checkpoints = Literal["last", "all"]


@dataclass(frozen=True)
class Task:
    """What is probed for, and where."""

    target: Kind = "tag"
    given: Given = "sentence"
    right: Truth = "argmax"
    layers: tuple[int, ...] | None = None  #: None: all
    checkpoints: Checkpoints = "last"
    pooling: Literal["last", "mean"] = "last"  #: the vector of a word of several pieces
    correlations: bool = True  #: of probe and word probabilities; needs the model's scores

    def check(self, objective: str) -> None:
        """Stop where the task makes no sense.

        Raises:
            InputError: the left context of a masked model, or of spans, is asked for.
        """
        if self.given == "left" and objective != "causal":
            raise InputError("a masked model reads the whole sentence; the posterior given the left is for causal ones")
        if self.given == "left" and self.target == "span":
            raise InputError("spans have a posterior given the whole sentence only; leave out the left context")


def parse_layers(text: str) -> tuple[int, ...] | None:
    """``0,2`` as numbers; None for ``all``.

    Raises:
        InputError: it is neither.
    """
    if text.strip() == "all":
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts) or len(set(parts)) < len(parts):
        raise InputError(f"layers are numbers by commas, such as 0,2, or all; got {text!r}")
    return tuple(sorted(map(int, parts)))


def probe_model(
    folder: Path,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    task: Task,
    options: ProbeSettings,
) -> Probing:
    """Train and measure probes on the layers of a model, and of its snapshots if asked for.

    Selectivity, description length and correlations are of the finished model only. Vectors of as many layers stand in
    memory as fit `lmtrain.probing.hidden_states.BUDGET`. Where the length condition leaves no sentence to correlate,
    there are no correlations, and a note says so.

    Args:
        folder: of the model.
        pcfg: the grammar that the sentences were drawn from.
        sentences: at least one word each.
        lengths: the length condition of the corpus.
        task: what is probed for.
        options: how probes are trained and measured.

    Raises:
        InputError: the model is no network, a snapshot is missing, a sentence is too long, there are fewer than two
            labels, or too few word types.
    """
    from truesource.lmtrain.models import load_model
    from truesource.lmtrain.probing.hidden_states import require_network
    from truesource.lmtrain.probing.linear import fit_linear
    from truesource.lmtrain.snapshots import checkpoints

    model = load_model(folder)
    require_network(model)
    task.check(model.objective)
    steps = checkpoints(folder) if task.checkpoints == "all" else []
    last = steps[-1][0] if steps else None
    oracle = oracle_for(model, pcfg, lengths)
    targets = _targets(oracle, sentences, task, options.seed)
    experiment = Experiment(targets, fit_linear, options)
    values: WordValues | None = None
    notes: tuple[str, ...] = ()
    if task.correlations and targets.kind != "span":
        if lengths is None or any(len(sentences[i]) in lengths for i in set(targets.sentence.tolist())):
            values = _word_values(model, pcfg, sentences, lengths, targets)
        else:
            notes = (f"no correlations with word probabilities, for no sentence has {lengths} words",)
    found: list[LayerResult] = []
    for step, path in steps[:-1]:
        found += _layers(load_model(path), sentences, experiment, task, step, full=False, values=None)
    final = _layers(model, sentences, experiment, task, last, full=True, values=values)
    best = best_layer(final)
    return Probing(
        model=model.name,
        objective=model.objective,
        layers=[*found, *final],
        baselines=experiment.baselines(),
        chance=experiment.chance(next(_vectors(model, sentences, experiment, task, [best.layer]))[1]),
        labels=targets.labels,
        confusion=confusion_of(experiment, best),
        parts={
            "objective": model.objective,
            **task_parts(experiment),
            "vectors": _said_vectors(model, task),
            "given": oracle.condition,
            "vocab": vocabulary_part(oracle),
            "sentences": len(sentences) - len(targets.excluded),
            "excluded": len(targets.excluded),
            "data": digest_sentences(sentences),
            "grammar": pcfg.digest[:8],
        },
        overrides=measure_parts(experiment),
        notes=notes,
    )


def _targets(oracle: Oracle, sentences: Sequence[Sequence[str]], task: Task, seed: int) -> Targets:
    if task.target == "span":
        return span_targets(oracle, sentences, truth=task.right, seed=seed)
    return word_targets(oracle, sentences, kind=task.target, given=task.given, truth=task.right, seed=seed)


def _layers(
    model: TrainedModel,
    sentences: Sequence[Sequence[str]],
    experiment: Experiment,
    task: Task,
    step: int | None,
    *,
    full: bool,
    values: WordValues | None,
) -> list[LayerResult]:
    from truesource.grammar.progress import meter

    found = []
    with meter(f"probes of {model.name}", None if task.layers is None else len(task.layers)) as bar:
        for layer, vectors in _vectors(model, sentences, experiment, task, task.layers):
            found.append(experiment.probe(vectors, layer, step, full=full, values=values))
            del vectors  # before those of the next layer are made
            bar.advance()
    return found


def _vectors(
    model: TrainedModel,
    sentences: Sequence[Sequence[str]],
    experiment: Experiment,
    task: Task,
    layers: Sequence[int] | None,
) -> Iterator[tuple[int, Any]]:
    """Of the items, layer after layer, (T, D); not kept here."""
    from truesource.lmtrain.probing.hidden_states import hidden_layers

    sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    found = hidden_layers(model, sentences, layers=layers, pooling=task.pooling, words=experiment.words(starts))

    def of_items(layer: tuple[int, Any]) -> tuple[int, Any]:
        return layer[0], experiment.vectors(layer[1], starts)

    return map(of_items, found)  # a generator would keep the vectors of a layer until those of the next are made


def _word_values(
    model: TrainedModel,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    lengths: LengthRange | None,
    targets: Targets,
) -> WordValues:
    """Ln P and ln Q of the word of each item; NaN where a sentence has other lengths."""
    paired = score_both(model, pcfg, sentences, lengths=lengths).paired
    width = max(len(sentence) for sentence in sentences) + 1
    found = np.full((2, len(sentences) * width), np.nan)
    found[:, paired.sentence.astype(np.int64) * width + paired.position] = paired.oracle, paired.model
    return WordValues(*found[:, targets.sentence * width + targets.first])


def _said_vectors(model: TrainedModel, task: Task) -> str:
    """What stands for an item, for signatures."""
    word = "word" if model.vocabulary is not None else f"{task.pooling}-piece" if task.pooling == "last" else "mean"
    return f"ends-of-{word}" if task.target == "span" else word
