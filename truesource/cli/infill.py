"""`truesource infill`: the words that fit the gaps of a sentence, with their exact probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Force, Grammar, Json, Seed

if TYPE_CHECKING:
    import numpy as np

    from truesource.evaluation.diffusion.measure import Filler
    from truesource.evaluation.show.table import ReportTable, TableRow
    from truesource.grammar.inference.any_order import AnyOrder, Pattern
    from truesource.grammar.support.arrays import IntArray

GAP = "___"  #: a word that is not known
SHOWN = 5  #: words of a gap that are listed
MOST_GAPS = 10  #: whose orders a model is asked for


def command(
    grammar: Grammar,
    sentence: Annotated[str, typer.Argument(help=f"Sentence in quotes, with {GAP} for each word that is not known.")],
    top: Annotated[int, typer.Option("--top", min=0, max=1000, help="Number of fillings to list.")] = 10,
    number: Annotated[int, typer.Option("-n", "--number", min=0, help="Number of sentences to sample.")] = 0,
    model: Annotated[str | None, typer.Option("--model", help="Model that fills gaps, to compare with.")] = None,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    force: Force = False,
) -> None:
    """Fill the gaps of a sentence: the most probable fillings, the words of each gap, and samples.

    All probabilities are exact, given the known words and the number of words. Fillings are of all gaps together, the
    most probable first; the words of a gap are summed over what may stand in the others. With --model, what a
    diffusion model thinks of them, and what it fills in itself.

    Example: truesource infill english "there is a ___ ___ ."
    """
    import numpy as np

    from truesource.grammar.inference.any_order import AnyOrder
    from truesource.grammar.pcfg import PCFG
    from truesource.terminal.output import OutputFiles, json_of
    from truesource.terminal.tables import show

    files = OutputFiles(json=json, force=force)
    truth = AnyOrder(PCFG.load(grammar))
    pattern = _pattern(truth, sentence)
    filler = None if model is None else _filler(model, pattern)
    samples = truth.sample(pattern, number, np.random.default_rng(seed))
    record = _record(truth, pattern, top, sampled=number > 0)
    if filler is not None:
        record = _beside(record, filler, truth, pattern, number, np.random.default_rng(seed))
    for table in _tables(record):
        show(table)
    for words in samples:
        echo(" ".join(words))
    files.finish("truesource cite", json=json_of({**record, "samples": [" ".join(words) for words in samples]}))


def _filler(model: str, pattern: Pattern) -> Filler:
    """A model that fills gaps, as a sampler.

    Raises:
        InputError: it cannot fill gaps, or there are more than `MOST_GAPS`.
    """
    from truesource.evaluation.diffusion.measure import Filler
    from truesource.generator.abilities import require
    from truesource.grammar.support.errors import InputError
    from truesource.lmtrain.models import load_model

    if sum(word is None for word in pattern) > MOST_GAPS:
        raise InputError(f"a model is asked for all orders of the gaps, which may be {MOST_GAPS}; leave --model out")
    loaded = load_model(model)
    require(loaded, "denoising", "infill --model")
    return Filler(loaded, loaded.vocabulary or ())  # type: ignore[arg-type]


def _beside(
    record: dict[str, Any], filler: Filler, truth: AnyOrder, pattern: Pattern, number: int, rng: np.random.Generator
) -> dict[str, Any]:
    """The record with ``model_log_prob`` of fillings, ``model_words`` of gaps, and ``model_samples``.

    The probability that a model gives a filling is that of filling its gaps one by one, over all orders.
    """
    import numpy as np

    from truesource.evaluation.diffusion.measure import ALL, HIDDEN, Schedule

    place = {word: number for number, word in enumerate(filler.words)}
    gaps = [i for i, word in enumerate(pattern) if word is None]

    def numbers(words: Sequence[str | None]) -> IntArray:
        return np.array([HIDDEN if w is None else place.get(w, len(filler.words) - 1) for w in words], dtype=np.int64)

    def log_prob(sentence: str) -> float | None:
        found = filler.any_order_log_prob(numbers(sentence.split()), gaps)
        return found if np.isfinite(found) else None

    table = filler.table(numbers(pattern)[None])[0]
    of_gaps = []
    for gap in record["gaps"]:
        row = table[gap["place"] - 1]
        best = np.argsort(-row, kind="stable")[:SHOWN].tolist()
        of_gaps.append(
            {**gap, "model_words": [{"word": filler.words[i], "probability": float(np.exp(row[i]))} for i in best]}
        )
    drawn = filler.sample(np.tile(numbers(pattern), (number, 1)), Schedule("random", ALL), rng) if number else []
    counted = Counter(" ".join(words) for words in drawn).most_common()
    total = truth.log_probs([pattern])[0]
    exact = truth.pcfg.exact.string_log_probs([s.split() for s, _ in counted]) - total if counted else []
    samples = [
        {"sentence": s, "count": n, "log_prob": float(p) if np.isfinite(p) else None, "model_log_prob": log_prob(s)}
        for (s, n), p in zip(counted, exact, strict=True)
    ]
    fillings = [{**each, "model_log_prob": log_prob(each["sentence"])} for each in record["fillings"]]
    return {**record, "fillings": fillings, "gaps": of_gaps, "model_samples": samples}


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


def _record(truth: AnyOrder, pattern: Pattern, top: int, *, sampled: bool) -> dict[str, Any]:
    """Fillings and words of gaps, for JSON; no fillings, and a warning, if they are too many to rank and are sampled.

    Raises:
        InputError: they are too many to rank (code ``too-large``), and no samples are drawn.
    """
    import numpy as np

    from truesource.grammar.support.errors import InputError

    table = truth.marginals([pattern])[0]
    gaps = []
    for place in (i for i, word in enumerate(pattern) if word is None):
        order = np.argsort(-table[place], kind="stable")[:SHOWN]
        best = [
            {"word": truth.pcfg.terminals[i], "probability": float(table[place, i])} for i in order if table[place, i]
        ]
        gaps.append({"place": place + 1, "possible": int((table[place] > 0.0).sum()), "words": best})
    fillings: list[dict[str, Any]] = []
    try:
        for each in islice(truth.best(pattern), top):
            fillings.append({"sentence": " ".join(each.words), "log_prob": each.log_prob})
    except InputError as error:
        if error.code != "too-large" or not sampled:
            raise
        fillings = []
        echo(f"No fillings are ranked: {error.reason}", err=True)
    return {"log_prob": float(truth.log_probs([pattern])[0]), "gaps": gaps, "fillings": fillings}


def _tables(record: dict[str, Any]) -> list[ReportTable]:
    from truesource.evaluation.show.table import ReportTable

    asked = any("model_words" in gap for gap in record["gaps"])
    sampled = record.get("model_samples", [])
    sides = ("probability", "model") if asked else ("probability",)
    unknown = "; words that the model does not know count as one, <unk>" if asked else ""
    tables = [
        ReportTable(
            title="Fillings, the most probable first",
            columns=("sentence", *sides),
            rows=[_row(each) for each in record["fillings"]],
            note=f"given the known words and the number of words; exact{unknown}",
        ),
        ReportTable(
            title="Words of each gap",
            columns=("gap", "most probable words", "possible", *(("of the model",) if asked else ())),
            rows=[_gap_row(gap) for gap in record["gaps"]],
            text=(0, 1, 3) if asked else (0, 1),
            note="summed over what may stand in the other gaps; possible: how many words can stand there",
        ),
        ReportTable(
            title="Sampled by the model",
            columns=("sentence", *sides, "times"),
            rows=[_row(each) for each in sampled],
            note="one word at a time, in random order; probability 0: the grammar cannot make the sentence",
        ),
    ]
    return [table for table in tables if table.rows]


def _row(filling: dict[str, Any]) -> TableRow:
    """A sentence, its probabilities, and how often it was sampled."""
    import math

    from truesource.evaluation.show.table import TableRow, number_cell

    logs = [filling[key] for key in ("log_prob", "model_log_prob") if key in filling]
    cells = [number_cell(0.0 if log is None else math.exp(log), ".4f") for log in logs]
    times = [number_cell(filling["count"], ",")] if "count" in filling else []
    return TableRow((filling["sentence"], *cells, *times))


def _gap_row(gap: dict[str, Any]) -> TableRow:
    from truesource.evaluation.show.table import TableRow, number_cell

    def listed(words: list[dict[str, Any]]) -> str:
        return ", ".join(f"{each['word']} {each['probability']:.3f}" for each in words)

    of_model = (listed(gap["model_words"]),) if "model_words" in gap else ()
    return TableRow((f"word {gap['place']}", listed(gap["words"]), number_cell(gap["possible"], ","), *of_model))
