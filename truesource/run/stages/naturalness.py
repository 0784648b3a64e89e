"""Stage: the corpus, and the grammar before splitting, compared with held-out trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.evaluation.naturalness.call import measure
from truesource.evaluation.naturalness.evaluator import NaturalnessSettings
from truesource.generator.sampler import Sampler
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.files import digest_json
from truesource.grammar.treebank import Treebank
from truesource.run.stage import Stage, of_settings

if TYPE_CHECKING:
    from truesource.grammar.pcfg import PCFG
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder

REFERENCE = "held-out trees"
_STREAM = 0x4A7A  #: separates the sample of the raw grammar from the corpus, sampled with the same seed


def stages(config: RunConfig) -> list[Stage]:
    """One."""
    return [Stage("naturalness", ("naturalness/naturalness.json",), inputs, make)]


def inputs(run: RunFolder) -> Any:
    """Return the inputs: settings, seed, treebank, binarisation, and the corpus."""
    return {
        **of_settings(run, NaturalnessSettings),
        "binarise": run.config.grammar.model_dump(mode="json")["binarise"],
        "seed": run.config.seed,
        "treebank": run.outputs["treebank"],
        "corpus": run.outputs["corpus"],
    }


def make(run: RunFolder) -> str:
    """Write ``naturalness/naturalness.json``."""
    from truesource.evaluation.naturalness.report import drawn_of
    from truesource.grammar.estimate.relative_frequency import relative_frequency

    settings, lengths = run.settings(NaturalnessSettings), run.corpus.lengths
    bank = _bank(run, "treebank")
    sources = {REFERENCE: _sentences(run, _bank(run, "held_out")), "trees learned from": _sentences(run, bank)}
    grammars: dict[str, PCFG] = {}
    if run.config.grammar.method == "split_merge":
        grammars["raw grammar"] = raw = relative_frequency(bank.binarise(run.config.grammar.binarise))
        sampler = Sampler(raw, lengths)
        sampled = sampler.draw(settings.sentences, random_state(run.config.seed, _STREAM))
        sources["raw grammar"] = sampler.sentences(sampled)
    grammars["corpus"] = run.pcfg
    split = "train" if "train" in run.corpus.splits else next(iter(run.corpus.splits))
    sources["corpus"] = run.corpus.sentences(split)
    result = measure(sources, grammars, settings, lengths=lengths, seed=run.config.seed)
    record = {
        "reference": REFERENCE,
        "sentences": result.sentences,
        "figure": drawn_of(result),
        "records": result.records(),
    }
    write_json(run.folder / "naturalness" / "naturalness.json", record)
    return digest_json(record)


def _bank(run: RunFolder, name: str) -> Treebank:
    path = run.folder / "treebank" / f"{name}.mrg.gz"
    if not path.is_file():
        raise InputError("evaluation.naturalness needs held-out trees; set treebank.held_out or held_out_files")
    return Treebank.read(path, None)


def _sentences(run: RunFolder, bank: Treebank) -> list[list[str]]:
    """Return sentences of a treebank with lengths of the corpus."""
    lengths = run.corpus.lengths
    sentences = [s for s in bank.sentences() if lengths is None or len(s) in lengths]
    if len(sentences) < 2:
        raise NothingToMeasureError(
            f"evaluation.naturalness compares with held-out trees of {lengths} words, but there are only"
            f" {len(sentences)}; hold out more (treebank.held_out) or allow other corpus.lengths",
            "too-few-sentences",
        )
    return sentences
