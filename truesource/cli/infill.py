"""`truesource infill`: the words that fit the gaps of a sentence, with their exact probabilities."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truesource.cli.options import Force, Grammar, Json, Seed
from truesource.grammar.support.settings import DEFAULT_SEED

if TYPE_CHECKING:
    from truesource.grammar.inference.any_order import AnyOrder, Pattern
    from truesource.report.table import ReportTable

GAP = "___"  #: a word that is not known
SHOWN = 5  #: words of a gap that are listed


def command(
    grammar: Grammar,
    sentence: Annotated[str, typer.Argument(help=f"Sentence in quotes, with {GAP} for each word that is not known.")],
    top: Annotated[int, typer.Option("--top", min=0, max=1000, help="Number of fillings to list.")] = 10,
    number: Annotated[int, typer.Option("-n", "--number", min=0, help="Number of sentences to sample.")] = 0,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    force: Force = False,
) -> None:
    """Fill the gaps of a sentence: the most probable fillings, the words of each gap, and samples.

    All probabilities are exact, given the known words and the number of words. Fillings are of all gaps together, the
    most probable first; the words of a gap are summed over what may stand in the others.

    Example: truesource infill english "there is a ___ ___ ."
    """
    import numpy as np

    from truesource.cli.console import echo
    from truesource.cli.output import OutputFiles, json_of, show
    from truesource.grammar.inference.any_order import AnyOrder
    from truesource.grammar.pcfg import PCFG

    files = OutputFiles(json=json, force=force)
    truth = AnyOrder(PCFG.load(grammar))
    pattern = _pattern(truth, sentence)
    samples = truth.sample(pattern, number, np.random.default_rng(seed))
    record = _record(truth, pattern, top)
    for table in _tables(record):
        if table.rows:
            show(table)
    for words in samples:
        echo(" ".join(words))
    files.finish("truesource cite", json=json_of({**record, "samples": [" ".join(words) for words in samples]}))


def _pattern(truth: AnyOrder, sentence: str) -> Pattern:
    """The words of a sentence, None for those that are not known.

    Raises:
        InputError: there is no gap, or the grammar lacks a word.
    """
    from truesource.evaluation.measures.paired import unknown_words, words_missing
    from truesource.grammar.support.errors import InputError

    words = sentence.split()
    if GAP not in words:
        raise InputError(f"there is no gap in {sentence!r}; write {GAP} for each word that is not known")
    if unknown := unknown_words(truth.pcfg, [[word for word in words if word != GAP]]):
        raise InputError(words_missing(unknown))
    return [None if word == GAP else word for word in words]


def _record(truth: AnyOrder, pattern: Pattern, top: int) -> dict[str, Any]:
    """Fillings and words of gaps, for JSON."""
    import numpy as np

    table = truth.marginals([pattern])[0]
    gaps = []
    for place in (i for i, word in enumerate(pattern) if word is None):
        order = np.argsort(-table[place], kind="stable")[:SHOWN]
        best = [
            {"word": truth.pcfg.terminals[i], "probability": float(table[place, i])} for i in order if table[place, i]
        ]
        gaps.append({"place": place + 1, "possible": int((table[place] > 0.0).sum()), "words": best})
    fillings = [
        {"sentence": " ".join(each.words), "log_prob": each.log_prob} for each in islice(truth.best(pattern), top)
    ]
    return {"log_prob": float(truth.log_probs([pattern])[0]), "gaps": gaps, "fillings": fillings}


def _tables(record: dict[str, Any]) -> list[ReportTable]:
    import math

    from truesource.report.table import ReportTable, TableRow, number_cell

    fillings = [
        TableRow((each["sentence"], number_cell(math.exp(each["log_prob"]), ".4f"))) for each in record["fillings"]
    ]
    gaps = [
        TableRow(
            (
                f"word {gap['place']}",
                ", ".join(f"{each['word']} {each['probability']:.3f}" for each in gap["words"]),
                number_cell(gap["possible"], ","),
            )
        )
        for gap in record["gaps"]
    ]
    return [
        ReportTable(
            title="Fillings, the most probable first",
            columns=("sentence", "probability"),
            rows=fillings,
            note="given the known words and the number of words; exact",
        ),
        ReportTable(
            title="Words of each gap",
            columns=("gap", "most probable words", "possible"),
            rows=gaps,
            text=(0, 1),
            note="summed over what may stand in the other gaps; possible: how many words can stand there",
        ),
    ]
