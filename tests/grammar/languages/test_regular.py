"""Small regular languages: membership by definition, probabilities by walking the automaton."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable

import pytest

from truesource.generator.sampler import Sampler
from truesource.grammar.languages.regular import RegularSettings
from truesource.grammar.pcfg import language
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError


def odd_ones_then_odd_zeros(x: str) -> bool:
    """Whether a maximal run of 1s of odd length comes before a maximal run of 0s of odd length."""
    runs = [(bit, len(list(run))) for bit, run in itertools.groupby(x)]
    odd = [bit for bit, length in runs if length % 2]
    return any(a == "1" and "0" in odd[i:] for i, a in enumerate(odd))


MEMBERS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "parity": ("01", lambda x: x.count("1") % 2 == 0),
    "modular": ("01", lambda x: x.count("1") % 5 == 0),
    "regular:which=modular,modulus=1": ("01", lambda x: True),
    "regular:which=modular,modulus=3": ("01", lambda x: x.count("1") % 3 == 0),
    "ab-star": ("ab", lambda x: re.fullmatch("(ab)*", x) is not None),
    "tomita1": ("01", lambda x: "0" not in x),
    "tomita2": ("01", lambda x: re.fullmatch("(10)*", x) is not None),
    "tomita3": ("01", lambda x: not odd_ones_then_odd_zeros(x)),
    "tomita4": ("01", lambda x: "000" not in x),
    "tomita5": ("01", lambda x: x.count("0") % 2 == 0 and x.count("1") % 2 == 0),
    "tomita6": ("01", lambda x: (x.count("0") - x.count("1")) % 3 == 0),
    "tomita7": ("01", lambda x: re.fullmatch("0*1*0*1*", x) is not None),
}


def strings(words: str, longest: int) -> list[str]:
    return ["".join(s) for n in range(1, longest + 1) for s in itertools.product(words, repeat=n)]


@pytest.mark.parametrize("name", MEMBERS)
def test_members_are_those_of_the_definition(name: str) -> None:
    words, member = MEMBERS[name]
    grammar = language(name)
    texts = strings(words, 8)
    scores = grammar.exact.string_log_probs([list(text) for text in texts])
    assert [score > -math.inf for score in scores] == [member(text) for text in texts]


def test_the_third_language_of_tomita_is_the_complement_of_its_regular_expression() -> None:
    """As published code has it, beside the definition in words above."""
    outside = re.compile("((0|1)*0)*1(11)*(0(0|1)*1)*0(00)*(1(0|1)*)*")
    for text in strings("01", 10):
        assert odd_ones_then_odd_zeros(text) == (outside.fullmatch(text) is not None)


@pytest.mark.parametrize("name", MEMBERS)
def test_probabilities_follow_from_the_members(name: str) -> None:
    """Each word that can lead to a member is equally probable; a member ends with probability ``end``.

    What can follow is found from the definition: a prefix is alive where some continuation of at most 5 words is a
    member, which is enough for all of these.
    """
    words, member = MEMBERS[name]
    end = 0.3
    grammar = language(name, end=end)

    def alive(prefix: str) -> bool:
        return any(member(prefix + text) for text in ["", *strings(words, 5)])

    for text in strings(words, 5):
        p = 1.0 if not member("") else 1.0 / (1.0 - end)
        for i, word in enumerate(text):
            going = 1.0 - end if member(text[:i]) else 1.0
            live = [w for w in words if alive(text[:i] + w)]
            p *= going / len(live) if word in live else 0.0
        expected = p * end if member(text) else 0.0
        assert math.exp(grammar.log_prob(list(text))) == pytest.approx(expected, rel=1e-10, abs=0.0)


@pytest.mark.parametrize("name", ["tomita3", "modular"])
def test_samples_are_members(name: str) -> None:
    sampler = Sampler(language(name), None)
    sentences = list(sampler.sentences(sampler.draw(500, random_state(1, 2))))
    assert all(MEMBERS[name][1]("".join(sentence)) for sentence in sentences)


def test_a_modulus_without_counting_is_one_sentence() -> None:
    with pytest.raises(InputError, match="modulus applies only to which=modular") as caught:
        language("regular:which=tomita1,modulus=3")
    assert caught.value.code == "bad-setting"


def test_there_are_no_more_rules_than_counted() -> None:
    for name in MEMBERS:
        assert language(name).n_rules <= 4 * 5 + 2
    settings = RegularSettings(modulus=10_000)
    assert language("regular", modulus=10_000).n_rules <= settings.n_rules()
