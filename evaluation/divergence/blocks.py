"""Distributions of model and truth side by side, position by position: groups of their events, and the likeliest words.

Groups are frequency bands of words, bands of the true probability in a context, and classes of the part-of-speech tags
that words come from: the one table that all measures by class use (`PENN`), or a mapping file in its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
CELLS = 2**22  #: most numbers in a block of one position (32 MiB); some ten such blocks stand in memory at once
END = "(end)"  #: the group of sentence ends in records; tables and figures say "sentence ends"
FLOORS = (0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)  #: lowest true probability of each band
PROBABILITIES = (
    *("0.1 to 1", "0.01 to 0.1", "0.001 to 0.01", "1e-4 to 0.001", "1e-5 to 1e-4", "1e-6 to 1e-5"),
    "below 1e-6",
    "impossible",
)  #: names of these, of what is rarer, and of what cannot follow
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


@dataclass(frozen=True)
class TagClasses:
    """Class of each tag."""

    of_tag: Mapping[str, str]
    origin: str  #: for signatures
    complete: bool  #: a tag without a class is refused; otherwise it is a class of its own

    def table(self, labels: Sequence[str]) -> tuple[tuple[str, ...], FloatArray]:
        """The classes of some tags, in the order of the mapping, and 1 where a tag is in a class, (L, C).

        Raises:
            InputError: a tag has no class, and the mapping is complete.
        """
        missing = sorted({label for label in labels if label not in self.of_tag})
        if missing and self.complete:
            more = f" (and {len(missing) - 1} more of the grammar's tags)" if len(missing) > 1 else ""
            raise InputError(f"the classes miss the tag {missing[0]!r}{more}; give it a class")
        of_label = [self.of_tag.get(label, label) for label in labels]
        known = [name for name in dict.fromkeys(self.of_tag.values()) if name in of_label]
        names = (*known, *sorted(set(of_label) - set(known)))
        table = np.zeros((len(labels), len(names)))
        table[np.arange(len(labels)), [names.index(name) for name in of_label]] = 1.0
        return names, table


#: Penn Treebank tags in seven classes; other labels are classes of their own
PENN = TagClasses({tag: name for name, tags in _CLASSES.items() for tag in tags.split()}, "penn", complete=False)


def tags_of(pcfg: PCFG) -> tuple[str, ...]:
    """Labels of the symbols that make words, each once."""
    return tuple(dict.fromkeys(pcfg.labels[symbol] for symbol in np.unique(pcfg.lexical[:, 0]).tolist()))


def read_classes(path: str | Path) -> TagClasses:
    """Read a mapping from tags to classes: a JSON or YAML mapping by its suffix, else lines ``tag TAB class``.

    Empty lines are passed over; there are no comments, as ``#`` is a tag.

    Raises:
        InputError: the file cannot be read, a line or entry is malformed, or a tag has two classes (in a mapping:
            stands twice).
    """
    path = Path(path)
    data = read_bytes(path, limit=RECORD_LIMIT, line_limit=None)
    if path.suffix in (".json", ".yaml", ".yml"):
        of_tag = _mapping(data, path)
    else:
        of_tag = _lines(read_text(path, not_text="the classes are not UTF-8 text"), path)
    if not of_tag:
        raise InputError("there are no classes in this file; expecting lines of a tag, a tab and a class", path)
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
        value = decode_record(content, dict[str, Any], what=what, remedy=remedy, path=path, unique=True)
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
    members: tuple[tuple[int, ...], ...]  #: for each row, the input sentences that it stands for
    log_prob: NDArray[np.floating]  #: (W, E) ln P, nats
    observed: IntArray  #: (W,) column of what stands there; -1 where the truth knows no such word
    whole: BoolArray  #: (W,) whether the truth can make the whole sentence
    states: FloatArray  #: (W, S) weight of each symbol that the next word may come from

    def rows(self, kept: IntArray) -> TruthBlock:
        """Some rows of the block."""
        return TruthBlock(
            self.position,
            tuple(self.members[row] for row in kept),
            self.log_prob[kept],
            self.observed[kept],
            self.whole[kept],
            self.states[kept],
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
    """The events that model and truth share.

    Raises:
        InputError: the two do not tell the same words apart.
    """
    words = oracle.words if model.vocabulary is None else tuple(model.vocabulary)
    source = oracle.columns(words)
    target = oracle.targets_of(source)
    if (target < 0).any():
        raise InputError("the truth tells words apart that the model does not; give the oracle the model's vocabulary")
    return Events(words, oracle.objective == "causal", source, target)


def truth_blocks(oracle: Oracle, batch: Batch, events: Events) -> Iterator[TruthBlock]:
    """The truth about one of the oracle's batches, positions in order."""
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
    """The oracle's batches, cut so that a block of one position holds at most `CELLS` numbers."""
    most = max(1, CELLS // n_events)
    return [batch.part(at, most) for batch in oracle.batches(sentences) for at in range(0, len(batch.members), most)]


def paired_blocks(
    model: DistributionModel, oracle: Oracle, sentences: Sequence[Sequence[str]], events: Events, description: str
) -> Iterator[tuple[TruthBlock, FloatArray]]:
    """Truth and model, (W, E) ln Q, at every position of some sentences; longest sentences first.

    Sentences that read the same are one row. Charts and networks run once for each different sentence.

    Raises:
        InputError: as the two sides' own, or the model's distributions have other columns.
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
    """Blocks of both sides that belong together.

    Raises:
        InputError: the model's have other positions or columns, or hold NaN or more than probability 1.
    """
    for block, expected in zip(truth, model, strict=True):
        if expected.position != block.position or expected.log_prob.shape != (len(block.members), n_events):
            raise InputError(
                f"the model's distributions are not those of position {block.position} over {n_events} events"
            )
        if not (expected.log_prob <= 1e-9).all():
            raise InputError("the model's distributions hold values that are no log probabilities")
        yield block, np.ascontiguousarray(expected.log_prob, dtype=np.float64)


def frequency_bands(oracle: Oracle, events: Events) -> tuple[IntArray, tuple[str, ...]]:
    """Group of each event by its exact probability among all tokens, ends of sentences included, and their names.

    A band is a power of ten. ``<unk>`` and the end are groups of their own.

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
    """P, P (ln P - ln Q) and Q of each band of the true probability in each context, (W, B) each.

    Bands are `PROBABILITIES` (LeBrun et al. 2022): the model gives too little to the tail where its Q is below P there,
    and the Q of the last is what it gives to invalid continuations. Parts sum to KL(P || Q) over the bands, and are inf
    where the model gives no probability to an event of the band.

    Args:
        truth: (W, E) ln P, nats; -inf where impossible.
        model: (W, E) ln Q, nats.
    """
    from truesource.evaluation.divergence._kernels import divide

    share, part, mass = divide(np.ascontiguousarray(truth), np.ascontiguousarray(model), np.log(FLOORS))
    return share, part, mass


@dataclass(frozen=True, eq=False)
class PreterminalClasses:
    """Classes of the preterminals of a grammar."""

    names: tuple[str, ...]  #: (C,) the end of a sentence is the last, if causal
    of_state: FloatArray  #: (S, C) 1 where a symbol is in a class

    def divide(self, oracle: Oracle, events: Events, block: TruthBlock, model: FloatArray) -> tuple[FloatArray, ...]:
        """P of each class at the next token, and its part of KL(P || Q), (W, C) each.

        The class is that of the symbol that makes the word, whose posterior given the left context and the word is
        exact: summed over the words, so that nothing of the divergence is left to the token that was drawn. Parts are
        inf where the model gives no probability to a word of the class.
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
    """The classes of an oracle's grammar.

    Raises:
        InputError: ``classes`` miss one of its tags; or words become known in any order.
    """
    if oracle.objective == "any-order":
        raise NothingToMeasureError(
            "word classes are not told apart for words that become known in any order; leave class out", "any-order"
        )
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
) -> list[dict[str, Any]]:
    """The most likely words of truth and model at every position, most likely first.

    The truth tells apart the words that the model does. A model without full distributions has no rows of its own.

    Args:
        model: any.
        setting: text and truth; sentences that the grammar cannot make have no rows.
        top: how many words of each side.

    Returns:
        A row a word with the columns `COLUMNS`, in the order of sentences, positions, sides and ranks; the truth is the
        side before the model. ``class`` is the most probable class of the word that stands there, given its context:
        of Penn tags one of seven, else the label itself; empty at the end of a sentence.

    Raises:
        InputError: a sentence is empty or too long for the model, or causal tokens have no truth (a transform).
    """
    require_tokens(setting.transform, model.objective, "a distribution over the next word")
    oracle = setting.full_oracle(model)
    events = events_of(model, oracle)
    names = np.array([*events.words, UNKNOWN, *([SENTENCE_END] if events.causal else [])], dtype=object)
    rows: list[dict[str, Any]] = []
    for block, of_model in _blocks(model, oracle, setting.sentences, events):
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
    """The most probable class of the word that stands there, for each row.

    Empty for an end, for a process, and where words become known in any order.
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
