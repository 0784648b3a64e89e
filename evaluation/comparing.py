"""Many models against one truth: a row for each, and its difference from a baseline with a test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.signature import signature, unit_part
from truesource.evaluation.measures.bootstrap import Interval, ci_part, ends, perplexities
from truesource.evaluation.measures.contrast import Contrast, PairFamily, SeedSums, difference, mean_over_seeds, negated
from truesource.evaluation.measures.paired import NothingToCompareError, Paired
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import SHOWN, ResultRecords, one_line
from truesource.grammar.support.settings import DEFAULT_SEED

#: parts of signatures on predictions, text and truth; models that differ in one of them do not compare
SAME = (
    *("objective", "data", "grammar", "given", "transform", "disjoint", "eos", "first", "unk", "vocab"),
    *("longest", "longer"),
)
OF_THE_TEXT = ("data", "grammar", "vocab")  #: parts that may differ between parallel texts
MEASURES = ("ppl", "bound", "relative_ppl", "kl")


@dataclass(frozen=True, kw_only=True)
class SeedScores:
    """Scores of a trained model and of the truth."""

    label: str  #: reference of this very model, or its name in a run
    paired: Paired
    parts: Mapping[str, object]  #: of the signature of its scores
    resampling: int = DEFAULT_SEED  #: seed of the intervals of these scores
    seed: int | None = None  #: of its training; None: unknown
    also: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  #: records of further evaluators, by name
    exact: Score | None = None  #: from full distributions: ``kl``, nats a token, or ``kl_infinite``, a share

    @cached_property
    def table(self) -> FloatArray:
        """`Paired.table`."""
        return self.paired.table()

    def resampled(self, seed: int) -> SeedScores:
        """Return the same scores with intervals by another seed."""
        sentences = self.paired.n_sentences - len(self.paired.excluded)
        return replace(self, resampling=seed, parts={**self.parts, "ci": ci_part(sentences, seed)})


@dataclass(frozen=True, kw_only=True)
class ModelScores:
    """A model of a comparison: one seed, or several that differ in nothing else."""

    name: str
    seeds: Sequence[SeedScores]  #: one or more, of one key

    @property
    def parts(self) -> Mapping[str, object]:
        """Parts of the signature of the first seed."""
        return self.seeds[0].parts

    @property
    def key(self) -> tuple[str, ...]:
        """Values of `SAME`, which models that compare have in common."""
        values = {name: str(self.parts.get(name, "")) for name in SAME}
        values["grammar"] = values["grammar"].split(" ")[-1]  # the digest, without the name of a language
        return tuple(values.values())

    @property
    def request(self) -> tuple[str, ...]:
        """`key` without the text, its truth and its words, which may differ between parallel texts."""
        return tuple(value for name, value in zip(SAME, self.key, strict=True) if name not in OF_THE_TEXT)

    @property
    def objective(self) -> str:
        """Causal or masked."""
        return str(self.parts["objective"])

    @property
    def scored(self) -> BoolArray:
        """Sentences in which all seeds and the oracle count a position, (N,)."""
        return np.asarray(np.all([seed.table[2] > 0.0 for seed in self.seeds], axis=0))

    def resampled(self, seed: int) -> ModelScores:
        """Return the same scores with intervals by another seed."""
        return replace(self, seeds=[scores.resampled(seed) for scores in self.seeds])

    def sums(self, measure: str, sentences: BoolArray) -> SeedSums:
        """Return numerators and denominators of a measure, on some of the sentences.

        Args:
            measure: ``kl``, ``bound`` (-ln P) or ``ppl`` (-ln Q), each a token, in nats.
            sentences: (N,) which of them.
        """
        gap, bound, count = np.stack([seed.table[:, sentences] for seed in self.seeds], axis=1)
        return SeedSums({"kl": gap, "bound": bound, "ppl": gap + bound}[measure], count)


def grouped(models: Sequence[ModelScores]) -> list[list[ModelScores]]:
    """Group models that compare: one text, truth, objective and vocabulary; each group in the given order."""
    groups: dict[tuple[str, ...], list[ModelScores]] = {}
    for model in models:
        groups.setdefault(model.key, []).append(model)
    return list(groups.values())


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """A model: measures as of `truesource.evaluation.measures.bootstrap.perplexities`, means over its seeds.

    The mean of ``kl`` is arithmetic; means of perplexities are geometric, so that ``kl`` stays ``ln relative_ppl``.
    """

    model: ModelScores
    measures: Mapping[str, Interval]
    deviations: Mapping[str, float]  #: standard deviations over seeds; empty of one seed
    by_seed: Sequence[Mapping[str, float]]  #: of each of several seeds, on the sentences that all of them can make
    parts: Mapping[str, object]  #: of the signature

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name


@dataclass(frozen=True, kw_only=True)
class PairedDifference:
    """The difference of the KL of two models, nats a token, on the sentences that all models can make.

    It is the logarithm of the ratio of their (relative) perplexities.
    """

    model: str
    baseline: str
    contrast: Contrast
    p_adjusted: float | None  #: by Holm's method, for all pairs of models
    tests: int  #: number of pairs in the family of ``p_adjusted``
    parts: Mapping[str, object]  #: of the signature


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelComparison(ResultRecords):
    """Models of one objective, text and truth."""

    objective: str
    rows: Sequence[ModelRow]  #: in the order given
    oracle: ModelRow  #: the truth in the vocabulary of the comparison
    baseline: str
    differences: Sequence[PairedDifference]  #: of all models but the baseline, in their order
    other_pairs: Sequence[PairedDifference]  #: of the pairs without the baseline, the later model less the earlier
    sentences: int  #: that all models and the oracle can make
    n_sentences: int  #: number of sentences of the text

    @override
    def as_scores(self) -> list[Score]:
        """Return the scores of the oracle, of each model and each of several seeds, and of each pair of models.

        The pairs with the baseline come first.
        """
        return [
            *(score for row in (self.oracle, *self.rows) for score in _row_scores(row)),
            *(_difference(self, pair) for pair in (*self.differences, *self.other_pairs)),
        ]

    def pair(self, first: str, second: str) -> PairedDifference:
        """Return the difference of the KL of two models, the first less the second.

        Raises:
            KeyError: there are no such models.
        """
        for pair in (*self.differences, *self.other_pairs):
            if (pair.model, pair.baseline) == (first, second):
                return pair
            if (pair.model, pair.baseline) == (second, first):
                parts = {**pair.parts, "baseline": second}
                return replace(pair, model=first, baseline=second, contrast=negated(pair.contrast), parts=parts)
        raise KeyError((first, second))

    def __repr__(self) -> str:
        rows = "; ".join(f"{row.name}: KL {row.measures['kl'].value:.4f} nats a token" for row in self.rows[:SHOWN])
        more = f"; {len(self.rows) - SHOWN} more" if len(self.rows) > SHOWN else ""
        return f"ModelComparison({one_line(f'{self.objective}, {self.sentences:,} sentences; {rows}{more}')})"


def _row_scores(row: ModelRow) -> list[Score]:
    """Return every measure, with number and standard deviation of seeds; then the measures of each seed."""
    k = len(row.model.seeds)
    head = {"model": row.name, "objective": row.model.objective}
    every: list[Score] = []
    for name, value in row.measures.items():
        parts = {**row.parts, **unit_part(name), **({"estimator": "paired"} if name == "kl" else {})}
        score = Score(name, value.value, signature(parts), value.low, value.high)
        every.append(score.at(**head, seeds=k).with_more(sd=row.deviations.get(name)))
    for scores in row.model.seeds:
        if scores.exact is not None:
            exact = replace(scores.exact, name=f"exact_{scores.exact.name}")
            every.append(exact.at(**head, seed_of=scores.label, seed=scores.seed))
    if k > 1:
        for scores, values in zip(row.model.seeds, row.by_seed, strict=True):
            parts = {**row.parts, "seeds": 1, "ci": "none/one-seed"}
            of_seed = (Score(name, value, signature({**parts, **unit_part(name)})) for name, value in values.items())
            every += keyed(of_seed, **head, seed_of=scores.label, seed=scores.seed)
    return every


def _difference(comparison: ModelComparison, pair: PairedDifference) -> Score:
    """Return ``kl_difference``, nats a token, with its p-value as it is and adjusted."""
    contrast = pair.contrast
    score = Score("kl_difference", contrast.value, signature(pair.parts), contrast.low, contrast.high)
    score = score.at(model=pair.model, baseline=pair.baseline, objective=comparison.objective)
    return score.with_more(p=contrast.p, p_adjusted=pair.p_adjusted)


def compare_models(
    models: Sequence[ModelScores],
    *,
    baseline: str | None = None,
    seed: int = DEFAULT_SEED,
    parallel: bool = False,
) -> ModelComparison:
    """Compare models of one group, see `truesource.evaluation.comparing.grouped`.

    Args:
        models: with different names.
        baseline: name of the model that the others are compared with; None: the first.
        seed: of the resampling for differences and for means over several seeds.
        parallel: models have different, parallel texts and truths: corresponding sentences have equal lengths.

    Raises:
        InputError: there is no such baseline, two models have one name, their objectives, conditions or frames differ,
            or their texts and truths, which must be parallel if ``parallel``.
        NothingToCompareError: no sentence is possible for all models and the oracle.
    """
    names = [model.name for model in models]
    if len(set(names)) < len(names):
        raise InputError("two models have the same name; give each its own", code="repeated-name")
    if parallel:
        _check_parallel(models)
    elif len({model.key for model in models}) != 1:
        raise InputError(
            "the models were scored on different texts, truths, objectives or vocabularies", code="different-texts"
        )
    against = models[0] if baseline is None else _named(models, baseline)
    common = np.asarray(np.all([model.scored for model in models], axis=0))
    if not common.any():
        raise _nothing_common(models)
    ordered = {model.name: model for model in (against, *(model for model in models if model is not against))}
    sums = {name: model.sums("kl", common) for name, model in ordered.items()}
    family = PairFamily.test(list(ordered), lambda first, second: difference(sums[first], sums[second], seed=seed))
    pairs = [
        PairedDifference(
            model=first,
            baseline=second,
            contrast=test.contrast,
            p_adjusted=test.p_adjusted,
            tests=test.tests,
            parts=_difference_parts(ordered[first], ordered[second], common, test.tests, seed),
        )
        for (first, second), test in family.pairs.items()
    ]
    return ModelComparison(
        objective=against.objective,
        rows=[model_row(model, seed=seed) for model in models],
        oracle=_oracle_row(against, f"oracle of {against.name}" if parallel else "oracle"),
        baseline=against.name,
        differences=pairs[: len(models) - 1],
        other_pairs=pairs[len(models) - 1 :],
        sentences=int(common.sum()),
        n_sentences=len(common),
    )


def model_row(model: ModelScores, *, seed: int = DEFAULT_SEED) -> ModelRow:
    """Return the measures of one model; of several seeds, their means.

    Args:
        model: of one or more seeds.
        seed: of the resampling, if there are several.

    Raises:
        NothingToCompareError: no sentence is possible for all its seeds and the oracle.
    """
    scored = model.scored
    if not scored.any():
        raise _nothing_common([model])
    logs = {name: model.sums(name, scored) for name in ("ppl", "bound", "kl")}
    values = {name: sums.values for name, sums in logs.items()}
    by_seed = {name: values["kl"] if name == "kl" else np.exp(values.get(name, values["kl"])) for name in MEASURES}
    k, n = len(model.seeds), int(scored.sum())
    parts = dict(model.parts)
    if k == 1:
        measures = perplexities(model.seeds[0].paired, model.seeds[0].resampling)
    else:
        contrasts = {name: mean_over_seeds(sums, seed=seed) for name, sums in logs.items()}
        measures = {name: _of_log(contrasts[name]) for name in ("ppl", "bound")}
        measures |= {"relative_ppl": _of_log(contrasts["kl"], least=-math.inf), "kl": contrasts["kl"].interval}
        tokens = [int(scores.table[2, scored].sum()) for scores in model.seeds]
        parts |= {"seeds": k, "sentences": n, "excluded": len(scored) - n, "tokens": _both(*tokens)}
        parts["ci"] = ci_part(n, seed, with_seeds=True)
    return ModelRow(
        model=model,
        measures=measures,
        deviations={name: float(of.std(ddof=1)) for name, of in by_seed.items()} if k > 1 else {},
        by_seed=[{name: float(by_seed[name][s]) for name in MEASURES} for s in range(k)] if k > 1 else [],
        parts=parts,
    )


def _oracle_row(model: ModelScores, name: str) -> ModelRow:
    """Return the oracle with the vocabulary of a model, on the sentences of its first seed."""
    first = model.seeds[0]
    paired = replace(first.paired, model=first.paired.oracle, impossible_model=first.paired.impossible_oracle[:0])
    alone = replace(first, label=name, paired=paired, seed=None, exact=None)
    return model_row(ModelScores(name=name, seeds=[alone]))


def _of_log(contrast: Contrast, least: float = 0.0) -> Interval:
    """Return the exponential of a mean logarithm, whose interval ends at ``least`` or above."""
    if contrast.low is None or contrast.high is None:
        return Interval(math.exp(contrast.value))
    with np.errstate(over="ignore"):
        return Interval(math.exp(contrast.value), *ends(*np.exp(np.maximum([contrast.low, contrast.high], least))))


def _check_parallel(models: Sequence[ModelScores]) -> None:
    """Refuse models with different objectives, conditions or frames, or texts with different numbers of tokens."""
    first, counts = models[0], models[0].seeds[0].table[2]
    for model in models[1:]:
        if model.request != first.request:
            raise InputError(
                f"{first.name} and {model.name} have different objectives, length conditions or scoring frames",
                code="different-texts",
            )
        others = model.seeds[0].table[2]
        if len(others) != len(counts):
            raise InputError(
                f"{first.name} has {len(counts):,} sentences and {model.name} {len(others):,}; parallel texts have"
                " equal numbers",
                code="not-parallel",
            )
        differing = np.flatnonzero((others != counts) & (others > 0) & (counts > 0))
        if len(differing):
            n = int(differing[0])
            raise InputError(
                f"sentence {n + 1:,} has {int(counts[n])} tokens in {first.name} and {int(others[n])} in {model.name};"
                " corresponding sentences of parallel texts have equal lengths",
                code="not-parallel",
            )


def _named(models: Sequence[ModelScores], name: str) -> ModelScores:
    for model in models:
        if model.name == name:
            return model
    names = ", ".join(model.name for model in models)
    raise InputError(f"there is no model {name!r} to be the baseline; there are {names}", code="unknown-baseline")


def _nothing_common(models: Sequence[ModelScores]) -> NothingToCompareError:
    n = len(models[0].scored)
    counts = [f"{model.name} and the oracle can make {int(model.scored.sum()):,}" for model in models]
    return NothingToCompareError(
        f"no sentence of {n:,} is possible for the oracle and all models: {', '.join(counts)}; remove a model, or"
        " smooth it",
        n,
        sum(int((~model.scored).sum()) for model in models),
        len(models[0].seeds[0].paired.impossible_oracle),
    )


def _difference_parts(
    model: ModelScores, baseline: ModelScores, common: BoolArray, tests: int, seed: int
) -> dict[str, object]:
    n = int(common.sum())
    counts = [len(side.seeds) for side in (model, baseline)]
    tokens = [int(side.seeds[0].table[2, common].sum()) for side in (model, baseline)]
    mixed = {
        key: _both(model.parts.get(key, "none"), baseline.parts.get(key, "none"))
        for key in ("vocab", "reading", "grammar", "data")
        if key in model.parts or key in baseline.parts
    }
    return {
        **model.parts,
        **mixed,
        "estimator": "paired",
        "baseline": baseline.name,
        "seeds": "/".join(map(str, counts)),
        "sentences": n,
        "excluded": len(common) - n,
        "tokens": _both(*tokens),
        "ci": ci_part(n, seed, with_seeds=max(counts) > 1),
        "adjusted": f"holm/{tests}",
    }


def _both(*values: object) -> object:
    """Return the common value, or all values if they differ."""
    return values[0] if len(set(values)) == 1 else "/".join(map(str, values))
