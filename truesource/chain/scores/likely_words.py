"""Beside the scores: the words that truth and model find most likely in the first evaluation sentences."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from truesource.evaluation.divergence.blocks import next_words, write_next_words
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.generator.interface.language_model import LanguageModel
    from truesource.run.folder import RunFolder

SENTENCES = 40  #: whose words are written, the first ones
TOKENS = 1200  #: at most so many together, but for the first sentence

log = logging.getLogger("truesource")


def write_likely_words(run: RunFolder, model: LanguageModel, name: str) -> None:
    """Write ``next_words/<name>.parquet``, see `truesource.evaluation.divergence.blocks`.

    There is no file where tokens have no truth, and where the model's distributions cannot be had: the report can do
    without them.
    """
    config, path = run.config.evaluation, run.folder / "next_words" / f"{name}.parquet"
    pcfg, transform = run.text_grammar
    some = _first(run.corpus.sentences(config.split)[: config.sentences])
    path.unlink(missing_ok=True)
    try:
        rows = next_words(model, pcfg, some, lengths=run.corpus.lengths, transform=transform)
    except InputError as error:
        log.info("%s: no most likely words: %s", name, error.reason)
        return
    path.parent.mkdir(exist_ok=True)
    write_next_words(path, rows)


def _first(sentences: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    kept: list[Sequence[str]] = []
    for sentence in sentences[:SENTENCES]:
        if kept and sum(map(len, kept)) + len(sentence) > TOKENS:
            break
        kept.append(sentence)
    return kept
