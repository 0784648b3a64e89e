"""Standings as tables, for the terminal, for files and for the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from truesource.evaluation.core.signature import signature
from truesource.evaluation.measures.bootstrap import ci_part
from truesource.evaluation.measures.contrast import Contrast
from truesource.evaluation.show.table import ABSENT, Cell, ReportTable, TableRow, score_cell, shown
from truesource.evaluation.show.words import brief
from truesource.grammar.support.printable import listed
from truesource.studies.benchmark.results import REFERENCES
from truesource.studies.benchmark.standings import SPEC, THRESHOLDS, LanguageStanding, Standing, Standings, is_reference
from truesource.studies.benchmark.suite import Suite

REFUSED = "not read"  #: of longer strings
NO_STRINGS = "no such strings"  #: of languages without longer strings

LONG = {
    "language": "language",
    "model": "model",
    "seeds": "seeds",
    "kl_bits": "KL,\nbits",
    "relative_ppl": "relative\nPPL",
    "share": "share\nlearned",
    "wrong": "wrong\nmass",
    "calibration": "calibration\nerror",
    **{f"tokens_to_{threshold:g}": f"tokens to\n{threshold:g} nats" for threshold in THRESHOLDS},
    "longer_share": "longer:\nshare",
    "longer_wrong": "longer:\nwrong mass",
}


def headline_table(standings: Standings, suite: Suite, *, own: Sequence[str] = ()) -> ReportTable:
    """Return the models of one objective, the best first, with their shares of information learned.

    Args:
        standings: of models.
        suite: their suite.
        own: names of models that are marked as the reader's.
    """
    keys = ("rank", "model", "seeds", "parameters", "share", "longer_share", *standings.languages)
    heads = ("rank", "model", "seeds", "param-\neters", "share\nlearned", "longer\nstrings")
    return ReportTable(
        title=f"{standings.objective.capitalize()} models on suite {suite.label} ({suite.digest})",
        columns=(*heads, *(name.replace("-", "-\n") for name in standings.languages)),
        keys=keys,
        rows=[
            TableRow(
                [
                    _number(rank, "d"),
                    Cell(row.name, small="; ".join(remarks(row, standings, own))),
                    _seeds([row.languages[name].seeds for name in row.languages]),
                    _parameters(row),
                    _contrast(row.share),
                    _brief(row.longer_share) or _why_no_longer(row, standings, suite),
                    *(_brief(_share_on(row, name)) for name in standings.languages),
                ],
                _signature(row, standings, suite),
                row_kind(row, own),
            )
            for row, rank in zip(standings.rows, ranks(standings), strict=True)
        ],
        note=_note(standings, suite),
        text=(1,),
        sortable=True,
    )


def language_table(standings: Standings, suite: Suite, language: str, *, own: Sequence[str] = ()) -> ReportTable:
    """Return all measures of the models of one objective on one language, by rank.

    Args:
        standings: of models.
        suite: their suite.
        language: name in the suite.
        own: names of models that are marked as the reader's.
    """
    rows = [_detail_row(row, language, standings, suite, own) for row in standings.rows]
    return ReportTable(
        columns=tuple(LONG.values())[1:],
        keys=tuple(LONG)[1:],
        rows=[TableRow(row.cells[1:], row.signature, row.kind) for row in rows if row is not None],
    )


def ranks(standings: Standings) -> list[int | None]:
    """Return ranks from 1, in row order; None for references and models not measured on all languages."""
    result: list[int | None] = []
    rank = 0
    for row in standings.rows:
        counts = row.share is not None and not is_reference(row)
        rank += counts
        result.append(rank if counts else None)
    return result


def with_models(found: Sequence[Standings]) -> list[Standings]:
    """Return the standings that have models other than references; all, if there are only references."""
    return [each for each in found if not all(is_reference(row) for row in each.rows)] or list(found)


def remarks(row: Standing, standings: Standings, own: Sequence[str]) -> list[str]:
    """Return the remarks next to the name of a model: whose it is, what it is for, what is missing."""
    notes = ["reference"] if is_reference(row) else []
    if row.name in own:
        notes.append("yours")
    if row.share is None:
        notes.append(f"{len(row.languages)} of {len(standings.languages)} languages")
    return notes


def row_kind(row: Standing, own: Sequence[str]) -> str:
    """Return the CSS class of a row."""
    return "own" if row.name in own else row.model["architecture"] if is_reference(row) else ""


def trained_tokens(standing: LanguageStanding) -> float | None:
    """Return the tokens at the end of the learning curve; None without a curve."""
    last = max((tokens for tokens, _ in standing.curve), default=0.0)
    return last or None


def _number(value: float | None, spec: str) -> Cell | None:
    return None if value is None else Cell(shown(value, spec), score=(value, None, None))


def _contrast(value: Contrast | None, spec: str = SPEC) -> Cell | None:
    return None if value is None else score_cell(value.interval._asdict(), spec)


def _brief(value: Contrast | None) -> Cell | None:
    """Return a value whose interval is in files only."""
    cell = _contrast(value)
    return None if cell is None else Cell(cell.text, score=cell.score)


def _share_on(row: Standing, language: str) -> Contrast | None:
    return row.languages[language].share if language in row.languages else None


def _seeds(seeds: Sequence[int]) -> Cell | None:
    if not seeds:
        return None
    low, high = min(seeds), max(seeds)
    return Cell(f"{low}" if low == high else f"{low} to {high}", score=(low, None, None))


def _parameters(row: Standing) -> Cell | None:
    values = [row.model["parameters"][name] for name in row.languages if name in row.model["parameters"]]
    return Cell(brief(max(values)), score=(max(values), None, None)) if values else None


def _why_no_longer(row: Standing, standings: Standings, suite: Suite) -> Cell | None:
    """Return the remark that replaces the mean share on longer strings."""
    if any(standing.longer_refused for standing in row.languages.values()):
        return Cell(ABSENT, small=REFUSED)
    with_longer = [name for name in standings.languages if suite.languages[name].longer]
    read = sum(row.languages[name].longer_share is not None for name in with_longer if name in row.languages)
    return Cell(ABSENT, small=f"{read} of {len(with_longer)} languages" if with_longer else NO_STRINGS)


def _detail_row(
    row: Standing, language: str, standings: Standings, suite: Suite, own: Sequence[str]
) -> TableRow | None:
    standing = row.languages.get(language)
    if standing is None:
        return None
    whose = [remark for remark in remarks(row, standings, own) if "languages" not in remark]
    cells = {
        "language": language,
        "model": Cell(row.name, small="; ".join(whose)),
        "seeds": _seeds([standing.seeds]),
        "kl_bits": _contrast(_changed(standing.kl, lambda nats: nats / math.log(2.0)), ".4f"),
        "relative_ppl": _brief(_changed(standing.kl, math.exp)),
        "share": _contrast(standing.share),
        "wrong": _number(standing.wrong, ".4f"),
        "calibration": _number(standing.calibration, ".4f"),
        **{f"tokens_to_{threshold:g}": _tokens_to(standing, threshold) for threshold in THRESHOLDS},
        "longer_share": _contrast(standing.longer_share) or _no_longer(standing, suite.languages[language].longer),
        "longer_wrong": _number(standing.longer_wrong, ".4f"),
    }
    return TableRow([cells[key] for key in LONG], _signature(row, standings, suite), row_kind(row, own))


def _changed(value: Contrast, change: Callable[[float], float]) -> Contrast:
    """Return a value and its ends on another, rising scale."""
    if value.low is None or value.high is None:
        return Contrast(change(value.value))
    return Contrast(change(value.value), change(value.low), change(value.high))


def _tokens_to(standing: LanguageStanding, threshold: float) -> Cell | None:
    tokens, most = standing.tokens_to[threshold], trained_tokens(standing)
    if tokens is not None:
        return Cell(brief(tokens), score=(tokens, None, None))
    return None if most is None else Cell(f"more than {brief(most)}")


def _no_longer(standing: LanguageStanding, longer: str | None) -> Cell:
    if longer is None:
        return Cell(ABSENT, small=NO_STRINGS)
    return Cell(ABSENT, small=REFUSED if standing.longer_refused else "not measured")


def refusals(standings: Standings) -> Mapping[str, Sequence[str]]:
    """Return the reasons why models read no longer strings, with the names of the models of each."""
    by_reason: dict[str, list[str]] = {}
    for row in standings.rows:
        for reason in {each.longer_refused: None for each in row.languages.values() if each.longer_refused}:
            by_reason.setdefault(reason, []).append(row.name)
    return by_reason


def _note(standings: Standings, suite: Suite) -> str:
    predicted = {"causal": "next token", "masked": "masked token", "any-order": "next token of a random order"}
    sentences = [
        f"Share learned: of what the context says of the {predicted[standings.objective]}, mean over languages, with"
        " 95% intervals",
        "1 is the truth, 0 is word frequencies alone",
        "Parameters: without word and position vectors, the most of any language",
    ]
    for row in standings.rows:
        if is_reference(row):
            sentences.append(f"{row.name}: {REFERENCES[row.model['architecture']]}, a reference without a rank")
    none = [name for name in standings.languages if suite.languages[name].longer is None]
    if none:
        sentences.append(f"Without longer strings: {listed(none)}")
    sentences += [
        f"{listed(names)}, longer strings: {reason.rstrip('.')}" for reason, names in refusals(standings).items()
    ]
    return ". ".join(sentences) + "."


def _signature(row: Standing, standings: Standings, suite: Suite) -> str:
    seeds = sorted({each.seeds for each in row.languages.values()})
    parts = {
        "model": row.name,
        "objective": standings.objective,
        "suite": f"{suite.label}/{suite.digest}",
        "seeds": "-".join(map(str, seeds)) or 0,
        "ci": _ci(standings, suite),
    }
    return signature(parts)


def models_table(found: Sequence[Standings], *, own: Sequence[str] = ()) -> ReportTable:
    """Return the models and the cost of their training, means over languages and seeds.

    Args:
        found: standings of all objectives.
        own: names of models that are marked as the reader's.
    """
    return ReportTable(
        columns=("model", "objective", "architecture", "parameters", "steps", "tokens\nseen", "FLOPs of\na training"),
        text=(0, 1, 2),
        rows=[
            TableRow(
                [
                    Cell(row.name, small="; ".join(remarks(row, standings, own))),
                    standings.objective,
                    row.model["architecture"],
                    _parameters(row),
                    *(_mean_of(row, name) for name in ("steps", "tokens", "flops")),
                ],
                kind=row_kind(row, own),
            )
            for standings in found
            for row in standings.rows
        ],
    )


def _mean_of(row: Standing, name: Literal["steps", "tokens", "flops"]) -> Cell | None:
    values = [value for cell in row.model["cells"] if (value := cell[name])]
    if not values:
        return None
    mean = sum(values) / len(values)
    return Cell(brief(mean), score=(mean, None, None))


def suite_signature(standings: Standings, suite: Suite) -> str:
    """Return the signature of all shares of the models of one objective."""
    return signature(
        {
            "objective": standings.objective,
            "suite": f"{suite.label}/{suite.digest}",
            "ci": _ci(standings, suite),
        }
    )


def _ci(standings: Standings, suite: Suite) -> str:
    """Return the part of signatures about intervals."""
    several = any(each.seeds > 1 for row in standings.rows for each in row.languages.values())
    return ci_part(suite.sizes.blocks, standings.seed, "block", with_seeds=several)
