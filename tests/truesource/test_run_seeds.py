"""A configuration with seeds: every network is trained with each, and nothing else changes."""

from __future__ import annotations

import json
import math
import signal
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from held_command import stopped_in_training
from tiny_run import prepare, run

from truesource.grammar.support.errors import InputError
from truesource.report.finished_run import read_run
from truesource.run.experiment import load_config, plan

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]  # the last bit of a sum depends on their number

GRAMMAR = "S -> 'a' S 0.3 | 'b' S 0.3 | 'a' 0.2 | 'c' 0.2\n"
TRAINING = "{max_steps: 4, batch_tokens: 64, eval_every: 1}"
NETWORK = f"{{name: net, preset: tiny, model: {{dim: 8, heads: 1, layers: 1}}, training: {TRAINING}}}"
COUNTS = "{name: counts, preset: tiny, model: {architecture: ngram}}"
CONFIG = f"""\
name: toy
seed: 3
grammar: {{method: file, file: toy.txt}}
corpus: {{lengths: 1..6, splits: {{train: 60, eval: 20}}}}
models:
  - {NETWORK}
  - {COUNTS}
"""
SEEDS = "seeds=[3, 4]"


def names(folder: Path, *overrides: str) -> list[str]:
    return [stage.name for stage in plan(load_config(folder / "toy.yaml", list(overrides)))]


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    read = json.loads((folder / "runs" / "toy" / "results.json").read_text("utf-8"))
    return {row["model"]: row for row in read if row["model"] != "oracle"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without seeds, then one with two in the same folder."""
    folder = prepare(tmp_path_factory.mktemp("seeds"), CONFIG, GRAMMAR)
    run(folder)
    before = folder / "runs" / "without"
    (folder / "runs" / "toy").rename(before)
    run(folder, SEEDS)
    return folder


def test_stages_of_replicates_take_the_place_of_their_model(tmp_path: Path) -> None:
    folder = prepare(tmp_path, CONFIG, GRAMMAR)
    divergence = "evaluation={divergence: true}"
    stages = names(folder, SEEDS, divergence)
    for kind in ("train", "score", "divergence"):
        assert [name for name in stages if name.startswith(f"{kind}:")] == [
            *(["score:oracle"] if kind == "score" else []),
            f"{kind}:net-seed3",
            f"{kind}:net-seed4",
            f"{kind}:counts",
        ]


def test_results_say_which_seed_of_which_model(finished: Path) -> None:
    found = rows(finished)
    assert list(found) == ["net-seed3", "net-seed4", "counts"]
    assert [(row.get("replicate_of"), row.get("seed")) for row in found.values()] == [
        ("net", 3),
        ("net", 4),
        (None,) * 2,
    ]
    assert "seed" not in found["counts"] and "replicate_of" not in found["counts"]
    assert found["net-seed3"]["ppl"] != found["net-seed4"]["ppl"]
    folder = finished / "runs" / "toy"
    assert json.loads((folder / "config.json").read_text("utf-8"))["seeds"] == [3, 4]
    assert json.loads((folder / "provenance.json").read_text("utf-8"))["seeds"] == [3, 4]


def test_a_replicate_is_the_model_that_its_seed_alone_trains(finished: Path) -> None:
    """The seed of the run is 3, so the first replicate has the weights of the run without seeds."""
    one, two = finished / "runs" / "without", finished / "runs" / "toy"
    weights = [run / "models" / name / "model.safetensors" for run, name in ((one, "net"), (two, "net-seed3"))]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert (one / "corpus" / "record.json").read_bytes() == (two / "corpus" / "record.json").read_bytes()


def test_without_seeds_no_result_mentions_them(finished: Path) -> None:
    folder = finished / "runs" / "without"
    assert "seeds" not in json.loads((folder / "provenance.json").read_text("utf-8"))
    for row in json.loads((folder / "results.json").read_text("utf-8")):
        assert not {"replicate_of", "seed"} & row.keys()


def test_another_seed_leaves_the_finished_ones_alone(finished: Path) -> None:
    assert run(finished, "seeds=[3, 4, 5]") == [
        *("train:net-seed5", "score:net-seed5"),
        *("vocabulary", "compare:net-seed5", "report"),
    ]


@pytest.mark.slow
def test_a_run_killed_in_a_replicate_goes_on(finished: Path, tmp_path: Path) -> None:
    folder = prepare(tmp_path, CONFIG, GRAMMAR)
    begun = "runs/toy/models/net-seed4.partial/metrics.jsonl"
    code, err = stopped_in_training(signal.SIGKILL, begun, folder, "run", "toy.yaml", "--set", SEEDS)
    assert code == -signal.SIGKILL, err
    made = run(folder, SEEDS)
    assert made[0] == "train:net-seed4" and "train:net-seed3" not in made
    for name in ("net-seed3", "net-seed4"):
        weights = [place / "runs/toy/models" / name / "model.safetensors" for place in (finished, folder)]
        assert weights[0].read_bytes() == weights[1].read_bytes()


def test_the_mean_over_seeds_is_that_of_the_replicates(finished: Path) -> None:
    folder = finished / "runs" / "toy"
    records = json.loads((folder / "comparison.json").read_text("utf-8"))
    compared = {(r["model"], r["name"]): r for r in records if "seed_of" not in r}
    logs = [math.log(row["relative_ppl"]) for name, row in rows(finished).items() if name.startswith("net-")]
    mean = compared["net", "relative_ppl"]
    assert math.log(mean["value"]) == pytest.approx(fmean(logs), abs=1e-7)  # tables of tokens are in single precision
    assert mean["low"] < mean["value"] < mean["high"] and mean["seeds"] == len(logs)
    difference = compared["counts", "kl_difference"]
    assert difference["baseline"] == "net"
    gap = math.log(rows(finished)["counts"]["relative_ppl"]) - fmean(logs)
    assert difference["value"] == pytest.approx(gap, abs=1e-7)


def test_the_report_has_one_row_a_model(finished: Path) -> None:
    run = read_run(finished / "runs" / "toy")
    assert [row["model"] for row in run.models] == ["net", "counts"]
    net = run.models[0]
    values = [row["relative_ppl"] for row in net["replicates"]]
    assert net["sd"]["relative_ppl"] == pytest.approx(stdev(values), rel=1e-9)
    page = (finished / "runs" / "toy" / "report.html").read_text("utf-8")
    assert "Each seed" in page and "Differences from net" in page and "networks with seeds 3, 4" in page
    assert page.count('aria-label="Log probabilities of') == 2


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("seeds=[]", "seeds: "),
        ("seeds=[1, 1]", "seeds: 1 is given twice"),
        ("seeds=[-1]", "0 or more"),
        ("seeds=[4294967296]", "less than"),
        ("seeds=3", "seeds: "),
        ("seeds=[1.5]", "a whole number"),
    ],
)
def test_seeds_that_are_none_are_refused(override: str, said: str, tmp_path: Path) -> None:
    folder = prepare(tmp_path, CONFIG, GRAMMAR)
    with pytest.raises(InputError) as error:
        load_config(folder / "toy.yaml", [override])
    assert said in str(error.value) and "seeds" in str(error.value)


def test_a_model_must_not_be_called_as_a_replicate(tmp_path: Path) -> None:
    folder = prepare(tmp_path, CONFIG.replace("name: counts", "name: net-seed3"), GRAMMAR)
    assert names(folder)
    with pytest.raises(InputError, match="two are called net-seed3, with the seeds"):
        load_config(folder / "toy.yaml", [SEEDS])
