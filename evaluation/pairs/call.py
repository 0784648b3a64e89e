"""Minimal pairs in one call: pairs of a grammar or a file, and the preferences of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.given import given_truth
from truesource.evaluation.pairs import PairSettings, report
from truesource.evaluation.pairs.evaluate import PairEvaluation, evaluate_pairs
from truesource.evaluation.pairs.generate import GeneratedPairs, make_pairs
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.odds import with_truth
from truesource.evaluation.pairs.pair import filter_pairs, read_pairs
from truesource.evaluation.show.result import Result
from truesource.evaluation.sources import first_condition
from truesource.generator.abilities import require
from truesource.generator.arguments import as_lengths

if TYPE_CHECKING:
    from truesource.evaluation.pairs.pair import Pair
    from truesource.generator.language_model import LanguageModel
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.truth import Truth

KIND = "evaluate pairs"


@dataclass(frozen=True)
class MeasuredPairs:
    """Pairs, and the preferences of a model."""

    pairs: Sequence[Pair]
    evaluation: PairEvaluation | None  #: None without a model


def evaluate(
    model: LanguageModel | str | Path | None,
    grammar: Any,
    oracle: Truth | str | Path | bool = True,
    *,
    settings: PairSettings,
    lengths: LengthRange | tuple[int, int] | str | None = None,
    seed: int,
) -> Result:
    """Generate or read pairs, and measure which of the two sentences a model prefers.

    Args:
        model: to measure, or its reference; None: only make the pairs.
        grammar: that knows the odds: a grammar, its file, a language, or a corpus, whose own grammar it is.
        oracle: another grammar than the corpus's own.
        settings: of the evaluator.
        lengths: of the sentences; None: as the corpus or the folder of the model records them.
        seed: of pairs and intervals.

    Returns:
        A result whose ``detail`` is `MeasuredPairs`.

    Raises:
        InputError: model, grammar or file cannot be read, or the grammar has no rules.
        NothingToMeasureError: there are no pairs, or none can be compared.
    """
    truth, recorded = given_truth(grammar, oracle)
    pcfg: PCFG = require(truth, "parses", KIND)
    line = ""
    condition = as_lengths(lengths) if lengths is not None else recorded
    if lengths is None and recorded is None and isinstance(model, str | Path):
        condition, line = first_condition(None, [model])
    generated = pairs_of(pcfg, settings, lengths=condition, seed=seed)
    lines, notes = (line,) if line else (), [f"{note}." for note in generated.notes]
    if model is None:
        table = report.examples_table(examples(generated.pairs))
        detail = MeasuredPairs(generated.pairs, None)
        return Result(kind=KIND, scores=[], tables=[table], inputs=lines, notes=notes, detail=detail)
    from truesource.lmtrain.models import as_loaded  # torch

    measured = evaluate_pairs(as_loaded(model), generated.pairs, pcfg, lengths=condition, seed=seed)
    number = len(generated.pairs)
    notes += [f"{n} of {number} pairs left out: {reason}" for reason, n in measured.left_out.items()]
    scores = measured.as_scores()
    records = [score.as_record() for score in scores]
    models = {measured.model: records}
    return Result(
        kind=KIND,
        scores=scores,
        tables=[
            report.measures_table(models),
            report.phenomena_table(measured.model, records),
            report.parts_table(models),
        ],
        inputs=lines,
        notes=notes,
        draw=lambda: report.pairs_figure(measured.objective, models),
        detail=MeasuredPairs(generated.pairs, measured),
    )


def pairs_of(pcfg: PCFG, settings: PairSettings, *, lengths: LengthRange | None, seed: int) -> GeneratedPairs:
    """Return the pairs of the file that the settings name, or generated ones.

    Raises:
        NothingToMeasureError: there are no pairs.
        InputError: as `truesource.evaluation.pairs.pair.read_pairs` and `filter_pairs`.
    """
    if settings.file is None:
        return make_pairs(pcfg, lengths, settings, seed=seed)
    pairs = with_truth(read_pairs(settings.file, pcfg.vocabulary, lengths), Lexicon(pcfg, lengths))
    selected = filter_pairs(
        pairs, settings.file, phenomena=settings.phenomena, number=settings.number, possible=settings.possible
    )
    return GeneratedPairs(selected, [])


def examples(pairs: Sequence[Pair]) -> list[dict[str, object]]:
    """Return the first pair of each phenomenon, with two possible sentences if there is one, and the numbers of pairs.

    Args:
        pairs: of any phenomena.
    """
    records = []
    for name in dict.fromkeys(pair.phenomenon for pair in pairs):
        members = [pair for pair in pairs if pair.phenomenon == name]
        first = next((pair for pair in members if pair.possible), members[0])
        impossible = sum(not pair.possible for pair in members)
        records.append({**first.as_record(), "pairs": len(members), "impossible_pairs": impossible})
    return records
