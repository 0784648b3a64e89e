"""What holds of every language: found by walking, checked settings, a proper grammar, a reference that reads back."""

from __future__ import annotations

import math
from typing import Any

import annotated_types
import numpy as np
import pytest

from truesource.grammar.languages import (
    LARGEST,
    grammars,
    is_reference,
    languages,
    parameters,
    parse,
    presets,
    reference,
)
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.errors import InputError

NAMES = [*grammars(), *presets()]


@pytest.mark.parametrize("name", NAMES)
def test_a_language_is_a_proper_grammar_with_its_defaults(name: str) -> None:
    grammar = language(name)
    title, settings = parse(name)
    assert grammar.exact.total_mass == pytest.approx(1.0, abs=1e-9)
    assert settings.n_rules() >= grammar.n_rules
    assert grammar.meta["language"]["name"] == title
    assert grammar.exact.reached.all(), "every symbol can be reached"


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_reads_back(name: str) -> None:
    title, settings = parse(name)
    assert parse(reference(title, settings)) == (title, settings)
    assert is_reference(reference(title, settings))
    assert language(reference(title, settings)).digest == language(name).digest == PCFG.load(name).digest
    described = [f"{each.key}={each.value}" for each in parameters(settings) if each.value]
    assert reference(title, settings) == f"{title}:{','.join(described)}"


@pytest.mark.parametrize("name", languages())
def test_every_setting_has_a_default_and_a_description(name: str) -> None:
    kind = languages()[name].settings
    for key, field in kind.model_fields.items():
        assert not field.is_required(), key
        assert field.description, key
        assert field.description[0].isupper(), key
        assert len(field.description) < 90, key


def _bounds() -> list[tuple[str, str, Any]]:
    """Each bound of each number, one step beyond; each number without an upper bound fails this test."""
    wrong: list[tuple[str, str, Any]] = []
    for name, each in languages().items():
        for key, field in each.settings.model_fields.items():
            kinds = [kind for kind in (int, float) if field.annotation in (kind, kind | None)]
            for kind in kinds:
                step = 1 if kind is int else 1e-9
                limits = {type(limit): limit for limit in field.metadata}
                low = limits.get(annotated_types.Ge) or limits.get(annotated_types.Gt)
                high = limits.get(annotated_types.Le) or limits.get(annotated_types.Lt)
                assert low is not None and high is not None, f"{name}: {key} needs a lower and an upper bound"
                floor = low.ge - step if isinstance(low, annotated_types.Ge) else low.gt
                if isinstance(high, annotated_types.Le):
                    ceiling = high.le + 1 if kind is int else math.nextafter(high.le, math.inf)
                else:
                    ceiling = high.lt
                wrong += [(name, key, floor), (name, key, ceiling), (name, key, "nan"), (name, key, "many")]
    return wrong


@pytest.mark.long
@pytest.mark.parametrize(("name", "key", "value"), _bounds())
def test_each_bound_is_one_sentence(name: str, key: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        language(name, **{key: value})
    message = str(caught.value)
    assert caught.value.code == "bad-setting"
    assert key in message
    assert "\n" not in message


@pytest.mark.parametrize("name", languages())
def test_too_large_a_language_is_refused_before_memory_is_taken(name: str) -> None:
    """The largest value of each number alone: built, or refused by its number of rules or by what goes together."""
    kind = languages()[name].settings
    for key, field in kind.model_fields.items():
        high = next((limit.le for limit in field.metadata if isinstance(limit, annotated_types.Le)), None)
        if field.annotation is not int or high is None or key == "seed":
            continue
        try:
            settings = parse(name, {key: high})[1]
        except InputError as error:
            assert error.code == "bad-setting"
            continue
        if settings.n_rules() > LARGEST:
            with pytest.raises(InputError) as caught:
                language(name, **{key: high})
            assert caught.value.code == ("too-large" if languages()[name].process is None else "missing-ability")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dyck:k=0", "k: expected 1 or more, not 0"),
        ("dyck:k=1e3", "k: expected a whole number, not '1e3'"),
        ("dyck:k=2000000000", "k: expected 1,000,000,000 or less, not 2000000000"),
        ("dyck:k=0,depth=0", "k: expected 1 or more, not 0 (and 1 more)"),
        ("dyck:kk=2", "kk: unknown key; its settings are k, depth"),
        ("dyck-free:p=half", "p: expected a number, not 'half'"),
        ("dyck-free:p=0", "p: expected more than 0, not 0"),
        ("dyck-free:p=1.5", "p: expected less than 1, not 1.5"),
        ("pfsa:mean_length=inf", "mean_length: expected a finite number, not 'inf'"),
        ("pfsa:topology=star", "topology: expected one of 'random', 'ring' or 'banded', not 'star'"),
        ("cfg3:distinct=maybe", "distinct: expected true or false, not 'maybe'"),
        ("cfg3:lengths=2+x", "lengths.1: expected a whole number, not 'x'"),
        (
            "switches:switches=012",
            "switches: write six digits 0 or 1 as a string, such as '011101'",
        ),
    ],
)
def test_wrong_values_are_plain_sentences(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        language(text)
    assert str(caught.value) == f"language {text.partition(':')[0]}: {message}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("dyck:k=1,k=2", "bad-setting"),
        ("dyck:", "bad-setting"),
        ("dyck:k", "bad-setting"),
        ("dyck:q=1", "bad-setting"),
        ("dick", "no-language"),
    ],
)
def test_bad_references_are_one_sentence(text: str, code: str) -> None:
    with pytest.raises(InputError) as caught:
        language(text)
    assert caught.value.code == code


def test_identity_names_the_language_and_whether_it_was_changed() -> None:
    grammar = language("dyck:k=1")
    assert grammar.identity == f"dyck:k=1,depth=4 {grammar.digest[:8]}"
    merged = grammar.collapse(["(1"])
    assert merged.identity == f"changed dyck:k=1,depth=4 {merged.digest[:8]}"
    plain = PCFG.from_text("S -> a 1")
    assert plain.identity == plain.digest[:8]


def test_a_saved_language_keeps_its_name(tmp_path: Any) -> None:
    grammar = language("dyck")
    grammar.save(tmp_path / "dyck.npz")
    loaded = PCFG.load(tmp_path / "dyck.npz")
    assert loaded.identity == grammar.identity
    assert np.array_equal(loaded.binary_logp, grammar.binary_logp)
