"""Options of an evaluation: conventions and mistakes, by axis, for each kind of text."""

from __future__ import annotations

from dataclasses import dataclass

PER_TOKEN = "perplexity per token"
_OF_LINES = ("perplexity per sentence", "bits per byte, line ends counted")  #: numbers that a single line does not tell
_FIRST = {"not scored": "nothing precedes the first token, so it is not scored"}
_PADDING = {
    "scored": "padding after the end of shorter sentences is scored and counted",
    "counted": "padding is not scored, but a mean counts it",
}
#: names of options in the names of answers; an absent option has its own name
OPTION_NAMES = {
    "shift": {"none": "not shifted", "twice": "shifted twice"},
    "first": {
        "not scored": "first token not scored",
        "from padding": "first token from padding",
        "from the previous sentence": "first token from the previous sentence",
    },
    "end": {"not scored": "end not scored", "excluded": "end excluded"},
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


@dataclass(frozen=True)
class AnswerOption:
    """An option of an axis; the first option of an axis is the default."""

    name: str
    kind: str  #: ``convention`` or ``mistake``
    meaning: str


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
_END = _options(
    "scored",
    {"not scored": "the end of a sentence is not scored"},
    {"excluded": "the end is not scored, and the softmax leaves it out, as if it were padding"},
)
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
                "cut, first tokens not scored": "windows of 32 tokens do not overlap; later ones lose a token each",
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
