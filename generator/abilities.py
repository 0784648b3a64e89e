"""Abilities of models beyond scores that evaluators need, checked in one place.

An ability is a set of methods or attributes; a model that lacks one is refused with the name of the method. A class
that has the methods but refuses can say so, with an attribute ``has_<ability>`` (``has_hidden_states = False``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from truesource.generator.foreign_code import is_foreign
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.generator.language_model import DistributionModel
    from truesource.generator.piece_model import TokenisedModel
    from truesource.grammar.pcfg import PCFG

Name = Literal[
    "distributions", "words", "stepping", "hidden-states", "pieces", "tokens", "marks", "snapshots", "denoising"
]
OfTruth = Literal["causal", "lengths", "masked", "any-order", "windows", "parses"]
_RULES = "it has no rules; choose a language or smaller settings with a grammar"


@dataclass(frozen=True)
class Ability:
    """A method or attribute that a model may have in addition to scoring."""

    name: str
    needs: tuple[str, ...]  #: required methods and attributes
    means: str  #: description for messages and documentation
    remedy: str  #: what to do without the ability

    def lacking(self, model: object) -> tuple[str, ...]:
        """Return the methods and attributes that a model lacks; none if it has the ability."""
        answer = getattr(model, f"has_{self.name.replace('-', '_')}", None)
        if answer is not None:
            return () if answer else self.needs
        return tuple(need for need in self.needs if not _has(model, need))


ABILITIES: dict[str, Ability] = {
    ability.name: ability
    for ability in (
        Ability(
            "distributions",
            ("distributions",),
            "the probabilities of all words in a context",
            "models of pieces have none; use one of whole words",
        ),
        Ability("words", ("vocabulary",), "a list of its words", "models of pieces have none; use one of whole words"),
        Ability(
            "stepping",
            ("stepper", "alphabet"),
            "next-token probabilities, token by token",
            "use a causal network or n-gram model",
        ),
        Ability(
            "hidden-states",
            ("hidden_states",),
            "vectors of its layers",
            "models that count n-grams have none; use a network",
        ),
        Ability(
            "pieces",
            ("pieces", "incremental_scorer", "log_probs", "token_steps"),
            "a tokeniser of pieces, and scores piece by piece",
            "use a causal model of pieces (tokenizer bpe or unigram)",
        ),
        Ability(
            "tokens",
            ("as_tokens", "tokenised", "cut"),
            "probabilities of all its pieces in a context",
            "use a model of pieces (tokenizer bpe or unigram)",
        ),
        Ability(
            "marks",
            ("around_texts",),
            "chosen tokens around a text",
            "only causal networks of pieces have them; remove the option",
        ),
        Ability(
            "snapshots",
            ("snapshots",),
            "snapshots of earlier training steps",
            "use a model folder with snapshots",
        ),
        Ability(
            "denoising",
            ("denoise",),
            "the probabilities of words at any gaps",
            "use a model of the architecture diffusion",
        ),
    )
}


#: abilities of the truth of a language in addition to samples
TRUTHS: dict[str, Ability] = {
    ability.name: ability
    for ability in (
        Ability("causal", ("next_token",), "the probability of a word given the previous words", _RULES),
        Ability("lengths", ("exact",), "sentences of a range of lengths, exactly", _RULES),
        Ability("masked", ("masked",), "the probability of a word given all others", _RULES),
        Ability("any-order", ("masked",), "the probability of words at any gaps", _RULES),
        Ability("windows", ("binary",), "the probability of a word given only the k words before it", _RULES),
        Ability("parses", ("viterbi",), "trees, and counts or changes in them", _RULES),
    )
}


def offers(model: object, ability: Name | OfTruth) -> bool:
    """Return True if a model, or a truth, has an ability."""
    return not (ABILITIES | TRUTHS)[ability].lacking(model)


@overload
def require(model: Any, ability: Literal["distributions"], needed_by: str) -> DistributionModel: ...
@overload
def require(model: Any, ability: Literal["pieces"], needed_by: str) -> TokenisedModel: ...
@overload
def require(model: Any, ability: OfTruth, needed_by: str) -> PCFG: ...
@overload
def require(
    model: Any,
    ability: Literal["words", "stepping", "hidden-states", "tokens", "marks", "snapshots", "denoising"],
    needed_by: str,
) -> Any: ...
def require(model: Any, ability: Name | OfTruth, needed_by: str) -> Any:
    """Return the model, or the truth, if it has an ability.

    Args:
        model: any.
        ability: one of `ABILITIES`, or for a truth one of `TRUTHS`.
        needed_by: what needs it, such as ``evaluate probing``; begins the message.

    Raises:
        InputError: it lacks a method (code ``missing-ability``); the message names it.
    """
    needed = (ABILITIES | TRUTHS)[ability]
    lacking = needed.lacking(model)
    if lacking:
        name = getattr(model, "name", type(model).__name__)
        if ability == "pieces" and getattr(model, "objective", None) == "masked":
            raise InputError(
                f"{needed_by} needs the probability of a text, which the masked model {name} does not give; use a"
                " causal model of pieces",
                code="masked",
            )
        if ability in TRUTHS:
            described, remedy = getattr(model, "without_rules", (f"the process {name}", needed.remedy))
            raise InputError(
                f"{needed_by} needs {needed.means}, which {described} does not have: {remedy}", code="missing-ability"
            )
        of_ones_own = is_foreign(model) or getattr(model, "of_ones_own", False)
        remedy = "add it as described in help(truesource.LanguageModel)" if of_ones_own else needed.remedy
        raise InputError(
            f"{needed_by} needs {needed.means}: {name} has no {_listed(lacking)}; {remedy}", code="missing-ability"
        )
    return model


def _listed(names: tuple[str, ...]) -> str:
    more = f" (and {len(names) - 2} more)" if len(names) > 2 else ""
    return f"{' and no '.join(names[:2])}{more}"


def _has(model: object, name: str) -> bool:
    """Return True if a model has an attribute that is not None, without evaluating properties of its class."""
    if isinstance(getattr(type(model), name, None), property) and name != "vocabulary":
        return True
    return getattr(model, name, None) is not None
