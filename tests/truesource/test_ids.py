"""Ids of stages and cells stay as they are: finished runs, sweeps and benchmarks of an older version resume.

Where an id must change, the commit says why, and `ids` writes ``tests/ids.json`` again:

    PYTHONPATH=tests/oracles python tests/truesource/test_ids.py > tests/ids.json
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from golden import RUN, SWEEP
from tiny_benchmark import mini_suite
from tiny_run import BANK

from truesource.evaluation.evaluators import EVALUATORS
from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.files import digest_json
from truesource.run.experiment import load_config
from truesource.run.folder import RunFolder
from truesource.run.runner import depends_on, plan
from truesource.run.stages.explain.job import LeverCell
from truesource.studies.benchmark.cells import planned_cells
from truesource.studies.benchmark.suite import candidates, load_suite, suites
from truesource.studies.scaling.config import load_sweep
from truesource.studies.scaling.plan import Data

IDS = Path(__file__).parents[1] / "ids.json"
GRAMMAR = "S -> A S 0.4 | A 0.6\nA -> 'a' 0.5 | 'b' 0.3 | 'c' 0.2\n"


def stages(folder: Path) -> Iterator[tuple[str, str]]:
    """Digests of what each stage of a run depends on, where each earlier stage made its own name."""
    (folder / "bank.mrg").write_text(8 * BANK, encoding="utf-8")
    (folder / "run.yaml").write_text(RUN, encoding="utf-8")
    config = load_config(folder / "run.yaml")
    run = RunFolder(config, folder / "runs" / "toy", folder)
    run.corpus = Corpus.load(folder / "c")
    for stage in plan(config, EVALUATORS):
        yield stage.name, digest_json(depends_on(run, stage))
        run.outputs[stage.name] = f"output of {stage.name}"


def ids(folder: Path) -> dict[str, object]:
    """All of them, of fixed requests."""
    (folder / "g.txt").write_text(GRAMMAR, encoding="utf-8")
    corpus = Corpus.sample(
        PCFG.load(folder / "g.txt"), {"train": 80, "eval": 60}, path=folder / "c", lengths="2..8", seed=1
    )
    (folder / "toy.yaml").write_text(SWEEP, encoding="utf-8")
    suite = mini_suite(folder)
    asked = candidates(suite, ["oracle", "unigram", "bigram", "small", "masked"], [], None)
    request = {"model": {"dim": 8}, "training": {"max_steps": 2}, "sentences": 40}
    return {
        "stages": dict(stages(folder)),
        "sweep": [cell.id for cell in Data(load_sweep(folder / "toy.yaml"), corpus).cells()],
        "suites": {name: load_suite(name).digest for name in suites()},
        "benchmark": [cell.id for cell in planned_cells(suite, asked, list(suite.languages), [1, 2])],
        "levers": LeverCell("context", 3, request).id,
    }


def test_ids_stay(tmp_path: Path) -> None:
    assert ids(tmp_path) == json.loads(IDS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(ids(Path(place)), indent=1))
