"""Runs the stages of an experiment in order, skipping those whose inputs have not changed."""

from __future__ import annotations

import logging
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.config.run import RunConfig
from truesource.config.sources import ModelEntry
from truesource.grammar.errors import InputError, NothingToMeasureError
from truesource.grammar.files import digest_json, remove_leftovers_in, write_json
from truesource.grammar.locks import exclusive
from truesource.grammar.records import read_record
from truesource.run.folder import RunFolder
from truesource.run.provenance import now, provenance
from truesource.run.stage import Stage

if TYPE_CHECKING:
    pass

log = logging.getLogger("truesource")

#: stages that may find nothing to measure, which is a note in the report and does not end the run
EVALUATIONS = frozenset(
    {"naturalness", "divergence", "tokenisation", "pplu", "samples", "tendencies", "pairs", "probing", "dynamics"}
)


def plan(config: RunConfig) -> list[Stage]:
    """The stages of a configuration, in order."""
    from truesource.stages import (
        corpus,
        divergence,
        dynamics,
        grammar,
        naturalness,
        pairs,
        pplu,
        probing,
        report,
        samples,
        score,
        tendencies,
        tokenisation,
        train,
        treebank,
    )

    stages = []
    made: tuple[str, ...]
    if config.treebank is not None:
        made = ("treebank/*.mrg.gz", "treebank/statistics.json")
        stages.append(Stage("treebank", made, treebank.inputs, treebank.make))
    made = ("grammar/grammar.npz", "grammar/diagnosis.json", "grammar/trace.jsonl")
    stages.append(Stage("grammar", made, grammar.inputs, grammar.make))
    made = ("corpus/record.json", "corpus/symbols.json", "corpus/data/*.parquet")
    stages.append(Stage("corpus", made, corpus.inputs, corpus.make))

    if config.evaluation.naturalness is not None:
        made = ("naturalness/naturalness.json", "naturalness/naturalness.svg")
        stages.append(Stage("naturalness", made, naturalness.inputs, naturalness.make))

    def entry(module: Any, kind: str, model: ModelEntry, made: tuple[str, ...]) -> Stage:
        return Stage(
            f"{kind}:{model.name}", made, partial(module.inputs, model=model), partial(module.make, model=model)
        )

    def scores(name: str) -> tuple[str, ...]:
        return f"scores/{name}.json", f"scores/{name}.parquet"

    for m in config.models:
        folder = f"models/{m.name}"
        files = ("*.json", "metrics.jsonl", "**/model.safetensors", "*.npz")
        stages.append(entry(train, "train", m, tuple(f"{folder}/{pattern}" for pattern in files)))
    made = (*scores("oracle-causal"), *scores("oracle-masked"))
    stages.append(Stage("score:oracle", made, score.oracle_inputs, score.make_oracle))
    stages += [entry(score, "score", m, scores(m.name)) for m in config.models]
    if config.evaluation.divergence is not None:
        stages += [
            entry(divergence, "divergence", m, (f"divergence/{m.name}.json", f"divergence/{m.name}.svg"))
            for m in filter(divergence.applies, config.models)
        ]
    if config.evaluation.tokenisation is not None:
        stages += [
            entry(tokenisation, "tokenisation", m, (f"tokenisation/{m.name}.json", f"tokenisation/{m.name}.parquet"))
            for m in config.models
            if m.of_pieces
        ]
    if config.evaluation.pplu:
        stages += [entry(pplu, "pplu", m, (f"pplu/{m.name}.json",)) for m in config.models]
    if config.evaluation.tendencies is not None:
        schemes = list(config.evaluation.tendencies.decodings())
        for m in filter(samples.applies, config.models):
            made = tuple(f"samples/{m.name}/{s}/{file}" for s in schemes for file in ("record.json", "data/*.parquet"))
            stages.append(entry(samples, "samples", m, made))
        if any(map(samples.applies, config.models)):
            made = ("tendencies/tendencies.json", *(f"tendencies/{scheme}.svg" for scheme in schemes))
            stages.append(Stage("tendencies", made, tendencies.inputs, tendencies.make))
    if config.evaluation.pairs is not None:
        made = ("pairs/pairs.jsonl", "pairs/summary.json")
        stages.append(Stage("pairs", made, pairs.source_inputs, pairs.make_source))
        stages += [entry(pairs, "pairs", m, (f"pairs/models/{m.name}.json",)) for m in config.models]
    if config.evaluation.probe is not None:
        networks = filter(probing.applies, config.models)
        stages += [entry(probing, "probing", m, (f"probing/{m.name}.json",)) for m in networks]
    if config.evaluation.dynamics is not None:
        trained = filter(dynamics.applies, config.models)
        stages += [entry(dynamics, "dynamics", m, (f"dynamics/{m.name}.json",)) for m in trained]
    stages.append(Stage("report", ("results.json", "report.html"), report.inputs, report.make))
    return stages


def execute(config: RunConfig, *, base: Path, runs: Path, force: bool = False) -> Path:
    """Run an experiment in ``runs/<name>``; stages that are up to date are skipped.

    After Ctrl-C or a kill, the same call goes on: finished stages are kept, and the stage that was
    interrupted resumes from its own checkpoints.

    Args:
        config: what to do.
        base: folder that relative paths of the configuration start from.
        runs: folder of all runs.
        force: make every stage again.

    Returns:
        The report.

    Raises:
        InputError: the run folder holds something else, another process is at work in it, or a stage
            refuses its input.
    """
    folder = runs / config.name
    state_file = folder / "stages.json"
    if folder.exists() and not force and not state_file.is_file() and _foreign(folder):
        raise InputError(f"{folder} exists and is not a run; choose another name or use --force")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the run folder: {error.strerror or error}", folder) from error
    with exclusive(folder):
        remove_leftovers_in(folder, deep=True)
        state = _read_state(state_file) if not force else {}
        write_json(state_file, {"stages": state})  # first, so that a kill right here leaves a run
        write_json(folder / "config.json", config.model_dump(mode="json"))
        _run_stages(RunFolder(config, folder, base), state, state_file)
    return folder / "report.html"


def _run_stages(run: RunFolder, state: dict[str, Any], state_file: Path) -> None:
    started = now()
    stages = plan(run.config)
    for number, stage in enumerate(stages, start=1):
        inputs = digest_json({"version": version("truesource"), "inputs": stage.inputs(run)})
        known = state.get(stage.name)
        if known and known["inputs"] == inputs and ("unmeasured" in known or _is_whole(run.folder, known["files"])):
            log.info("[%d/%d] %s: unchanged, skipped", number, len(stages), stage.name)
            state[stage.name] = {**known, "skipped": True}
        else:
            log.info("[%d/%d] %s", number, len(stages), stage.name)
            state.pop(stage.name, None)
            write_json(state_file, {"stages": state})
            if stage.name == "report":
                write_json(run.folder / "provenance.json", provenance(run.config.seed, started))
            begun = time.perf_counter()
            made = _make(run, stage)
            seconds = time.perf_counter() - begun
            log.info("[%d/%d] %s: done in %.1f s", number, len(stages), stage.name, seconds)
            state[stage.name] = {
                "inputs": inputs,
                **made,
                "seconds": round(seconds, 2),
                "skipped": False,
                "finished": now(),
                "files": _sizes(run.folder, stage.made),
            }
        run.outputs[stage.name] = state[stage.name]["output"]
        if "unmeasured" in state[stage.name]:
            run.unmeasured[stage.name] = state[stage.name]["unmeasured"]
        write_json(state_file, {"stages": state})


def _make(run: RunFolder, stage: Stage) -> dict[str, Any]:
    """Make a stage: the digest of its ``output``, and why it is ``unmeasured`` where it found nothing to measure.

    A stage of a model is not made where the stage that all models share, of the same kind, found nothing.
    """
    note = run.unmeasured.get(stage.kind)
    if note is None:
        try:
            return {"output": stage.make(run)}
        except NothingToMeasureError as error:
            if stage.kind not in EVALUATIONS:
                raise
            note = {"code": error.code, "reason": error.reason}
            log.warning("%s: nothing to measure: %s", stage.name, error.reason)
    for path in [path for pattern in stage.made for path in run.folder.glob(pattern)]:
        path.unlink()  # of an earlier configuration
    return {"output": digest_json(note), "unmeasured": note}


def _foreign(folder: Path) -> bool:
    """Whether a folder without a state holds something; what a kill leaves starts with a dot."""
    return not folder.is_dir() or any(not path.name.startswith(".") for path in folder.iterdir())


def _sizes(folder: Path, patterns: tuple[str, ...]) -> dict[str, int]:
    """Bytes of the files a stage has made, by name relative to the run folder."""
    files = sorted(path for pattern in patterns for path in folder.glob(pattern))
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def _is_whole(folder: Path, files: dict[str, int]) -> bool:
    """Whether all that a stage made still stands there, none of it cut short."""
    return bool(files) and all(
        (folder / name).is_file() and (folder / name).stat().st_size == size for name, size in files.items()
    )


def _read_state(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    from truesource.report.records import StagesRecord

    remedy = "use --force to make every stage again"
    return dict(read_record(path, StagesRecord, what="the state of the run", remedy=remedy)["stages"])
