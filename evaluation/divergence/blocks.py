"""Paired distributions of model and truth by position: groups of their events, and the most likely words.

Groups are frequency bands of words, bands of the true probability in a context, and classes of the part-of-speech tags
that words come from: all measures by class use one table (`PENN`), or a mapping file instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import require_tokens
from truesource.evaluation.core.word_frequencies import frequency_band, frequency_powers
from truesource.generator.abilities import offers
from truesource.generator.language_model import END as SENTENCE_END
from truesource.generator.language_model import DistributionModel, LanguageModel, LogDistributions
from truesource.generator.model_checks import checked_distributions
from truesource.grammar.inference.batch import Batch
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.atomic_files import atomic_path
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.files import read_bytes, read_text
from truesource.grammar.support.parquet import Kind, read_table
from truesource.grammar.support.printable import meter
from truesource.grammar.support.records import RECORD_LIMIT, decode_record, read_yaml
from truesource.grammar.truth import word_counts

_CLASSES = {
    "adjectives": "JJ JJR JJS CD AFX",
    "function words": "DT IN CC TO RP PDT WDT POS UH",
    "adverbs": "RB RBR RBS WRB",
    "verbs": "VB VBD VBG VBN VBP VBZ MD",
    "nouns": "NN NNS NNP NNPS FW SYM LS ADD GW XX",
    "punctuation": ". , : `` '' ( ) -LRB- -RRB- ? ! # $ HYPH NFP",
    "pronouns": "PRP PRP$ WP WP$ EX",
}  #: the seven of Jumelet & Zuidema (2023, Figure 6), who do not say where numbers, interjections and foreign words go
CELLS = 2**22  #: maximum size of a block of one position (32 MiB); some ten such blocks are in memory at once
END = "(end)"  #: the group of sentence ends in records; tables and figures say "sentence ends"
FLOORS = (0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)  #: minimum true probability of each band
PROBABILITIES = (
    *("0.1 to 1", "0.01 to 0.1", "0.001 to 0.01", "1e-4 to 0.001", "1e-5 to 1e-4", "1e-6 to 1e-5"),
    "below 1e-6",
    "impossible",
)  #: names of these bands, of rarer events, and of impossible ones
TOP = 10  #: number of words of each side
COLUMNS: dict[str, Kind] = {
    "sentence": "int",
    "position": "int",
    "class": "text",
    "side": "text",
    "rank": "int",
    "word": "text",
    "log_prob": "float",
}


@dataclass(frozen=True)
class TagClasses:
    """The mapping of tags to classes."""

    of_tag: Mapping[str, str]
    origin: str  #: origin, for signatures
    complete: bool  #: True: a tag without a class is refused; False: it is a separate class

    def table(self, labels: Sequence[str]) -> tuple[tuple[str, ...], FloatArray]:
        """Return the classes of tags, in the order of the mapping, and a table (L, C) with 1 if a tag is in a class.

        Raises:
            InputError: a tag has no class, and the mapping is complete.
        """
        missing = sorted({label for label in labels if label not in self.of_tag})
        if missing and self.complete:
            more = f" (and {len(missing) - 1} more of the grammar's tags)" if len(missing) > 1 else ""
            raise InputError(f"the classes miss the tag {missing[0]!r}{more}; add a class for it")
        of_label = [self.of_tag.get(label, label) for label in labels]
        mapped = [name for name in dict.fromkeys(self.of_tag.values()) if name in of_label]
        names = (*mapped, *sorted(set(of_label) - set(mapped)))
        table = np.zeros((len(labels), len(names)))
        table[np.arange(len(labels)), [names.index(name) for name in of_label]] = 1.0
        return names, table


#: Penn Treebank tags in seven classes; other labels are separate classes
PENN = TagClasses({tag: name for name, tags in _CLASSES.items() for tag in tags.split()}, "penn", complete=False)


def tags_of(pcfg: PCFG) -> tuple[str, ...]:
    """Return the labels of preterminals, each once."""
    return tuple(dict.fromkeys(pcfg.labels[symbol] for symbol in np.unique(pcfg.lexical[:, 0]).tolist()))


def read_classes(path: str | Path) -> TagClasses:
    """Read a mapping from tags to classes: a JSON or YAML mapping by its suffix, else lines ``tag TAB class``.

    Empty lines are ignored; comments are not possible, as ``#`` is a tag.

    Raises:
        InputError: the file cannot be read, a line or entry is malformed, or a tag has two classes (in a mapping:
            is repeated).
    """
    path = Path(path)
    data = read_bytes(path, limit=RECORD_LIMIT, line_limit=None)
    if path.suffix in (".json", ".yaml", ".yml"):
        of_tag = _mapping(data, path)
    else:
        of_tag = _lines(read_text(path, not_text="the classes are not UTF-8 text"), path)
    if not of_tag:
        raise InputError("this file has no classes; expecting lines of a tag, a tab and a class", path)
    return TagClasses(of_tag, f"file/{hashlib.sha256(data).hexdigest()[:8]}", complete=True)


def _lines(text: str, path: Path) -> dict[str, str]:
    classes: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        tag, name = (*(part.strip() for part in line.split("\t")), "")[:2]
        if line.count("\t") != 1 or not tag or not name:
            raise InputError(f"expecting a tag, a tab and a class, got {line!r}", path, number)
        if classes.setdefault(tag, name) != name:
            raise InputError(f"the tag {tag!r} has two classes, {classes[tag]!r} and {name!r}", path, number)
    return classes


def _mapping(content: bytes, path: Path) -> dict[str, str]:
    what, remedy = "the mapping of classes", "expecting a mapping from tags to classes, both texts in quotes"
    value: Any
    if path.suffix == ".json":
        value = decode_record(content, dict[str, object], what=what, remedy=remedy, path=path, unique=True)
    else:
        value = read_yaml(path, what=what, remedy=remedy)
    if not isinstance(value, dict):
        raise InputError("expecting a mapping from tags to classes", path)
    for tag, name in value.items():
        if not (isinstance(tag, str) and isinstance(name, str) and tag and name):
            raise InputError(f"expecting a tag and its class, both text in quotes, got {tag!r}: {name!r}", path)
    return value


@dataclass(frozen=True, eq=False)
class TruthBlock:
    """The exact distributions at one position of W sentences of one length, in the columns of a model."""

    position: int  #: 0 to n; n is the end of the sentence
    members: tuple[tuple[int, ...], ...]  #: input sentences of each row
    log_prob: NDArray[np.floating]  #: (W, E) ln P, nats
    observed: IntArray  #: (W,) column of the observed event; -1 if the truth has no such word
    whole: BoolArray  #: (W,) True if the whole sentence is possible under the truth
    states: FloatArray  #: (W, S) weight of each nonterminal that the next word may come from

    def rows(self, numbers: IntArray) -> TruthBlock:
        """Select rows of the block."""
        return TruthBlock(
            self.position,
            tuple(self.members[row] for row in numbers),
            self.log_prob[numbers],
            self.observed[numbers],
            self.whole[numbers],
            self.states[numbers],
        )


@dataclass(frozen=True)
class Events:
    """The columns of a comparison: the model's words in its order, ``<unk>``, and the end of a sentence if causal."""

    words: tuple[str, ...]
    causal: bool
    source: IntArray  #: (E,) column of each event in the oracle's blocks, see `Oracle.columns`; -1 for no column
    target: IntArray  #: (V,) or (V+1,) event of each column of the oracle's blocks

    def __len__(self) -> int:
        return len(self.source)


def events_of(model: LanguageModel, oracle: Oracle) -> Events:
    """Return the events that model and truth share.

    Raises:
        InputError: the two have different vocabularies.
    """
    words = oracle.words if model.vocabulary is None else tuple(model.vocabulary)
    source = oracle.columns(words)
    target = oracle.targets_of(source)
    if (target < 0).any():
        raise InputError("the truth has words that the model lacks; give the oracle the model's vocabulary")
    return Events(words, oracle.objective == "causal", source, target)


def truth_blocks(oracle: Oracle, batch: Batch, events: Events) -> Iterator[TruthBlock]:
    """Yield the truth about one of the oracle's batches, positions in order."""
    for block in oracle.blocks(batch):
        yield TruthBlock(
            block.position,
            block.members,
            oracle.log_table(block, events.source),
            np.where(block.observed >= 0, events.target[block.observed], -1),
            block.whole,
            block.states,
        )


def batches_of(oracle: Oracle, sentences: Sequence[Sequence[str]], n_events: int) -> list[Batch]:
    """Return the oracle's batches, split so that a block of one position has at most `CELLS` numbers."""
    most = max(1, CELLS // n_events)
    return [batch.part(at, most) for batch in oracle.batches(sentences) for at in range(0, len(batch.members), most)]


def paired_blocks(
    model: DistributionModel, oracle: Oracle, sentences: Sequence[Sequence[str]], events: Events, description: str
) -> Iterator[tuple[TruthBlock, FloatArray]]:
    """Yield truth and model, (W, E) ln Q, at every position of sentences; longest sentences first.

    Equal sentences are one row. Charts and networks run once for each distinct sentence.

    Raises:
        InputError: see the two sides, or the model's distributions have other columns.
    """
    with meter(description, len(sentences)) as progress:
        for batch in batches_of(oracle, sentences, len(events)):
            rows = [sentences[members[0]] for members in batch.members]
            expected = checked_distributions(model, rows, len(events))
            yield from matched(truth_blocks(oracle, batch, events), expected, len(events))
            progress.advance(sum(len(members) for members in batch.members))


def matched(
    truth: Iterator[TruthBlock], model: Iterator[LogDistributions], n_events: int
) -> Iterator[tuple[TruthBlock, FloatArray]]:
    """Yield corresponding blocks of both sides.

    Raises:
        InputError: blocks of the model have other positions or columns, NaN, or more than probability 1.
    """
    for block, expected in zip(truth, model, strict=True):
        if expected.position != block.position or expected.log_prob.shape != (len(block.members), n_events):
            raise InputError(f"the model's distributions are not of position {block.position} over {n_events} events")
        if not (expected.log_prob <= 1e-9).all():
            raise InputError("the model's distributions have values that are not log probabilities")
        yield block, np.ascontiguousarray(expected.log_prob, dtype=np.float64)


def frequency_bands(oracle: Oracle, events: Events) -> tuple[IntArray, tuple[str, ...]]:
    """Group events by their exact probability among all tokens, including sentence ends; return also names.

    A band is a power of ten. ``<unk>`` and the end are separate groups.

    Raises:
        InputError: expected counts are infinite (spectral radius 1 or more, and no length range).
    """
    counts = word_counts(oracle.language, oracle.lengths)
    unigram = np.append(counts / (counts.sum() + events.causal), 0.0)[events.source[: len(events.words)]]
    power = frequency_powers(unigram)
    order = np.unique(power)[::-1]
    names = [frequency_band(int(p)) for p in order.tolist()]
    extra = [UNKNOWN, END][: 1 + events.causal]
    groups = np.searchsorted(-order, -power)
    return np.append(groups, len(order) + np.arange(len(extra))).astype(np.int64), (*names, *extra)


def divide_by_probability(truth: FloatArray, model: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute P, P (ln P - ln Q) and Q of each band of true probability in each context, (W, B) each.

    Bands are `PROBABILITIES` (LeBrun et al. 2022): the model underestimates the tail if its Q is below P there,
    and its Q in the last band is on invalid continuations. Parts sum to KL(P || Q) over the bands, and are inf
    if the model gives probability 0 to an event of the band.

    Args:
        truth: (W, E) ln P, nats; -inf where impossible.
        model: (W, E) ln Q, nats.
    """
    from truesource.evaluation.divergence._kernels import divide

    share, part, mass = divide(np.ascontiguousarray(truth), np.ascontiguousarray(model), np.log(FLOORS))
    return share, part, mass


@dataclass(frozen=True, eq=False)
class PreterminalClasses:
    """The classes of the preterminals of a grammar."""

    names: tuple[str, ...]  #: (C,) the end of a sentence is the last, if causal
    of_state: FloatArray  #: (S, C) 1 if a nonterminal is in a class

    def divide(self, oracle: Oracle, events: Events, block: TruthBlock, model: FloatArray) -> tuple[FloatArray, ...]:
        """Compute P of each class at the next token, and its part of KL(P || Q), (W, C) each.

        The class of a word is the class of its preterminal, whose posterior given the left context and the word is
        exact: it is summed over the words, so the divergence does not depend on the sampled token. Parts are
        inf if the model gives probability 0 to a word of the class.
        """
        gap = np.zeros(block.log_prob.shape)
        np.subtract(block.log_prob, model, out=gap, where=block.log_prob > -np.inf)
        exact = oracle.grammar.exact
        n_words = len(oracle.language.vocabulary)
        per_state = np.asarray(exact.emission @ gap[:, events.target[:n_words]].T).T
        part = np.where(block.states > 0.0, block.states * np.where(block.states > 0.0, per_state, 0.0), 0.0)
        infinite = np.isinf(part)
        share = (block.states * exact.lexical_sums) @ self.of_state
        divided = np.where(infinite, 0.0, part) @ self.of_state
        divided[(infinite @ self.of_state) > 0.0] = np.inf
        if events.causal:
            end = np.exp(block.log_prob[:, -1])
            share[:, -1] = end
            divided[:, -1] = np.where(end > 0.0, end * np.where(end > 0.0, gap[:, -1], 0.0), 0.0)
        return share, divided


def word_classes(oracle: Oracle, classes: TagClasses = PENN) -> PreterminalClasses:
    """Return the classes of an oracle's grammar.

    Raises:
        InputError: ``classes`` miss one of its tags; or words become known in any order.
    """
    if oracle.objective == "any-order":
        raise NothingToMeasureError("word classes are not available for words in any order; remove class", "any-order")
    grammar = oracle.grammar
    tags = tags_of(grammar)
    names, of_tag = classes.table(tags)
    ends = (END,) if oracle.objective == "causal" else ()
    of_state = np.zeros((len(grammar.symbols), len(names) + len(ends)))
    for state in np.unique(grammar.lexical[:, 0]).tolist():
        of_state[state, : len(names)] = of_tag[tags.index(grammar.labels[state])]
    return PreterminalClasses((*names, *ends), of_state)


def next_words(
    model: LanguageModel,
    setting: Setting,
    *,
    top: int = TOP,
) -> list[dict[str, str | int | float]]:
    """List the most likely words of truth and model at every position, in descending order.

    The truth uses the vocabulary of the model. A model without full distributions has no rows.

    Args:
        model: any model.
        setting: text and truth; sentences of probability 0 have no rows.
        top: number of words of each side.

    Returns:
        A row for each word with the columns `COLUMNS`, in the order of sentences, positions, sides and ranks; the truth
        is the side before the model. ``class`` is the most probable class of the observed word, given its context:
        of Penn tags one of seven, else the label itself; empty at the end of a sentence.

    Raises:
        InputError: a sentence is empty or too long for the model, or causal tokens have no truth (a transform).
    """
    require_tokens(setting.transform, model.objective, "a distribution over the next word")
    oracle = setting.full_oracle(model)
    events = events_of(model, oracle)
    names = np.array([*events.words, UNKNOWN, *([SENTENCE_END] if events.causal else [])], dtype=object)
    rows: list[dict[str, str | int | float]] = []
    for block, of_model in _blocks(model, oracle, setting.sentences, events):
        possible_rows = np.flatnonzero(block.whole)
        classes = _classes(oracle, events, block)
        sides = {"truth": block.log_prob} | ({} if of_model is None else {"model": of_model})
        for side, table in sides.items():
            for row in possible_rows.tolist():
                for rank, column in enumerate(_most(table[row], top), start=1):
                    word, log_prob = names[column], float(table[row, column])
                    likely: dict[str, str | int | float] = {"side": side, "rank": rank, "word": word}
                    for sentence in block.members[row]:
                        at = {"sentence": sentence, "position": block.position}
                        rows.append({**at, "class": classes[row], **likely, "log_prob": log_prob})
    return sorted(rows, key=itemgetter("sentence", "position"))  # of one place they are in order already


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
    """Return columns of the largest entries in descending order, without impossible ones."""
    few = np.argpartition(-row, min(top, len(row) - 1))[:top] if len(row) > top else np.arange(len(row))
    ordered = few[np.lexsort((few, -row[few]))]
    return [column for column in ordered.tolist() if np.isfinite(row[column])]


def _classes(oracle: Oracle, events: Events, block: TruthBlock) -> list[str]:
    """Return the most probable class of the observed word, for each row.

    It is empty for an end, for a process, and for words in any order.
    """
    if oracle.objective == "any-order" or not offers(oracle.language, "parses"):
        return [""] * len(block.observed)
    language = oracle.grammar
    column = np.where(block.observed >= 0, events.source[block.observed], -1)
    is_word = (column >= 0) & (column < len(language.vocabulary))
    emission = language.exact.emission[:, np.where(is_word, column, 0)]
    weights = block.states * np.asarray(emission.todense()).T
    labels = [PENN.of_tag.get(label, label) for label in language.labels]
    names = list(dict.fromkeys(labels))
    of_class = np.zeros((len(labels), len(names)))
    of_class[np.arange(len(labels)), [names.index(label) for label in labels]] = 1.0
    best = (weights @ of_class).argmax(axis=1)
    return [names[at] if word else "" for at, word in zip(best.tolist(), is_word.tolist(), strict=True)]


def write_next_words(path: str | Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows of `next_words` as Parquet, with full precision."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"text": pa.string(), "int": pa.int32(), "float": pa.float64()}
    columns = {name: pa.array([row[name] for row in rows], kinds[kind]) for name, kind in COLUMNS.items()}
    with atomic_path(path) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")


def read_next_words(path: str | Path) -> list[dict[str, Any]]:
    """Read the rows that `write_next_words` wrote.

    Raises:
        InputError: the file is missing or damaged.
    """
    table = read_table(
        path, COLUMNS, what="this table of likely words", remedy="delete it and run the experiment again"
    )
    return table.to_pylist()  # type: ignore[no-any-return]
