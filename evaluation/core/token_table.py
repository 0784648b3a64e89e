"""Tables with a row for each scored token, or for each word."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from truesource.evaluation.measures.paired import Paired
from truesource.generator.columns import as_numbers
from truesource.generator.language_model import END, TokenScores
from truesource.grammar.support.atomic_files import atomic_path
from truesource.grammar.support.parquet import Kind, read_table, read_table_record

_WHAT, _REMEDY = "this table of scores", "score the model again"
T = TypeVar("T")
Column = np.ndarray | Sequence[str | float | None]  #: of a table: a value for each row


def token_columns(
    sentences: Sequence[Sequence[str]],
    scores: TokenScores,
    truth: TokenScores | None = None,
    *,
    other: str = "truth",
) -> dict[str, Column]:
    """Return a row for each position that a model scored, as columns of one length.

    They are ``sentence`` (number in the input, from 0), ``position`` (after the last token, the end of the
    sentence), ``token``, ``word`` (number of the word that the token is in; None at the end of the sentence),
    ``log_prob`` (ln P, nats, of the model) and ``surprisal`` (-ln P); with a truth also ``truth_log_prob`` and
    ``truth_surprisal``, None if it does not score the position.

    Args:
        sentences: that were scored.
        scores: of the model; sentences that it cannot make have no row.
        truth: scores of the grammar.
        other: name of its columns, if it is another reference than the truth.
    """
    places = list(zip(scores.sentence.tolist(), scores.position.tolist(), strict=True))
    columns: dict[str, Column] = {
        "sentence": scores.sentence,
        "position": scores.position,
        "token": [sentences[s][p] if p < len(sentences[s]) else END for s, p in places],
        "word": [p if p < len(sentences[s]) else None for s, p in places],
        "log_prob": scores.log_prob,
        "surprisal": -scores.log_prob,
    }
    if truth is None:
        return columns
    at = zip(truth.sentence.tolist(), truth.position.tolist(), truth.log_prob.tolist(), strict=True)
    by_place = {(s, p): value for s, p, value in at}
    values = [by_place.get(place) for place in places]
    surprisals = [None if value is None else -value for value in values]
    return {**columns, f"{other}_log_prob": values, f"{other}_surprisal": surprisals}


def word_columns(tokens: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return a row for each word: the sums over its tokens, without the ends of sentences.

    Args:
        tokens: as `token_columns` gives them. Sums with an undefined term are None.
    """
    summed = [name for name in tokens if name.endswith(("log_prob", "surprisal"))]
    texts: dict[tuple[int, int], list[str]] = {}
    sums: dict[tuple[int, int], dict[str, float | None]] = {}
    for values in zip(*tokens.values(), strict=True):
        token = dict(zip(tokens, values, strict=True))
        if token["word"] is None:
            continue
        place = (int(token["sentence"]), token["word"])
        texts.setdefault(place, []).append(token["token"])
        row = sums.setdefault(place, dict.fromkeys(summed, 0.0))
        for name, total in row.items():
            row[name] = None if total is None or token[name] is None else total + float(token[name])
    return {
        "sentence": [sentence for sentence, _ in texts],
        "word": [word for _, word in texts],
        "text": ["".join(tokens_of_word) for tokens_of_word in texts.values()],
        "tokens": [*map(len, texts.values())],
        **{name: [row[name] for row in sums.values()] for name in summed},
    }


def write_token_table(
    path: str | Path, paired: Paired | None, sentences: Sequence[Sequence[str]], about: Mapping[str, Any]
) -> None:
    """Write columns sentence, position (the last + 1 is the end of the sentence), token, model, oracle (nats).

    Args:
        path: the Parquet file.
        paired: the scores; None: no token has scores of both sides, so there are no rows.
        sentences: that were scored.
        about: a JSON value for the metadata of the schema: the record of the model, and the parts of its signature.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"sentence": pa.int32(), "position": pa.int32(), "token": pa.dictionary(pa.int32(), pa.string())}
    kinds |= {"model": pa.float64(), "oracle": pa.float64()}
    schema = pa.schema(kinds, {"truesource": json.dumps(about, ensure_ascii=False, allow_nan=False)})
    table = schema.empty_table()
    if paired is not None:
        words = [
            sentences[s][p] if p < len(sentences[s]) else END
            for s, p in zip(paired.sentence.tolist(), paired.position.tolist(), strict=True)
        ]
        token = pa.array(words, pa.string()).dictionary_encode()
        table = pa.table([paired.sentence, paired.position, token, paired.model, paired.oracle], schema=schema)
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def read_token_table(path: str | Path) -> dict[str, np.ndarray]:
    """Return the numeric columns of a table that `write_token_table` wrote.

    Raises:
        InputError: it is missing or damaged.
    """
    columns: dict[str, Kind] = {"sentence": "int", "position": "int", "model": "float", "oracle": "float"}
    table = read_table(path, columns, what=_WHAT, remedy=_REMEDY)
    return {name: as_numbers(table.column(name)) for name in table.column_names}


def read_token_record(path: str | Path, model: type[T]) -> T:
    """Return the record that `write_token_table` wrote as ``about``.

    Args:
        path: the Parquet file.
        model: what it must hold, see `truesource.grammar.support.records`.

    Raises:
        InputError: it is missing or damaged.
    """
    return read_table_record(path, "truesource", model, what=_WHAT, remedy=_REMEDY)
