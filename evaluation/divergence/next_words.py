"""The words that truth and model find most likely at every position of some sentences, and how likely they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truesource.evaluation.core.comparison import oracle_for
from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.core.transformed import require_tokens
from truesource.evaluation.divergence.blocks import (
    PENN,
    Events,
    TruthBlock,
    batches_of,
    events_of,
    paired_blocks,
    truth_blocks,
)
from truesource.generator.interface.abilities import offers
from truesource.generator.interface.frame import END
from truesource.generator.interface.language_model import LanguageModel
from truesource.generator.transforms import Transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.files import atomic_path
from truesource.grammar.tables import Kind, read_table

TOP = 10  #: words of each side
COLUMNS: dict[str, Kind] = {
    "sentence": "int",
    "position": "int",
    "class": "text",
    "side": "text",
    "rank": "int",
    "word": "text",
    "log_prob": "float",
}


def next_words(
    model: LanguageModel,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    top: int = TOP,
    transform: Transform | None = None,
) -> list[dict[str, Any]]:
    """The most likely words of truth and model at every position, most likely first.

    The truth tells apart the words that the model does. A model without full distributions has no rows of its own.

    Args:
        model: any.
        pcfg: the grammar that the corpus was drawn from.
        sentences: drawn from the grammar; those that it cannot make have no rows.
        lengths: the length condition that they were drawn under.
        top: how many words of each side.
        transform: of the text, see `truesource.evaluation.core.oracle.Oracle`; for masked models.

    Returns:
        A row a word with the columns `COLUMNS`, in the order of sentences, positions, sides and ranks; the truth is the
        side before the model. ``class`` is the most probable class of the word that stands there, given its context:
        of Penn tags one of seven, else the label itself; empty at the end of a sentence.

    Raises:
        InputError: a sentence is empty or too long for the model, or causal tokens have no truth (``transform``).
    """
    require_tokens(transform, model.objective, "a distribution over the next word")
    oracle = oracle_for(model, pcfg, lengths, transform=transform)
    events = events_of(model, oracle)
    names = np.array([*events.words, UNKNOWN, *([END] if events.causal else [])], dtype=object)
    rows: list[dict[str, Any]] = []
    for block, of_model in _blocks(model, oracle, sentences, events):
        kept = np.flatnonzero(block.whole)
        classes = _classes(oracle, events, block)
        sides: dict[str, Any] = {"truth": block.log_prob} | ({} if of_model is None else {"model": of_model})
        for side, table in sides.items():
            for row in kept.tolist():
                for rank, column in enumerate(_most(table[row], top), start=1):
                    likely = {"side": side, "rank": rank, "word": names[column], "log_prob": float(table[row, column])}
                    for sentence in block.members[row]:
                        place = {"sentence": sentence, "position": block.position, "class": classes[row]}
                        rows.append({**place, **likely})
    return sorted(rows, key=lambda row: (row["sentence"], row["position"], row["side"] != "truth", row["rank"]))


def _blocks(
    model: LanguageModel, oracle: Oracle, sentences: Sequence[Sequence[str]], events: Events
) -> Iterator[tuple[TruthBlock, FloatArray | None]]:
    if offers(model, "distributions"):
        yield from paired_blocks(model, oracle, sentences, events, "most likely words")  # type: ignore[arg-type]
        return
    for batch in batches_of(oracle, sentences, len(events)):
        for block in truth_blocks(oracle, batch, events):
            yield block, None


def _most(row: FloatArray, top: int) -> list[int]:
    """Columns of the largest entries, largest first, without impossible ones."""
    few = np.argpartition(-row, min(top, len(row) - 1))[:top] if len(row) > top else np.arange(len(row))
    ordered = few[np.lexsort((few, -row[few]))]
    return [column for column in ordered.tolist() if np.isfinite(row[column])]


def _classes(oracle: Oracle, events: Events, block: TruthBlock) -> list[str]:
    """The most probable class of the word that stands there, for each row; empty for the end of a sentence."""
    language = oracle.language
    column = np.where(block.observed >= 0, events.source[block.observed], -1)
    is_word = (column >= 0) & (column < len(language.terminals))
    emission = language.exact.emission[:, np.where(is_word, column, 0)]
    weights = block.states * np.asarray(emission.todense()).T
    labels = [PENN.of_tag.get(label, label) for label in language.labels]
    names = list(dict.fromkeys(labels))
    of_class = np.zeros((len(labels), len(names)))
    of_class[np.arange(len(labels)), [names.index(label) for label in labels]] = 1.0
    best = (weights @ of_class).argmax(axis=1)
    return [names[at] if word else "" for at, word in zip(best.tolist(), is_word.tolist(), strict=True)]


def write_next_words(path: str | Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows of `next_words` as Parquet, all digits of numbers kept."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"text": pa.string(), "int": pa.int32(), "float": pa.float64()}
    made = {name: pa.array([row[name] for row in rows], kinds[kind]) for name, kind in COLUMNS.items()}
    with atomic_path(path) as temporary:
        pq.write_table(pa.table(made), temporary, compression="zstd")


def read_next_words(path: str | Path) -> list[dict[str, Any]]:
    """Rows that `write_next_words` wrote.

    Raises:
        InputError: the file is missing or damaged.
    """
    table = read_table(
        path, COLUMNS, what="this table of likely words", remedy="delete it and run the experiment again"
    )
    return table.to_pylist()  # type: ignore[no-any-return]
