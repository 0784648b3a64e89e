"""Reports on parsed sentences, for a person and for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from truesource.grammar.support.printable import list_lines
from truesource.studies.parsing.settings import ParseOutcome

if TYPE_CHECKING:
    from truesource.grammar.tree import Tree
    from truesource.studies.parsing.build import Parsing
    from truesource.studies.parsing.record import ParsedCorpus

TABULAR = frozenset({".csv", ".tsv", ".json", ".jsonl"})  #: endings of files that hold more than sentences
Missing = Mapping[ParseOutcome, Sequence[int]]  #: numbers of the sentences without a tree, by the reason


def missing_lines(missing: Missing, parsing: Parsing) -> list[str]:
    """Return a line for each reason why sentences have no tree; where the grammar cannot make them, with the cause."""
    settings, sentences = parsing.settings, parsing.held.sentences
    reasons = {
        ParseOutcome.IMPOSSIBLE: "cannot be made by the grammar",
        ParseOutcome.TOO_LONG: "need larger charts than this machine has memory for",
        ParseOutcome.SKIPPED: f"have more than {settings.longest} words (--longest)",
        ParseOutcome.EMPTY: "have no words",
    }
    unit = parsing.source.unit
    instead = "their trees are ()" if settings.keep_missing else "they have no tree"
    return [
        f"{len(missing[kind]):,} of {sentences:,} sentences {reason}, {instead}: {list_lines(missing[kind], what=unit)}"
        + (_why_impossible(missing[kind], parsing) if kind is ParseOutcome.IMPOSSIBLE else "")
        for kind, reason in reasons.items()
        if kind in missing
    ]


def _why_impossible(numbers: Sequence[int], parsing: Parsing) -> str:
    """Return why sentences are impossible, for unknown words or word order, and what may have been meant."""
    from truesource.evaluation.measures.paired import unknown_words, words_missing
    from truesource.grammar.unknown import read_words

    chosen, pcfg, path = frozenset(numbers), parsing.pcfg, parsing.source.path
    all_sentences = enumerate(parsing.source.sentences(), start=1)
    unmade = [read_words(pcfg, sentence.words) for number, sentence in all_sentences if number in chosen]
    ordered = sum(all(word in pcfg.word_ids for word in words) for words in unmade)
    causes = []
    if unknown := unknown_words(pcfg, unmade):
        causes.append(f"{words_missing(unknown)}; a grammar of induce --lexicon parse takes any word")
    if ordered:
        causes.append(f"{ordered:,} of them have known words only, but no derivation has these in this order")
    if endings := TABULAR & {ending.lower() for ending in path.suffixes}:
        causes.append(f"of {min(endings)} files every line is read whole: write the sentences alone to a text file")
    return f" ({'; '.join(causes)})"


def compare_with_gold(
    gold: Sequence[Tree], parsing: Parsing, parsed: ParsedCorpus
) -> tuple[str, dict[str, list[dict[str, object]]]]:
    """Score the trees against a treebank, without skipped sentences: return a summary, and records for JSON.

    Args:
        gold: a tree of every sentence.
        parsing: the call.
        parsed: its trees.

    Raises:
        InputError: there are more or fewer trees than sentences, none is left, or a tree has other words.
    """
    from truesource.evaluation.parsing import score_parses

    gold_trees: list[Tree] = []
    parses: list[Tree | None] = []
    numbers: list[int] = []
    for tree, (row, parse) in zip(gold, parsed.trees(), strict=True):
        if row.outcome is not ParseOutcome.SKIPPED:
            gold_trees.append(tree)
            parses.append(parse)
            numbers.append(row.number)
    parser = f"{parsing.settings.method}{', exact' if parsing.settings.exact else ''}"
    scores = score_parses(gold_trees, parses, parser=parser, grammar=parsing.pcfg.digest, seed=parsing.settings.seed)
    sentences = [{**row, "number": number} for row, number in zip(scores.rows(), numbers, strict=True)]
    return str(scores.brackets), {"summary": scores.records(), "sentences": sentences}


def call_record(parsing: Parsing, parsed: ParsedCorpus, missing: Missing) -> dict[str, object]:
    """Return the record that ``--json`` writes; a stopped and resumed call changes only ``time``.

    ``time`` is of the sentences that this call parsed itself: wall-clock seconds, seconds of all workers, and the rate,
    None if all trees existed.

    Args:
        parsing: the call.
        parsed: its trees.
        missing: `ParsedCorpus.missing`.
    """
    call = parsing.record
    rate = parsing.sentences / parsing.seconds if parsing.sentences else None
    return {
        "grammar": call["grammar"]["digest"],
        "input": call["input"],
        "settings": call["settings"],
        "counts": parsed.counts,
        "missing": {str(kind): list(numbers) for kind, numbers in missing.items()},
        "time": {
            "seconds": parsing.seconds,
            "worker_seconds": parsing.worker_seconds,
            "sentences_per_second": rate,
        },
    }
