"""The runner: stages are skipped, made again, interrupted and taken up, and the results stay the same."""

from __future__ import annotations

import json
import logging
import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from held_command import stopped_in_training
from other_process import locked_elsewhere
from stopping import contents
from tiny_run import BANK

from truesource.cli.main import main
from truesource.evaluation.show.words import duration
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.training_record import training_seconds
from truesource.run.experiment import execute, load_config
from truesource.run.folder import RunFolder
from truesource.run.treebank import stage as treebank

# the last bit of a sum depends on the number of threads
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]

CONFIG = """\
name: toy
seed: 3
treebank: {files: bank.mrg, held_out: 0.25}
grammar: {split_merge: {cycles: 1, em_split: 2, em_merge: 1, em_smooth: 1}}
corpus: {lengths: 1..9, splits: {train: 120, dev: 20, eval: 40}, shard_size: 60}
models:
  - name: c
    preset: tiny
    oracle_monitor: true
    model: {dim: 16, heads: 2, layers: 1}
    training: {max_steps: 12, eval_every: 4, checkpoint_every: 4, batch_tokens: 64}
"""
TIMED = ("stages.json", "provenance.json", "report.html", "times.jsonl")
STAGES = ["treebank", "grammar", "parsing", "corpus", "train:c", "score:oracle", "score:c", "report"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a configuration and its finished, uninterrupted run; not to be changed."""
    folder = tmp_path_factory.mktemp("finished") / "work"
    folder.mkdir()
    (folder / "bank.mrg").write_text(2 * BANK, encoding="utf-8")  # fewer words do not support a split
    (folder / "toy.yaml").write_text(CONFIG, encoding="utf-8")
    run(folder)
    return shutil.copytree(folder, folder.with_name("kept"))


@pytest.fixture(autouse=True)
def drawn_once(finished: Path, quick_report: None) -> None:
    """Only the run of `finished` draws its report; the other runs are many, and their reports the same."""


@pytest.fixture
def copy(finished: Path) -> Path:
    """The same, to be played with; where it was made, for records name the treebank by its full path."""
    folder = finished.with_name("work")
    shutil.rmtree(folder)
    return shutil.copytree(finished, folder)


@pytest.fixture
def fresh(finished: Path, tmp_path: Path) -> Path:
    """The same without the run."""
    return shutil.copytree(finished, tmp_path / "fresh", ignore=shutil.ignore_patterns("runs"))


def run(folder: Path, *overrides: str, force: bool = False) -> list[str]:
    """Run the experiment; the stages that were made, not skipped."""
    config = load_config(folder / "toy.yaml", list(overrides))
    report = execute(config, base=folder, runs=folder / "runs", force=force)
    assert report == folder / "runs" / config.name / "report.html"
    assert report.is_file()
    return made(folder / "runs" / config.name)


def made(run_folder: Path) -> list[str]:
    stages = json.loads((run_folder / "stages.json").read_text(encoding="utf-8"))["stages"]
    return [name for name, entry in stages.items() if not entry["skipped"]]


def results(folder: Path) -> dict[str, bytes]:
    """Every file of a run but those that hold times."""
    return {name: text for name, text in contents(folder / "runs" / "toy").items() if not name.endswith(TIMED)}


def traces(folder: Path) -> list[str]:
    """What unfinished work leaves."""
    return [str(p) for p in folder.rglob("*") if p.name.endswith((".partial", ".retired")) or "checkpoint" in p.name]


def test_what_a_run_leaves(finished: Path) -> None:
    folder = finished / "runs" / "toy"
    assert made(folder) == STAGES
    rows = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert [(row["model"], row["objective"]) for row in rows] == [
        ("oracle", "causal"),
        ("c", "causal"),
        ("oracle", "masked"),
    ]
    for row in rows:
        exact = row["model"] == "oracle"
        assert (row["relative_ppl"] == 1.0) == exact
        assert row["relative_ppl_low"] <= row["relative_ppl"] <= row["relative_ppl_high"]
        assert row["tokens"] > 40 and row["signature"]
    metrics = (folder / "models" / "c" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [row["relative_ppl"] > 1.0 and row["kl"] > 0.0 for row in map(json.loads, metrics)] == [True] * 4
    assert "model / truth" in (folder / "report.html").read_text(encoding="utf-8")
    provenance = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    assert provenance["seed"] == 3
    assert {"torch", "joblib", "accelerate", "pydantic"} <= provenance["packages"].keys()
    assert "pytest" not in provenance["packages"]
    assert provenance["started"] <= provenance["finished"]
    (shown,) = re.findall(r"<small>\(([^)]+)\)</small></td></tr>", (folder / "report.html").read_text("utf-8"))
    assert shown == duration(training_seconds(folder / "models" / "c"))
    assert [p.name for p in folder.rglob("*.json*") if b"training_seconds" in p.read_bytes()] == []
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["corpus"]["lengths"] == "1..9"
    assert traces(folder) == []


def test_a_second_run_skips_everything(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = copy / "runs" / "toy"
    kept = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "stages.json"}
    with caplog.at_level(logging.INFO, logger="truesource"):
        assert run(copy) == []
    assert [record.getMessage().endswith("unchanged, skipped") for record in caplog.records] == [True] * len(STAGES)
    assert {p: p.read_bytes() for p in kept} == kept  # provenance too: it is that of the report


@pytest.mark.parametrize(
    ("override", "again"),
    [
        ("evaluation.sentences=20", ["score:oracle", "score:c", "report"]),
        ("title=Another", ["report"]),
        ("corpus.workers=2", ["report"]),
        ("corpus.splits={train: 100, dev: 20, eval: 40}", STAGES[3:]),
        ("seed=4", STAGES),
    ],
)
def test_only_what_depends_on_a_change_is_made_again(override: str, again: list[str], copy: Path) -> None:
    assert run(copy, override) == again


def test_a_model_more_leaves_the_others_alone(copy: Path) -> None:
    models = (
        "models=[{name: c, preset: tiny, oracle_monitor: true, model: {dim: 16, heads: 2, layers: 1}, training: {"
        "max_steps: 12, eval_every: 4, checkpoint_every: 4, batch_tokens: 64}}, {name: m, preset: tiny, model: {"
        "architecture: bert, dim: 16, heads: 2, layers: 1}, training: {max_steps: 3, batch_tokens: 64}}]"
    )
    assert run(copy, models) == ["train:m", "score:m", "report"]


def test_a_changed_treebank_is_noticed(copy: Path) -> None:
    with (copy / "bank.mrg").open("a", encoding="utf-8") as stream:
        stream.write("( (S (NP (N dog)) (VP (V walks))) )\n")
    assert run(copy)[:2] == ["treebank", "grammar"]


@pytest.mark.parametrize(
    ("lost", "again"),
    [
        ("treebank/held_out.mrg.gz", ["treebank"]),
        ("grammar/diagnosis.json", ["grammar"]),
        ("corpus/data/train-00001-of-00002.parquet", ["corpus"]),
        ("models/c", ["train:c", "report"]),  # which writes the results into the card
        ("models/c/model.safetensors", ["train:c", "report"]),
        ("scores/oracle-masked.parquet", ["score:oracle"]),
        ("scores/c.parquet", ["score:c"]),
        ("results.json", ["report"]),
    ],
)
def test_what_was_deleted_is_made_again(lost: str, again: list[str], finished: Path, copy: Path) -> None:
    path = copy / "runs" / "toy" / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    stages = run(copy)
    assert stages == again
    assert path.exists()
    assert results(copy) == results(finished)


@pytest.mark.parametrize("cut", ["grammar/grammar.npz", "corpus/data/eval-00000-of-00001.parquet", "scores/c.parquet"])
def test_what_was_cut_short_is_made_again(cut: str, finished: Path, copy: Path) -> None:
    path = copy / "runs" / "toy" / cut
    path.write_bytes(path.read_bytes()[:50])
    assert len(run(copy)) >= 1
    if path.suffix == ".npz":
        assert PCFG.load(path) == PCFG.load(finished / "runs" / "toy" / cut)
    else:
        assert path.read_bytes() == (finished / "runs" / "toy" / cut).read_bytes()
    assert results(copy) == results(finished)


def test_force_makes_everything_again(finished: Path, copy: Path) -> None:
    assert run(copy, force=True) == STAGES
    assert results(copy) == results(finished)


# -- folders and files that are not what they should be ---------------------------------------------


def test_a_folder_that_is_no_run_is_refused(fresh: Path) -> None:
    folder = fresh / "runs" / "toy"
    folder.mkdir(parents=True)
    (folder / "thesis.tex").write_text("precious", encoding="utf-8")
    with pytest.raises(InputError, match="exists and is not a run"):
        run(fresh)
    assert [p.name for p in folder.iterdir()] == ["thesis.tex"]
    assert (folder / "thesis.tex").read_text(encoding="utf-8") == "precious"


def test_a_file_where_the_run_should_be(fresh: Path) -> None:
    (fresh / "runs").mkdir()
    (fresh / "runs" / "toy").write_text("precious", encoding="utf-8")
    with pytest.raises(InputError, match="exists and is not a run"):
        run(fresh)
    with pytest.raises(InputError, match="cannot create the run folder"):
        run(fresh, force=True)
    assert (fresh / "runs" / "toy").read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"stages": 3}', '{"stages": {"grammar": {}}}', "\x00"])
def test_a_damaged_state_is_refused_and_force_helps(text: str, copy: Path) -> None:
    state = copy / "runs" / "toy" / "stages.json"
    state.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"the state of the run is (not JSON|damaged): .*; use --force"):
        run(copy)
    assert state.read_text(encoding="utf-8") == text


def test_what_a_kill_leaves_at_the_very_start_is_no_stranger(fresh: Path) -> None:
    folder = fresh / "runs" / "toy"
    folder.mkdir(parents=True)
    (folder / ".stages.json.123.partial").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="no such file"):
        run(fresh, "treebank.files=nowhere.mrg")


def test_two_processes_cannot_share_a_run(copy: Path) -> None:
    with locked_elsewhere(copy / "runs" / "toy"), pytest.raises(InputError, match="another process is writing this"):
        run(copy)
    assert run(copy) == []


def test_relative_paths_start_at_the_configuration(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fresh / "trees").mkdir()
    (fresh / "bank.mrg").rename(fresh / "trees" / "bank.mrg")
    monkeypatch.chdir("/")
    bare = ("models=[]", "grammar={method: relative_frequency}")
    everything = ["treebank", "grammar", "parsing", "corpus", "score:oracle", "report"]
    assert run(fresh, "treebank.files=trees/*.mrg", *bare) == everything
    with pytest.raises(InputError, match="environment variable TRUESOURCE_NO_SUCH is not set"):
        run(fresh, "treebank.files=$TRUESOURCE_NO_SUCH/bank.mrg", *bare)
    monkeypatch.setenv("TREES_OF_MINE", str(fresh / "trees"))
    assert run(fresh, "name=b", "treebank.files=${TREES_OF_MINE}/bank.mrg", *bare) == everything
    monkeypatch.setenv("HOME", str(fresh))
    assert run(fresh, "name=c", "treebank.files=~/trees/bank.mrg", *bare) == everything


def test_a_grammar_file_is_the_start_and_its_content_counts(fresh: Path) -> None:
    (fresh / "g.txt").write_text("S -> S S 0.3 | a 0.5 | b 0.2\n", encoding="utf-8")
    config = fresh / "file.yaml"
    config.write_text(
        "name: file\ngrammar: {method: file, file: g.txt}\ncorpus: {lengths: 1..5, splits: {eval: 20}}\n",
        encoding="utf-8",
    )
    where = {"base": fresh, "runs": fresh / "runs"}
    execute(load_config(config), **where)
    assert made(fresh / "runs" / "file") == ["grammar", "corpus", "score:oracle", "report"]
    execute(load_config(config), **where)
    assert made(fresh / "runs" / "file") == []
    (fresh / "g.txt").write_text("S -> S S 0.3 | a 0.6 | b 0.1\n", encoding="utf-8")
    execute(load_config(config), **where)
    assert made(fresh / "runs" / "file") == ["grammar", "corpus", "score:oracle", "report"]
    (fresh / "g.txt").write_text("S -> S S 0.6 | a 0.4\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"spectral radius is 1\.2.*g\.txt"):
        execute(load_config(config), **where)
    (fresh / "g.txt").unlink()
    with pytest.raises(InputError, match=r"there is no such file.*g\.txt"):
        execute(load_config(config), **where)


def test_all_files_of_a_berkeley_grammar_count(fresh: Path) -> None:
    from truesource.grammar.formats import save_grammar

    toy = PCFG.from_text("S -> A B 1.0\nA -> a 0.5 | b 0.5\nB -> c 1.0\n")
    save_grammar(toy, fresh / "b.grammar", format="berkeley")
    config = fresh / "file.yaml"
    config.write_text(
        "name: pair\ngrammar: {method: file, file: b.grammar}\ncorpus: {lengths: none, splits: {eval: 20}}\n",
        encoding="utf-8",
    )
    where = {"base": fresh, "runs": fresh / "runs"}
    execute(load_config(config), **where)
    lexicon = fresh / "b.lexicon"
    text = lexicon.read_text(encoding="utf-8")
    assert "0.5" in text
    lexicon.write_text(text.replace("0.5", "0.25", 1), encoding="utf-8")
    execute(load_config(config), **where)
    assert made(fresh / "runs" / "pair") == ["grammar", "corpus", "score:oracle", "report"]
    (fresh / "runs").joinpath("pair", "stages.json").unlink()
    execute(load_config(config, ["grammar.file=b"]), **where, force=True)
    assert PCFG.load(fresh / "runs" / "pair" / "grammar" / "grammar.npz").vocabulary


def test_other_snapshots_are_measured_anew(fresh: Path) -> None:
    """The last weights are the same whatever is kept on the way."""
    wanted = ["models=[{name: c, preset: tiny, model: {dim: 16, heads: 2, layers: 1}, training: {SETTINGS}}]"]
    base = "max_steps: 6, eval_every: 6, batch_tokens: 64, snapshots: log"
    asked = [wanted[0].replace("SETTINGS", base), "evaluation.dynamics={by: [class], contexts: 10}"]
    run(fresh, *asked)
    asked[0] = wanted[0].replace("SETTINGS", base + ", snapshots_per_doubling: 3")
    assert "dynamics:c" in run(fresh, *asked)


def test_the_command_prints_the_table_and_where_the_report_is(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(copy)
    monkeypatch.setattr(sys, "argv", ["truesource", "run", "toy.yaml"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    out = capsys.readouterr().out
    assert "relative PPL" in out and "oracle" in out
    assert out.splitlines()[-1] == "Wrote runs/toy/report.html. Next: open the report in a browser."
    monkeypatch.setattr(sys, "argv", ["truesource", "report", "runs/toy"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert capsys.readouterr().out == "Wrote runs/toy/report.html. Next: open the report in a browser.\n"


# -- Ctrl-C and kill --------------------------------------------------------------------------------


def interrupting(function: Callable[..., Any], call: int) -> Callable[..., Any]:
    """The function, with Ctrl-C pressed in the given call of it."""
    calls = 0

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            signal.raise_signal(signal.SIGINT)
        return function(*args, **kwargs)

    return wrapper


WHERE = [
    ("treebank", "truesource.grammar.treebank.Treebank.write", 1),
    ("treebank", "truesource.run.treebank.stage.write_json", 1),
    ("grammar", "truesource.grammar.estimate.split_merge.train.save", 2),
    ("grammar", "truesource.grammar.pcfg.PCFG.save", 1),
    ("corpus", "truesource.generator.shard_writer.ShardSampler.write", 3),
    ("corpus", "truesource.generator.corpus_builder.settle", 1),
    ("train:c", "truesource.lmtrain.training_run.make_tokenizer", 1),
    ("train:c", "truesource.lmtrain.trainer.LossTrainer.compute_loss", 7),
    ("train:c", "truesource.lmtrain.trainer.LossTrainer.compute_loss", 12),
    ("train:c", "truesource.lmtrain.network_training.folder_card", 1),
    ("score:oracle", "truesource.run.scores.stage.write_token_table", 2),
    ("score:c", "truesource.run.scores.stage.write_token_table", 1),
    ("report", "truesource.run.report_stage.write_page", 1),
]


@pytest.mark.parametrize(("stage", "where", "call"), WHERE, ids=[f"{w[1].rpartition('.')[2]}-{w[2]}" for w in WHERE])
def test_ctrl_c_anywhere_and_the_same_command_goes_on(
    stage: str, where: str, call: int, finished: Path, copy: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from importlib import import_module

    folder = copy / "runs" / "toy"
    unfinished = {"treebank": ["*"], "grammar": ["grammar"], "corpus": ["corpus"], "train:c": ["models"]}
    for pattern in unfinished.get(stage, []):
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    state_file = folder / "stages.json"
    if state_file.is_file():
        state = json.loads(state_file.read_text(encoding="utf-8"))
        done = STAGES[: STAGES.index(stage)]
        state["stages"] = {name: entry for name, entry in state["stages"].items() if name in done}
        state_file.write_text(json.dumps(state), encoding="utf-8")

    owner, _, name = where.rpartition(".")
    try:
        target: Any = import_module(owner)
    except ModuleNotFoundError:
        module, _, cls = owner.rpartition(".")
        target = getattr(import_module(module), cls)
    monkeypatch.chdir(copy)
    monkeypatch.setattr(sys, "argv", ["truesource", "run", "toy.yaml"])
    with monkeypatch.context() as patch:
        patch.setattr(target, name, interrupting(getattr(target, name), call))
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 130
    err = capsys.readouterr().err
    assert err.endswith("truesource: stopped; finished work is kept, run the same command again to resume\n")
    assert "Traceback" not in err
    assert stage not in json.loads(state_file.read_text(encoding="utf-8"))["stages"]

    stages = run(copy)
    assert stages[0] == stage
    assert results(copy) == results(finished)
    assert traces(copy) == []


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="Ctrl-C", marks=pytest.mark.slow),  # above, in this process, at more places
        pytest.param(signal.SIGTERM, id="SIGTERM"),
        pytest.param(signal.SIGKILL, id="kill -9"),
    ],
)
def test_a_process_stopped_in_training_goes_on(number: signal.Signals, finished: Path, copy: Path) -> None:
    folder = copy / "runs" / "toy"
    shutil.rmtree(folder / "models")
    metrics = "runs/toy/models/c.partial/metrics.jsonl"
    code, err = stopped_in_training(number, metrics, copy, "run", "toy.yaml", said="train c: ")
    assert code == (-number if number == signal.SIGKILL else 128 + number), err
    assert "Traceback" not in err
    if number != signal.SIGKILL:
        assert "train c: stopped, " in err and "train c: done, " not in err
        assert "truesource: stopped; finished work is kept" in err
        assert list((folder / "models" / "c.partial" / "checkpoints").glob("checkpoint-*"))
    assert run(copy)[0] == "train:c"
    assert results(copy) == results(finished)
    assert traces(copy) == []


def test_a_run_warns_of_markers_of_another_convention(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "swb.mrg").write_text("( (S (NP (PRP he)) (VP (VBZ walks)) (-DFL- E_S)))\n" * 3, encoding="utf-8")
    (tmp_path / "run.yaml").write_text("name: toy\ntreebank: {files: swb.mrg, held_out: 0}\n", encoding="utf-8")
    for convention, warned in (("penn", True), ("switchboard", False)):
        override = f"treebank.normalise.convention={convention}"
        config = load_config(tmp_path / "run.yaml", [override])
        (tmp_path / convention / "treebank").mkdir(parents=True)
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="truesource"):
            treebank.make(RunFolder(config, tmp_path / convention, tmp_path))
        said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert bool(said) == warned
        assert all("(E_S 3" in line and "treebank.normalise.convention to switchboard" in line for line in said)
        messages = [record.getMessage() for record in caplog.records]
        assert any(f"convention {convention}: dropped {'no word' if warned else '3 words'}" in m for m in messages)
