"""Stage: the treebank, read or sampled, normalised, split into training and held-out trees."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.evaluation.show.records import TreebankTruth
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.files import digest_file
from truesource.grammar.treebank import Treebank, hold_out
from truesource.run.stage import Stage
from truesource.run.treebank.config import TreebankConfig

if TYPE_CHECKING:
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder

log = logging.getLogger("truesource")


def stages(config: RunConfig) -> list[Stage]:
    """Return the stage of the treebank, if a run starts from one."""
    if config.treebank is None:
        return []
    return [Stage("treebank", ("treebank/*.mrg.gz", "treebank/statistics.json"), inputs, make)]


def inputs(run: RunFolder) -> Any:
    """Return the inputs: settings, seed, and the contents of the files."""
    from truesource.grammar.pcfg import language
    from truesource.grammar.treebank.files import find_files
    from truesource.grammar.treebank.reader import nltk_digest

    config = _config(run)
    value: dict[str, object] = {"treebank": config.model_dump(mode="json"), "seed": run.config.seed}
    if config.embedded:
        value["embedded"] = language(config.embedded).digest
    if config.nltk:
        value["nltk"] = nltk_digest(config.nltk)
    for key in ("files", "held_out_files"):
        if getattr(config, key):
            value[key] = [digest_file(path) for path in find_files(_paths(run, getattr(config, key)))]
    if config.dataset is not None:
        value["dataset"] = _digests(Path(run.resolve(config.dataset.path)))
    return value


def make(run: RunFolder) -> str:
    """Write ``treebank.mrg.gz``, ``held_out.mrg.gz`` and ``statistics.json``."""
    config = _config(run)
    bank = _read(run, config)
    _show_reading(bank)
    if config.held_out_files:
        train = bank
        held_out: Treebank | None = Treebank.read(_paths(run, config.held_out_files), config.normalise)
    else:
        train, held_out = hold_out(bank, config.held_out, run.config.seed)
    folder = run.folder / "treebank"
    train.write(folder / "treebank.mrg.gz", force=True)
    if held_out is None:
        (folder / "held_out.mrg.gz").unlink(missing_ok=True)
    else:
        held_out.write(folder / "held_out.mrg.gz", force=True)
    statistics = train.statistics
    write_json(
        folder / "statistics.json",
        {
            "source": bank.source,
            "statistics": statistics.as_dict(),
            "lengths": np.bincount([len(tree.leaves()) for tree in train]).tolist(),
            "reading": bank.reading.as_dict(),
            "held_out": 0 if held_out is None else len(held_out),
            "truth": _truth(config),
        },
    )
    return train.digest if held_out is None else f"{train.digest}+{held_out.digest}"


def _show_reading(bank: Treebank) -> None:
    """Log what reading removed and refused, and warn of signs of another convention."""
    for line in bank.reading.lines():
        log.info("%s", line)
    if bank.selection is not None and (warning := bank.selection.warning):
        log.warning("%s", warning)
    for sign in bank.reading.signs:
        settings = " and ".join(f"treebank.normalise.{name} to {_quoted(value)}" for name, value in sign.remedy.items())
        log.warning("%s; set %s, or ignore this if they are words", sign, settings)


def _quoted(value: str) -> str:
    """Quote a value of signs, so that YAML reads text."""
    return value if value[0].isalnum() else repr(value)


def _digests(path: Path) -> list[str]:
    """Return the digests of a file, or of all files of a folder; empty without files."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return [digest_file(file) for file in files]


def _config(run: RunFolder) -> TreebankConfig:
    assert run.config.treebank is not None
    return run.config.treebank


def _paths(run: RunFolder, names: str | list[str]) -> list[str]:
    return [run.resolve(name) for name in ([names] if isinstance(names, str) else names)]


def _read(run: RunFolder, config: TreebankConfig) -> Treebank:
    if config.embedded:
        from truesource.generator.sampler import sample_treebank
        from truesource.grammar.pcfg import language
        from truesource.grammar.support.settings import split_reference

        trees = sample_treebank(language(config.embedded), config.sentences, run.config.seed)
        size = split_reference(config.embedded)[1].get("size")
        origin = "sampled from the embedded English grammar" + (f" of size {size}" if size else "")
        return Treebank.from_trees(trees, config.normalise, source=origin)
    if config.files:
        return Treebank.read(_paths(run, config.files), config.normalise, limit=config.limit)
    if config.nltk:
        return Treebank.from_nltk_corpus(config.nltk, config.normalise, limit=config.limit)
    assert config.dataset is not None
    source = config.dataset
    return Treebank.from_dataset(
        run.resolve(source.path), source.column, config.normalise, split=source.split, limit=config.limit
    )


def _truth(config: TreebankConfig) -> TreebankTruth | None:
    """Return the known truth about the source of a sampled treebank."""
    if not config.embedded:
        return None
    from truesource.grammar.inference.expected import derivational_entropy
    from truesource.grammar.pcfg import language

    pcfg = language(config.embedded)
    return {
        "grammar": pcfg.sizes(),
        "mean_length": pcfg.exact.mean_length,
        "derivational_entropy": derivational_entropy(pcfg),
    }
