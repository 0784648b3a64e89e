"""Beliefs: an ideal predictor's exact knowledge of the hidden structure after each word, as arrays.

An ambiguous grammar has no canonical hidden state, so there are several beliefs, each with its definition:

- ``state``: of linear grammars (hidden Markov models, automata), probability of each state of the automaton after
  the words so far, if a word follows: normalised forward probabilities (Rabiner 1989), the belief states of Shai et
  al. (2024). It does not depend on a range of lengths; zeros if no word can follow.
- ``preterminal``: probability that the next word comes from a preterminal symbol; the rest is the end.
- ``open``: expected number of constituents of each label with words on both sides: they have begun and not
  ended. It is the derivative of the log prefix probability in the log weight of such constituents. Symbols
  introduced by binarisation are not counted.
- ``depth``: expected total number of open constituents.
- ``next-word``: the exact distribution of the next word, the end last.
- ``outside``: probability of each preterminal at the word given all other words, and ``inside-outside`` given all
  words: what a masked model needs (Zhao et al. 2023).

The words up to and including the word of the row are given, except for the last two beliefs; a range of lengths is
given too, except for ``state`` and these two.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch, Distributions, run
from truesource.grammar.inference.charts import Charts
from truesource.grammar.inference.distributions import class_posteriors, masked_blocks, next_token_distributions
from truesource.grammar.inference.exact import Exact
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.atomic_files import atomic_path
from truesource.grammar.support.errors import InputError, extras_for
from truesource.grammar.support.files import refuse_existing
from truesource.grammar.treebank.binarise import INTERMEDIATE

Belief = Literal["state", "preterminal", "open", "depth", "next-word", "outside", "inside-outside"]
CAUSAL: tuple[Belief, ...] = ("state", "preterminal", "open", "depth", "next-word")
END = "</s>"
NARROW = 8  #: sentences whose open constituents are counted in one batch, since their arrays are large


@dataclass(frozen=True, eq=False, repr=False)
class Beliefs:
    """A belief at each word of some sentences, sentence after sentence: T rows."""

    kind: Belief
    values: FloatArray  #: (T, d)
    columns: tuple[str, ...]  #: (d,) name of each column
    sentence: IntArray  #: (T,) number of the sentence in the input, ascending
    position: IntArray  #: (T,) place of the word in its sentence, from 0
    token: IntArray  #: (T,) number of the word in the grammar
    excluded: tuple[int, ...]  #: sentences of probability 0; they have no rows

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        names = ", ".join(self.columns[:3]) + (", ..." if len(self.columns) > 3 else "")
        return f"Beliefs({self.kind}: {len(self):,} words x {len(self.columns):,} numbers ({names}))"

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write ``beliefs`` (T, d), ``sentence``, ``position`` and ``token`` (T,) as safetensors; names as metadata.

        Raises:
            InputError: the file exists and ``force`` is false, or cannot be written.
        """
        with extras_for("Beliefs.save"):
            from safetensors.numpy import save
        refuse_existing(path, force)
        arrays = {"beliefs": self.values, "sentence": self.sentence, "position": self.position, "token": self.token}
        names = {"kind": self.kind, "columns": json.dumps(self.columns, ensure_ascii=False)}
        content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata=names)
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)


def beliefs(
    exact: Exact, sentences: Sequence[Sequence[str]], kind: Belief = "preterminal", lengths: LengthRange | None = None
) -> Beliefs:
    """Return the exact beliefs of an ideal predictor of a grammar at each word of some sentences.

    Args:
        exact: exact inference of the grammar.
        sentences: at least one word each.
        kind: see the module. Columns that are zero throughout are dropped.
        lengths: condition on this range, for the kinds that depend on it.

    Raises:
        InputError: there is no such kind, the grammar of ``state`` is not linear, a sentence has no words, all
            sentences are impossible, or one is beyond the range of float64.
    """
    if kind not in get_args(Belief):
        raise InputError(f"there is no belief {kind!r}; choose one of {', '.join(get_args(Belief))}")
    if kind in ("open", "depth"):
        tables, columns = _open(exact, sentences, lengths)
        if kind == "depth":
            tables = [None if table is None else table.sum(axis=1, keepdims=True) for table in tables]
            columns = ("depth",)
    elif kind in ("outside", "inside-outside"):
        columns = exact.pcfg.symbols
        tables = _masked(exact, sentences) if kind == "outside" else _given_all(exact, sentences)
    else:
        tables, columns = _next(exact, sentences, kind, lengths)
    return _assembled(exact, sentences, kind, tables, columns)


def _assembled(
    exact: Exact,
    sentences: Sequence[Sequence[str]],
    kind: Belief,
    tables: Sequence[FloatArray | None],
    columns: tuple[str, ...],
) -> Beliefs:
    """Return rows of the possible sentences, and columns that are not zero throughout."""
    possible = [(i, table) for i, table in enumerate(tables) if table is not None]
    if not possible:
        raise InputError(f"all {len(sentences)} sentences have probability 0", code="no-possible-sentence")
    values = np.concatenate([table for _, table in possible])
    used = np.flatnonzero(values.any(axis=0))
    sizes = [len(table) for _, table in possible]
    return Beliefs(
        kind=kind,
        values=np.ascontiguousarray(values[:, used]),
        columns=tuple(columns[i] for i in used.tolist()),
        sentence=np.repeat(np.array([i for i, _ in possible], dtype=np.int64), sizes),
        position=np.concatenate([np.arange(size) for size in sizes]),
        token=np.concatenate([exact.pcfg.encode(sentences[i]) for i, _ in possible]).astype(np.int64),
        excluded=tuple(i for i, table in enumerate(tables) if table is None),
    )


def _next(
    exact: Exact, sentences: Sequence[Sequence[str]], kind: Belief, lengths: LengthRange | None
) -> tuple[list[FloatArray | None], tuple[str, ...]]:
    """Return beliefs computed from the symbols that can start after each word."""
    if kind == "next-word":
        columns = (*exact.pcfg.vocabulary, END)
    else:
        symbols = _states(exact) if kind == "state" else np.unique(exact.pcfg.lexical[:, 0]).astype(np.int64)
        columns = tuple(exact.pcfg.symbols[i] for i in symbols.tolist())
    tables: list[FloatArray | None] = [np.zeros((len(sentence), len(columns))) for sentence in sentences]
    sums = exact.lexical_sums

    def reduce(block: Distributions) -> tuple[Distributions, FloatArray]:
        if kind == "next-word":
            return block, block.probability
        if kind == "preterminal":
            return block, block.states[:, symbols] * sums[symbols]
        weight = block.states[:, symbols]
        total = weight.sum(axis=1, keepdims=True)
        return block, np.divide(weight, total, out=np.zeros_like(weight), where=total > 0.0)

    for block, rows in next_token_distributions(exact, sentences, reduce, None if kind == "state" else lengths):
        for row, members in enumerate(block.members):
            for i in members:
                table = tables[i]
                if not block.whole[row]:
                    tables[i] = None
                elif table is not None and block.position > 0:
                    table[block.position - 1] = rows[row]
    return tables, columns


def _states(exact: Exact) -> IntArray:
    """Return the states of the automaton of a right-linear grammar.

    Raises:
        InputError: the grammar is not right-linear.
    """
    linear = exact.linear
    if linear is not None and linear.side == "right":
        states = np.unique([*linear.parent, *linear.spine]).astype(np.int64)
        if not np.isin(linear.tag, states).any():
            return states
    raise InputError(
        "only a hidden Markov model or an automaton has states; choose another belief, such as preterminal",
        code="missing-ability",
    )


def _open(
    exact: Exact, sentences: Sequence[Sequence[str]], lengths: LengthRange | None
) -> tuple[list[FloatArray | None], tuple[str, ...]]:
    names = tuple(dict.fromkeys(name for name in exact.pcfg.labels if not name.startswith(INTERMEDIATE)))
    number = {name: i for i, name in enumerate(names)}
    label = np.array([number.get(name, -1) for name in exact.pcfg.labels], dtype=np.int64)
    charts = exact.charts()
    counter = charts if isinstance(charts, Charts) else Charts(exact, lambda: exact.wide)
    possible = np.isfinite(exact.string_log_probs(sentences, lengths))
    tables: list[FloatArray | None] = [None] * len(sentences)

    def task(batch: Batch) -> tuple[FloatArray, BoolArray]:
        return counter.open_constituents(batch.words, lengths, label, len(names))

    work = [narrow for batch in counter.batches(sentences, lengths) for narrow in _narrowed(batch)]
    for batch, (counts, right) in run(task, work, "open constituents of sentences", len(sentences)):
        for row, members in enumerate(batch.members):
            for i in members:
                if possible[i] and not right[row]:
                    raise InputError(f"sentence {i + 1} is too improbable for charts in float64; remove it")
                if possible[i]:
                    tables[i] = np.ascontiguousarray(counts[:, :, row])
    return tables, names


def _narrowed(batch: Batch) -> list[Batch]:
    """Split a batch into batches of fewer sentences."""
    starts = range(0, len(batch.members), NARROW)
    return [
        replace(
            batch,
            words=np.ascontiguousarray(batch.words[:, at : at + NARROW]),
            members=batch.members[at : at + NARROW],
        )
        for at in starts
    ]


def _masked(exact: Exact, sentences: Sequence[Sequence[str]]) -> list[FloatArray | None]:
    sums = exact.lexical_sums
    tables: list[FloatArray | None] = [None] * len(sentences)

    def task(batch: Batch) -> list[Distributions]:
        return list(masked_blocks(exact, batch))

    work = exact.charts().batches(sentences, outside=True)
    for batch, blocks in run(task, work, "masked beliefs of sentences", len(sentences)):
        for row, members in enumerate(batch.members):
            if blocks[0].whole[row]:
                table = np.stack([block.states[row] * sums for block in blocks])
                for i in members:
                    tables[i] = table
    return tables


def _given_all(exact: Exact, sentences: Sequence[Sequence[str]]) -> list[FloatArray | None]:
    return [table if table.any() else None for table in class_posteriors(exact, sentences)]
