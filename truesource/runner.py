"""Runs the stages of an experiment in order, skipping those whose inputs have not changed."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grammar.errors import InputError
from grammar.files import digest_json, write_json
from truesource.config import ModelEntry, RunConfig
from truesource.provenance import now, provenance

if TYPE_CHECKING:
    from generator.corpus import Corpus
    from grammar.pcfg import PCFG

log = logging.getLogger("truesource")


@dataclass
class Run:
    """A run folder and what its stages share."""

    config: RunConfig
    folder: Path
    base: Path  #: relative paths of the configuration start here
    outputs: dict[str, str] = field(default_factory=dict)  #: digest of what each stage made

    @property
    def grammar_file(self) -> Path:
        """The induced (or given) grammar."""
        return self.folder / "grammar" / "grammar.npz"

    @cached_property
    def pcfg(self) -> PCFG:
        """The grammar of the run; only after its stage."""
        from grammar.pcfg import PCFG

        return PCFG.load(self.grammar_file)

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus of the run; only after its stage."""
        from generator.corpus import Corpus

        return Corpus.load(self.folder / "corpus")

    def resolve(self, name: str) -> str:
        """A path of the configuration, environment variables filled in, relative to its folder.

        Raises:
            InputError: a variable is not set.
        """
        filled = os.path.expandvars(name)
        if unset := re.search(r"\$\{?(\w+)", filled):
            raise InputError(f"the configuration names {name!r}, but the environment variable {unset[1]} is not set")
        return str(self.base / filled)


@dataclass(frozen=True)
class Stage:
    """One step: see `truesource.stages`."""

    name: str
    made: str  #: file or folder that must exist for the stage to be skipped, relative to the run folder
    inputs: Callable[[Run], Any]
    make: Callable[[Run], str]


def plan(config: RunConfig) -> list[Stage]:
    """The stages of a configuration, in order."""
    from truesource.stages import corpus, grammar, report, score, train, treebank

    stages = []
    if config.treebank is not None:
        stages.append(Stage("treebank", "treebank/treebank.mrg.gz", treebank.inputs, treebank.make))
    stages.append(Stage("grammar", "grammar/grammar.npz", grammar.inputs, grammar.make))
    stages.append(Stage("corpus", "corpus/record.json", corpus.inputs, corpus.make))

    def entry(module: Any, kind: str, model: ModelEntry, made: str) -> Stage:
        return Stage(
            f"{kind}:{model.name}", made, partial(module.inputs, model=model), partial(module.make, model=model)
        )

    stages += [entry(train, "train", m, f"models/{m.name}/training.json") for m in config.models]
    stages.append(Stage("score:oracle", "scores/oracle-causal.json", score.oracle_inputs, score.make_oracle))
    stages += [entry(score, "score", m, f"scores/{m.name}.json") for m in config.models]
    stages.append(Stage("report", "report.html", report.inputs, report.make))
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
        InputError: the run folder holds something else, or a stage refuses its input.
    """
    folder = runs / config.name
    state_file = folder / "stages.json"
    if folder.exists() and any(folder.iterdir()) and not state_file.is_file() and not force:
        raise InputError(f"{folder} exists and is not a run; choose another name or use --force")
    state = _read_state(state_file) if not force else {}
    run = Run(config, folder, base)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config.model_dump(mode="json"))
    write_json(state_file, {"stages": state})
    started = now()
    stages = plan(config)
    for number, stage in enumerate(stages, start=1):
        if stage.name == "report":
            write_json(folder / "provenance.json", provenance(config.seed, started))
        inputs = digest_json({"version": version("truesource"), "inputs": stage.inputs(run)})
        known = state.get(stage.name)
        if known and known["inputs"] == inputs and (folder / stage.made).exists():
            log.info("[%d/%d] %s: unchanged, skipped", number, len(stages), stage.name)
            state[stage.name] = {**known, "skipped": True}
        else:
            log.info("[%d/%d] %s", number, len(stages), stage.name)
            state.pop(stage.name, None)
            write_json(state_file, {"stages": state})
            begun = time.perf_counter()
            output = stage.make(run)
            seconds = time.perf_counter() - begun
            log.info("[%d/%d] %s: done in %.1f s", number, len(stages), stage.name, seconds)
            state[stage.name] = {
                "inputs": inputs, "output": output, "seconds": round(seconds, 2), "skipped": False, "finished": now()
            }  # fmt: skip
        run.outputs[stage.name] = state[stage.name]["output"]
        write_json(state_file, {"stages": state})
    return folder / "report.html"


def _read_state(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        stages = json.loads(path.read_text(encoding="utf-8"))["stages"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("the state of the run is damaged; use --force to make every stage again", path) from error
    return dict(stages)
