"""Scores of parses: labelled and unlabelled brackets, exact match, crossing brackets and tags, with 95% intervals.

Precision, recall, F1, tagging accuracy and crossing brackets are ratios of sums over sentences; their intervals are
those of `truesource.evaluation.measures.bootstrap`. Shares of sentences have the interval of Wilson (1927).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratios
from truesource.evaluation.measures.brackets import FEW, BracketScores, Matches, SentenceBrackets, compare_brackets
from truesource.evaluation.measures.proportions import counting, proportion
from truesource.evaluation.measures.tree_brackets import tagged_words
from truesource.evaluation.parsing.lengths import BANDS, SHORT
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.tree import Tree

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


@dataclass(frozen=True, kw_only=True)
class ParseScores:
    """What `score_parses` found."""

    parser: str  #: how the sentences were parsed
    brackets: BracketScores
    parts: Mapping[str, object] = field(repr=False)  #: of the signature
    seed: int  #: of the bootstrap

    def records(self, *, by_sentence: bool = False) -> dict[str, Any]:
        """Plain values for JSON.

        ``summary`` holds one record a number: ``parser``, ``name``, ``value``, ``low``, ``high``, ``signature``.
        Records of a part of the sentences, brackets or words also say ``by`` (``length``, ``label``, ``tag``,
        ``confusion``) and ``group``, such as ``11..20`` or ``NP``. Precision, recall and F1 of a label or tag have
        the counts ``gold``, ``proposed`` and ``matched`` beside them; a confusion has two tags, ``gold`` and
        ``proposed``. Shares are in [0, 1]. What has nothing to count has no record.

        Args:
            by_sentence: also give ``sentences``, a row of counts for each.
        """
        head = {"parser": self.parser}
        found: dict[str, Any] = {"summary": [{**head, **record} for record in self._summary()]}
        if by_sentence:
            found["sentences"] = [row._asdict() for row in self.brackets.by_sentence]
        return found

    def _summary(self) -> Iterator[dict[str, Any]]:
        rows = self.brackets.by_sentence
        yield from _measures(rows, self.parts, self.seed)
        for band in (SHORT, *BANDS):
            place = {"by": "length", "group": str(band)}
            inside = [row for row in rows if row.length in band]
            signed = {**self.parts, "by": "length", "band": str(band)}
            yield from ({**place, **record} for record in _measures(inside, signed, self.seed))
        for by, groups in (("label", self.brackets.by_label), ("tag", self.brackets.by_tag)):
            for name, matches in groups.items():
                yield from _of_group(by, name, matches, self.parts)
        for (gold, proposed), times in self.brackets.confusions.items():
            place = {"by": "confusion", "group": f"{gold} {proposed}"}
            score = Score("words", times, signature({**self.parts, **place, "ci": "none"}))
            yield {**place, "gold": gold, "proposed": proposed, **score.as_record()}


def score_parses(
    gold: Sequence[Tree],
    parsed: Sequence[Tree | None],
    *,
    parser: str = "parser",
    grammar: str = "none",
    seed: int = DEFAULT_SEED,
) -> ParseScores:
    """Compare parses with a treebank, as `truesource.evaluation.measures.brackets.compare_brackets` does.

    Args:
        gold: trees of the treebank.
        parsed: a parse of each sentence; None where there is none.
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
    """What a signature says of the treebank: which brackets count, its digest, and that of its sentences."""
    return {
        "brackets": "evalb-collins",
        "reference": digest_sentences([[str(tree)] for tree in gold]),
        "data": digest_sentences([[word for _, word in tagged_words(tree)] for tree in gold]),
    }


def _measures(rows: Sequence[SentenceBrackets], parts: Mapping[str, object], seed: int) -> Iterator[dict[str, Any]]:
    """Records of all measures of some sentences."""
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
        yield Score(name, float(above.sum() / below.sum()), sampled, low, high).as_record()
    for name in SHARES:
        if name in fractions and (share := proportion(*fractions[name])) is not None:
            told = signature({**signed, "ci": ci_part(counting(fractions[name][1]), seed, method="wilson")})
            yield Score(name, share.value, told, share.low, share.high).as_record()
    counted = signature({**signed, "ci": "none"})
    counts = (n, n - table["parsed"].sum(), *(table[key].sum() for key in ("words", "gold", "proposed", "matched")))
    for name, count in zip(COUNTS, counts, strict=True):
        yield Score(name, int(count), counted).as_record()


def _fractions(table: Mapping[str, FloatArray]) -> dict[str, tuple[FloatArray, FloatArray]]:
    """By measure, what is divided by what, (N,) each."""
    gold, proposed, parsed = table["gold"], table["proposed"], table["parsed"]
    found = {}
    for kind, matched in (("labelled", table["matched"]), ("unlabelled", table["matched_unlabelled"])):
        found[f"{kind}_f1"] = 2.0 * matched, gold + proposed
        found[f"{kind}_precision"] = matched, proposed
        found[f"{kind}_recall"] = matched, gold
    return {
        **found,
        "tagging_accuracy": (table["tagged"], table["words"]),
        "crossing_brackets": (table["crossing"], parsed),
        "exact_match": (table["exact"], np.ones_like(parsed)),
        "no_crossing": (parsed * (table["crossing"] == 0), parsed),
        "at_most_two_crossing": (parsed * (table["crossing"] <= FEW), parsed),
    }


def _of_group(by: str, name: str, matches: Matches, parts: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    """Records of a label or a tag."""
    place = {"by": by, "group": name}
    told = signature({**parts, **place, "ci": "none"})
    counts = {"gold": matches.gold, "proposed": matches.proposed, "matched": matches.matched}
    values = {"precision": (matches.precision, matches.proposed), "recall": (matches.recall, matches.gold)}
    values["f1"] = (matches.f1, matches.gold + matches.proposed)
    for measure, (value, counted) in values.items():
        if counted:
            yield {**place, **counts, **Score(measure, value, told).as_record()}
