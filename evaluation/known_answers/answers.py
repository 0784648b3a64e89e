"""Numbers that an evaluation can give on a text: conventions, mistakes, and two of them together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product

from truesource.evaluation.known_answers.options import AXES, OPTION_NAMES, PER_TOKEN, AnswerOption
from truesource.evaluation.known_answers.records import Answer, AnswerKind
from truesource.evaluation.known_answers.scoring import Choice, KitText, ScoredText

IDENTICAL = 1e-9  #: relative difference of two names of one number
SAME = " = "  #: between names of one number
#: size of a text by the unit in the name of a number
_UNITS = {
    "word": "words",
    "byte": "bytes",
    "character": "characters",
    "sentence": "sentences",
    "byte, line ends counted": "bytes and line ends",
    "byte, spaces not counted": "bytes without spaces",
    "byte, marks counted": "bytes of pieces",
}


def number_of(text: KitText, choice: Choice) -> float | None:
    """Return the number that an evaluation with these choices reports; None: they exclude each other."""
    scored = text.score(choice)
    return None if scored is None else _reported(scored, text.sizes(), choice)


def _reported(scored: ScoredText, sizes: dict[str, int], choice: Choice) -> float | None:
    number, average, base = choice.get("number", PER_TOKEN), choice.get("average"), choice.get("base", "natural")
    losses = [-math.fsum(part) for part in scored.parts]
    kind, _, unit = number.partition(" per ")
    if kind != "perplexity" and base != "natural":
        return None
    if average is not None or choice.get("windows", "").endswith("means"):
        if number != PER_TOKEN or scored.counts is None:
            return None
        means = [loss / count for loss, count in zip(losses, scored.counts, strict=True)]
        if average == "mean of sentence perplexities":
            return None if base != "natural" else math.fsum(map(math.exp, means)) / len(means)
        return _raised(math.fsum(means) / len(means), base)
    if unit == "token":
        if scored.counts is None:
            return None
        count = sum(scored.counts)
    else:
        count = sizes[_UNITS[unit]]
    loss = math.fsum(losses) / count
    if kind == "perplexity":
        return _raised(loss, base)
    return loss / math.log(2.0) if kind == "bits" else loss


def _raised(loss: float, base: str) -> float | None:
    """Return the perplexity of a loss in nats; None: it is too large for a number."""
    exponent = {
        "bits raised to e": loss / math.log(2.0),
        "nats raised to 2": loss * math.log(2.0),
        "base-10 loss raised to e": loss / math.log(10.0),
    }.get(base, loss)
    return math.exp(exponent) if exponent < 300.0 else None


def answers_of(text: KitText, *, combinations: bool = True) -> list[Answer]:
    """Return the numbers of a text: conventions, mistakes and combinations; equal numbers once, by all names.

    A mistake changes one thing in the perplexity per token with everything scored. A combination is a mistake with a
    convention or another mistake.

    Args:
        text: of the kit.
        combinations: include combinations.
    """
    answers: list[Answer] = []
    groups: tuple[tuple[AnswerKind, Iterable[Choice]], ...] = (
        ("convention", _conventions(text)),
        ("mistake", _mistakes(text)),
        ("combination", _combinations(text) if combinations else ()),
    )
    for kind, choices in groups:
        for choice in choices:
            value = number_of(text, choice)
            if value is not None and math.isfinite(value):
                _add(answers, Answer(_name(choice), kind, value, _meaning(text, choice)))
    return answers


def _add(answers: list[Answer], new: Answer) -> None:
    """Add an answer; another name of a convention or mistake is added to it, one of a combination is dropped."""
    for place, earlier in enumerate(answers):
        if abs(earlier.value - new.value) <= IDENTICAL * abs(earlier.value):
            if new.kind != "combination" and earlier.kind == new.kind:
                answers[place] = Answer(f"{earlier.name}{SAME}{new.name}", earlier.kind, earlier.value, earlier.meaning)
            return
    answers.append(new)


def axes_of(text: KitText) -> dict[str, tuple[AnswerOption, ...]]:
    """Return the axes of a text."""
    return AXES["long" if text.kind == "window" else text.language.name]


def _of_kind(text: KitText, kind: str) -> dict[str, list[str]]:
    """Return the options of a kind that are no defaults, by axis."""
    return {
        axis: [option.name for option in options[1:] if option.kind == kind] for axis, options in axes_of(text).items()
    }


def _conventions(text: KitText) -> Iterator[dict[str, str]]:
    """Yield combinations of conventions.

    Numbers other than perplexity per token score the first token; those other than perplexities per token and word
    mask one token.
    """
    options = {axis: ["", *names] for axis, names in _of_kind(text, "convention").items()}
    for names in sorted(product(*options.values()), key=lambda names: sum(map(bool, names))):
        choice = {axis: name for axis, name in zip(options, names, strict=True) if name}
        number = choice.get("number", PER_TOKEN)
        excluded = {"first"} if number == "perplexity per word" else {"first", "method"}
        if number == PER_TOKEN or not excluded & choice.keys():
            yield choice


def _mistakes(text: KitText) -> Iterator[dict[str, str]]:
    for axis, names in _of_kind(text, "mistake").items():
        yield from ({axis: name} for name in names)


def _combinations(text: KitText) -> Iterator[dict[str, str]]:
    """Yield mistakes with a convention or with another mistake."""
    mistakes = [*_mistakes(text)]
    conventions = [choice for choice in _conventions(text) if choice]
    for place, mistake in enumerate(mistakes):
        for other in (*conventions, *mistakes[place + 1 :]):
            if not mistake.keys() & other.keys():
                yield {**other, **mistake}


def _name(choice: Choice) -> str:
    parts = [OPTION_NAMES.get(axis, {}).get(name, name) for axis, name in choice.items() if axis != "number"]
    return "; ".join([choice.get("number", PER_TOKEN), *sorted(parts)])


def _meaning(text: KitText, choice: Choice) -> str:
    axes = axes_of(text)
    meanings = [option.meaning for axis, name in choice.items() for option in axes[axis] if option.name == name]
    return "; ".join(meanings) or "exponential of the mean loss; every token is scored, the first and the end too"
