"""Standings of models on a suite: from files of results to what tables and pages show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.score import Key, Score, keyed
from truesource.evaluation.measures.contrast import (
    Contrast,
    PairFamily,
    SeedSums,
    mean_over_seeds,
    mean_over_texts,
    negated,
)
from truesource.evaluation.show.table import ReportTable, TableRow, score_cell
from truesource.evaluation.show.words import holm_family
from truesource.generator.objectives import OBJECTIVES, Objective
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.studies.benchmark.results import (
    REFERENCES,
    BenchmarkCell,
    BenchmarkModel,
    BenchmarkResults,
    TruthContexts,
    has_truth,
)
from truesource.studies.compare.tables import p_cell

THRESHOLDS = (0.1, 0.01)  #: nats a token, of ``tokens_to``
SPEC = ".3f"  #: of shares, relative perplexities and bits


@dataclass(frozen=True, kw_only=True)
class LanguageStanding:
    """A model on one language: means over its seeds, intervals over sentences and seeds."""

    language: str  #: name in the suite
    seeds: int
    share: Contrast  #: share of the context's information learned by the model: 1 is the truth, 0 word frequencies
    kl: Contrast  #: exact KL(truth || model), nats a token
    wrong: float  #: probability given to what cannot follow, mean over contexts and seeds
    calibration: float  #: expected calibration error, mean over seeds
    longer_share: Contrast | None  #: ``share`` beyond the longest string of training; None: not measured
    longer_wrong: float | None
    longer_refused: str | None  #: why the model reads no longer strings
    #: training tokens until KL on dev is at most each of `THRESHOLDS`, geometric mean; None: not all seeds got there
    tokens_to: Mapping[float, float | None]
    curve: Sequence[tuple[float, float]]  #: training tokens and KL in nats a token, means over seeds

    @property
    def relative_ppl(self) -> float:
        """Exp of the KL: perplexity over the truth's perplexity, in expectation over the next token."""
        return math.exp(self.kl.value)

    @property
    def bits(self) -> float:
        """The KL in bits a token."""
        return self.kl.value / math.log(2.0)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A model on a suite."""

    model: BenchmarkModel
    languages: Mapping[str, LanguageStanding]  #: measured languages, in the order of the suite
    share: Contrast | None  #: mean over all languages that can be measured, the headline; None: some are missing
    longer_share: Contrast | None  #: mean over all languages with longer strings; None: some are missing, or refused

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model["name"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Standings(ResultRecords):
    """All models of one objective on a suite, the best first; incomplete ones last."""

    objective: Objective
    languages: Sequence[str]  #: of the suite, those that have a truth for such models
    rows: Sequence[Standing]
    seed: int = DEFAULT_SEED  #: of intervals

    @override
    def as_scores(self) -> list[Score]:
        """Return the share of each model on the suite (``language`` null), and its measures on each language."""
        every: list[Score] = []
        for row in self.rows:
            head = {"model": row.name, "objective": self.objective}
            shares = {"share": row.share, "longer_share": row.longer_share}
            every += [_score(name, share).at(**head, language=None) for name, share in shares.items() if share]
            for language, each in row.languages.items():
                place: dict[str, Key] = {**head, "language": language, "seeds": each.seeds}
                intervals = {"share": each.share, "kl": each.kl, "longer_share": each.longer_share}
                numbers = {"wrong": each.wrong, "calibration": each.calibration, "longer_wrong": each.longer_wrong}
                every += keyed((_score(name, x) for name, x in intervals.items() if x), **place)
                every += keyed((Score(name, x) for name, x in numbers.items() if x is not None), **place)
        return every


def _score(name: str, contrast: Contrast) -> Score:
    return Score(name, contrast.value, "", contrast.low, contrast.high)


def standings(results: BenchmarkResults, languages: Sequence[str], *, seed: int = DEFAULT_SEED) -> list[Standings]:
    """Return tables of the models of some results, joined, by their objective: causal, masked, any order.

    Args:
        results: of one suite, see `joined`.
        languages: all of the suite, in its order.
        seed: of the resampling.
    """
    tables = []
    for objective in OBJECTIVES:
        models = [model for model in results["models"] if model["objective"] == objective]
        if models:
            missing = [name for name, r in results["languages"].items() if not has_truth(r["language"], objective)]
            measurable = [name for name in languages if name not in missing]
            rows = [standing(results, model, measurable, seed=seed) for model in models]
            rows.sort(key=lambda row: -math.inf if row.share is None else row.share.value, reverse=True)
            tables.append(Standings(objective=objective, languages=measurable, rows=rows, seed=seed))
    return tables


def standing(
    results: BenchmarkResults, model: BenchmarkModel, languages: Sequence[str], *, seed: int = DEFAULT_SEED
) -> Standing:
    """Return the standing of one model on the languages of a suite."""
    measured = {name: _on_language(results, model, name, seed) for name in languages if cells_of(model, name)}
    sums = [share_sums(results, model, name) for name in measured]
    truths = {
        name: truth
        for name in languages
        if name in results["languages"] and (truth := results["languages"][name]["truth"].get(model["objective"]))
    }
    longer = [name for name, truth in truths.items() if truth["longer"]]
    beyond = [share_sums(results, model, name, part="longer") for name in longer]
    read = [each for each in beyond if each is not None]
    all_read = longer and len(read) == len(longer) and len(truths) == len(languages)
    whole = len(measured) == len(languages)
    return Standing(
        model=model,
        languages=measured,
        share=_mean_share([each for each in sums if each is not None], seed) if whole else None,
        longer_share=_mean_share(read, seed) if all_read else None,
    )


def share_sums(
    results: BenchmarkResults,
    model: BenchmarkModel,
    language: str,
    *,
    part: Literal["test", "longer"] = "test",
    blocks: slice = slice(None),
    seeds: Sequence[int] | None = None,
) -> SeedSums | None:
    """Return the KL and information in the blocks of test strings, whose ratio is 1 minus the share.

    Args:
        results: that the model is from.
        model: one of its models.
        language: name in the suite.
        part: ``test`` or ``longer``.
        blocks: selected blocks.
        seeds: selected seeds; None: all.

    Returns:
        Sums of K seeds in B blocks; None: there are no such strings, or a seed reads none of them.
    """
    both = results["languages"][language]["truth"][model["objective"]]
    truth: TruthContexts | None = both["test"] if part == "test" else both["longer"]
    cells = [cell for cell in cells_of(model, language) if seeds is None or cell["seed"] in seeds]
    measured = [cell["test"] if part == "test" else cell["longer"] for cell in cells]
    divergences = [each for each in measured if each is not None]
    if truth is None or not divergences or len(divergences) < len(measured):
        return None
    total = np.array([each["kl"] for each in divergences])[:, blocks]
    information = np.array(truth["information"])[blocks]
    return SeedSums(total, np.broadcast_to(information, total.shape).copy())


def cells_of(model: BenchmarkModel, language: str) -> list[BenchmarkCell]:
    """Return the cells of a model on one language, by seed."""
    return sorted((cell for cell in model["cells"] if cell["language"] == language), key=lambda cell: cell["seed"])


def _on_language(results: BenchmarkResults, model: BenchmarkModel, name: str, seed: int) -> LanguageStanding:
    cells = cells_of(model, name)
    truth = results["languages"][name]["truth"][model["objective"]]
    sums, beyond = share_sums(results, model, name), share_sums(results, model, name, part="longer")
    assert sums is not None  # there are cells
    counts = np.broadcast_to(np.array(truth["test"]["contexts"], dtype=np.float64), sums.total.shape)
    refused = [cell["longer_refused"] for cell in cells if cell["longer_refused"] is not None]
    longer = [cell["longer"] for cell in cells if cell["longer"] is not None]
    return LanguageStanding(
        language=name,
        seeds=len(cells),
        share=_share(mean_over_seeds(sums, seed=seed)),
        kl=mean_over_seeds(SeedSums(sums.total, counts.copy()), seed=seed),
        wrong=_mean([cell["test"]["wrong"] for cell in cells]),
        calibration=_mean([cell["calibration"] for cell in cells]),
        longer_share=None if beyond is None else _share(mean_over_seeds(beyond, seed=seed)),
        longer_wrong=_mean([each["wrong"] for each in longer]) if beyond is not None else None,
        longer_refused=refused[0] if refused else None,
        tokens_to={
            threshold: _geometric([tokens_until(cell, threshold) for cell in cells]) for threshold in THRESHOLDS
        },
        curve=mean_curve(cells),
    )


def tokens_until(cell: BenchmarkCell, threshold: float) -> float | None:
    """Return the training tokens until the KL on dev is first at most ``threshold`` nats a token; None: never.

    Between two points of the curve both are taken to change as straight lines of their logarithms.
    """
    before: tuple[float, float] | None = None
    for tokens, kl in cell["curve"]:
        if kl <= threshold:
            if before is None or before[0] <= 0 or kl <= 0.0:
                return float(tokens)
            part = math.log(before[1] / threshold) / math.log(before[1] / kl)
            return float(before[0] * (tokens / before[0]) ** part)
        before = float(tokens), kl
    return None


def mean_curve(cells: Sequence[BenchmarkCell]) -> list[tuple[float, float]]:
    """Return the means over seeds of the points of learning curves that all seeds have, by their number."""
    points = [np.array(cell["curve"], dtype=np.float64).reshape(-1, 2) for cell in cells]
    common = min((len(each) for each in points), default=0)
    if common == 0:
        return []
    mean: FloatArray = np.mean([each[:common] for each in points], axis=0)
    return [(float(tokens), float(kl)) for tokens, kl in mean]


def _mean_share(sums: Sequence[SeedSums], seed: int) -> Contrast:
    return _share(mean_over_texts([(each, None) for each in sums], seed=seed))


def _share(ratio: Contrast) -> Contrast:
    """Return 1 minus a ratio of KL to information, without its p-value, which is about a ratio of 0."""
    ends = (None, None) if ratio.low is None or ratio.high is None else (1.0 - ratio.high, 1.0 - ratio.low)
    return Contrast(1.0 - ratio.value, *ends)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _geometric(values: Sequence[float | None]) -> float | None:
    positive = [value for value in values if value is not None and value > 0.0]
    return math.exp(_mean([math.log(value) for value in positive])) if len(positive) == len(values) else None


@dataclass(frozen=True, kw_only=True)
class ShareDifference:
    """The share of a model minus a baseline's on the same test strings, mean over the languages of a suite."""

    model: str
    baseline: str
    contrast: Contrast
    p_adjusted: float | None  #: by Holm's method, for all pairs of ranked models
    tests: int  #: number of pairs that ``p_adjusted`` is for


def default_baseline(found: Standings, own: Sequence[str] = ()) -> str | None:
    """Return the reader's first model with all languages, else the best one; None without ranked models."""
    ranked = [row.name for row in found.rows if row.share is not None and not is_reference(row)]
    return next((name for name in own if name in ranked), ranked[0] if ranked else None)


def difference_tables(compared: Sequence[Sequence[ShareDifference]]) -> list[ReportTable]:
    """Return a table for each group of `differences_of`."""
    return [difference_table(group) for group in compared]


def differences_of(
    results: BenchmarkResults, found: Sequence[Standings], *, own: Sequence[str] = (), baseline: str | None = None
) -> list[list[ShareDifference]]:
    """Return the differences of each objective with two ranked models or more.

    Args:
        results: of models on a suite.
        found: their standings.
        own: names of the reader's models.
        baseline: of objectives that have a model of this name; None, and in the others: `default_baseline`.

    Raises:
        InputError: no ranked model has the name of the baseline.
    """
    groups, all_ranked = [], set()
    for each in found:
        ranked = {row.name for row in each.rows if row.share is not None and not is_reference(row)}
        all_ranked |= ranked
        against = baseline if baseline in ranked else default_baseline(each, own)
        if against is not None and len(ranked) > 1:
            groups.append(share_differences(results, each, against))
    if baseline is not None and baseline not in all_ranked:
        raise InputError(
            f"no model {baseline!r} was measured on all languages; there are {', '.join(sorted(all_ranked)) or 'none'}",
            code="unknown-baseline",
        )
    return groups


def share_differences(results: BenchmarkResults, found: Standings, baseline: str) -> list[ShareDifference]:
    """Return the shares of all other ranked models minus a baseline's, in the order of the standings, with their seed.

    Args:
        results: that the models are from.
        found: models of one objective.
        baseline: name of a model that was measured on all languages.

    Raises:
        KeyError: there is no such model.
    """
    models = {row.name: row.model for row in found.rows if row.share is not None and not is_reference(row)}
    if baseline not in models:
        raise KeyError(baseline)

    def contrast(first: str, second: str) -> Contrast:
        texts = [_pair(results, models[first], models[second], each) for each in found.languages]
        return negated(mean_over_texts(texts, seed=found.seed))  # a share is one less KL over information

    family = PairFamily.test(list(models), contrast)
    pairs = {name: family.of(name, baseline) for name in models if name != baseline}
    return [
        ShareDifference(
            model=name, baseline=baseline, contrast=pair.contrast, p_adjusted=pair.p_adjusted, tests=pair.tests
        )
        for name, pair in pairs.items()
    ]


def difference_table(differences: Sequence[ShareDifference]) -> ReportTable:
    """Return a row for each model."""
    baseline = differences[0].baseline
    return ReportTable(
        title=f"Share learned, less the share of {baseline}",
        columns=("model", f"difference\nto {baseline}", "p (Holm)"),
        keys=("model", "difference", "p_adjusted"),
        rows=[
            TableRow(
                [
                    each.model,
                    score_cell(each.contrast.interval._asdict(), f"+{SPEC}"),
                    None if each.p_adjusted is None else p_cell(each.p_adjusted),
                ]
            )
            for each in differences
        ],
        note="Mean over languages, paired on the same test strings, with 95% intervals over other strings and other"
        f" training seeds; p: two-sided, of no difference; {holm_family(differences[0].tests)}.",
    )


def _pair(
    results: BenchmarkResults, model: BenchmarkModel, against: BenchmarkModel, language: str
) -> tuple[SeedSums, SeedSums]:
    one, other = share_sums(results, model, language), share_sums(results, against, language)
    if one is None or other is None:
        raise KeyError(language)
    return one, other


def standing_records(
    found: Sequence[Standings], compared: Sequence[Sequence[ShareDifference]], *, own: Sequence[str] = ()
) -> dict[str, list[dict[str, object]]]:
    """Return the numbers of the tables and of each language: ``standings`` and ``differences``.

    Args:
        found: standings of models on a suite.
        compared: their differences, by `truesource.studies.benchmark.standings.differences_of`.
        own: names of the reader's models.
    """
    return {
        "standings": [
            {"objective": each.objective, **_of_model(row, own=row.name in own)} for each in found for row in each.rows
        ],
        "differences": [
            {
                "model": each.model,
                "baseline": each.baseline,
                **contrast_record(each.contrast),
                "p_adjusted": each.p_adjusted,
            }
            for group in compared
            for each in group
        ],
    }


def _of_model(row: Standing, *, own: bool) -> dict[str, object]:
    return {
        "model": row.name,
        "architecture": row.model["architecture"],
        "own": own,
        "share": contrast_record(row.share),
        "longer_share": contrast_record(row.longer_share),
        "languages": {name: _of_language(each) for name, each in row.languages.items()},
    }


def _of_language(each: LanguageStanding) -> dict[str, object]:
    return {
        "seeds": each.seeds,
        "share": contrast_record(each.share),
        "kl": contrast_record(each.kl),
        "relative_ppl": each.relative_ppl,
        "wrong": each.wrong,
        "calibration": each.calibration,
        "longer_share": contrast_record(each.longer_share),
        "longer_wrong": each.longer_wrong,
        "tokens_to": {f"{nats:g}": tokens for nats, tokens in each.tokens_to.items()},
    }


def contrast_record(found: Contrast | None) -> dict[str, float | None]:
    """Return ``value``, ``low``, ``high`` and ``p`` of a mean or difference; empty if it was not measured."""
    return {} if found is None else {"value": found.value, "low": found.low, "high": found.high, "p": found.p}


def is_reference(row: Standing) -> bool:
    """Return True if a row is a reference and not a competing model."""
    return row.model["architecture"] in REFERENCES
