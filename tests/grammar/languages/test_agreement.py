"""Agreement across nouns of either number: verbs by next token, every string of small languages, closed forms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_inference import all_strings, rules_of

from truesource.grammar.building import zipf
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.languages.agreement import AgreementSettings
from truesource.grammar.pcfg import language

shares = st.floats(0.0, 1.0).map(lambda p: round(p, 3))
chosen = st.builds(
    AgreementSettings,
    between=st.integers(0, 2),
    more=shares,
    opposite=shares,
    relative=shares,
    plural=shares,
    nouns=st.integers(1, 2),
    verbs=st.integers(1, 2),
    prepositions=st.just(1),
    zipf=st.floats(0.0, 2.0),
)


def nouns_between(settings: AgreementSettings) -> list[float]:
    """P of 0, 1, ... nouns between subject and verb: geometric, cut at the maximum."""
    geometric = [settings.more**j * (1 - settings.more) for j in range(settings.between)]
    return [*geometric, settings.more**settings.between]


def written_out(settings: AgreementSettings) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every choice that a sentence is made of, and its probability."""
    nouns = list(enumerate(zipf(settings.nouns, settings.zipf), start=1))
    verbs = list(enumerate(zipf(settings.verbs, settings.zipf), start=1))
    for plural, j in itertools.product((False, True), range(settings.between + 1)):
        p = (settings.plural if plural else 1 - settings.plural) * nouns_between(settings)[j]
        phrases: list[tuple[tuple[str, ...], float]] = []
        for opposite, (i, q) in itertools.product((False, True), nouns):
            s = "s" if opposite != plural else ""
            noun = f"noun{i}{s}"
            q *= settings.opposite if opposite else 1 - settings.opposite
            phrases.append((("prep1", "the", noun), q * (1 - settings.relative)))
            for v, r in verbs:
                verb = f"verb{v}" if s else f"verb{v}s"
                phrases.append((("that", "the", noun, verb), q * settings.relative * r))
        for (i, q), between, (v, r) in itertools.product(nouns, itertools.product(phrases, repeat=j), verbs):
            words = [f"noun{i}s", f"verb{v}"] if plural else [f"noun{i}", f"verb{v}s"]
            middle = [word for phrase, _ in between for word in phrase]
            yield ("the", words[0], *middle, words[1]), p * q * r * math.prod(share for _, share in between)


@pytest.mark.long
@given(chosen)
def test_every_string_has_the_probability_of_its_choices(settings: AgreementSettings) -> None:
    """No two choices make one string, so the entropy of derivations is that of strings."""
    grammar = language("agreement", **settings.model_dump())
    expected = [(string, p) for string, p in written_out(settings) if p > 0]
    assert len(dict(expected)) == len(expected)
    assert sum(p for _, p in expected) == pytest.approx(1.0, abs=1e-12)
    strings = [string for string, _ in expected]
    if len(strings) > 400:
        strings = strings[:: len(strings) // 400]
    scores = grammar.exact.string_log_probs(strings)
    assert np.exp(scores) == pytest.approx([dict(expected)[string] for string in strings], rel=1e-10)
    entropy = -math.fsum(p * math.log(p) for _, p in expected)
    assert derivational_entropy(grammar) == pytest.approx(entropy, rel=1e-10, abs=1e-10)
    tokens = math.fsum(p * len(string) for string, p in expected)
    assert grammar.exact.mean_length == pytest.approx(tokens, rel=1e-10)
    assert settings.n_rules() >= grammar.n_rules


def test_no_string_beside_those_written_out() -> None:
    settings = AgreementSettings(between=1, nouns=1, verbs=1, prepositions=1)
    grammar = language("agreement", **settings.model_dump())
    found = {string: p for table in all_strings(rules_of(grammar), 9)["S"] for string, p in table.items()}
    assert found == pytest.approx(dict(written_out(settings)), rel=1e-10)


@pytest.mark.parametrize("plural", [False, True])
@pytest.mark.parametrize("kind", ["same", "opposite"])
@pytest.mark.parametrize("phrase", ["prep1 the {noun}", "that the {noun} {verb}"])
def test_only_verbs_of_the_right_number_follow(plural: bool, kind: str, phrase: str) -> None:
    """After 0..d nouns between: the right number has 1 - more, and 1 after d; the wrong number has 0."""
    grammar = language("agreement", between=3, more=0.6, relative=0.25, nouns=4, verbs=3, zipf=1.5)
    singular, both = [f"verb{i}s" for i in (1, 2, 3)], [f"verb{i}" for i in (1, 2, 3)]
    right, wrong = (both, singular) if plural else (singular, both)
    noun, verb = ("noun2s", "verb2") if plural == (kind == "same") else ("noun2", "verb2s")
    prefix = ["the", "noun1s" if plural else "noun1"]
    for j in range(4):
        found = dict(zip(grammar.vocabulary, grammar.next_token(prefix).probability, strict=True))
        stops = 0.4 if j < 3 else 1.0
        expected = dict.fromkeys(grammar.vocabulary, 0.0)
        expected |= {word: stops * p for word, p in zip(right, zipf(3, 1.5), strict=True)}
        if j < 3:
            expected |= {f"prep{i}": 0.6 * 0.75 * p for i, p in enumerate(zipf(5, 1.5), start=1)} | {"that": 0.6 * 0.25}
        assert found == pytest.approx(expected, abs=1e-12)
        assert [found[word] for word in wrong] == [0.0, 0.0, 0.0]
        assert sum(found[word] for word in right) == pytest.approx(stops, rel=1e-10)
        prefix += phrase.format(noun=noun, verb=verb).split()


def test_the_verb_of_a_relative_clause_agrees_with_its_own_subject() -> None:
    grammar = language("agreement", verbs=2)
    for noun, right in (("noun3", ["verb1s", "verb2s"]), ("noun3s", ["verb1", "verb2"])):
        found = dict(
            zip(grammar.vocabulary, grammar.next_token(["the", "noun1", "that", "the", noun]).probability, strict=True)
        )
        assert sum(found[word] for word in right) == pytest.approx(1.0, rel=1e-10)
