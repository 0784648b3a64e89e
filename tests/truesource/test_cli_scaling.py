"""`truesource run` of a sweep: cells trained, reused, resumed after a kill, shared out; laws, records, report."""

from __future__ import annotations

import json
import math
import os
import signal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import yaml
from command_line import Command
from held_command import stopped_in_training
from other_process import locked_elsewhere
from stopping import contents

from truesource.evaluation.scaling.cells import ScalingCell
from truesource.evaluation.scaling.fits import fit_all
from truesource.evaluation.scaling.losses import Losses
from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.files import digest_file
from truesource.lmtrain.trainer import LossTrainer, Watch
from truesource.studies.scaling.config import load_sweep
from truesource.studies.scaling.plan import Data, digest_coded, first_sentences
from truesource.studies.scaling.report import answer, joint_text, spread_text
from truesource.studies.scaling.results import Sweep, read_plan

TOY = """\
S -> NP VP 1.0
NP -> DT NN 0.7 | NN 0.3
VP -> VB NP 0.6 | VB 0.4
DT -> the 0.6 | a 0.4
NN -> dog 0.4 | cat 0.3 | walk 0.3
VB -> sees 0.6 | walk 0.4
"""
CONFIG: dict[str, Any] = {
    "name": "toy",
    "grammar": "toy.npz",
    "corpus": {"lengths": "2..8", "splits": {"train": 80, "dev": 20, "eval": 60}, "trees": "none"},
    "base": {
        "model": {"layers": 1, "heads": 2, "dim": 8, "dropout": 0.0, "max_positions": 12},
        "training": {"max_steps": 4, "batch_tokens": 60, "eval_every": 4, "snapshots": "log", "warmup_steps": 1},
    },
    "axes": {"sentences": [10, 20, 80], "model": [{"dim": 4}, {"dim": 8}], "seeds": [1]},
    "evaluation": {"replicates": 100},
}
CALL = ("run",)


def write(folder: Path, **changes: Any) -> Path:
    """The configuration with some sections changed key by key."""
    values = json.loads(json.dumps(CONFIG))
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(values.get(key), dict):
            values[key] = {k: v for k, v in {**values[key], **value}.items() if v is not None}
        else:
            values[key] = value
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    write(tmp_path)
    return tmp_path


def weights(folder: Path) -> dict[str, tuple[str, int]]:
    """Digest and time of the weights of each cell."""
    return {
        file.parent.name: (digest_file(file), file.stat().st_mtime_ns)
        for file in folder.glob("cells/*/model.safetensors")
    }


@pytest.mark.long
def test_a_sweep_from_its_configuration_to_the_report(here: Path, command: Command) -> None:
    found = command(*CALL, "sweep.yaml", "--json", "numbers.json")
    assert found.code == 0, found.err
    assert found.last == (
        "Wrote runs/toy/report.html, runs/toy/scaling.json and numbers.json. Next: open the report in a browser."
    )
    assert "Reducible loss KL(x) = A x^-exponent" in found.out
    assert "no law over parameters, parameters without embeddings, FLOPs of training: a power law needs" in found.err
    folder = here / "runs" / "toy"
    first = weights(folder)
    assert len(first) == 6 and len({digest for digest, _ in first.values()}) == 6
    records = json.loads((here / "numbers.json").read_text(encoding="utf-8"))
    assert records == json.loads((folder / "scaling.json").read_text(encoding="utf-8"))
    assert all(record["signature"].endswith("|v:0.1.0") and np.isfinite(record["value"]) for record in records)
    cells = [r for r in records if "cell" in r and "step" not in r]
    kl, relative = ([r["value"] for r in cells if r["name"] == name] for name in ("kl", "relative_ppl"))
    np.testing.assert_allclose(np.exp(kl), relative, rtol=1e-12)
    assert len({r["value"] for r in cells if r["name"] == "bound"}) == 1  # one vocabulary, one truth
    assert {r["step"] for r in records if "step" in r} == {0, 1, 2}  # the last snapshot is the model itself
    laws = [(r["over"], r["held"]) for r in records if r.get("fit") == "power_law" and r["name"] == "exponent"]
    assert laws == [("sentences", "gpt2-1x4"), ("sentences", "gpt2-1x8")]
    joint = [r for r in records if r.get("fit") == "joint"]
    assert {(r["name"], r["at_bound"]) for r in joint} == {("r2", True), ("residual", True)}
    assert "not found: these cells do not determine its parameters" in found.out
    assert {r["signature"].split("|fit:")[1].split("|")[0] for r in joint} == {"least-squares-of-logs"}
    assert all("|ci:residual-t-and-sentence-bootstrap95/" in r["signature"] for r in records if "fit" in r)
    assert "95% intervals from the scatter around the law and other evaluation sentences" in found.out
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "gpt2-1x8" in page and page.count("<svg") == 3
    assert "the truth has 1" in page and "twice the sentences" in page
    for name in ("relative_ppl", "laws", "curves"):
        ElementTree.parse(folder / "figures" / f"{name}.svg")

    again = command(*CALL, "sweep.yaml")  # nothing is trained or scored anew, and the numbers are the same
    assert again.code == 0 and weights(folder) == first
    assert records == json.loads((folder / "scaling.json").read_text(encoding="utf-8"))

    # another seed and one model less: only the new cells are trained
    write(here, axes={"sentences": [10, 20, 80], "model": [{"dim": 8}], "seeds": [1, 2]})
    assert command(*CALL, "sweep.yaml").code == 0
    more = weights(folder)
    assert {name: more[name] for name in first} == first
    assert sorted(name.rsplit("-", 1)[0] for name in more.keys() - first.keys()) == [
        "gpt2-1x8-n10-seed2",
        "gpt2-1x8-n20-seed2",
        "gpt2-1x8-n80-seed2",
    ]
    # the folder alone gives the same numbers, untouched by the corpus
    (folder / "corpus").rename(here / "away")
    alone = command("report", folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert alone.code == 0 and "gpt2-1x8" in page and "gpt2-1x4" not in page
    assert weights(folder) == more


@pytest.mark.long
def test_a_cell_that_diverges_does_not_stop_the_others(
    here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(here, axes={"sentences": [10, 20], "model": None, "seeds": [1]})
    whole = Watch._dev_loss

    def diverges(watch: Watch) -> float | None:
        return math.nan if "-n10-" in watch._folder.name and len(watch.rows) == 2 else whole(watch)

    with monkeypatch.context() as patch:
        patch.setattr(Watch, "_dev_loss", diverges)
        found = command(*CALL, "sweep.yaml")
    assert found.code == 2
    assert found.last.startswith("Wrote runs/toy/report.html")
    said = found.err.replace("\n", " ")
    assert "failed: gpt2-1x8, 10 sentences, seed 1: the dev loss is nan at step 2; lower the learning rate" in said
    assert said.strip().endswith("truesource: 1 cell failed; repeat the command to retry")
    first = weights(here / "runs" / "toy")
    assert [name.split("-")[2] for name in first] == ["n20"]
    assert command(*CALL, "sweep.yaml").code == 0
    after = weights(here / "runs" / "toy")
    assert len(after) == 2 and {name: after[name] for name in first} == first


@pytest.mark.long
def test_other_evaluation_sentences_train_nothing(here: Path, command: Command) -> None:
    write(here, axes={"sentences": [10, 80], "model": None, "seeds": [1]})
    assert command(*CALL, "sweep.yaml").code == 0
    folder = here / "runs" / "toy"
    first, old = weights(folder), json.loads((folder / "scaling.json").read_text(encoding="utf-8"))
    write(here, axes={"sentences": [10, 80], "model": None, "seeds": [1]}, evaluation={"sentences": 30})
    assert command(*CALL, "sweep.yaml").code == 0
    new = json.loads((folder / "scaling.json").read_text(encoding="utf-8"))
    assert weights(folder) == first
    assert [r["value"] for r in new if r["name"] == "kl"] != [r["value"] for r in old if r["name"] == "kl"]
    assert "|sentences:30|" in new[0]["signature"]


@pytest.mark.long
def test_jobs_share_the_cells(here: Path, command: Command) -> None:
    write(here, axes={"model": None})
    outputs = [command(*CALL, "sweep.yaml", "--shard", f"{i}/3") for i in (2, 0, 1)]
    assert [found.code for found in outputs] == [0, 0, 0]
    assert outputs[0].last.startswith("Wrote this job's cells of runs/toy; 2 of 3 are not finished.")
    assert outputs[2].last.startswith("Wrote runs/toy/report.html")
    shared = weights(here / "runs" / "toy")
    assert command(*CALL, "sweep.yaml", "--runs", "alone").code == 0
    alone = weights(here / "alone" / "toy")
    assert {name: digest for name, (digest, _) in shared.items()} == {n: d for n, (d, _) in alone.items()}
    numbers = [(here / runs / "toy" / "scaling.json").read_text(encoding="utf-8") for runs in ("runs", "alone")]
    assert numbers[0] == numbers[1]


@pytest.mark.long
def test_an_interrupted_sweep_leaves_the_same_files(
    here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between two lines of metrics of the second cell; nothing but the times differs."""
    base = {**CONFIG["base"], "training": {**CONFIG["base"]["training"], "max_steps": 10}}
    write(here, axes={"sentences": [10, 20], "model": None, "seeds": [1]}, base=base)
    assert command(*CALL, "sweep.yaml", "--runs", "whole").code == 0
    whole, losses = LossTrainer.compute_loss, 0

    def interrupts(self: LossTrainer, *args: Any, **kwargs: Any) -> torch.Tensor:
        nonlocal losses
        losses += 1
        if losses == 10 + 6:
            os.kill(os.getpid(), signal.SIGINT)
        return whole(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(LossTrainer, "compute_loss", interrupts)
        assert command(*CALL, "sweep.yaml").code == 130
    assert len(list((here / "runs" / "toy" / "cells").glob("*.partial/checkpoints/checkpoint-6"))) == 1
    assert command(*CALL, "sweep.yaml").code == 0
    files = [contents(here / runs / "toy") for runs in ("whole", "runs")]
    one, two = ({name: text for name, text in found.items() if not name.endswith("times.jsonl")} for found in files)
    assert [name for name in one.keys() | two.keys() if one.get(name) != two.get(name)] == []
    assert len(one) == len(files[0]) - 2 > 20


@pytest.mark.slow
def test_a_killed_sweep_goes_on_within_its_cell(here: Path, command: Command) -> None:
    """Killed after a checkpoint of the second cell: the first is reused, the second has the weights of no kill."""
    steps = {"max_steps": 120, "eval_every": 20, "checkpoint_every": 20, "batch_tokens": 60, "warmup_steps": 1}
    axes = {"sentences": [10, 20], "model": None, "seeds": [1]}
    write(here, axes=axes, base={**CONFIG["base"], "training": steps})
    assert command(*CALL, "sweep.yaml", "--runs", "whole").code == 0
    cells = here / "runs" / "toy" / "cells"
    checkpoint = "runs/toy/cells/*-n20-*.partial/checkpoints/checkpoint-*/trainer_state.json"
    code, err = stopped_in_training(signal.SIGKILL, checkpoint, here, *CALL, "sweep.yaml")
    assert code == -signal.SIGKILL, err
    before = weights(cells.parent)
    assert [name.split("-")[2] for name in before] == ["n10"]
    assert command(*CALL, "sweep.yaml").code == 0
    after, whole = weights(cells.parent), weights(here / "whole" / "toy")
    assert {name: after[name] for name in before} == before
    assert {name: digest for name, (digest, _) in after.items()} == {n: d for n, (d, _) in whole.items()}
    assert not list(cells.glob("*.partial"))


def test_the_vocabulary_is_that_of_the_largest_train_set(here: Path) -> None:
    config = load_sweep("sweep.yaml")
    corpus = Corpus.sample(
        PCFG.load("toy.npz"), {"train": 80, "eval": 5}, seed=1, path="corpus", lengths=None, force=True
    )
    data = Data(config, corpus)
    assert len({cell.tokenizer_digest for cell in data.cells()}) == 1
    assert set(data.tokenizer.get_vocab()) >= {"the", "a", "dog", "cat", "walk", "sees"}
    all_of_it = corpus.coded("train")
    for n in (1, 10, 80):
        first = first_sentences(all_of_it, n)
        assert [*first] == corpus.sentences("train")[:n]
        assert digest_coded(first) == digest_coded(first_sentences(first_sentences(all_of_it, 80), n))
    assert digest_coded(first_sentences(all_of_it, 10)) != digest_coded(first_sentences(all_of_it, 11))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axes": {"sentences": [10, 81]}}, "asks for 81 sentences, but the train split of the corpus has 80"),
        ({"vocabulary_sentences": 90}, "vocabulary_sentences asks for 90 sentences"),
        ({"axes": {"depth": [1]}}, "axes.depth: unknown key"),
        ({"axis": {}}, "axis: unknown key"),
        ({"axes": {"sentences": [10, 10]}}, "axes.sentences: 10 is given twice"),
        ({"axes": {"model": [{"dimm": 3}]}}, "model.dimm: unknown key"),
        ({"axes": {"model": [{"min_count": 3}]}}, "min_count is the same in all cells; set it in base.model"),
        ({"axes": {"layers": [1]}}, "axes: model and layers cannot be combined"),
        ({"axes": {"model": [{"dim": 8}, {"dropout": 0.5}]}}, "are both called gpt2-1x8; give one of them a name"),
        ({"axes": {"model": [{"name": "a", "dim": 8}, {"name": "b", "heads": 2}]}}, "a and b are the same model"),
        ({"axes": {"model": [{"name": "a", "ffn_dim": 32}, {"name": "b"}]}}, "a and b are the same model"),
        ({"base": {"training": {}}}, "base: training: max_steps is missing"),
        ({"base": {"training": {"epochs": 1}}}, "base: training: replace epochs by max_steps"),
        ({"base": {"training": {"max_steps": 3, "max_seconds": 9}}}, "max_seconds would stop cells at different steps"),
        ({"base": {"preset": "huge"}}, "unknown preset 'huge'"),
        ({"base": {"model": {"architecture": "ngram"}}}, "ngram takes no"),
        ({"corpus": {"splits": {"train": 80}}}, "corpus.splits lacks the split eval"),
        ({"corpus": {"lengths": "2..12"}}, "set base.model.max_positions to 14"),
        ({"corpus": "nowhere"}, "there is no such corpus folder"),
        ({"grammar": "nowhere.npz"}, "nowhere.npz"),
        ({"evaluation": {"sentences": 61}}, "evaluation.sentences asks for 61 sentences, but the split eval has 60"),
        ({"evaluation": {"split": "test"}}, "corpus.splits lacks the split test"),
    ],
)  # fmt: skip
def test_bad_configurations(changes: dict[str, Any], message: str, here: Path, command: Command) -> None:
    write(here, **changes)
    found = command(*CALL, "sweep.yaml")
    assert found.code == 2
    assert message in found.err.replace("\n", " ")
    assert len(found.err.strip().splitlines()) == 1


def test_a_corpus_folder_that_is_too_small(here: Path, command: Command) -> None:
    Corpus.sample(PCFG.load("toy.npz"), {"train": 79, "eval": 20}, seed=1, path="corpus", lengths=None)
    write(here, corpus="corpus")
    found = command(*CALL, "sweep.yaml")
    assert found.code == 2
    assert "axes.sentences asks for 80 sentences, but the train split of the corpus has 79 (" in found.err


@pytest.mark.long
def test_folders_of_others(here: Path, command: Command) -> None:
    write(here, axes={"sentences": [10], "model": None, "seeds": [1]})
    (here / "runs" / "toy").mkdir(parents=True)
    (here / "runs" / "toy" / "letter.txt").write_text("dear", encoding="utf-8")
    found = command(*CALL, "sweep.yaml")
    assert found.code == 2 and "exists and is not a sweep" in found.err
    (here / "runs" / "toy" / "letter.txt").unlink()
    assert command("report", "runs/toy").code == 2
    assert command(*CALL, "sweep.yaml").code == 0
    (cell,) = (here / "runs" / "toy" / "cells").glob("gpt2*")
    record = json.loads((cell / "training.json").read_text(encoding="utf-8"))
    (cell / "training.json").write_text(json.dumps({**record, "seed": 9}), encoding="utf-8")
    found = command(*CALL, "sweep.yaml")
    assert found.code == 2 and "its model was trained with another seed" in found.err
    (cell / "training.json").write_text("{", encoding="utf-8")
    found = command(*CALL, "sweep.yaml")
    assert found.code == 2 and "delete the cell and it will be trained again" in found.err


@pytest.mark.long
def test_a_cell_at_work_in_another_process_is_left_alone(here: Path, command: Command) -> None:
    write(here, axes={"sentences": [10, 20], "model": None, "seeds": [1]})
    assert command(*CALL, "sweep.yaml", "--shard", "0/2").code == 0
    cells = here / "runs" / "toy" / "cells"
    (other,) = [name for name in read_plan(here / "runs" / "toy")["cells"] if "-n20-" in name]
    with locked_elsewhere(cells / other):
        found = command(*CALL, "sweep.yaml")
    assert found.code == 0 and "1 of 2 cells are not finished and are excluded" in found.err
    assert [path.name for path in cells.glob("gpt2*")] != [] and not (cells / other).exists()
    assert command(*CALL, "sweep.yaml").code == 0 and (cells / other).exists()


def test_options_of_one_kind_of_configuration(here: Path, command: Command) -> None:
    for option in ("--dry-run", "--force"):
        found = command(*CALL, "sweep.yaml", option)
        assert found.code == 2 and "--dry-run and --force are for runs, but this is a sweep" in found.err
    found = command(*CALL, "demo", "--shard", "0/2")
    assert found.code == 2 and "--shard is a share of the cells of a sweep, but this is a run" in found.err
    found = command(*CALL, "sweep.yaml", "--device", "abacus")
    assert found.code == 2 and "device" in found.err


def test_processes_of_torchrun_are_refused(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    found = command(*CALL, "sweep.yaml")
    assert found.code == 2 and "share them out with --shard" in found.err


@pytest.mark.long
def test_a_law_that_does_not_hold_is_not_reported_as_one() -> None:
    grid = [ScalingCell(f"{n}-{seed}", "a", n, seed, 9, 9, 9.0) for n in (10, 100, 1000, 10_000) for seed in (1, 2, 3)]
    n = np.array([cell.sentences for cell in grid], dtype=np.float64)
    noise = 1.0 + 0.01 * np.random.default_rng(0).normal(size=len(grid))
    measures = {"relative_ppl": {"value": 2.0, "low": None, "high": None}}
    rows: list[Any] = [{"model": "a", "sentences": cell.sentences, "measures": measures} for cell in grid]
    said = "a: twice the sentences give 29% less", "The points are not on a power law over"
    for reducible, start in zip((3.0 * n**-0.5, 1.0 + 9.0 / n), said, strict=True):
        losses = Losses((reducible * noise)[:, None] * np.ones((1, 12)), np.ones(12), np.ones(12))
        sweep = Sweep("t", rows, [], grid, losses, fit_all(grid, losses, seed=1, replicates=100))
        assert any(sentence.startswith(start) for sentence in answer(sweep))


@pytest.mark.long
def test_the_joint_law_in_words() -> None:
    models = {"a": 1000, "b": 8000, "c": 64_000}
    grid = [
        ScalingCell(f"{model}{n}{seed}", model, n, seed, 2 * size, size, 9.0 * size)
        for model, size in models.items()
        for n in (100, 1000, 10_000)
        for seed in (1, 2)
    ]
    n, d = (np.array([getattr(c, name) for c in grid]) for name in ("parameters_without_embeddings", "sentences"))
    noise = 1.0 + 0.01 * np.random.default_rng(0).normal(size=len(grid))
    for reducible, found in ((20.0 * n**-0.3 + 9.0 * d**-0.45, True), (9.0 * d**-0.45, False)):
        losses = Losses((reducible * noise)[:, None] * np.ones((1, 12)), np.ones(12), np.ones(12))
        sweep = Sweep("t", [], [], grid, losses, fit_all(grid, losses, seed=1, replicates=100))
        text, joint = joint_text(sweep), sweep.fits.joint
        assert text is not None and joint is not None
        shown = [f"{name} {joint.intervals[name].value:.3g} [{joint.intervals[name].low:.3g}, " for name in ("A", "B")]
        assert all((part in text) == found for part in shown)
        assert text.startswith("not found") != found and joint.at_bound != found
        assert spread_text(sweep) == "other seeds and evaluation sentences"


def test_the_configuration_that_comes_along_is_valid() -> None:
    config = load_sweep(Path(__file__).parents[2] / "data" / "scaling.yaml")
    assert len(config.shapes()) >= 3 and len(config.axes.sentences) >= 4
