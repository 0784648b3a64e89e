"""Parses compared with a treebank by the conventions of evalb: brackets, exact match and tags, with 95% intervals.

The conventions are from Sekine & Collins (1997) with COLLINS.prm:

* The root and preterminals are no brackets, nor are phrases that cover no word. COLLINS.prm names only TOP as
  a root: evalb counts a ROOT as a bracket that every parse gets right, unless a line ``DELETE_LABEL ROOT`` is added.
* Traces are taken out, and so are the words that the treebank tags as punctuation.
* Labels are cut at the first ``-`` or ``=``; ADVP and PRT are the same label, of brackets as of tags.
* A bracket that occurs n times in one tree and m times in the other matches min(n, m) times.
* A proposed bracket crosses if it overlaps some bracket of the treebank and neither contains the other. It counts once,
  however many it crosses.
* The length of a sentence is its number of words in the treebank, punctuation included, traces excluded.

Unlike in evalb, every sentence counts. evalb excludes sentences without a parse, with punctuation that differs between
the two sides, and of punctuation alone. Here the tags of the treebank decide what is punctuation,
and a missing parse (None) has no brackets and no tags; crossing brackets are counted in sentences with a parse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.measures.bootstrap import ci_part, counting, ends, proportion, resampled_ratios
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.tree import Tree

ROOTS = frozenset(["", "ROOT", "TOP", "S1", "VROOT"])  #: labels of a top node that says nothing
PUNCTUATION = frozenset([",", ":", "``", "''", "."])  #: tags of words that are not there, as in COLLINS.prm
EMPTY = "-NONE-"  #: tag of a trace, likewise
EQUAL = {"PRT": "ADVP"}  #: labels that count as another one
Bracket = tuple[int, int, str]
FEW = 2  #: crossing brackets that evalb still calls few
#: measures that are ratios of sums over sentences, and those that are shares of sentences
RATIOS = (
    "labelled_f1",
    "labelled_precision",
    "labelled_recall",
    "unlabelled_f1",
    "unlabelled_precision",
    "unlabelled_recall",
    "tagging_accuracy",
    "crossing_brackets",
)
SHARES = ("exact_match", "no_crossing", "at_most_two_crossing")
COUNTS = ("sentences", "unparsed", "words", "gold_brackets", "proposed_brackets", "matched_brackets")


def tagged_words(tree: Tree) -> list[tuple[str, str]]:
    """Return tags and words, traces excluded."""
    return [
        (node.label, str(node.children[0])) for node in tree.subtrees() if node.is_preterminal and node.label != EMPTY
    ]


def is_punctuation(tag: str) -> bool:
    """Return True if words of this tag do not count."""
    return tag in PUNCTUATION


def brackets(tree: Tree, left_out: Sequence[bool]) -> tuple[Counter[Bracket], list[str]]:
    """Return labelled spans of the phrases of a tree, and the tags of the words that count.

    Spans number the words that are left when traces and the words ``left_out`` (one truth value a word that is no
    trace) are taken out; phrases that cover no word and root labels are not listed. Labels are cut at the first
    ``-`` or ``=``.
    """
    counts: Counter[Bracket] = Counter()
    tags: list[str] = []
    place = 0
    stack: list[tuple[Tree, int]] = [(tree, -1)]  # with the word it begins at, once its children are done
    while stack:
        node, begin = stack.pop()
        if begin >= 0:
            label = _label(node.label)
            if len(tags) > begin and label not in ROOTS:
                counts[begin, len(tags), label] += 1
        elif node.is_preterminal:
            if node.label != EMPTY:
                if not left_out[place]:
                    tags.append(EQUAL.get(node.label, node.label))
                place += 1
        else:
            stack.append((node, len(tags)))
            stack.extend((child, -1) for child in reversed(node.children) if isinstance(child, Tree))
    return counts, tags


def unlabelled(labelled: Counter[Bracket]) -> Counter[tuple[int, int]]:
    """Return the spans of brackets, each as often as it occurs."""
    counts: Counter[tuple[int, int]] = Counter()
    for (begin, end, _), times in labelled.items():
        counts[begin, end] += times
    return counts


def crossing_brackets(proposed: Counter[tuple[int, int]], gold: Counter[tuple[int, int]]) -> int:
    """Return the number of proposed spans that overlap a span of the treebank where neither contains the other."""
    crossing = 0
    for (begin, end), times in proposed.items():
        if (begin, end) not in gold:  # spans of one tree never cross each other
            crosses = any(b < begin < e < end or begin < b < end < e for b, e in gold)
            crossing += times if crosses else 0
    return crossing


def _label(label: str) -> str:
    for mark in "-=":
        label = label.partition(mark)[0]
    return EQUAL.get(label, label)


class SentenceBrackets(NamedTuple):
    """Counts of one sentence."""

    number: int  #: from 1
    length: int  #: words of the treebank, punctuation included, traces excluded
    words: int  #: words that count, punctuation excluded
    gold: int  #: brackets of the treebank
    proposed: int  #: brackets of the parse
    matched: int  #: brackets of both, with the same label
    matched_unlabelled: int  #: brackets of both, whatever their labels
    crossing: int  #: brackets of the parse that cross one of the treebank
    tagged: int  #: words with the right tag
    exact: bool  #: all brackets are right and none is too many
    parsed: bool  #: there is a parse


@dataclass(frozen=True, kw_only=True)
class Matches:
    """Counts that two sides have in common, and the shares that follow (0 if there is nothing to count)."""

    matched: int  #: what parses and treebank share
    gold: int  #: what the treebank has
    proposed: int  #: what the parses have

    @property
    def precision(self) -> float:
        """Share of the proposed items that are right, in [0, 1]."""
        return self.matched / self.proposed if self.proposed else 0.0

    @property
    def recall(self) -> float:
        """Share of the treebank's items that were proposed, in [0, 1]."""
        return self.matched / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in [0, 1]."""
        return 2.0 * self.matched / (self.gold + self.proposed) if self.gold + self.proposed else 0.0


@dataclass(frozen=True, kw_only=True)
class BracketCounts(Matches):
    """Labelled brackets pooled over sentences, with further counts and their shares (0 where nothing counts)."""

    matched_unlabelled: int  #: brackets of both, whatever their labels
    exact: int  #: sentences with all brackets right and none too many
    crossing: int  #: brackets of the parses that cross one of the treebank
    uncrossed: int  #: sentences with a parse and no crossing bracket
    few_crossing: int  #: sentences with a parse and at most two crossing brackets
    tagged: int  #: words with the right tag
    words: int  #: words that count, punctuation excluded
    sentences: int
    missing: int  #: sentences without a parse: their brackets and tags count as not found

    @property
    def unlabelled(self) -> Matches:
        """Brackets whatever their labels: precision, recall, F1."""
        return Matches(matched=self.matched_unlabelled, gold=self.gold, proposed=self.proposed)

    @property
    def exact_match(self) -> float:
        """Share of the sentences with all brackets right and none too many, in [0, 1]."""
        return self.exact / self.sentences if self.sentences else 0.0

    @property
    def tagging_accuracy(self) -> float:
        """Share of the words with the right tag, in [0, 1]."""
        return self.tagged / self.words if self.words else 0.0

    @property
    def parsed(self) -> int:
        """Sentences with a parse."""
        return self.sentences - self.missing

    @property
    def no_crossing(self) -> float:
        """Share of the sentences with a parse that have no crossing bracket, in [0, 1]."""
        return self.uncrossed / self.parsed if self.parsed else 0.0

    @property
    def at_most_two_crossing(self) -> float:
        """Share of the sentences with a parse that have at most two crossing brackets, in [0, 1]."""
        return self.few_crossing / self.parsed if self.parsed else 0.0

    def __str__(self) -> str:
        return (
            f"labelled F1 {self.f1:.2%} (precision {self.precision:.2%}, recall {self.recall:.2%}),"
            f" exact match {self.exact_match:.2%}, tags {self.tagging_accuracy:.2%},"
            f" {self.sentences:,} sentences, {self.missing:,} without a parse"
        )


@dataclass(frozen=True, kw_only=True)
class BracketScores(BracketCounts):
    """Counts over a corpus, and their parts."""

    by_sentence: Sequence[SentenceBrackets] = field(repr=False)
    by_label: Mapping[str, Matches]  #: brackets of each label, the most frequent of the treebank first
    by_tag: Mapping[str, Matches]  #: words of each tag, the most frequent of the treebank first
    confusions: Mapping[tuple[str, str], int]  #: words by the treebank's tag and another that was proposed, most first


def pooled(rows: Iterable[SentenceBrackets]) -> BracketCounts:
    """Return the counts of some sentences together."""
    return BracketCounts(**_sums(list(rows)))


def compare_brackets(gold: Sequence[Tree], parsed: Sequence[Tree | None]) -> BracketScores:
    """Compare labelled brackets, crossing brackets and tags of parses with the treebank's trees.

    Both sides are treebank trees (unbinarised, coarse). For the conventions see the head of the module.

    Args:
        gold: trees of the treebank.
        parsed: a parse of each sentence; None if it is missing.

    Raises:
        InputError: the two have different numbers of sentences, no sentences, or a parse has other words.
    """
    if len(gold) != len(parsed) or not gold:
        raise InputError(f"the treebank has {len(gold):,} trees and there are {len(parsed):,} parses; give as many")
    comparison = _Comparison()
    rows = [comparison.add(number, *pair) for number, pair in enumerate(zip(gold, parsed, strict=True), start=1)]
    return BracketScores(
        **_sums(rows),
        by_sentence=rows,
        by_label=comparison.labels.matches(),
        by_tag=comparison.tags.matches(),
        confusions=dict(sorted(comparison.confusions.items(), key=lambda item: (-item[1], item[0]))),
    )


class _Comparison:
    """Counts by label and by tag, sentence after sentence."""

    def __init__(self) -> None:
        self.labels, self.tags = _Tally(), _Tally()
        self.confusions: Counter[tuple[str, str]] = Counter()

    def add(self, number: int, tree: Tree, parse: Tree | None) -> SentenceBrackets:
        """Count a sentence."""
        words = tagged_words(tree)
        left_out = [is_punctuation(tag) for tag, _ in words]
        right, right_tags = brackets(tree, left_out)
        proposed: Counter[Bracket] = Counter()
        found_tags: list[str] = []
        if parse is not None:
            if [word for _, word in tagged_words(parse)] != [word for _, word in words]:
                raise InputError(f"parse {number:,} has other words than tree {number:,} of the treebank")
            proposed, found_tags = brackets(parse, left_out)
        matched = right & proposed
        self.labels.add(*map(_labels, (right, proposed, matched)))
        pairs = Counter(zip(right_tags, found_tags, strict=parse is not None))
        agreed = Counter({one: times for (one, other), times in pairs.items() if one == other})
        self.tags.add(Counter(right_tags), Counter(found_tags), agreed)
        self.confusions.update({pair: times for pair, times in pairs.items() if pair[0] != pair[1]})
        spans, found_spans = unlabelled(right), unlabelled(proposed)
        return SentenceBrackets(
            number=number,
            length=len(left_out),
            words=len(right_tags),
            gold=right.total(),
            proposed=proposed.total(),
            matched=matched.total(),
            matched_unlabelled=(spans & found_spans).total(),
            crossing=crossing_brackets(found_spans, spans),
            tagged=agreed.total(),
            exact=parse is not None and right == proposed,
            parsed=parse is not None,
        )


class _Tally:
    """Counts by name of items of treebank and parses, and of common items."""

    def __init__(self) -> None:
        self.gold: Counter[str] = Counter()
        self.proposed: Counter[str] = Counter()
        self.matched: Counter[str] = Counter()

    def add(self, gold: Counter[str], proposed: Counter[str], matched: Counter[str]) -> None:
        """Count a sentence."""
        self.gold.update(gold)
        self.proposed.update(proposed)
        self.matched.update(matched)

    def matches(self) -> dict[str, Matches]:
        """Return matches by name, the most frequent of the treebank first, then those that are only proposed."""
        names = sorted({*self.gold, *self.proposed}, key=lambda name: (-self.gold[name], -self.proposed[name], name))
        return {
            name: Matches(matched=self.matched[name], gold=self.gold[name], proposed=self.proposed[name])
            for name in names
        }


def _labels(counts: Counter[Bracket]) -> Counter[str]:
    by_label: Counter[str] = Counter()
    for (_, _, label), times in counts.items():
        by_label[label] += times
    return by_label


def _sums(rows: Sequence[SentenceBrackets]) -> dict[str, int]:
    return {
        "matched": sum(row.matched for row in rows),
        "gold": sum(row.gold for row in rows),
        "proposed": sum(row.proposed for row in rows),
        "matched_unlabelled": sum(row.matched_unlabelled for row in rows),
        "exact": sum(row.exact for row in rows),
        "crossing": sum(row.crossing for row in rows),
        "uncrossed": sum(row.parsed and row.crossing == 0 for row in rows),
        "few_crossing": sum(row.parsed and row.crossing <= FEW for row in rows),
        "tagged": sum(row.tagged for row in rows),
        "words": sum(row.words for row in rows),
        "sentences": len(rows),
        "missing": sum(not row.parsed for row in rows),
    }


class LengthBand(NamedTuple):
    """Sentence lengths in words, both ends inclusive."""

    low: int
    high: int | None  #: None: no maximum

    def __contains__(self, length: object) -> bool:
        return isinstance(length, int) and self.low <= length and (self.high is None or length <= self.high)

    def __str__(self) -> str:
        high = "" if self.high is None else self.high
        return f"{self.low}..{high}"


SHORT = LengthBand(1, 40)  #: the sentences that evalb scores in addition to all
BANDS = (LengthBand(1, 10), LengthBand(11, 20), LengthBand(21, 30), LengthBand(31, 40), LengthBand(41, None))


@dataclass(frozen=True, kw_only=True, repr=False)
class ParseScores(ResultRecords):
    """Result of `score_parses`."""

    parser: str  #: how the sentences were parsed
    brackets: BracketScores
    parts: Mapping[str, object] = field(repr=False)  #: of the signature
    seed: int  #: of the bootstrap

    @override
    def as_scores(self) -> list[Score]:
        """Return every number with ``parser`` among its keys.

        Numbers of a part of the sentences, brackets or words also have ``by`` (``length``, ``label``, ``tag``,
        ``confusion``) and ``group``, such as ``11..20`` or ``NP``. Precision, recall and F1 of a label or tag have
        the counts ``gold``, ``proposed`` and ``matched``; a confusion has two tags, ``gold`` and ``proposed``. Shares
        are in [0, 1]. A measure with nothing to count has no score.
        """
        return keyed(self._summary(), parser=self.parser)

    def rows(self) -> list[dict[str, object]]:
        """Return one row of counts a sentence."""
        return [row._asdict() for row in self.brackets.by_sentence]

    def _summary(self) -> Iterator[Score]:
        rows = self.brackets.by_sentence
        yield from _measures(rows, self.parts, self.seed)
        for band in (SHORT, *BANDS):
            place = {"by": "length", "group": str(band)}
            inside = [row for row in rows if row.length in band]
            signed = {**self.parts, "by": "length", "band": str(band)}
            yield from keyed(_measures(inside, signed, self.seed), **place)
        for by, groups in (("label", self.brackets.by_label), ("tag", self.brackets.by_tag)):
            for name, matches in groups.items():
                yield from _of_group(by, name, matches, self.parts)
        for (gold, proposed), times in self.brackets.confusions.items():
            place = {"by": "confusion", "group": f"{gold} {proposed}"}
            score = Score("words", times, signature({**self.parts, **place, "ci": "none"}))
            yield score.at(**place, gold=gold, proposed=proposed)


def score_parses(
    gold: Sequence[Tree],
    parsed: Sequence[Tree | None],
    *,
    parser: str = "parser",
    grammar: str = "none",
    seed: int = DEFAULT_SEED,
) -> ParseScores:
    """Compare parses with a treebank, as `truesource.evaluation.parsing.compare_brackets` does.

    Args:
        gold: trees of the treebank.
        parsed: a parse of each sentence; None if it is missing.
        parser: names how they were parsed, for records and signatures.
        grammar: digest of the grammar that parsed them.
        seed: of the bootstrap.

    Raises:
        InputError: the two have different numbers of sentences, none at all, or a parse has other words.
    """
    brackets = compare_brackets(gold, parsed)
    parts = {"parser": parser, "grammar": grammar, **treebank_parts(gold)}
    return ParseScores(parser=parser, brackets=brackets, parts=parts, seed=seed)


def treebank_parts(gold: Sequence[Tree]) -> dict[str, object]:
    """Return parts of a signature on the treebank: which brackets count, and digests of trees and sentences."""
    return {
        "brackets": "evalb-collins",
        "reference": digest_sentences([[str(tree)] for tree in gold]),
        "data": digest_sentences([[word for _, word in tagged_words(tree)] for tree in gold]),
    }


def _measures(rows: Sequence[SentenceBrackets], parts: Mapping[str, object], seed: int) -> Iterator[Score]:
    """Yield all measures of some sentences."""
    if not rows:
        return
    table = {
        name: np.array(values, np.float64)
        for name, values in zip(rows[0]._fields, zip(*rows, strict=True), strict=True)
    }
    n = len(rows)
    signed = {**parts, "sentences": n, "unparsed": n - int(table["parsed"].sum())}
    sampled = signature({**signed, "ci": ci_part(n, seed)})
    fractions = {name: pair for name, pair in _fractions(table).items() if pair[1].any()}
    ratios = [name for name in RATIOS if name in fractions]
    columns = [np.stack(part, axis=1) for part in zip(*(fractions[name] for name in ratios), strict=True)]
    intervals = resampled_ratios(*columns, seed=seed).T if ratios else ()
    for name, interval in zip(ratios, intervals, strict=True):
        above, below = fractions[name]
        highest = np.inf if name == "crossing_brackets" else 1.0
        low, high = ends(*np.clip(interval, 0.0, highest))
        yield Score(name, float(above.sum() / below.sum()), sampled, low, high)
    for name in SHARES:
        if name in fractions and (share := proportion(*fractions[name])) is not None:
            with_interval = signature({**signed, "ci": ci_part(counting(fractions[name][1]), seed, method="wilson")})
            yield Score(name, share.value, with_interval, share.low, share.high)
    counted = signature({**signed, "ci": "none"})
    counts = (n, n - table["parsed"].sum(), *(table[key].sum() for key in ("words", "gold", "proposed", "matched")))
    for name, count in zip(COUNTS, counts, strict=True):
        yield Score(name, int(count), counted)


def _fractions(table: Mapping[str, FloatArray]) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return numerators and denominators by measure, (N,) each."""
    gold, proposed, parsed = table["gold"], table["proposed"], table["parsed"]
    fractions = {}
    for kind, matched in (("labelled", table["matched"]), ("unlabelled", table["matched_unlabelled"])):
        fractions[f"{kind}_f1"] = 2.0 * matched, gold + proposed
        fractions[f"{kind}_precision"] = matched, proposed
        fractions[f"{kind}_recall"] = matched, gold
    return {
        **fractions,
        "tagging_accuracy": (table["tagged"], table["words"]),
        "crossing_brackets": (table["crossing"], parsed),
        "exact_match": (table["exact"], np.ones_like(parsed)),
        "no_crossing": (parsed * (table["crossing"] == 0), parsed),
        "at_most_two_crossing": (parsed * (table["crossing"] <= FEW), parsed),
    }


def _of_group(by: str, name: str, matches: Matches, parts: Mapping[str, object]) -> Iterator[Score]:
    """Yield the measures of a label or a tag."""
    place = {"by": by, "group": name}
    signed = signature({**parts, **place, "ci": "none"})
    counts = {"gold": matches.gold, "proposed": matches.proposed, "matched": matches.matched}
    values = {"precision": (matches.precision, matches.proposed), "recall": (matches.recall, matches.gold)}
    values["f1"] = (matches.f1, matches.gold + matches.proposed)
    for measure, (value, counted) in values.items():
        if counted:
            yield Score(measure, value, signed).at(**place, **counts)
