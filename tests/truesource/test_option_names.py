"""One option name has one meaning over all verbs, and one meaning has one name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from all_verbs import verbs

#: what an option means everywhere, where its help says more of it in some verbs
MEANINGS = {
    "--baseline": "the model that the others are compared with",
    "--before": "the token before a text, for models without a start token",
    "--by": "what a measure is broken down by",
    "--definitions": "definitions of measures: default, or paper, as published",
    "--device": "where it is computed: networks, or the exact scores of bound",
    "--force": "do it again where it is there already",
    "--held-out": "text or trees that nothing is trained on",
    "--inverse-temperature": "exponent of a distribution over segmentations",
    "--lengths": "range of sentence lengths; the default says whose range it is",
    "--longest": "skip longer sentences",
    "--method": "how it is computed",
    "--model": "the architecture, or code of one's own",
    "--number": "how many are made, where sentences, pairs or strings are made",
    "--oracle": "the grammar that is the truth",
    "--output": "what is made",
    "--reference": "text to compare with",
    "--samples": "how many are sampled of each",
    "--seed": "random seed",
    "--sentences": "how many are used of what is read, from the first",
    "--shard-size": "sentences in each file",
    "--split": "split of a corpus folder",
    "--start": "the start symbol",
    "--table": "file of the table",
    "--temperature": "temperature of a distribution: of rules, or of next words",
    "--variant": "a change of the grammar",
    "--to": "the format to write",
    "--vocabulary": "the words that are known",
    "--workers": "how many processes",
}
#: names with several meanings, and why they are kept
EXCEPTIONS = {
    "--beta": "the price of KL in tilts, and the share of one half of a split word; both are what their papers call so",
    "--figure": "one figure: the file that a measurement is drawn to, and the name of one of a report",
    "--dev": "a part of what is split and what is trained on: share in one verb, text in the other",
    "--tolerance": "a bound on what each verb may neglect: mass of tokenisations, difference of frequencies",
    "--tokenizer": "a tokeniser: the one to train with, and the one whose pieces have a bound",
    "--top-k": "the k most probable tokens: kept in decoding, compared in divergence; both are the field's term",
}
#: verbs whose default of --split is another one, and why
OTHER_SPLITS = {
    "convert": (None, "trees are converted to train on them: train; other training code reads several: all"),
    "evaluate naturalness": ("train", "frequencies need many sentences, and nothing is trained"),
    "evaluate tendencies": ("test", "samples of models are compared with the test text, as published"),
    "compare": (None, "runs have their own; else eval"),
}


def options() -> Iterator[tuple[str, str, Any]]:
    """Verb, longest spelling and option, of all."""
    for verb, command in verbs():
        for each in command.params:
            if each.param_type_name == "option" and not each.hidden:
                yield verb, max(each.opts, key=len), each


def test_one_name_has_one_meaning() -> None:
    helps = defaultdict(set)
    for _, name, option in options():
        helps[name].add((option.help or "").partition(" (default")[0].rstrip("."))
    several = {name for name, texts in helps.items() if len(texts) > 1}
    assert several - MEANINGS.keys() - EXCEPTIONS.keys() == set(), "say it in the same words, or name it otherwise"
    assert not MEANINGS.keys() & EXCEPTIONS.keys()
    assert EXCEPTIONS.keys() <= several


def test_one_meaning_has_one_name() -> None:
    names = defaultdict(set)
    for _, name, option in options():
        names[option.help].add(name)
    assert {text: found for text, found in names.items() if len(found) > 1} == {}


@pytest.mark.long
def test_figures_counts_and_published_behaviour_have_one_name() -> None:
    found = {name for _, name, _ in options()}
    assert "--figure" in found and not found & {"--plot", "--n", "--limit", "--documents", "--probe-sentences"}
    for verb, name, option in options():
        assert ("-n" in option.opts) == (name == "--number"), verb
        assert ("-o" in option.opts) == (name == "--output"), verb


def test_the_default_of_split() -> None:
    found = {verb: option.default for verb, name, option in options() if name == "--split"}
    assert {verb: default for verb, default in found.items() if default != "eval"} == {
        verb: default for verb, (default, _) in OTHER_SPLITS.items()
    }
