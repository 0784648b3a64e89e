"""What a model can do besides scoring, and the refusal of one that cannot."""

from __future__ import annotations

from typing import Any

import pytest

from truesource.generator.abilities import ABILITIES, Name, offers, require
from truesource.grammar.support.errors import InputError

NAMES: list[Any] = list(ABILITIES)


class Scorer:
    name, objective, vocabulary = "scorer", "causal", None


def with_all_of(ability: str) -> Any:
    model: Any = Scorer()
    for need in ABILITIES[ability].needs:
        setattr(model, need, lambda: None)
    return model


@pytest.mark.parametrize("ability", NAMES)
def test_a_model_with_every_method_has_the_ability(ability: Name) -> None:
    model = with_all_of(ability)
    assert offers(model, ability)
    assert require(model, ability, "a test") is model


@pytest.mark.parametrize(("ability", "need"), [(a.name, need) for a in ABILITIES.values() for need in a.needs])
def test_a_model_without_a_method_is_refused_by_its_name(ability: Name, need: str) -> None:
    model = with_all_of(ability)
    delattr(model, need)
    assert not offers(model, ability)
    with pytest.raises(InputError) as caught:
        require(model, ability, "evaluate this")
    assert caught.value.code == "missing-ability"
    assert need in str(caught.value) and str(caught.value).startswith("evaluate this needs")


@pytest.mark.parametrize("ability", NAMES)
def test_a_class_answers_for_itself(ability: Name) -> None:
    flag = f"has_{ability.replace('-', '_')}"
    model = with_all_of(ability)
    setattr(model, flag, False)
    assert not offers(model, ability)
    bare = Scorer()
    setattr(bare, flag, True)
    assert offers(bare, ability)


def test_asking_runs_no_property() -> None:
    class Costly(Scorer):
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(name)

        @property
        def pieces(self) -> None:
            raise AssertionError

        incremental_scorer = log_probs = token_steps = pieces

    assert offers(Costly(), "pieces")


def test_a_model_that_passes_on_to_another_has_its_abilities() -> None:
    class Proxy:
        name = "proxy"

        def __init__(self, model: Any) -> None:
            self.model = model

        def __getattr__(self, name: str) -> Any:
            return getattr(self.model, name)

    assert offers(Proxy(with_all_of("distributions")), "distributions")
    assert not offers(Proxy(Scorer()), "distributions")
