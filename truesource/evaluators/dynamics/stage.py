"""Stage: all snapshots of one model compared with the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.divergence.blocks import END, PENN, read_classes, tags_of
from truesource.evaluation.dynamics.compare import learning_dynamics
from truesource.evaluation.dynamics.table import Dynamics, findings
from truesource.evaluators.dynamics import DynamicsSettings
from truesource.generator.corpus import Corpus
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.files import digest_json, write_json
from truesource.grammar.support.printable import track
from truesource.run.stage import Stage, of_model

if TYPE_CHECKING:
    from truesource.chain.models import ModelEntry
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.generator.language_model import LanguageModel
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.tree import Tree
    from truesource.lmtrain.references import ModelReference
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def measure(
    reference: str | Path | ModelReference,
    pcfg: PCFG,
    corpus: Path,
    split: str,
    sentences: Sequence[Sequence[str]],
    settings: DynamicsSettings,
    *,
    name: str,
    lengths: LengthRange | None,
    frame: str,
    seed: int,
    excluded: Exclusion | None = None,
) -> Dynamics:
    """Measure all snapshots of a model, the model itself last.

    ``corpus`` and ``split`` have the derivations of the sentences; the other arguments are those of
    `evaluation.dynamics.compare.learning_dynamics`.

    Raises:
        InputError: as `lmtrain.checkpoints.checkpoints_of` and `evaluation.dynamics.compare.learning_dynamics`; or
            there is no class of a name in ``settings.only``, or no exact divergence to show.
    """
    some = sentences[: settings.sentences]
    classes = PENN if settings.classes is None else read_classes(settings.classes)
    if settings.measure == "kl" and frame != "default":
        raise InputError(f"there is no exact KL divergence in the frame {frame}, which leaves out positions")
    if settings.only:
        names = (*classes.table(tags_of(pcfg))[0], END)
        unknown = [group for group in settings.only if group not in names]
        if unknown:
            raise InputError(f"there is no class {unknown[0]!r}; there are {', '.join(names)}")

    from truesource.lmtrain.snapshots import checkpoints_of  # torch, after the quick checks

    found = checkpoints_of(reference, "evaluate dynamics")

    def models() -> Iterator[tuple[int, LanguageModel]]:
        for step, load in track(found, "comparing checkpoints", len(found)):
            yield step, load()

    return learning_dynamics(
        models(),
        pcfg,
        some,
        name=name,
        lengths=lengths,
        settings=settings,
        classes=classes,
        trees=sampled_trees(corpus, split, len(some)) if settings.tags == "paper" else None,
        frame=frame,
        seed=seed,
        excluded=excluded,
    )


def sampled_trees(corpus: Path, split: str, number: int) -> list[Tree]:
    """The derivations that the first sentences of a corpus were sampled with.

    Raises:
        InputError: this is not a corpus folder, it was sampled without trees, or its text is transformed: trees have
            the order of the original.
    """
    if not (corpus / "record.json").is_file():
        raise InputError("there are no derivations in this text; take --tags drawn, or a corpus folder", corpus)
    read = Corpus.load(corpus)
    if read.transform is not None:
        raise InputError(
            f"trees of this corpus have the order of the original sentences, the text that of {read.transform};"
            " take --tags expected or drawn",
            corpus,
            code="transformed",
        )
    return list(islice(read.trees(split), number))


def report_record(found: Dynamics, settings: DynamicsSettings) -> dict[str, Any]:
    """The record that tables and figures are made from: curves, findings, and the choice of what is shown.

    Where a model has no exact divergence, its figures show the mean.
    """
    shown = "mean" if settings.measure == "kl" and not found.contexts else settings.measure
    return {**found.as_record(), "measure": shown, "only": list(settings.only), "findings": findings(found)}


def stages(config: RunConfig) -> list[Stage]:
    """Every model with snapshots."""
    trained = (model for model in config.entries if model.keeps_snapshots)
    return [Stage.of_model("dynamics", model, ("dynamics/{}.json",), inputs, make) for model in trained]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, sentences, frame, seed, corpus, grammar, and the trained model."""
    evaluation = run.config.evaluation
    return {
        **of_model(run, model, DynamicsSettings),
        "sentences": evaluation.sentences,
        "frame": evaluation.frame,
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``dynamics/<name>.json``."""
    settings, evaluation = run.settings(DynamicsSettings), run.config.evaluation
    pcfg, transform = run.text_grammar
    require_order(transform, "evaluation.dynamics")
    reference = run.reference(model)
    if model.loaded:
        from truesource.lmtrain.snapshots import has_checkpoints

        if not has_checkpoints(reference, run.model(model)):
            raise NothingToMeasureError(f"{model.name} has no snapshots of its training", "no-snapshots")
    found = measure(
        reference,
        pcfg,
        run.corpus.path,
        evaluation.split,
        run.corpus.sentences(evaluation.split)[: settings.sentences or evaluation.sentences],
        settings,
        name=model.name,
        lengths=run.corpus.lengths,
        frame=evaluation.frame,
        seed=run.config.seed,
    )
    record = {**report_record(found, settings), "records": found.records()}
    write_json(run.folder / "dynamics" / f"{model.name}.json", record)
    return digest_json(record)
