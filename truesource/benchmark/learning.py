"""Learning curves: the divergence from the truth by training tokens seen."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.records import read_records
from truesource.lmtrain.config import ModelConfig

if TYPE_CHECKING:
    from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
    from truesource.generator.corpus import Corpus

HALVINGS = 8  #: of the train split, for models that count


def network_curve(folder: Path) -> tuple[list[tuple[int, float]], int, int]:
    """Of a trained network: training tokens and KL in nats a token at each line of its metrics; steps; tokens.

    Raises:
        InputError: the metrics are damaged.
    """
    from truesource.lmtrain.training_record import MetricsRow

    remedy = "delete the folder of the model and it will be trained again"
    rows: list[dict[str, Any]] = [
        dict(row) for _, row in read_records(folder / "metrics.jsonl", MetricsRow, remedy=remedy)
    ]
    curve = [(int(row.get("tokens") or 0), float(row["kl"])) for row in rows if row.get("kl") is not None]
    return curve, int(rows[-1]["step"]), int(rows[-1].get("tokens") or 0)


def counted_curve(
    corpus: Corpus, shape: ModelConfig, seed: int, monitor: OracleMonitor, target: Path
) -> list[tuple[int, float]]:
    """Of a model that counts, trained on the first half of the train split, on half of that and so on.

    Args:
        corpus: with splits train and dev.
        shape: settings of the model.
        seed: of its training.
        monitor: measures it.
        target: the finished model, whose words the others tell apart too.
    """
    from truesource.lmtrain.subwords import make_tokenizer
    from truesource.lmtrain.trained_models import load_folder
    from truesource.lmtrain.training import train

    whole = corpus.coded("train")
    tokenizer = make_tokenizer(shape, whole, shape.objective)
    curve = []
    for halvings in range(HALVINGS, 0, -1):
        n = len(whole) >> halvings
        if n == 0:
            continue
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".curve-") as folder:
            model = train(whole[:n], shape, None, Path(folder) / "model", seed=seed, tokenizer=tokenizer)
            curve.append((int(whole.lengths[:n].sum()) + n, monitor(model)["kl"]))
    curve.append((int(whole.lengths.sum()) + len(whole), monitor(load_folder(target))["kl"]))
    return curve
