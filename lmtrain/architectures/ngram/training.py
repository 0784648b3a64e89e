"""Training an n-gram model: counting, and the finished folder."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from truesource.generator.columns import CodedSentences
from truesource.grammar.support.atomic_files import atomic_path, write_json, write_text
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram._kernels import counts as kernels
from truesource.lmtrain.architectures.ngram.models import NGRAM, CountedModel, NgramModel, NgramPieceModel, make_ngram
from truesource.lmtrain.architectures.ngram.trie import adjust, count_ngrams, read_stream, save_counts
from truesource.lmtrain.architectures.settings import NgramSettings
from truesource.lmtrain.card import folder_card, versions
from truesource.lmtrain.subword_vocabulary import encoder_of
from truesource.lmtrain.subwords import make_tokenizer
from truesource.lmtrain.tokenizer import SPECIALS
from truesource.lmtrain.training_record import FILE, file_digests, write_times

log = logging.getLogger("truesource")
AnyNgramModel = NgramModel | NgramPieceModel
Monitor = Callable[[AnyNgramModel], Mapping[str, float]]


def train_ngram(
    model: NgramSettings,
    train_split: CodedSentences,
    dev_split: CodedSentences,
    request: Mapping[str, object],
    out: Path,
    monitor: Monitor | None = None,
    shared: PreTrainedTokenizerFast | None = None,
) -> None:
    """Count a train split and write the model to a folder; called by `truesource.lmtrain.training.train`.

    Counting takes seconds a million sentences, so a stopped call cannot be resumed: after Ctrl-C or a kill, ``out`` is
    as it was, and the same call begins again. Nothing is random.

    The line of ``metrics.jsonl`` has ``loss`` on the train split and ``dev_loss`` on the sentences of the dev split
    that the model gives a probability at all, nats per word, or piece, or sentence end; ``dev_sentences_covered`` is
    the share of these sentences, ``dev_tokens_covered`` the share of tokens and ends whose own probability is above 0.
    Both are 1 under Kneser-Ney, unless pieces cannot spell a dev sentence. All are None without a dev split.

    Args:
        model: order, smoothing, vocabulary.
        train_split: sentences to count.
        dev_split: sentences to report the loss of; may be empty.
        request: entries of ``training.json`` about the call.
        out: folder to make.
        monitor: measures the model for ``metrics.jsonl``.
        shared: a tokeniser of the kind that ``model`` asks for, made from another text; None: made from the train
            split.

    Raises:
        InputError: there are no words, or too many, the tokeniser cannot be made, or a measurement is not finite.
    """
    begun = time.perf_counter()
    tokenizer = make_tokenizer(model, train_split, "causal") if shared is None else deepcopy(shared)
    vocabulary = encoder_of(tokenizer)
    stream = read_stream(train_split, vocabulary)
    tokens = stream.n_events
    order = min(model.order, int(stream.lengths.max()) + 2)
    if order < model.order:
        log.warning(
            "order %s is longer than any sentence; counting n-grams of up to %d tokens, the longest sentence with its"
            " start and end",
            f"{model.order:,}",
            order,
        )
    trie = count_ngrams(stream, order, n_tokens=len(vocabulary), bos=vocabulary.bos, eos=vocabulary.eos)
    del stream
    trie = adjust(trie, model.smoothing)
    trained = make_ngram(trie, model.smoothing, tokenizer, model.label)
    _warn_of_single_discounts(trained)
    metrics = {
        "step": 0,
        "epoch": 1.0,
        "tokens": tokens,
        "loss": _train_loss(trained, vocabulary.bos),
        "lr": None,
        **_dev_metrics(trained, dev_split),
        **_monitored(trained, monitor),
    }
    record = {
        **request,
        "name": model.label,
        "objective": trained.objective,
        "parameters": trained.n_ngrams,
        "vocabulary": len(vocabulary) - len(SPECIALS),
        "steps": 0,
        "planned_steps": 0,
        "stopped_early": False,
        "final": metrics,
        "versions": versions(),
    }
    _write(trained, model, record, round(time.perf_counter() - begun, 3), out)


def _warn_of_single_discounts(model: AnyNgramModel) -> None:
    """Warn of lengths without three discounts; see `truesource.lmtrain.architectures.ngram.trie`."""
    if model.estimate.smoothing != "kneser_ney":
        return
    single = {n: row[0] for n, row in enumerate(model.estimate.discount.tolist(), 1) if len(set(row)) == 1}
    if single:
        listed = ", ".join(_lengths_text(lengths, single) for lengths in _runs(list(single)))
        log.warning(
            "modified Kneser-Ney needs n-grams that count 1, 2, 3 and 4; the text has too few of them, so n-grams of"
            " these lengths lose a single discount whatever their count: %s",
            listed,
        )


def _runs(numbers: list[int]) -> list[list[int]]:
    """Return rising numbers in runs without gaps."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _lengths_text(lengths: list[int], discounts: Mapping[int, float]) -> str:
    """Return lengths without gaps and their discounts, such as ``2 to 4 (0.5 to 0.7)``."""
    low, high = min(discounts[n] for n in lengths), max(discounts[n] for n in lengths)
    numbers = f"{lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else str(lengths[0])
    return f"{numbers} ({low:.3g})" if low == high else f"{numbers} ({low:.3g} to {high:.3g})"


def _monitored(model: AnyNgramModel, monitor: Monitor | None) -> dict[str, float]:
    values = {} if monitor is None else dict(monitor(model))
    for name, value in values.items():
        if not math.isfinite(value):
            raise InputError(f"the oracle monitor measured {name} as {value}")
    return values


def _write(model: AnyNgramModel, settings: NgramSettings, record: dict[str, object], seconds: float, out: Path) -> None:
    """Write the finished folder."""
    trie = model.estimate.trie
    config = {
        "model_type": NGRAM,
        "order": trie.order,
        "smoothing": settings.smoothing,
        "tokenizer": settings.tokenizer,
        "discounts": model.estimate.discount.tolist(),
        "vocab_size": trie.n_tokens,
    }
    with atomic_path(out) as folder:
        folder.mkdir()
        model.tokenizer.save_pretrained(folder)
        save_counts(model.estimate, folder)
        write_json(folder / "config.json", config)
        write_text(folder / "metrics.jsonl", json.dumps(record["final"], allow_nan=False) + "\n")
        write_times(folder, [{"step": 0, "seconds": seconds}])
        write_json(folder / FILE, {**record, "files": file_digests(folder)})
        write_text(folder / "README.md", folder_card(record))


def _train_loss(model: CountedModel, bos: int) -> float:
    """Mean over all words and ends of the train split: the longest n-grams, and those at the start of a sentence.

    Both count as often as they occur, whatever the smoothing.
    """
    trie, log_prob = model.estimate.trie, model.estimate.log_prob
    ranges = [trie.bounds(trie.order)]
    if trie.order > 1:
        ranges += kernels.start_range(trie.start, trie.level, 1 + bos)[2 : trie.order].tolist()
    sums = [kernels.weighted_sum(trie.count, log_prob, begin, end) for begin, end in ranges]
    return -float(sum(total for total, _ in sums) / sum(tokens for _, tokens in sums))


def _dev_metrics(model: CountedModel, sentences: Sequence[Sequence[str]]) -> dict[str, float | None]:
    if not len(sentences):
        return dict.fromkeys(("dev_loss", "dev_ppl", "dev_sentences_covered", "dev_tokens_covered"))
    stream = model.read(sentences)
    values = model.reader.score(stream)
    possible = np.isfinite(values)
    begins = np.cumsum(stream.lengths + 1) - stream.lengths - 1
    whole = np.logical_and.reduceat(possible, begins)
    covered = values[np.repeat(whole, stream.lengths + 1)]
    loss = -float(covered.mean()) if len(covered) else None
    return {
        "dev_loss": loss,
        "dev_ppl": None if loss is None else math.exp(loss),
        "dev_sentences_covered": float(whole.mean()),
        "dev_tokens_covered": float(possible.mean()),
    }
