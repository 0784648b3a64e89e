"""The kit: a folder with twins, texts, grammars and exact answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from truesource.evaluation.known_answers import languages, twins
from truesource.evaluation.known_answers.answers import answers_of, number_of
from truesource.evaluation.known_answers.card import CARD
from truesource.evaluation.known_answers.languages import Language, MaskedLanguage
from truesource.evaluation.known_answers.records import KitAnswers, SentenceAnswers, TextAnswers
from truesource.evaluation.known_answers.scoring import KitText, bpe
from truesource.evaluation.show.result import Result
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell
from truesource.grammar.support.atomic_files import atomic_path, write_json, write_text
from truesource.grammar.support.call_arguments import as_path, flag
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import refuse_occupied
from truesource.grammar.support.records import read_record
from truesource.grammar.support.settings import did_you_mean

T = TypeVar("T")
FORMAT = "truesource known answers"
VERSION = 1  #: of the kit; it changes if a number changes
ANSWERS = "answers.json"  #: in every kit
WHAT = "kit of known answers"


def kit_texts() -> list[KitText]:
    """Return the texts of the kit.

    Their seeds were chosen so that no two conventions or mistakes of a text are within 1 % of each other.
    """
    words, pairs, pieces = languages.words_language(), languages.pairs_language(), languages.pieces_language()
    masked_words, masked_pieces = languages.masked_words_language(), languages.masked_pieces_language()
    causal = ("gpt2", "llama", "gpt2-window")
    names = pieces.tokens.names
    strings = ["".join(names[token] for token in sentence) for sentence in languages.draw(pieces, 12, 16, 392)]
    return [
        KitText("words-1", words, causal, "sentences", languages.draw(words, 12, 14, 1398)),
        KitText("words-2", words, causal, "sentences", languages.draw(words, 12, 14, 3425)),
        KitText("long", words, ("gpt2-window",), "window", [languages.draw_endless(words, 100, 449)]),
        KitText("pairs", pairs, ("gpt2-pairs",), "sentences", languages.draw(pairs, 12, 14, 77)),
        KitText(
            "pieces", pieces, ("gpt2-pieces",), "segmented", [pieces.tokens.numbers(bpe(text)) for text in strings]
        ),
        KitText("masked-words", masked_words, ("bert-words",), "masked", languages.draw(masked_words, 10, 20, 930)),
        KitText("masked-pieces", masked_pieces, ("bert-pieces",), "masked", languages.draw(masked_pieces, 10, 20, 666)),
    ]


def known_answers(path: str | Path | None = None, *, force: bool = False) -> Result:
    """Return the exact answers of the kit, and write the kit, as `truesource known-answers` does.

    The kit has folders that transformers opens, whose networks are exactly the models of known languages, texts of
    these languages, and the numbers that an evaluation must give, or gives if it makes a known mistake.

    Args:
        path: folder to write; None: compute the answers only.
        force: replace a folder that holds a kit.

    Returns:
        A table of the texts; ``detail`` is the content of ``answers.json``, a `KitAnswers`, whose ``texts`` go to
        `truesource.diagnose`.

    Raises:
        InputError: the folder exists, and is no kit or ``force`` is false; or it cannot be written.
    """
    force, target = flag(force, "force"), None if path is None else as_path(path, "a folder to write")
    if target is not None:
        refuse_occupied(target, force, WHAT, ANSWERS)
    texts = kit_texts()
    answers = KitAnswers(FORMAT, VERSION, "CC0-1.0", {text.name: _text_answers(text) for text in texts})
    if target is not None:
        with atomic_path(target) as folder:
            _write(folder, texts, answers)
    return Result(kind="known-answers", scores=(), tables=[_table(answers)], detail=answers)


def _text_answers(text: KitText) -> TextAnswers:
    language, scored, perplexity = text.language, text.score({}), number_of(text, {})
    assert scored is not None and perplexity is not None
    answers = answers_of(text)
    end = [] if text.kind in ("window", "masked") else [language.tokens.end]
    return TextAnswers(
        file=f"texts/{text.name}.txt",
        grammar=f"grammars/{language.name}.txt",
        objective="masked" if isinstance(language, MaskedLanguage) else "causal",
        twins=[f"twins/{name}" for name in text.twins],
        sizes=text.sizes(),
        perplexity=perplexity,
        sentences=[
            SentenceAnswers([language.tokens.names[token] for token in (*tokens, *end)], part, sum(part))
            for tokens, part in zip(text.sentences, scored.parts, strict=True)
        ],
        answers=[answer for answer in answers if answer.kind != "combination"],
        combinations={answer.name: answer.value for answer in answers if answer.kind == "combination"},
    )


def _write(folder: Path, texts: list[KitText], answers: KitAnswers) -> None:
    folder.mkdir()
    write_json(folder / ANSWERS, asdict(answers))
    write_text(folder / "README.md", CARD)
    by_name: dict[str, Language] = {text.language.name: text.language for text in texts}
    for name, language in by_name.items():
        write_text(folder / "grammars" / f"{name}.txt", language.grammar.to_text())
    for text in texts:
        write_text(folder / "texts" / f"{text.name}.txt", "".join(f"{line}\n" for line in text.lines))
    twins.write_twins(folder / "twins", by_name)


def read_answers(folder: str | Path) -> KitAnswers:
    """Read the answers of a kit.

    Raises:
        InputError: the folder holds no kit, or one of another version.
    """
    path = as_path(folder, "a kit") / ANSWERS
    if not path.is_file():
        reason = "there is no kit of known answers here; make one with truesource known-answers -o KIT"
        raise InputError(reason, path.parent, code="missing")
    answers: KitAnswers = read_record(path, KitAnswers, what="the answers", remedy="make the kit again")
    if (answers.format, answers.version) != (FORMAT, VERSION):
        raise InputError(f"these are not the answers of a kit of version {VERSION}; make the kit again", path)
    return answers


def text_answers(text: str, answers: KitAnswers | None = None) -> TextAnswers:
    """Return the answers for a text by its name or its file.

    Args:
        text: name or file.
        answers: of a kit; None: compute the answers of this version.

    Raises:
        InputError: the kit has no such text.
    """
    if answers is None:
        return _text_answers(_named({each.name: each for each in kit_texts()}, text))
    return _named(answers.texts, text)


def _named(texts: Mapping[str, T], text: str) -> T:
    name = Path(text).name.removesuffix(".txt")
    if name not in texts:
        raise InputError(f"the kit has no text {name!r}{did_you_mean(name, texts)}; it has {', '.join(texts)}")
    return texts[name]


def _table(answers: KitAnswers) -> ReportTable:
    """Return a table with a row for each text."""
    rows = [
        TableRow(
            [
                name,
                ", ".join(twin.removeprefix("twins/") for twin in text.twins),
                number_cell(text.sizes["sentences"], ","),
                number_cell(text.sizes["tokens"], ","),
                number_cell(text.perplexity, ".5f"),
                number_cell(sum(each.kind == "convention" for each in text.answers), ","),
                number_cell(sum(each.kind == "mistake" for each in text.answers), ","),
            ]
        )
        for name, text in answers.texts.items()
    ]
    columns = ("text", "twins", "sentences", "tokens", "perplexity per token", "conventions", "mistakes")
    return ReportTable(columns=columns, rows=rows, text=(0, 1))
