"""Backoff n-gram models in ARPA files, as SRILM, KenLM and others write them, as n-gram models of words."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_text_lines
from truesource.lmtrain.architectures.ngram.models import NgramModel, emitted_words
from truesource.lmtrain.architectures.ngram.reading import log_mass
from truesource.lmtrain.architectures.ngram.trie import NgramEstimate, Trie
from truesource.lmtrain.tokenizer import BOS, EOS, SPECIALS, UNK, build_tokenizer
from truesource.lmtrain.word_vocabulary import WordVocabulary

MARKS = {"<s>": BOS, "</s>": EOS, "<unk>": UNK, "<UNK>": UNK}  #: of ARPA files, and ours
ZERO = -90.0  #: log10 probabilities from here down are zero (SRILM writes -99)
TOLERANCE = 1e-3  #: largest distance from 1 of the sum of words after a context, since files round to 5 to 7 digits
_LN10 = math.log(10.0)
_COUNT = re.compile(r"ngram (\d+)\s*=\s*(\d+)")
_SECTION = re.compile(r"\\(\d+)-grams:")


@dataclass
class ArpaEntries:
    """The n-grams of a file, by length: words, log probability and log backoff weight, in nats."""

    path: Path
    tables: list[dict[tuple[str, ...], tuple[float, float]]] = field(default_factory=list)


def load_arpa(path: str | Path) -> NgramModel:
    """Read a backoff model from an ARPA file, gzipped if its name ends in ``.gz``.

    A word after a context has the probability of the longest n-gram of the file that fits, times the backoff weights of
    the longer contexts. Since files round, the probabilities after each context are divided by their sum. Words outside
    the file are ``<unk>``; if the file has none, they have probability zero.

    Raises:
        InputError: the file is missing, is no ARPA file (line given), has no sentence end, or the words after a context
            do not sum to one within 0.001.
    """
    entries = _read(Path(path))
    words = [w for (w,) in entries.tables[0] if w not in MARKS]
    if ("</s>",) not in entries.tables[0]:
        raise InputError("the model has no </s>, so its sentences never end; train it with sentence boundaries", path)
    if special := next((word for word in words if word in SPECIALS), None):
        raise InputError(f"the model has the word {special!r}, which marks something else here; rename it", path)
    tokenizer = build_tokenizer([words])
    vocabulary = WordVocabulary(tokenizer)
    estimate = _estimate(entries, vocabulary)
    _normalise(estimate, tokenizer, Path(path))
    return NgramModel(estimate, tokenizer, Path(path).name.removesuffix(".gz").removesuffix(".arpa"))


def _read(path: Path) -> ArpaEntries:
    result = ArpaEntries(path)
    counts: list[int] = []
    length = 0  # of the section that is read; 0 before the first
    number, ended = 0, False
    for number, raw in enumerate(read_text_lines(path), 1):
        line = raw.strip()
        if not line or ended:
            continue
        if line == "\\data\\":
            counts = []
        elif line == "\\end\\":
            ended = True
        elif (match := _COUNT.fullmatch(line)) and not length:
            if int(match[1]) != len(counts) + 1:
                raise InputError(f"the counts of n-grams are out of order: {line!r}", path, number)
            counts.append(int(match[2]))
        elif match := _SECTION.fullmatch(line):
            length = int(match[1])
            if length != len(result.tables) + 1 or length > len(counts):
                raise InputError(f"the section {line!r} was not announced, or is out of order", path, number)
            result.tables.append({})
        elif length:
            words, values = _entry(line, length, path, number)
            if words in result.tables[-1]:
                raise InputError(f"the n-gram {' '.join(words)!r} appears twice", path, number)
            result.tables[-1][words] = values
        elif counts:
            raise InputError(f"expecting a section such as \\\\1-grams:, got {line[:40]!r}", path, number)
    sizes = [len(table) for table in result.tables]
    if not sizes or sizes != counts or not ended:
        announced = f"{counts} n-grams by length are announced, {sizes} are there"
        raise InputError(
            f"this ARPA file is incomplete: {announced}{'' if ended else ', and no end'}", path, number or None
        )
    return result


def _entry(line: str, length: int, path: Path, number: int) -> tuple[tuple[str, ...], tuple[float, float]]:
    """Parse a line: an n-gram, its log probability and backoff weight, nats."""
    fields = line.split()
    try:
        if len(fields) not in (length + 1, length + 2):
            raise ValueError(line)
        log_prob = float(fields[0])
        backoff = float(fields[-1]) if len(fields) == length + 2 else 0.0
    except ValueError:
        raise InputError(
            f"expecting a log10 probability, {length} words and perhaps a backoff weight, got {line[:60]!r}",
            path,
            number,
        ) from None
    if not (log_prob <= 1e-6 and math.isfinite(backoff)):
        raise InputError(f"{fields[0]} is no log10 probability, or {fields[-1]} no backoff weight", path, number)
    value = -math.inf if log_prob <= ZERO else min(log_prob, 0.0) * _LN10
    return tuple(fields[1 : length + 1]), (value, -math.inf if backoff <= ZERO else backoff * _LN10)


def _estimate(entries: ArpaEntries, vocabulary: WordVocabulary) -> NgramEstimate:
    """The n-grams as a trie; contexts and ends of n-grams that the file leaves out are added with backed-off values."""
    numbers = {
        **{word: int(i) for word, i in zip(vocabulary.words, vocabulary.word_ids, strict=True)},
        **{"<s>": vocabulary.bos, "</s>": vocabulary.eos, "<unk>": vocabulary.unk, "<UNK>": vocabulary.unk},
    }
    unknown = next((w for table in entries.tables for ngram in table for w in ngram if w not in numbers), None)
    if unknown is not None:
        raise InputError(f"the word {unknown!r} is in longer n-grams, but has none of length 1", entries.path)
    tables = [{tuple(numbers[w] for w in ngram): v for ngram, v in table.items()} for table in entries.tables]
    listed = [set(table) for table in tables]
    for token in range(len(vocabulary)):
        tables[0].setdefault((token,), (-math.inf, 0.0))
    for length in range(len(tables) - 1, 0, -1):
        for ngram in tables[length]:
            for shorter in (ngram[:-1], ngram[1:]):
                if shorter not in tables[length - 1]:
                    tables[length - 1][shorter] = (math.nan, 0.0)
    tables[0][(vocabulary.bos,)] = (-math.inf, tables[0][(vocabulary.bos,)][1])  # it never follows anything
    level, start = [0], list[int]()
    word, suffix, count, log_prob, backoff = [-1], [-1], [0], [-math.inf], [0.0]
    node: dict[tuple[int, ...], int] = {(): 0}
    for table, in_file in zip(tables, listed, strict=True):
        below, base = node, level[-1]
        level.append(len(word))
        ordered = sorted(table, key=lambda ngram: (below[ngram[:-1]], ngram[-1]))
        node = {ngram: level[-1] + i for i, ngram in enumerate(ordered)}
        followers = np.bincount([below[ngram[:-1]] - base for ngram in ordered], minlength=len(below))
        start += (level[-1] + np.cumsum(followers) - followers).tolist()
        for ngram in ordered:
            value, weight = table[ngram]
            word.append(ngram[-1])
            suffix.append(below[ngram[1:]])
            count.append(int(ngram in in_file))
            # n-grams outside the file have the backed-off probability
            log_prob.append(backoff[below[ngram[:-1]]] + log_prob[below[ngram[1:]]] if math.isnan(value) else value)
            backoff.append(weight)
    rows = (level, [*start, len(word)], word, suffix, count)
    trie = Trie(*(np.array(row, dtype=np.int32) for row in rows))
    trie.check()
    return NgramEstimate(
        trie,
        "arpa",
        np.zeros((trie.order, 3)),
        emitted_words(vocabulary),
        np.array(log_prob),
        np.array(backoff[: int(trie.level[-1])]),
    )


def _tokens_of(trie: Trie, ngram: int) -> list[int]:
    """Return the tokens of an n-gram of a trie."""
    tokens: list[int] = []
    while ngram > 0:
        tokens.append(int(trie.word[ngram]))
        ngram = int(np.searchsorted(trie.start, ngram, side="right")) - 1
    return tokens[::-1]


def _normalise(estimate: NgramEstimate, tokenizer: PreTrainedTokenizerFast, path: Path) -> None:
    """Divide the probabilities after each context by their sum, in place, shorter contexts first.

    A backoff weight is divided by the sum of its own context, and multiplied by the sum of the shorter one, by which
    the probabilities below were divided.
    """
    trie = estimate.trie
    members = np.zeros(trie.n_tokens, dtype=np.bool_)
    members[estimate.emitted] = True
    log_sum = log_mass(estimate, members)
    worst = int(np.argmax(np.abs(np.expm1(log_sum))))
    if not abs(math.expm1(log_sum[worst])) <= TOLERANCE:
        tokens = tokenizer.convert_ids_to_tokens(_tokens_of(trie, worst))
        words = ["<s>" if token == BOS else token for token in tokens]
        context = f"after {' '.join(words)!r}" if words else "of single words"
        raise InputError(
            f"the probabilities {context} sum to {math.exp(log_sum[worst]):.6g}, but must sum to 1 with backoff after"
            " each context; this file was cut or pruned without a new normalisation, so make it anew",
            path,
        )
    contexts: IntArray = np.repeat(np.arange(len(log_sum)), np.diff(trie.start))
    estimate.log_prob[1:] -= log_sum[contexts]
    estimate.backoff[1:] += log_sum[trie.suffix[1 : len(log_sum)]] - log_sum[1:]
