"""Stage: the corpus, sampled from the grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.generator.corpus import Corpus
from truesource.generator.plan import Columns
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """The corpus."""
    return [Stage("corpus", ("corpus/record.json", "corpus/symbols.json", "corpus/data/*.parquet"), inputs, make)]


def inputs(run: RunFolder) -> Any:
    """Settings but for the number of workers, seed, grammar."""
    settings = run.config.corpus.model_dump(mode="json", exclude={"workers"})
    # the key of finished stages stays as it was, so that they are not made again
    if settings["transform"] is None:
        del settings["transform"]
    if not settings["stratified"]:
        del settings["stratified"]
    settings["trees"] = {"ids": True, "none": False}.get(settings["trees"], settings["trees"])
    return {"corpus": settings, "seed": run.config.seed, "grammar": run.outputs["grammar"]}


def make(run: RunFolder) -> str:
    """Write the corpus folder."""
    config = run.config.corpus
    corpus = Corpus.sample(
        run.truth,
        config.splits,
        seed=run.config.seed,
        lengths=config.lengths,
        path=run.folder / "corpus",
        columns=Columns(trees=config.trees),
        shard_size=config.shard_size,
        transform=config.words_order,
        stratified=bool(config.stratified),
        workers=config.workers,
        force=True,
        license=run.config.license,
    )
    return corpus.digest
