"""Numbers and findings in plain English."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.measures.contrast import CHANCE, PairTest, may_be_chance
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import shown
from truesource.generator.objectives import OBJECTIVES
from truesource.grammar.support.printable import FEWEST, counted, listed
from truesource.grammar.support.printable import too_few as too_few_units

NONE = "\N{EN DASH}"  #: in place of a number that does not exist
PARTIAL = 0.05  #: models that exclude a larger share of the sentences are not compared with others
PERFECT = 1e-9  #: relative perplexities this close to 1 are called equal
#: in which vocabulary models are compared, by the first part of ``compared`` in signatures
_VOCABULARIES = {
    "common": "The {objective} models are compared in the {size} words that all of them know; all others are one word,"
    " <unk>.",
    "full": "The {objective} models are compared in all {size} words of the truth; a model's probability of <unk> is"
    " divided among the words that it represents.",
}
CONTEXTS = {
    "causal": "its left context",
    "masked": "all other words of the sentence",
    "any-order": "the words known so far, in a random order,",
}


def number(value: Any, digits: int = 4) -> str:
    """Return a value with about ``digits`` significant digits and thousands separated; a dash for None."""
    if value is None:
        return NONE
    if isinstance(value, int) or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    if value == 0.0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 12)}f}"


def brief(value: float) -> str:
    """Return 300000 as ``300k``, 2e12 as ``2e12``."""
    for limit, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if limit <= value < 1e12:
            return f"{value / limit:.4g}{unit}"
    return f"{value:.3g}".replace("e+", "e") if value >= 1e12 else f"{value:.4g}"


def p_value(p: float | None) -> str:
    """Return a p-value with three places, or as many as tell it from the level of the tests; a dash for None."""
    if p is None:
        return NONE
    places = next(n for n in range(3, 18) if n == 17 or p == CHANCE or round(p, n) != CHANCE)
    return "<0.001" if p < 0.001 else f"{p:.{places}f}"


def holm_family(tests: int) -> str:
    """Return the family of tests that p-values are adjusted for."""
    return f"Holm: for {count(tests, 'pair')} of models"


def chance(p_adjusted: float | None, tests: int, difference: float) -> str:
    """Return the end of a sentence on the observed difference of two models, with its p-value.

    Args:
        p_adjusted: of the difference, for the family of the table that it is in.
        tests: number of tests in the family.
        difference: above 0 if it has the claimed sign.
    """
    if p_adjusted is None:
        return "may be chance (too few sentences for a p-value)"
    behind = f"(p {p_value(p_adjusted)}; {holm_family(tests)})"
    if difference < 0.0:
        return f"is not so on the sentences that all models can make {behind}"
    return f"{'may be chance' if may_be_chance(p_adjusted) else 'is significant'} {behind}"


def duration(seconds: float | None) -> str:
    """Return seconds as ``41 s``, ``3 min 05 s`` or ``2 h 10 min``; a dash for None."""
    if seconds is None:
        return NONE
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def count(n: int, noun: str) -> str:
    """Return ``1 sentence``, ``2,000 sentences``; nouns with a plural in s only."""
    return counted(n, noun)


def file_names(text: str) -> str:
    """Return a list of files without the folders of absolute paths, which are useless on another machine."""
    return ", ".join(map(_file_name, text.split(", ")))


def command_line(text: str) -> str:
    """Return a command with absolute paths as in `file_names`."""
    try:
        parts = shlex.split(text)
    except ValueError:  # written without quotes
        parts = text.split()
    return shlex.join(map(_file_name, parts))


def _file_name(word: str) -> str:
    option, equals, path = word.rpartition("=")
    local = PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute() or path.startswith("~")
    return option + equals + PureWindowsPath(path).name if local else word  # both kinds of slash


def interval(record: Record, name: str, places: int = 3) -> str:
    """Return ``1.080 [1.060, 1.100]``, or ``1.080 [-]`` if there is no interval."""
    spec = f".{places}f"
    text, low, high = shown(record[name], spec), record.get(f"{name}_low"), record.get(f"{name}_high")
    return f"{text} [-]" if low is None or high is None else f"{text} [{shown(low, spec)}, {shown(high, spec)}]"


def partial(row: Record) -> bool:
    """Return True if a model was scored on so few of the sentences that it does not compare with the others."""
    left_out = row.get("excluded") or 0
    return bool(left_out > PARTIAL * (left_out + _scored(row)))


def vocabulary_note(signatures: Sequence[str]) -> str:
    """Return a sentence on the vocabulary that rows of one table are compared in; empty for the truth's vocabulary.

    Args:
        signatures: of the rows, which have one vocabulary.
    """
    every = [parts_of(signature) for signature in signatures if signature]
    if not every:
        return ""
    size, _, which = every[0].get("vocab", "0/all").partition("/")
    kinds = [parts.get("compared", "own") for parts in every]
    few = which != "all"  # some words of the truth are one word, <unk>
    notes = []
    if kinds[0] == "common":
        notes.append(
            f"All predict the {int(size):,} words that every model and the truth know, and <unk> for all others;"
            " each model reads its own words, the truth every word. A coarser vocabulary makes every KL smaller"
        )
        if every[0].get("disjoint") == "uncorrected":
            notes.append("The truth does not exclude the sentences that the split excludes")
    elif kinds[0].startswith("full"):
        how = {"training+1": "in proportion to their counts in the training text plus one", "uniform": "equally"}
        shared = sorted({kind.partition("/")[2] for kind in kinds} - {""})
        out = (
            f"; a model's probability of <unk> is divided among the words that it represents, {how[shared[0]]}"
            if shared
            else ""
        )
        notes.append(f"All predict the {int(size):,} words of the truth{out}")
    elif few:
        know = "The model knows" if len(every) == 1 else "All know the same"
        full = which.endswith("full-contexts")
        truth = (
            "predicts every other as <unk> but reads every word" if full else "reads and predicts every other as <unk>"
        )
        notes.append(
            f"{know} {int(size):,} words; the truth, too, {truth}. That makes the KL smaller, so it does not compare"
            " with the KL of models that know other words"
        )
    if few and every[0].get("unk") == "skip":
        notes.append("<unk> is not counted, so a model that never expects it looks better: no ranking, and no KL")
    return ". ".join(notes)


def unchecked_note(signatures: Iterable[tuple[str, str]]) -> str:
    """Return a sentence on models that may look ahead; empty without such models.

    Args:
        signatures: names of models with a signature of each.
    """
    names = list(dict.fromkeys(name for name, text in signatures if "dependence" in parts_of(text)))
    which = "its numbers are" if len(names) == 1 else "their numbers are"
    checked = f"Whether {listed(names)} {'looks' if len(names) == 1 else 'look'} ahead was not checked"
    return f"{checked}: {which} right only if each depends on the words before it alone" if names else ""


def by_vocabulary(rows: Sequence[Record]) -> list[list[Record]]:
    """Group rows by vocabulary; rows compare only within a group."""
    groups: dict[str, list[Record]] = {}
    for row in rows:
        groups.setdefault(parts_of(row.get("signature") or "").get("vocab", ""), []).append(row)
    return list(groups.values())


def left_out(rows: Sequence[Record]) -> list[str]:
    """Return sentences on each model that was scored on part of the sentences, or on none."""
    return [
        f"{row['model']} has no perplexity: {impossible(row)} of {row['excluded']:,} sentences."
        if row["relative_ppl"] is None
        else f"{row['model']}: {impossible(row)} of {row['excluded'] + _scored(row):,} sentences; the numbers and"
        f" the bound are of the other {_scored(row):,}, and do not compare with other rows."
        for row in rows
        if partial(row)
    ]


def _scored(row: Record) -> int:
    """Return the number of scored sentences; 0 if unknown."""
    return row.get("sentences") or 0


def impossible(row: Record) -> str:
    """Return the numbers of excluded sentences of a result that each side cannot make, as text."""
    oracle, model = row.get("impossible_oracle"), row.get("impossible_model")
    sides = [(f"the oracle cannot make {oracle:,}", oracle), (f"the model cannot make {model:,}", model)]
    return " and ".join(text for text, number in sides if number)


def too_few(rows: Sequence[Record]) -> list[str]:
    """Return sentences on models that were scored on too few sentences for an interval."""
    return [
        f"{row['model']}: {count(row['sentences'], 'sentence')}, too few for an interval, which takes {FEWEST} or more."
        for row in rows
        if row["relative_ppl"] is not None and too_few_units(row.get("sentences") or FEWEST)
    ]


def below_bound(models: Sequence[Record]) -> list[Record]:
    """Return models whose whole interval of relative perplexity lies below 1, which no model can truly reach.

    A model without smoothing that was scored only on the sentences it can make may: it selects them itself.
    """
    return [
        row
        for row in models
        if not partial(row) and (row.get("relative_ppl_high") or row["relative_ppl"]) < 1.0 - PERFECT
    ]


def ranked(rows: Sequence[Record]) -> list[Record]:
    """Return models that compare, those scored on (nearly) all sentences first, by relative perplexity."""
    return sorted(rows, key=lambda row: (partial(row), float(row["relative_ppl"])))


def answer(models: Sequence[Record], tested: Callable[[Record, Record], PairTest | None]) -> list[str]:
    """Return the results in words, a sentence each.

    Args:
        models: rows of ``results.json``.
        tested: the KL of the second of two models less the KL of the first, with its p-value; None without scores of
            tokens.
    """
    if not models:
        return ["This run trained no language model, so there is nothing to compare with the truth yet."]
    sentences = []
    groups = [(name, by_vocabulary([row for row in models if row["objective"] == name])) for name in OBJECTIVES]
    for objective, rows, apart in [(name, rows, len(of) > 1) for name, of in groups for rows in of]:
        row, *others = ranked(rows)
        alone = not others
        words = f" of those that know the same {_words(row)} words," if apart else ","
        which = f"The {objective} model" if alone else f"The best {objective} model{words}"
        name = f" {row['model']}" if alone else f" {row['model']},"
        sentences.append(
            f"{which}{name} reaches a relative perplexity of {interval(row, 'relative_ppl')} to the truth: "
            f"{_price(float(row['relative_ppl']), objective)}."
        )
        alike = [other for other in others if partial(other) == partial(row)]
        if alike:
            pair, next_one = tested(row, alike[0]), alike[0]["model"]
            sentences[-1] += (
                f" The run has no scores of tokens that test whether it is better than {next_one}."
                if pair is None
                else f" That it is better than {next_one} {chance(pair.p_adjusted, pair.tests, pair.contrast.value)}."
            )
    sentences += [
        template.format(objective=objective, size=_words(of[0][0]))
        for objective, of in groups
        if len(of) == 1 and (template := _VOCABULARIES.get(_compared(of[0][0])))
    ]
    sentences += [
        f"The {objective} models know different words and are scored in their own, so they are not ranked."
        for objective, of in groups
        if len(of) > 1
    ]
    return sentences


def _compared(row: Record) -> str:
    """Return the kind of the vocabulary that a row is compared in; empty for its own."""
    return parts_of(row.get("signature") or "").get("compared", "").partition("/")[0]


def _words(row: Record) -> str:
    """Return the number of words in the vocabulary of a row."""
    return f"{int(parts_of(row['signature'])['vocab'].partition('/')[0]):,}"


def bound_warning(rows: Sequence[Record]) -> str:
    """Return a warning if a model is significantly below its bound, with an explanation; else empty."""
    wrong = below_bound(rows)
    if not wrong:
        return ""
    names = listed([f"{row['model']} ({interval(row, 'relative_ppl')})" for row in wrong])
    return (
        f"Warning: {names} {'is' if len(wrong) == 1 else 'are'} significantly below the bound. No model can predict"
        " better than the truth on average, so something is wrong: the model had more information than the truth (such"
        " as the evaluation sentences, the words that follow, or a length limit that the bound does not include), or"
        " the scoring has a mistake. Find it before you use these numbers."
    )


def verdict(models: Sequence[Record]) -> str:
    """Return whether any model is significantly below its bound, in words with an explanation."""
    if not models:
        return ""
    if warning := bound_warning(models):
        return warning
    lower = [row["model"] for row in models if row["relative_ppl"] < 1.0 - PERFECT]
    noise = (
        f" {listed(lower)} {'is' if len(lower) == 1 else 'are'} slightly below 1, but the interval contains 1: "
        "this is sampling noise."
        if lower
        else ""
    )
    return (
        "No model is significantly below its bound, as expected: nothing predicts better than the truth on average. "
        f"A value clearly below 1 would indicate a mistake.{noise}"
    )


def _price(relative: float, objective: str) -> str:
    """Return the meaning of a relative perplexity, in words."""
    nats = math.log(relative)
    context = CONTEXTS[objective]
    if abs(nats) < 5e-5:
        return f"given {context}, it predicts each token as well as the grammar itself does"
    more = "more" if nats > 0 else "less"
    size = f"{abs(nats):.3f} nats ({abs(nats) / math.log(2):.3f} bits)"
    return f"predicting each token from {context} costs it {size} {more} than the grammar that made the text"


def nothing_to_measure(reason: str, models: Sequence[str]) -> str:
    """Return a sentence on models without a measurement.

    The first stage of a kind that all models share has no model; the others only repeat its reason.
    """
    whom = "" if "" in models else f" ({', '.join(models)})"
    return f"Nothing to measure{whom}: {reason}."
