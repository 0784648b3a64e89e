"""Stage: the corpus, sampled from the grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.generator.corpus import Corpus
from truesource.generator.corpus_builder import make_corpus
from truesource.grammar.support.parallel import Workers
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """Return the stage of the corpus."""
    return [Stage("corpus", ("corpus/record.json", "corpus/symbols.json", "corpus/data/*.parquet"), inputs, make)]


def inputs(run: RunFolder) -> Any:
    """Return the inputs: settings without the number of workers, seed, grammar."""
    return {"corpus": run.config.corpus.as_inputs(), "seed": run.config.seed, "grammar": run.outputs["grammar"]}


def make(run: RunFolder) -> str:
    """Write the corpus folder."""
    config, path = run.config.corpus, run.folder / "corpus"
    make_corpus(
        run.truth,
        config.plan(run.config.seed),
        path,
        workers=Workers(config.workers),
        force=True,
        exact_correction=True,
        license=run.config.license,
    )
    return Corpus.load(path).digest
