"""The training loop: cycles of split, EM, merge, EM, smoothed EM, saved after each phase; then the final lexicon.

In mode ``parse`` classes of rare words become words again, with a share reserved for unknown words.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.estimate.relative_frequency import BinaryTrees, RuleTable
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.estimate.split_merge.estep import (
    Forest,
    Likelihood,
    Subtrees,
    encode,
    expected_entries,
    likelihood,
)
from truesource.grammar.estimate.split_merge.parameters import Layout, SparseRules, SplitTree
from truesource.grammar.estimate.split_merge.result import InducedGrammar, TraceRow, filter_cost, filtered, to_pcfg
from truesource.grammar.estimate.split_merge.trainer import PHASES, SplitMergeTrainer, Validation
from truesource.grammar.support.archives import FLOATS, TEXT, integers, read_arrays
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.atomic_files import atomic_path
from truesource.grammar.support.call_arguments import seed_number
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json, round_floats
from truesource.grammar.support.printable import meter
from truesource.grammar.support.records import STRICT, Count, Positive, decode_record
from truesource.grammar.tree import Tree
from truesource.grammar.unknown import ANY, RareWordClasses, word_class

NEW_FORM = 0.01  #: share of a class's unknown words given to `ANY`: forms of no rare word
NAME = "split-merge.npz"
_WHAT, _REMEDY = "the checkpoint", "delete it to start again"


def with_words(
    trained: SparseRules, classes: RareWordClasses, subtrees: Subtrees, prior: float, tag_prior: float
) -> tuple[SparseRules, tuple[Forest, ...]]:
    """Restore the rare words' own probabilities, and reserve a share of each class for unknown words.

    A substate keeps its probability of each frequent word, and of each class as a whole. Within a class and tag, a rare
    word of ``c`` occurrences and the unknown words, which count as often as there are rare types (Witten and Bell
    1991), share it in proportion. A rare word's occurrences are divided among tags as in the trees, with ``tag_prior``
    further occurrences distributed as the tags of its class are over types, so it may get a tag that it was never seen
    with; for these other tags, a frequent word counts as a rare word of the class of its form. A rare word's
    occurrences are divided among the substates of a tag as in the trees (one E-step), with ``prior`` further
    occurrences distributed as the class is.

    Args:
        trained: grammar trained on ``subtrees.with_words(classes.rare)``.
        classes: classes of the words.
        subtrees: subtrees of the binarised training trees, with their words.
        prior: occurrences, above 0.
        tag_prior: occurrences, 0 or more.

    Returns:
        The grammar, and the trees under its rules.
    """
    lexicon = _Lexicon.of(trained.layout.table, subtrees.table, classes, tag_prior)
    rules = trained.with_lexicon(lexicon.table, _spread(trained, lexicon, None, prior))
    forests = subtrees.forests(lexicon.table)
    _, counts = expected_entries(forests, rules)
    lexical = _spread(trained, lexicon, rules.lexical(counts), prior)
    return trained.with_lexicon(lexicon.table, lexical), forests


@dataclass(frozen=True, eq=False)
class _Lexicon:
    """Words and classes of a treebank, and the source of each lexical rule's probability."""

    table: RuleTable  #: a rule in no tree counts once, a rule of a class as often as it has types
    source: IntArray  #: (L,) trained rule that each lexical rule belongs to; -1 for none
    unseen: BoolArray  #: (L,) lexical rules that produce classes
    weight: FloatArray  #: (L,) occurrences of each lexical rule: for rare words from `_tag_counts`

    @classmethod
    def of(cls, trained: RuleTable, original: RuleTable, classes: RareWordClasses, tag_prior: float) -> _Lexicon:
        """Join the rules of the trees themselves (``original``) with the rules of the classes (``trained``)."""
        rule_of = {(a, trained.words[w]): i for i, (a, _, _, w) in enumerate(trained.rules.tolist()) if w >= 0}
        words = tuple(sorted({*original.words, *classes.names, ANY}))
        word_id = {word: i for i, word in enumerate(words)}
        lexical = original.rules[:, 3] >= 0
        seen: dict[str, dict[int, float]] = defaultdict(dict)  # occurrences of each word by parent
        pairs = original.rules[lexical][:, [0, 3]].tolist()
        for (parent, word), count in zip(pairs, original.counts[lexical].tolist(), strict=True):
            seen[original.words[word]][parent] = float(count)
        types: dict[str, Counter[int]] = defaultdict(Counter)  # rare types of each class by parent
        for name, label in classes.rare.items():
            types[label].update(seen[name].keys())
        rows: list[tuple[int, int, int, bool, float]] = []  # parent, word, source, unseen, weight
        for name, result in seen.items():
            rare = name in classes.rare
            group = classes.rare[name] if rare else word_class(name, classes.names)
            for a, n in _tag_counts(result, types.get(group, {}), tag_prior).items():
                if rare or a not in result:
                    rows.append((a, word_id[name], rule_of[a, group], False, n))
            if not rare:
                rows += [(a, word_id[name], rule_of[a, name], False, n) for a, n in result.items()]
        for label, parents in types.items():
            rows += [(a, word_id[label], rule_of[a, label], True, float(k)) for a, k in parents.items()]
        for parent in {parent for parents in types.values() for parent in parents} - types.get(ANY, Counter()).keys():
            rows.append((parent, word_id[ANY], -1, True, 1.0))
        rows.sort()
        table = np.array([row[:2] for row in rows], dtype=np.int64)
        absent = np.full(len(table), -1)
        rules = np.concatenate([original.rules[~lexical], np.column_stack([table[:, 0], absent, absent, table[:, 1]])])
        weight = np.array([row[4] for row in rows])
        counts = np.concatenate([original.counts[~lexical], np.maximum(np.rint(weight), 1.0).astype(np.int64)])
        full = RuleTable(original.symbols, words, rules.astype(np.int32), counts, original.n_trees, original.n_tokens)
        return cls(full, np.array([row[2] for row in rows]), np.array([row[3] for row in rows]), weight)


def _tag_counts(seen: Mapping[int, float], types: Mapping[int, int], prior: float) -> dict[int, float]:
    """Return the occurrences of a rare word by tag; their sum is kept, ``prior`` occurrences are as in the class.

    Args:
        seen: occurrences by tag.
        types: types of the class by tag.
        prior: occurrences added before the sum is scaled back.
    """
    if prior == 0.0:
        return dict(seen)
    total, n_types = sum(seen.values()), sum(types.values())
    shrunk = total / (total + prior)
    return {tag: shrunk * (seen.get(tag, 0.0) + prior * n / n_types) for tag, n in types.items()}


def _spread(trained: SparseRules, lexicon: _Lexicon, counts: FloatArray | None, prior: float) -> FloatArray:
    """Spread the probability of each trained terminal over its words and its class.

    Without ``counts`` (expected uses of the lexical rules, at their places) every substate is treated alike. The result
    is the probabilities of the lexical rules, in the order of `SparseRules.lexical`.
    """
    layout, before = Layout(lexicon.table, trained.layout.substates), trained.layout
    start, start_before = layout.first_lexical, before.first_lexical
    result, old_prob = np.zeros(layout.size - start), trained.lexical(trained.prob)
    any_word = lexicon.table.words.index(ANY)
    rule, first = lexicon.table.n_phrasal, before.table.n_phrasal
    at = 0
    for old, block in zip(before.lexical_blocks, layout.lexical_blocks, strict=True):
        n, substates = block.shape[0], block.shape[3]
        here = slice(at, at + n)
        source, unseen = lexicon.source[here] - first, lexicon.unseen[here]
        weight = lexicon.weight[here, None] * np.ones(substates)
        if counts is not None:
            uses = counts[block.start - start : block.stop - start].reshape(n, substates)
            weight *= _leaning(uses, source, unseen, old.shape[0], prior)
        at, first = at + n, first + old.shape[0]
        joined = source >= 0
        total = np.zeros((old.shape[0], substates))
        np.add.at(total, source[joined], weight[joined])
        fine = np.zeros((n, substates))
        whole = old_prob[old.start - start_before : old.stop - start_before].reshape(-1, substates)
        fine[joined] = whole[source[joined]] * weight[joined] / total[source[joined]]
        if unseen.any():
            (any_rule,) = np.flatnonzero(lexicon.table.rules[rule + at - n : rule + at, 3] == any_word)
            left = NEW_FORM * fine[unseen]
            fine[unseen] -= left
            fine[any_rule] += left.sum(axis=0)
        result[block.start - start : block.stop - start] = fine.ravel()
    return result


def _leaning(counts: FloatArray, source: IntArray, unseen: BoolArray, n_sources: int, prior: float) -> FloatArray:
    """Return the frequency of a word on each substate relative to its class, (rules, substates); 1 for the class.

    ``counts`` are the expected uses in the trees. The distribution of a word over substates is estimated with ``prior``
    further occurrences, distributed as the class is.
    """
    group = np.zeros((n_sources, counts.shape[1]))
    words = ~unseen
    np.add.at(group, source[words], counts[words])
    size = group.sum(axis=1, keepdims=True)
    share = np.divide(group, size, out=np.zeros_like(group), where=size > 0.0)[source[words]]
    uses = counts[words].sum(axis=1, keepdims=True)
    smoothed = (counts[words] + prior * share) / (uses + prior)
    result = np.ones_like(counts)
    result[words] = np.divide(smoothed, share, out=np.ones_like(smoothed), where=share > 0.0)
    return result


@with_config(STRICT)
class State(TypedDict):
    """Content of the file in addition to the probabilities, as JSON."""

    key: str
    phases: Count
    substates: tuple[Positive, ...]  # of each symbol
    trees: tuple[Any, ...]  # a `SplitTree` for each symbol
    trace: list[TraceRow]


def save(folder: Path, key: str, phases: int, rules: SparseRules, trace: Sequence[TraceRow]) -> None:
    """Write the state after ``phases`` finished phases, atomically."""
    state: State = {
        "key": key,
        "phases": phases,
        "substates": rules.layout.substates,
        "trees": rules.trees,
        "trace": list(trace),
    }
    with atomic_path(folder / NAME) as temporary, temporary.open("wb") as stream:
        np.savez(stream, place=rules.place, prob=rules.prob, state=np.array(json.dumps(state, allow_nan=False)))


def load(folder: Path, key: str, table: RuleTable) -> tuple[int, SparseRules, list[TraceRow]] | None:
    """Return finished phases, grammar and trace of an earlier run; None without one.

    Raises:
        InputError: the file cannot be read, or belongs to other trees, settings or another seed.
    """
    path = folder / NAME
    if not path.exists():
        return None
    arrays = read_arrays(path, {"place": integers(), "prob": FLOATS, "state": TEXT}, what=_WHAT, remedy=_REMEDY)
    state = decode_record(str(arrays["state"]), State, what=_WHAT, remedy=_REMEDY, path=path, embedded=True)
    if state["key"] != key:
        raise InputError("the checkpoint is of other trees, settings or seed; choose another folder", path)
    substates, trees = state["substates"], state["trees"]
    layout = Layout(table, substates)
    place, prob = arrays["place"], arrays["prob"]
    fits = len(substates) == len(table.symbols) and len(place) == len(prob) > 0
    fits = fits and place[0] >= 0 and place[-1] < layout.size and bool((np.diff(place) > 0).all())
    if not fits or [sorted(_leaves(tree)) for tree in trees] != [list(range(n)) for n in substates]:
        raise InputError(f"{_WHAT} does not fit the trees; {_REMEDY}", path)
    if not ((prob > 0.0) & (prob <= 1.0 + 1e-9)).all():
        raise InputError(f"{_WHAT} has a probability outside 0 to 1; {_REMEDY}", path)
    return state["phases"], SparseRules.at(layout, trees, place, prob), state["trace"]


def _leaves(tree: SplitTree) -> list[int]:
    """Return the numbers of the substates; -1 in place of anything else."""
    if isinstance(tree, list):
        return [leaf for part in tree for leaf in _leaves(part)]
    return [tree if type(tree) is int else -1]


log = logging.getLogger("truesource.grammar")


def split_merge(
    trees: Iterable[Tree],
    config: SplitMerge | None = None,
    *,
    seed: int,
    held_out: Iterable[Tree] | None = None,
    checkpoint: str | Path | None = None,
    on_phase: Callable[[Sequence[TraceRow]], None] | None = None,
) -> InducedGrammar:
    """Induce a grammar with substates from a treebank (Petrov, Barrett, Thibaux and Klein 2006).

    Training starts from relative frequencies; the start symbol is never split. The likelihood of the training trees
    rises at every iteration of the split and merge phases; smoothing may lower it. Trees with a node of
    more than two children are binarised by `truesource.grammar.treebank.Binarisation` first. The result is the same
    for a seed, whatever the number of threads, and whether or not a run was interrupted. A cycle that would make
    more substates than the treebank has words is not begun: ``meta["stopped"]`` says so.

    Args:
        trees: binarised trees with one root label.
        config: settings of the training; see `SplitMerge` for the defaults.
        seed: seed of the noise that breaks the symmetry of a split, an integer >= 0.
        held_out: more trees, scored at every iteration; those with a rule or word never seen in
            ``trees`` are impossible for a maximum-likelihood grammar and are counted as such.
        checkpoint: folder to save in after every phase, and to resume from.
        on_phase: called after every phase with the trace so far, as in `InducedGrammar`.

    Returns:
        The grammar, whose ``meta`` records the settings, and the trace of the training.

    Raises:
        InputError: there are no trees, their root labels differ, a node cannot be binarised, the seed is
            negative, or the checkpoint belongs to another run.
    """
    config = SplitMerge() if config is None else config
    seed = seed_number(seed)
    binarised = BinaryTrees(trees)
    subtrees = Subtrees.of(binarised)
    held_out_trees = validating = list(BinaryTrees(held_out or ()))
    folder = None if checkpoint is None else Path(checkpoint)
    key = "" if folder is None else _key(config, seed, subtrees, held_out_trees)
    parse: tuple[RareWordClasses, Subtrees] | None = None
    if config.lexicon == "parse":
        classes = RareWordClasses.of(subtrees.table.word_counts, config.rare, config.class_types)
        parse = classes, subtrees
        subtrees, validating = subtrees.with_words(classes.rare), classes.in_training(held_out_trees)
    table, forests = subtrees.table, subtrees.forests(subtrees.table)
    validation = Validation(*encode(validating, table))
    del subtrees, validating  # large
    with meter("split-merge", config.iterations) as progress:
        trainer = SplitMergeTrainer(config, forests, validation, SparseRules.initial(table), progress)
        done = 0
        if folder is not None and (result := load(folder, key, table)) is not None:
            done, trainer.rules, trainer.trace = result
            progress.skip(sum(trainer.iterations(PHASES[i % len(PHASES)]) for i in range(done)))
        else:
            trainer.start()
        stopped = _run_phases(trainer, config, seed, done, folder, key, on_phase)
    whole, trace = trainer.rules, trainer.trace
    if parse is not None:
        del trainer, forests  # large
        whole, forests = with_words(whole, *parse, config.class_prior, config.tag_prior)
        table = whole.layout.table
        validation = Validation(*encode(parse[0].in_parsing(held_out_trees), table))
    final = filtered(whole, config.filter)
    fit = _fit(likelihood(forests, final), validation.score(final), len(held_out_trees))
    del forests  # large
    meta: dict[str, object] = {"estimator": "split_merge", "config": asdict(config), "seed": seed}
    meta |= {"trees": table.n_trees, "tokens": table.n_tokens, "binarised_trees": binarised.changed, **fit}
    for name, values in (("substates", final.layout.substates), ("split_trees", final.trees)):
        meta[name] = dict(zip(table.symbols, values, strict=True))
    if parse is not None:
        meta["unknown_words"] = parse[0].as_meta(config.rare)
    if stopped:
        meta["stopped"] = stopped
    pcfg = to_pcfg(final, meta)
    cost = filter_cost(pcfg, whole, config.filter)
    return InducedGrammar(replace(pcfg, meta=round_floats({**pcfg.meta, "filter": cost})), tuple(trace))


def _fit(training: Likelihood, held_out: Likelihood, held_out_trees: int) -> dict[str, object]:
    """Return how well a grammar fits its trees and any held-out trees."""
    fit: dict[str, object] = {"log_likelihood_per_token": training.per_token, "impossible_trees": training.impossible}
    if held_out_trees:
        fit["held_out"] = {
            "trees": held_out_trees,
            "impossible_trees": held_out.impossible,
            "log_likelihood_per_token": held_out.per_token,
        }
    return fit


def _run_phases(
    trainer: SplitMergeTrainer,
    config: SplitMerge,
    seed: int,
    done: int,
    folder: Path | None,
    key: str,
    on_phase: Callable[[Sequence[TraceRow]], None] | None,
) -> str:
    """Train from phase ``done`` on; return why training stopped early, if it did."""
    for i in range(done, config.cycles * len(PHASES)):
        cycle, phase = 1 + i // len(PHASES), PHASES[i % len(PHASES)]
        if phase == "split" and (stopped := too_many(trainer.rules.layout, cycle, config.cycles)):
            log.warning(stopped)
            return stopped
        trainer.run(cycle, phase, np.random.default_rng([seed, cycle]))
        if folder is not None:
            save(folder, key, i + 1, trainer.rules, trainer.trace)
        if on_phase is not None:
            on_phase(trainer.trace)
    return ""


def too_many(layout: Layout, cycle: int, cycles: int) -> str:
    """Return why no further split is supported, if so: it would make more substates than the treebank has words."""
    table = layout.table
    after = 2 * layout.n_rows - 1
    if after <= table.n_tokens:
        return ""
    return (
        f"stopped after {cycle - 1} of {cycles} cycles: a further split would make {after:,} substates from"
        f" {table.n_tokens:,} words; use more trees"
    )


def _key(config: SplitMerge, seed: int, subtrees: Subtrees, held_out: Sequence[Tree]) -> str:
    """Return the digest of everything that must match for a checkpoint to be resumed."""
    others = hashlib.sha256("\n".join(map(str, held_out)).encode()).hexdigest()
    return digest_json({"config": asdict(config), "seed": seed, "trees": subtrees.digest, "held_out": others})
