"""Models of finished runs, from the scores in their folders: no model is loaded, no code is run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from truesource.evaluation.comparing import ModelScores, SeedScores
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.token_table import read_token_record, read_token_table
from truesource.evaluation.divergence.report import DivergenceRecord
from truesource.evaluation.measures.paired import Paired
from truesource.evaluation.show.records import REMEDY, Record
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.folders import kind_of
from truesource.grammar.support.records import read_record
from truesource.lmtrain.training_record import Training, are_replicates, training_of
from truesource.report.finished_run import COMPARED, ScoresRecord, comparable, read_results

_NEAR = 1e-6  #: relative tolerance between a relative perplexity and its tokens


@dataclass
class RunModels:
    """The comparable models of runs, and a sentence on each other model."""

    models: list[ModelScores] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  #: a sentence for each model without scores of tokens


@dataclass(frozen=True)
class _Unit:
    """A model of one run, with its seeds."""

    run: str
    name: str
    scores: ModelScores
    trainings: list[Training | None]


def read_runs(folders: Sequence[Path]) -> RunModels:
    """Read the scored models of run folders, in the vocabularies that the runs compare them in.

    Seeds of one model are listed in ``results.json``, or are models of one name in several runs whose records
    of training differ only in the seed, if they were scored on the same text. Other models of the same name are
    named ``run/name``.

    Raises:
        InputError: a run is not finished, or a file is damaged.
    """
    models = RunModels()
    names = [folder.resolve().name for folder in folders]
    units: list[_Unit] = []
    for folder, name in zip(folders, names, strict=True):
        units += _units(folder, str(folder) if names.count(name) > 1 else name, models.left_out, len(folders) > 1)
    for name in dict.fromkeys(unit.name for unit in units):
        models.models += _combined([unit for unit in units if unit.name == name])
    return models


def _units(folder: Path, run: str, left_out: list[str], several: bool) -> list[_Unit]:
    if not folder.is_dir():
        raise InputError("there is no such run folder", folder, code="missing")
    rows = [row for row in comparable(folder, read_results(folder)) if row["model"] != "oracle"]
    seeds: dict[str, list[SeedScores]] = {}
    trainings: dict[str, list[Training | None]] = {}
    for row in rows:
        label = f"{run}/{row['model']}" if several else row["model"]
        if row["relative_ppl"] is None:
            left_out.append(f"{label} gives all sentences probability 0, so it is excluded")
        elif (scores := _seed_scores(folder, row, label)) is None:
            left_out.append(f"{label} has no scores of tokens ({folder / 'scores'}), so it is excluded")
        else:
            name = row.get("replicate_of") or row["model"]
            seeds.setdefault(name, []).append(scores)
            trainings.setdefault(name, []).append(training_of(folder / "models" / row["model"]))
    return [_Unit(run, name, ModelScores(name=name, seeds=of), trainings[name]) for name, of in seeds.items()]


def _combined(units: Sequence[_Unit]) -> list[ModelScores]:
    """Merge all units of a name into one model, or into several with different names."""
    groups: list[list[_Unit]] = []
    for unit in units:
        for group in groups:
            trainings = [training for member in (*group, unit) for training in member.trainings]
            if group[0].scores.key == unit.scores.key and are_replicates(trainings):
                group.append(unit)
                break
        else:
            groups.append([unit])
    return [
        ModelScores(
            name=group[0].name if len(groups) == 1 else f"{group[0].run}/{group[0].name}",
            seeds=[seed for unit in group for seed in unit.scores.seeds],
        )
        for group in groups
    ]


def _seed_scores(folder: Path, row: Record, label: str) -> SeedScores | None:
    """Return the scores of a model; None if no token has a score."""
    compared = folder / COMPARED.format(row["model"])
    file = compared if compared.is_file() else folder / "scores" / f"{row['model']}.parquet"
    if not file.is_file():
        return None
    scored = read_token_record(file, ScoresRecord)
    if not {**scored["record"], "model": row["model"]}.items() <= row.items():
        raise InputError(f"these scores differ from {row['model']} in results.json; {REMEDY}", file, code="damaged")
    table = read_token_table(file)
    if not len(table["sentence"]):
        return None
    sentence, n = table["sentence"].astype(np.int32), row["sentences"] + row["excluded"]
    gap = table["oracle"] - table["model"]
    right = (
        len(sentence) == row["tokens"]
        and not (np.diff(sentence, prepend=0, append=n - 1) < 0).any()
        and bool(np.isfinite(gap).all())
        and math.isclose(float(np.mean(gap)), math.log(row["relative_ppl"]), rel_tol=_NEAR, abs_tol=_NEAR)
    )
    if not right:
        raise InputError(f"the tokens differ from the sentences; {REMEDY}", file, code="damaged")
    return SeedScores(
        label=label,
        paired=Paired(
            model=table["model"].astype(np.float64),
            oracle=table["oracle"].astype(np.float64),
            sentence=sentence,
            position=table["position"].astype(np.int32),
            impossible_model=np.setdiff1d(np.arange(n, dtype=np.int32), sentence),  # all sentences without a token
            impossible_oracle=np.empty(0, np.int32),
            n_sentences=n,
        ),
        parts=scored["parts"],
        resampling=scored["seed"],
        seed=row.get("seed"),
        exact=_exact(folder / "divergence" / f"{row['model']}.json"),
    )


def _exact(file: Path) -> Score | None:
    """Return the exact KL that a run has measured, of models of pieces per word; None if it has not."""
    if not file.is_file():
        return None
    records = read_record(file, DivergenceRecord, remedy=REMEDY)["records"]
    named = {record["name"]: record for record in records if "by" not in record}
    kl = "kl_per_word" if any(name.startswith("kl_per_word") for name in named) else "kl"
    record = named.get(kl) or named.get(f"{kl}_infinite")
    if record is None or record["value"] is None:
        return None
    return Score(
        record["name"].replace(kl, "kl"),
        record["value"],
        record.get("signature") or "",
        low=record.get("low"),
        high=record.get("high"),
    )


def scores_of_runs(texts: Sequence[str], unusable: Sequence[str], seed: int | None = None) -> RunModels:
    """Read the models of run folders.

    Args:
        texts: the folders.
        unusable: options of the call that only apply to models.
        seed: seed of all intervals; None: the seed of each run.

    Raises:
        InputError: there is such an option, an argument is not a run folder or is repeated, or see `read_runs`.
    """
    folders = [Path(text) for text in texts]
    for text, folder in zip(texts, folders, strict=True):
        if kind_of(folder) != "run":
            raise InputError(
                f"{text} is not the folder of a run; to compare models, name their corpus last, with --oracle GRAMMAR"
                " if it has no grammar",
                code="no-run",
            )
    if unusable:
        raise InputError(f"{unusable[0]} applies to models, but runs are compared as scored; remove it")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError("a run is repeated; name each once", code="repeated-name")
    read = read_runs(folders)
    models = read.models if seed is None else [model.resampled(seed) for model in read.models]
    return replace(read, models=models)
