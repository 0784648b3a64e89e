"""What the page says in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from truesource.benchmark.differences import share_differences
from truesource.benchmark.results import BenchmarkResults
from truesource.benchmark.standings import Standings
from truesource.benchmark.suite import Suite
from truesource.benchmark.tables import SPEC, is_reference
from truesource.evaluation.measures.contrast import may_be_chance
from truesource.generator.language_model import Objective
from truesource.report.table import score_cell
from truesource.report.words import number

SECTIONS = {
    "standings": "Standings",
    "matrix": "Models and languages",
    "curves": "Learning curves",
    "languages": "Languages",
    "models": "Models",
    "reading": "How to read",
    "submitting": "How to submit",
}
TERMS = {
    "share learned": "One less the KL of the model over the KL of the word frequencies, in the same contexts; no unit."
    " 1 is the truth, 0 is word frequencies, and below 0 is worse than them.",
    "longer strings": "The share at positions beyond the longest string of training, where the truth is known too; no"
    " unit.",
    "KL": "Exact Kullback-Leibler divergence from the truth to the model, mean over contexts; bits a token in tables,"
    " nats a token in learning curves. 0 is the truth.",
    "relative PPL": "Perplexity of the model over that of the truth, in expectation: exp of the KL in nats; no unit."
    " 1 is the truth.",
    "wrong mass": "Probability that the model gives to what cannot follow, mean over contexts; 0 to 1. 0 is the truth.",
    "calibration error": "Mean distance between a probability of the model and how often such events occur; 0 to 1."
    " 0 is perfect.",
    "tokens to 0.1 nats": "Training tokens until the KL on the split dev is first at most 0.1 nats a token; the same"
    " for 0.01. Geometric mean over seeds; more than N: not every seed got there within N tokens.",
    "seeds": "Trained models that a number is the mean of. Brackets and small numbers are 95% intervals over other test"
    " strings and other seeds.",
    "rank": "By the headline, among models measured on all languages. Models whose intervals overlap may differ by"
    " chance.",
}


def answer(results: BenchmarkResults, found: Sequence[Standings], own: Sequence[str] = ()) -> list[str]:
    """The best model of each objective, and the reader's own, a sentence each."""
    sentences = []
    for each in found:
        complete = [(row, row.share) for row in each.rows if row.share is not None and not is_reference(row)]
        if not complete:
            continue
        row, share = complete[0]
        learned = score_cell(share.interval._asdict(), SPEC)
        which = f"best of {len(complete)} {each.objective} models," if len(complete) > 1 else f"{each.objective} model"
        comma = "," if len(complete) > 1 else ""
        text = f"The {which} {row.name}{comma} learned {learned} of the information"
        if len(complete) > 1:
            next_one, *_ = share_differences(results, each, row.name)
            chance = may_be_chance(next_one.contrast, comb(len(complete), 2))
            text += f"; that it learned more than {next_one.model} may be chance" if chance else ""
        sentences.append(f"{text}.")
        sentences += [
            f"Yours, {mine.name}, learned {score_cell(held.interval._asdict(), SPEC)}: rank {rank} of {len(complete)}."
            for rank, (mine, held) in enumerate(complete, start=1)
            if mine.name in own and len(complete) > 1
        ]
    return sentences


def facts(results: BenchmarkResults, suite: Suite, name: str, objectives: Sequence[Objective]) -> dict[str, str]:
    """What is known of a language, by what it is called; the truth for models of these objectives."""
    language = suite.languages[name]
    found = {
        "kind": language.kind,
        "reference": language.language,
        "words in a string": language.lengths,
        "in longer strings": language.longer or "there are none",
    }
    record = results["languages"].get(name)
    if record is None:
        return found
    found |= {
        "training strings": f"{record['train_sentences']:,}",
        "training tokens": f"{record['train_tokens']:,}",
    }
    for objective in objectives:
        if objective not in record["truth"]:
            continue
        test = record["truth"][objective]["test"]
        information = sum(test["information"]) / max(sum(test["contexts"]), 1)
        found |= {
            f"entropy ({objective})": f"{number(test['entropy'], 3)} nats a token",
            f"information of the context ({objective})": f"{number(information, 3)} nats a token",
            f"words that cannot stand there ({objective})": f"{test['impossible']:.1%}",
        }
    return found
