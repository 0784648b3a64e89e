"""Measures the checkpoints of a trained model: what the verb and the stage share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.dynamics.compare import CurveSettings, learning_dynamics
from truesource.evaluation.dynamics.table import Dynamics
from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.errors import InputError
from truesource.grammar.pcfg import PCFG
from truesource.grammar.progress import track
from truesource.grammar.tree import Tree


def sampled_trees(corpus: Path, split: str, most: int | None) -> list[Tree]:
    """The derivations that the first sentences of a corpus were sampled with.

    Raises:
        InputError: this is no corpus folder, or it was sampled without trees.
    """
    if not (corpus / "record.json").is_file():
        raise InputError("there are no derivations in this text; take --tags drawn, or a corpus folder", corpus)
    return list(islice(Corpus.load(corpus).trees(split), most))


def measure_checkpoints(
    folder: Path,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    name: str,
    lengths: LengthRange | None,
    settings: CurveSettings,
    excluded: Exclusion | None = None,
) -> Dynamics:
    """Measure all snapshots of a model folder, the model itself last.

    Raises:
        InputError: as `lmtrain.snapshots.checkpoints` and `evaluation.dynamics.compare.learning_dynamics`.
    """
    from truesource.lmtrain.snapshots import checkpoints

    settings.check(pcfg, len(sentences))
    found = checkpoints(folder)
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    models = ((step, load_model(path)) for step, path in track(found, "checkpoints", len(found)))
    return learning_dynamics(models, pcfg, sentences, name=name, lengths=lengths, settings=settings, excluded=excluded)
