"""Stage: the grammar, induced from the treebank or read from a file, and examined."""

from __future__ import annotations

import logging
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.evaluation.show.records import HeldOutFit
from truesource.generator.abilities import require
from truesource.grammar.diagnostics import diagnose, require_consistent
from truesource.grammar.formats import source_files
from truesource.grammar.languages import is_reference, parse, reference
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.process import Process
from truesource.grammar.support.atomic_files import write_json, write_json_lines
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file, digest_json
from truesource.grammar.tilting.rewards import event_of
from truesource.grammar.tilting.tilt import Tilting
from truesource.grammar.treebank import Treebank
from truesource.grammar.truth import load_truth
from truesource.run.grammar.induce import Trace, induce
from truesource.run.named_grammar import grammar_at, language_at
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder

log = logging.getLogger("truesource")


def stages(config: RunConfig) -> list[Stage]:
    """Return the stage of the grammar."""
    return [Stage("grammar", ("grammar/grammar.npz", "grammar/diagnosis.json", "grammar/trace.jsonl"), inputs, make)]


def inputs(run: RunFolder) -> Any:
    """Return the inputs: settings, seed, treebank, file or language, and variant."""
    config = run.config.grammar
    settings = config.model_dump(mode="json", exclude={"language", "variant", "tilt"})
    value: dict[str, object] = {"grammar": settings, "treebank": run.outputs.get("treebank")}
    if (source := _grammar_source(run)) is not None:
        value |= _identity(source)
    if config.method == "split_merge":
        value["seed"] = run.config.seed
    if config.variant is not None:
        value["variant"] = config.variant
    if config.tilt is not None:
        value |= {"tilt": config.tilt.model_dump(), "lengths": str(run.config.corpus.lengths)}
    return value


def _grammar_source(run: RunFolder) -> str | None:
    """Return the file or language of the grammar; None if it is induced."""
    config = run.config.grammar
    if config.language is not None:
        return language_at(config.language, run.resolve)
    return None if config.file is None else grammar_at(config.file, run.resolve)


def _identity(given: str) -> dict[str, object]:
    """Return the identity of an existing grammar: its language or the digests of its files.

    Raises:
        InputError: its file cannot be read.
    """
    if is_reference(given):
        name, settings = parse(given)
        files = load_truth(given).digest if settings.named_files() else None  # their content may change
        return {"language": reference(name, settings), "files": files}
    try:
        return {"file": [digest_file(file) for file in source_files(given) or [Path(given)]]}
    except OSError as error:
        raise InputError(f"cannot read the grammar: {error.strerror}", given) from error


def make(run: RunFolder) -> str:
    """Write ``grammar.npz``, ``diagnosis.json`` and, after split-merge, ``trace.jsonl``; of a process only the first.

    Raises:
        InputError: the grammar may not end, or the configuration asks a process for what needs rules.
    """
    config = run.config.grammar
    folder = run.folder / "grammar"
    trace: Trace = ()
    held_out = _held_out(run)
    source = _grammar_source(run)
    if source is not None:
        truth = load_truth(source)
        if isinstance(truth, Process):
            return _make_process(run, truth)
        pcfg = require(truth, "parses", "a grammar")
    else:
        bank = Treebank.read(run.folder / "treebank" / "treebank.mrg.gz", None)
        pcfg, trace = induce(bank, config, seed=run.config.seed, held_out=held_out, checkpoint=_checkpoint(run))
    require_consistent(pcfg, source)
    if config.variant is not None:
        from truesource.grammar.variants import parse_variant

        pcfg, held_out = parse_variant(config.variant)(pcfg).pcfg, None  # held-out text of the original does not apply
    if config.tilt is not None:
        event = Tilting(pcfg, event_of(config.tilt.event))
        pcfg, held_out = event.with_probability(config.tilt.probability, run.config.corpus.lengths).pcfg, None
    pcfg.save(run.grammar_file, force=True)
    (folder / "trace.jsonl").unlink(missing_ok=True)
    if trace and config.method == "split_merge":
        write_json_lines(folder / "trace.jsonl", trace)
    fit = None if held_out is None else _held_out_fit(run, pcfg, held_out)
    write_json(folder / "diagnosis.json", {**asdict(diagnose(pcfg)), "held_out": fit})
    for old in folder.glob("checkpoint-*"):
        shutil.rmtree(old)
    return pcfg.digest


def _make_process(run: RunFolder, process: Process) -> str:
    if run.config.grammar.variant is not None:
        require(process, "parses", "grammar.variant")
    if run.config.grammar.tilt is not None:
        require(process, "parses", "grammar.tilt")
    if run.config.evaluation.lines:
        require(process, "windows", "evaluation.lines")
    for entry in run.config.models:
        if not entry.loaded and entry.resolve(run.base)[0].objective == "masked":
            require(process, "masked", f"the masked model {entry.name}")
    process.save(run.grammar_file, force=True)
    for other in ("trace.jsonl", "diagnosis.json"):  # files of an earlier configuration
        (run.folder / "grammar" / other).unlink(missing_ok=True)
    return process.digest


def _checkpoint(run: RunFolder) -> Path:
    """Return where induction saves its phases: a separate folder for every set of inputs."""
    return run.folder / "grammar" / f"checkpoint-{digest_json(inputs(run))[:12]}"


def _held_out(run: RunFolder) -> Treebank | None:
    path = run.folder / "treebank" / "held_out.mrg.gz"
    return Treebank.read(path, None) if path.is_file() and run.config.treebank else None


def _held_out_fit(run: RunFolder, pcfg: PCFG, held_out: Treebank) -> HeldOutFit:
    """Log probability of the held-out *sentences* under the grammar, and under the truth if it is known."""
    sentences = held_out.sentences()
    log.info("likelihood of the grammar on %s held-out sentences", f"{len(sentences):,}")
    scores = pcfg.exact.string_log_probs(sentences)
    possible = np.isfinite(scores)
    tokens = sum(len(s) + 1 for s, ok in zip(sentences, possible, strict=True) if ok)
    truth = None
    if run.config.treebank is not None and run.config.treebank.embedded and possible.any():
        possible_sentences = [s for s, ok in zip(sentences, possible, strict=True) if ok]
        truth = float(language(run.config.treebank.embedded).exact.string_log_probs(possible_sentences).sum() / tokens)
    return {
        "sentences": len(sentences),
        "impossible": int((~possible).sum()),
        "log_prob_per_token": float(scores[possible].sum() / tokens) if tokens else None,
        "truth_log_prob_per_token": truth,
    }
