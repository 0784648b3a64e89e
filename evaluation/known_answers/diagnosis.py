"""Diagnosis of a number: the convention or mistake that it matches, and to how many digits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from truesource.evaluation.known_answers.answers import SAME
from truesource.evaluation.known_answers.kit import text_answers
from truesource.evaluation.known_answers.options import AXES, OPTION_NAMES
from truesource.evaluation.known_answers.records import Answer, AnswerKind, TextAnswers
from truesource.evaluation.show.result import Result
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import did_you_mean

FEWEST_DIGITS = 3  #: digits that a convention or mistake must match
FEWEST_OF_COMBINATION = 5  #: digits that a combination must match, as there are many
MOST_DIGITS = 15  #: digits of a number in double precision
MOST_MATCHES = 3  #: matches that are listed


@dataclass(frozen=True)
class AnswerMatch:
    """An answer that a number matches."""

    name: str
    kind: AnswerKind
    value: float  #: exact
    digits: int  #: significant digits that agree
    meaning: str


@dataclass(frozen=True)
class NumberDiagnosis:
    """The answers that a number matches, the best first; none if it matches no convention or mistake."""

    value: float
    digits: int  #: significant digits of the number as written
    matches: tuple[AnswerMatch, ...]
    nearest: AnswerMatch  #: the convention or mistake whose value is nearest

    @property
    def verdict(self) -> str:
        """One sentence on the number."""
        if not self.matches:
            return (
                f"{self.value:g} matches no convention and no known mistake; the nearest is {self.nearest.name},"
                f" {self.nearest.value:.6g}"
            )
        best = self.matches[0]
        article = {"convention": "the convention", "mistake": "the mistake"}.get(best.kind, "the combination")
        return f"{self.value:g} matches {article} {best.name} ({best.value:.8g}) to {best.digits} digits"

    def as_record(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "value": self.value,
            "digits": self.digits,
            "verdict": self.verdict,
            "matches": [vars(match) for match in self.matches],
            "nearest": vars(self.nearest),
        }


def diagnose(value: float | str, answers: TextAnswers | str) -> Result:
    """Return which convention or mistake a number matches, as `truesource known-answers check` does.

    A convention or mistake matches with 3 digits or more, a combination of two with 5 or more.

    Args:
        value: a number that an evaluation reports; as text, its digits as written count.
        answers: for the evaluated text, such as ``known_answers().detail.texts["words-1"]``, or the name of the text.

    Returns:
        A table of matches, the best first, and the verdict as a note; ``detail`` is the `NumberDiagnosis`.

    Raises:
        InputError: the value is no positive number of at least 3 digits, or there is no such text.
    """
    number, digits = _number(value)
    if isinstance(answers, str):
        answers = text_answers(answers)
    if not isinstance(answers, TextAnswers):
        raise InputError("expecting the answers for a text, such as known_answers().detail.texts['words-1']")
    single = [_match(number, digits, each) for each in answers.answers]
    matches = [match for match in single if match.digits >= FEWEST_DIGITS]
    best = max((match.digits for match in matches), default=0)
    for name, exact in answers.combinations.items():
        match = _match(number, digits, Answer(name, "combination", exact))
        if match.digits > best and _is_close(match, digits):
            matches.append(replace(match, meaning=_meaning_of_parts(name)))
    matches.sort(key=lambda match: (-match.digits, match.kind == "combination"))
    nearest = min(single, key=lambda match: abs(math.log(match.value / float(number))))
    diagnosis = NumberDiagnosis(float(number), digits, tuple(matches[:MOST_MATCHES]), nearest)
    return Result(
        kind="known-answers check", scores=(), tables=[_table(diagnosis)], notes=(diagnosis.verdict,), detail=diagnosis
    )


def require_name(name: str, answers: TextAnswers) -> None:
    """Refuse a name that no convention or mistake of a text has.

    Raises:
        InputError: there is no such answer.
    """
    names = [each for answer in answers.answers for each in answer.name.split(SAME)]
    if name not in names:
        raise InputError(f"the text has no answer {name!r}{did_you_mean(name, names)}; answers.json lists them")


def is_named(diagnosis: NumberDiagnosis, name: str) -> bool:
    """Return True if the best match of a number has a name."""
    return bool(diagnosis.matches) and name in diagnosis.matches[0].name.split(SAME)


def _is_close(match: AnswerMatch, digits: int) -> bool:
    return match.digits >= FEWEST_OF_COMBINATION or FEWEST_DIGITS < digits == match.digits


def _number(value: float | str) -> tuple[Decimal, int]:
    """Return a number and its significant digits: of text as written, of a float all.

    Raises:
        InputError: it is no positive number, or has too few digits.
    """
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        raise InputError(f"{value!r} is not a number; give the number that your evaluation reports") from None
    if isinstance(value, bool) or not number.is_finite() or number <= 0 or not 0.0 < float(number) < math.inf:
        raise InputError(f"{value} is not a positive number, but perplexities and losses of the kit are")
    digits = min(len(number.as_tuple().digits), MOST_DIGITS) if isinstance(value, str) else MOST_DIGITS
    if digits < FEWEST_DIGITS:
        raise InputError(f"{value} has too few digits to tell answers apart; give {FEWEST_DIGITS} or more, better 6")
    return number, digits


def _match(number: Decimal, digits: int, answer: Answer) -> AnswerMatch:
    """Compare a number with an answer: all its digits agree if it is the rounded answer."""
    exact = Decimal(repr(answer.value))
    difference = abs(number - exact)
    half_unit = Decimal(5).scaleb(number.adjusted() - digits)
    if difference <= half_unit:
        agreeing = digits
    else:
        agreeing = max(0, min(digits, math.floor(-math.log10(2.0 * float(difference / exact)))))
    return AnswerMatch(answer.name, answer.kind, answer.value, agreeing, answer.meaning)


def _meaning_of_parts(name: str) -> str:
    """Return the meanings of the options that the name of a combination lists."""
    meanings = {
        OPTION_NAMES.get(axis, {}).get(option.name, option.name): option.meaning
        for axes in AXES.values()
        for axis, options in axes.items()
        for option in options[1:]
    }
    return "; ".join(meanings[part] for part in name.split("; ") if part in meanings)


def _table(diagnosis: NumberDiagnosis) -> ReportTable:
    """Return a table with a row for each match."""
    rows = [
        TableRow(
            [match.name, match.kind, number_cell(match.value, ".8g"), number_cell(match.digits, ","), match.meaning]
        )
        for match in diagnosis.matches or (diagnosis.nearest,)
    ]
    columns = ("answer", "kind", "exact value", "digits that agree", "meaning")
    return ReportTable(columns=columns, rows=rows, text=(0, 1, 4))
