"""The training loop: cycles of split, EM, merge, EM, smoothed EM."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from truesource.grammar.estimate.rules import RuleTable, binary_trees
from truesource.grammar.estimate.split_merge import checkpoint as checkpoints
from truesource.grammar.estimate.split_merge.config import SplitMerge
from truesource.grammar.estimate.split_merge.encode import encode
from truesource.grammar.estimate.split_merge.estep import Likelihood, likelihood
from truesource.grammar.estimate.split_merge.lexicon import with_words
from truesource.grammar.estimate.split_merge.parameters import Layout, Parameters
from truesource.grammar.estimate.split_merge.result import Induced, filter_cost, filtered, to_pcfg
from truesource.grammar.estimate.split_merge.sparse import SparseRules
from truesource.grammar.estimate.split_merge.trainer import PHASES, SplitMergeTrainer, Validation
from truesource.grammar.estimate.split_merge.word_classes import RareWordClasses
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json, round_floats
from truesource.grammar.support.progress import meter
from truesource.grammar.tree import Tree

log = logging.getLogger("truesource.grammar")


def split_merge(
    trees: Iterable[Tree],
    config: SplitMerge | None = None,
    *,
    seed: int,
    held_out: Iterable[Tree] | None = None,
    checkpoint: str | Path | None = None,
    on_phase: Callable[[Sequence[dict[str, Any]]], None] | None = None,
) -> Induced:
    """Induce a grammar with substates from a treebank (Petrov, Barrett, Thibaux and Klein 2006).

    Starts from relative frequencies; the start symbol is never split. The likelihood of the training trees
    rises at every iteration of the split and merge phases; smoothing may lower it. Trees with a node of
    more than two children are binarised by `truesource.grammar.treebank.Binarisation` first. The result is the same
    for a seed, whatever the number of threads, and whether or not a run was interrupted. A cycle that would make
    more substates than the treebank has words is not begun: ``meta["stopped"]`` says so.

    Args:
        trees: binarised trees with one root label.
        config: constants of the training; the published ones by default.
        seed: of the noise that breaks the symmetry of a split, a whole number >= 0.
        held_out: more trees, scored at every iteration; those with a rule or word never seen in
            ``trees`` are impossible for a maximum-likelihood grammar and are counted as such.
        checkpoint: folder to save in after every phase, and to go on from.
        on_phase: called after every phase with the trace up to there, as that of `Induced`.

    Returns:
        The grammar, its ``meta`` telling how it was made, and the trace of the training.

    Raises:
        InputError: there are no trees, their root labels differ, a node cannot be binarised, the seed is
            negative, or the checkpoint belongs to another run.
    """
    config = SplitMerge() if config is None else config
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"the seed of split-merge training must be a whole number >= 0, got {seed!r}")
    binarised, changed = binary_trees(trees)
    held_out_trees, _ = binary_trees(held_out or ())
    classes = RareWordClasses.of(binarised, config.rare, config.class_types) if config.lexicon == "parse" else None
    training, validating = binarised, held_out_trees
    if classes is not None:
        training, validating = classes.in_training(binarised), classes.in_training(held_out_trees)
    table = RuleTable.from_trees(training)
    forests, _ = encode(training, table)
    validation = Validation(*encode(validating, table))
    folder = None if checkpoint is None else Path(checkpoint)
    key = "" if folder is None else _key(config, seed, binarised, held_out_trees)
    with meter("split-merge", config.iterations) as progress:
        trainer = SplitMergeTrainer(config, forests, validation, Parameters.initial(table), progress)
        done = 0
        if folder is not None and (found := checkpoints.load(folder, key, table)) is not None:
            done, parameters, trainer.trace = found
            trainer.rules = SparseRules.of(parameters)
            progress.skip(sum(trainer.iterations(PHASES[i % len(PHASES)]) for i in range(done)))
        else:
            trainer.start()
        stopped = _run_phases(trainer, config, seed, done, folder, key, on_phase)
    whole = trainer.parameters
    if classes is not None:
        whole = with_words(whole, classes, binarised, config.class_prior, config.tag_prior)
        table = whole.layout.table
        forests, _ = encode(binarised, table)
        validation = Validation(*encode(classes.in_parsing(held_out_trees), table))
    final, unfiltered = filtered(whole, config.filter), SparseRules.of(whole)
    del whole  # large
    meta: dict[str, Any] = {
        "estimator": "split_merge",
        "config": asdict(config),
        "seed": seed,
        "trees": table.n_trees,
        "tokens": table.n_tokens,
        "binarised_trees": changed,
        **_fit(likelihood(forests, final), validation.score(final), len(held_out_trees)),
        "substates": dict(zip(table.symbols, final.layout.substates, strict=True)),
        "split_trees": dict(zip(table.symbols, final.trees, strict=True)),
    }
    if classes is not None:
        meta["unknown_words"] = classes.as_meta(config.rare)
    if stopped:
        meta["stopped"] = stopped
    pcfg = to_pcfg(final, meta)
    cost = filter_cost(pcfg, unfiltered, config.filter)
    return Induced(replace(pcfg, meta=round_floats({**pcfg.meta, "filter": cost})), tuple(trainer.trace))


def _fit(training: Likelihood, held_out: Likelihood, held_out_trees: int) -> dict[str, Any]:
    """How well a grammar fits its trees, and those held out where there are some."""
    found: dict[str, Any] = {
        "log_likelihood_per_token": training.per_token,
        "impossible_trees": training.impossible,
    }
    if held_out_trees:
        found["held_out"] = {
            "trees": held_out_trees,
            "impossible_trees": held_out.impossible,
            "log_likelihood_per_token": held_out.per_token,
        }
    return found


def _run_phases(
    trainer: SplitMergeTrainer,
    config: SplitMerge,
    seed: int,
    done: int,
    folder: Path | None,
    key: str,
    on_phase: Callable[[Sequence[dict[str, Any]]], None] | None,
) -> str:
    """Train from phase ``done`` on; why it stopped before the last one, if it did."""
    for i in range(done, config.cycles * len(PHASES)):
        cycle, phase = 1 + i // len(PHASES), PHASES[i % len(PHASES)]
        if phase == "split" and (stopped := too_many(trainer.rules.layout, cycle, config.cycles)):
            log.warning(stopped)
            return stopped
        trainer.run(cycle, phase, np.random.default_rng([seed, cycle]))
        if folder is not None:
            checkpoints.save(folder, key, i + 1, trainer.parameters, trainer.trace)
        if on_phase is not None:
            on_phase(trainer.trace)
    return ""


def too_many(layout: Layout, cycle: int, cycles: int) -> str:
    """Why the treebank does not support another split, if it does not: more substates than words to tell them apart."""
    table = layout.table
    after = 2 * layout.n_rows - 1
    if after <= table.n_tokens:
        return ""
    return (
        f"stopped after {cycle - 1} of {cycles} cycles: a further split would make {after:,} substates of"
        f" {table.n_tokens:,} words; give more trees"
    )


def _key(config: SplitMerge, seed: int, trees: Sequence[Tree], held_out: Sequence[Tree]) -> str:
    """What a checkpoint must agree in to be continued."""
    sha = hashlib.sha256()
    for tree in trees:
        sha.update(str(tree).encode() + b"\n")
    sha.update(b"\n")
    for tree in held_out:
        sha.update(str(tree).encode() + b"\n")
    return digest_json({"config": asdict(config), "seed": seed, "trees": sha.hexdigest()})
