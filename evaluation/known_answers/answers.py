"""Numbers that an evaluation can give on a text: conventions, mistakes, and two of them together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from truesource.evaluation.known_answers.scoring import Choice, KitText, ScoredText

IDENTICAL = 1e-9  #: relative difference of two names of one number
PER_TOKEN = "perplexity per token"
SAME = " = "  #: between names of one number


@dataclass(frozen=True)
class AnswerOption:
    """An option of an axis; the first option of an axis is the default."""

    name: str
    kind: str  #: ``convention`` or ``mistake``
    meaning: str


@dataclass(frozen=True)
class Answer:
    """A number that an evaluation gives on a text, and what it did."""

    name: str
    kind: str  #: ``convention``, ``mistake`` or ``combination``
    value: float
    meaning: str

    def as_record(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {"name": self.name, "kind": self.kind, "value": self.value, "meaning": self.meaning}


def _options(default: str, conventions: dict[str, str], mistakes: dict[str, str]) -> tuple[AnswerOption, ...]:
    return (
        AnswerOption(default, "convention", ""),
        *(AnswerOption(name, "convention", meaning) for name, meaning in conventions.items()),
        *(AnswerOption(name, "mistake", meaning) for name, meaning in mistakes.items()),
    )


_NUMBER = _options(
    PER_TOKEN,
    {
        "perplexity per word": "the sum over all scored tokens is divided by the number of words",
        "perplexity per byte": "the sum is divided by the number of UTF-8 bytes of the lines, without line ends",
        "perplexity per character": "the sum is divided by the number of characters of the lines, without line ends",
        "perplexity per sentence": "the sum is divided by the number of lines",
        "nats per token": "mean loss with natural logarithms",
        "bits per token": "mean loss with logarithms to the base 2",
        "bits per byte": "loss to the base 2, divided by the number of UTF-8 bytes of the lines, without line ends",
        "bits per character": "loss to the base 2, divided by the number of characters, without line ends",
    },
    {
        "bits per byte, line ends counted": "a byte is counted for each line end, which is not scored",
        "bits per byte, spaces not counted": "bytes of words are counted without the spaces between them",
    },
)
_OF_LINES = ("perplexity per sentence", "bits per byte, line ends counted")  #: numbers that a single line does not tell
_PIECES_NUMBER = (
    *_NUMBER,
    AnswerOption("bits per byte, marks counted", "mistake", "bytes of the pieces: the mark of a space has three bytes"),
)
_AVERAGE = _options(
    "corpus",
    {},
    {
        "mean of sentence means": "exponential of the unweighted mean of the mean losses of sentences",
        "mean of sentence perplexities": "arithmetic mean of the perplexities of sentences",
    },
)
_BASE = _options(
    "natural",
    {},
    {
        "bits raised to e": "the loss has base 2 and the exponential base e",
        "nats raised to 2": "the loss has base e and the exponential base 2",
        "base-10 loss raised to e": "the loss has base 10 and the exponential base e",
    },
)
_FIRST = {"not scored": "nothing precedes the first token, so it is not scored"}
_END = _options("scored", {"not scored": "the end of a sentence is not scored"}, {})
_PADDING = {
    "scored": "padding after the end of shorter sentences is scored and counted",
    "counted": "padding is not scored, but a mean counts it",
}
_CAUSAL = {
    "shift": _options(
        "once",
        {},
        {
            "none": "logits are compared with the token that the model has just read",
            "twice": "logits are compared with the token after the next one",
        },
    ),
    "first": _options(
        "scored",
        _FIRST,
        {
            "from padding": "the first token is predicted from padding on the left instead of the beginning token",
            "from the previous sentence": "the first token is predicted from the end of the sentence before",
        },
    ),
    "end": _END,
    "begin": _options("once", {}, {"scored": "the beginning token is there twice, so one is scored"}),
    "padding": _options("skipped", {}, _PADDING),
    "average": _AVERAGE,
    "base": _BASE,
    "number": _NUMBER,
}
#: axes of each kind of text
AXES: dict[str, dict[str, tuple[AnswerOption, ...]]] = {
    "words": _CAUSAL,
    "pairs": {
        **_CAUSAL,
        "first": _options("scored", _FIRST, {}),
        "padding": _options(
            "skipped",
            {},
            {**_PADDING, "attended": "padding on the left has no attention mask, so the model reads it as context"},
        ),
        "context": _options(
            "full",
            {},
            {
                "one token": "the context is truncated to one token",
                "swapped": "the last two tokens of the context are swapped",
            },
        ),
    },
    "long": {
        "first": _options("scored", _FIRST, {}),
        "windows": _options(
            "overlapping",
            {},
            {
                "cut, first tokens not scored": "windows of 32 tokens do not overlap; the first token is not scored",
                "cut, first tokens counted": "as before, but the mean counts the tokens that are not scored",
                "cut, begin before each": "windows of 31 tokens, each after a beginning token, do not overlap",
                "overlapping, mean of window means": "windows of 32 with stride 16; their means count equally",
            },
        ),
        "base": _BASE,
        "number": tuple(each for each in _NUMBER if each.name not in _OF_LINES),
    },
    "pieces": {
        **{axis: options for axis, options in _CAUSAL.items() if axis not in ("first", "begin")},
        "first": _options("scored", _FIRST, {}),
        "segmentation": _options(
            "canonical",
            {"summed": "probabilities of all segmentations of a sentence are added"},
            {
                "no space before the text": "the first word of a sentence is cut as if it continued a word",
                "first piece of each word": "only the first piece of a word is scored",
            },
        ),
        "number": _PIECES_NUMBER,
    },
    "masked-words": {
        "method": _options(
            "one mask",
            {},
            {
                "no mask": "the model sees the token that it predicts",
                "all masked at once": "all tokens of a sentence are masked at the same time",
            },
        ),
        "special": _options(
            "not scored", {}, {"scored": "the tokens of the beginning and the end are masked and scored"}
        ),
        "padding": _options("skipped", {}, {"counted": _PADDING["counted"]}),
        "average": _AVERAGE,
        "base": _BASE,
        "number": _NUMBER,
    },
}
AXES["masked-pieces"] = {
    **AXES["masked-words"],
    "method": _options(
        "one mask",
        {
            "later pieces masked": "a piece is masked with the later pieces of its word (Kauf & Ivanova 2023)",
            "whole word masked": "all pieces of a word are masked, and each is scored",
        },
        {
            **{each.name: each.meaning for each in AXES["masked-words"]["method"] if each.kind == "mistake"},
            "first piece of each word": "only the first piece of a word is masked and scored",
        },
    ),
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


def _raised(loss: float, base: str) -> float | None:
    """Return the perplexity of a loss in nats; None: it is too large for a number."""
    exponent = {
        "bits raised to e": loss / math.log(2.0),
        "nats raised to 2": loss * math.log(2.0),
        "base-10 loss raised to e": loss / math.log(10.0),
    }.get(base, loss)
    return math.exp(exponent) if exponent < 300.0 else None


def answers_of(text: KitText, *, combinations: bool = True) -> list[Answer]:
    """Return the numbers of a text: conventions, mistakes, and combinations of two; equal numbers once, by all names.

    A mistake changes one thing in the perplexity per token with everything scored. A combination is a mistake with a
    convention or another mistake.

    Args:
        text: of the kit.
        combinations: include combinations.
    """
    answers: list[Answer] = []
    for kind, choices in (
        ("convention", _conventions(text)),
        ("mistake", _mistakes(text)),
        ("combination", _combinations(text) if combinations else ()),
    ):
        for choice in choices:
            value = number_of(text, choice)
            if value is not None and math.isfinite(value):
                _add(answers, Answer(_name(choice), kind, value, _meaning(text, choice)))
    return answers


def _add(answers: list[Answer], new: Answer) -> None:
    """Add an answer; another name of a convention or mistake is added to it, one of a combination is dropped."""
    for place, known in enumerate(answers):
        if abs(known.value - new.value) <= IDENTICAL * abs(known.value):
            if new.kind != "combination" and known.kind == new.kind:
                answers[place] = Answer(f"{known.name}{SAME}{new.name}", known.kind, known.value, known.meaning)
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
    """Yield pairs of a mistake with a convention or with another mistake."""
    mistakes = [*_mistakes(text)]
    conventions = [{axis: name} for axis, names in _of_kind(text, "convention").items() for name in names]
    for place, mistake in enumerate(mistakes):
        for other in (*conventions, *mistakes[place + 1 :]):
            if not mistake.keys() & other.keys():
                yield {**other, **mistake}


_AXIS_NAMES = {
    "shift": {"none": "not shifted", "twice": "shifted twice"},
    "first": {
        "not scored": "first token not scored",
        "from padding": "first token from padding",
        "from the previous sentence": "first token from the previous sentence",
    },
    "end": {"not scored": "end not scored"},
    "begin": {"scored": "beginning scored"},
    "padding": {"scored": "padding scored", "counted": "padding counted", "attended": "padding attended"},
    "context": {"one token": "context of one token", "swapped": "context swapped"},
    "windows": {
        "cut, first tokens not scored": "windows cut, first tokens not scored",
        "cut, first tokens counted": "windows cut, first tokens counted",
        "cut, begin before each": "windows cut, beginning before each",
        "overlapping, mean of window means": "mean of window means",
    },
    "segmentation": {"summed": "segmentations summed"},
    "special": {"scored": "special tokens scored"},
}


def _name(choice: Choice) -> str:
    parts = [_AXIS_NAMES.get(axis, {}).get(name, name) for axis, name in choice.items() if axis != "number"]
    return "; ".join([choice.get("number", PER_TOKEN), *sorted(parts)])


def _meaning(text: KitText, choice: Choice) -> str:
    axes = axes_of(text)
    meanings = [option.meaning for axis, name in choice.items() for option in axes[axis] if option.name == name]
    return "; ".join(meanings) or "exponential of the mean loss; every token is scored, the first and the end too"
