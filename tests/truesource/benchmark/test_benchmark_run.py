"""Benchmarks in parts, by several jobs, after kills, from files: always the same results."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import dask
import pytest
from command_line import Command
from dask_cluster import SAFETY, dask_cluster
from distributed import Client
from saved_models import save_piece_model
from tiny_benchmark import measure, mini_suite

from truesource.cli.benchmark import ABOVE
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.generator.columns import CodedSentences
from truesource.generator.corpus import Corpus
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import round_floats
from truesource.grammar.support.parallel import Share
from truesource.grammar.truth import load_truth
from truesource.lmtrain.models import load_model
from truesource.studies.benchmark.baselines import joined, read_for
from truesource.studies.benchmark.cells import SuiteCell, planned_cells
from truesource.studies.benchmark.checking import check_cell
from truesource.studies.benchmark.results import BenchmarkResults, read_results, write_results
from truesource.studies.benchmark.suite import candidates

MODELS = ["oracle", "bigram", "small"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benchmark")


@pytest.fixture(scope="module")
def whole(folder: Path) -> BenchmarkResults:
    outcome = measure(mini_suite(folder), folder / "whole", MODELS)
    assert not outcome.failures
    assert not outcome.missing
    write_results(folder / "results.json", outcome.results)
    return outcome.results


def planned(folder: Path) -> list[SuiteCell]:
    """The cells of `MODELS`."""
    suite = mini_suite(folder)
    return planned_cells(suite, candidates(suite, MODELS, [], None), list(suite.languages), suite.training.seeds)


@pytest.mark.long
def test_a_network_has_a_cell_for_each_seed_and_the_others_one(whole: BenchmarkResults) -> None:
    seeds = {
        (model["name"], model["objective"]): sorted({cell["seed"] for cell in model["cells"]})
        for model in whole["models"]
    }
    assert seeds == {
        ("oracle", "causal"): [1],
        ("oracle", "masked"): [1],
        ("bigram", "causal"): [1],
        ("small", "causal"): [1, 2],
    }
    small = whole["models"][-1]
    assert [cell["test"]["kl"] for cell in small["cells"][:1]] != [cell["test"]["kl"] for cell in small["cells"][1:2]]
    assert set(small["parameters"]) == {"brackets", "chain"}


@pytest.mark.long
def test_two_shards_make_what_one_job_makes(folder: Path, whole: BenchmarkResults) -> None:
    suite = mini_suite(folder)
    first = measure(suite, folder / "shared", MODELS, share=Share(0, 2))
    assert len(first.missing) > 0
    second = measure(suite, folder / "shared", MODELS, share=Share(1, 2))
    assert not second.missing
    assert second.results == whole


@pytest.mark.long
def test_two_processes_make_what_one_makes(folder: Path) -> None:
    one, two = (measure(mini_suite(folder), folder / f"by-{n}", ["oracle", "bigram"], workers=n) for n in (1, 2))
    assert not one.missing
    assert one.results == two.results


@pytest.mark.slow  # each process imports torch
def test_two_processes_train_what_one_trains(folder: Path, whole: BenchmarkResults) -> None:
    assert measure(mini_suite(folder), folder / "two", MODELS, workers=2).results == whole


@pytest.mark.slow
def test_a_dask_cluster_makes_the_bytes_of_one_process(
    folder: Path, whole: BenchmarkResults, tmp_path: Path, command: Command
) -> None:
    models = [part for name in MODELS for part in ("--model", name)]
    call = ["benchmark", "--suite", str(folder / "mini.yaml"), *models, "-o", str(folder / "cluster")]
    with dask.config.set({"distributed.comm.timeouts.connect": f"{SAFETY:.0f}s"}), dask_cluster(tmp_path) as scheduler:
        done = command(*call, "--scheduler", str(scheduler))
        with Client(scheduler_file=str(scheduler)) as client:
            loaded = client.run(lambda: "truesource.studies.benchmark.cells" in sys.modules)
    assert done.code == 0, done.err
    assert all(loaded.values())  # both workers have made cells
    assert (folder / "cluster" / "results.json").read_bytes() == (folder / "results.json").read_bytes()


@pytest.mark.long
def test_what_kills_have_left_is_removed_when_the_cell_is_made_again(folder: Path, whole: BenchmarkResults) -> None:
    """A model that counts is measured on parts of its text, each in a folder for that time."""
    copy = folder / "killed"
    shutil.copytree(folder / "whole", copy)
    lost = next((copy / "cells").glob("brackets-bigram-*.json"))
    lost.unlink()
    model = copy / "models" / lost.stem
    leftover_of(model, "model/config.json")
    leftover_of(lost)
    used_up = copy / "models" / f"{lost.stem}.partial"
    used_up.mkdir()
    shutil.copy(model / "training.json", used_up / "request.json")
    again = measure(mini_suite(folder), copy, MODELS)
    assert again.results == whole
    assert sorted(path.name for path in copy.rglob("*")) == sorted(path.name for path in (folder / "whole").rglob("*"))


def leftover_of(target: Path, *files: str) -> None:
    """What a kill leaves of writing a file, or a folder with files."""
    leftover = target.with_name(f".{target.name}.123-0123abcd.partial")
    for file in files:
        (leftover / file).parent.mkdir(parents=True)
        (leftover / file).write_text("{}")
    if not files:
        leftover.write_text("{}")


@pytest.mark.long
def test_the_parts_of_a_text_are_counted_in_folders_that_a_later_call_removes(
    folder: Path, whole: BenchmarkResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill leaves the folder of the moment."""
    copy = folder / "stopped"
    shutil.copytree(folder / "whole", copy)
    lost = next((copy / "cells").glob("brackets-bigram-*.json"))
    lost.unlink()
    with monkeypatch.context() as patch:
        patch.setattr("truesource.grammar.support.atomic_files._remove", lambda _: None)
        measure(mini_suite(folder), copy, MODELS)
    assert [path for path in (copy / "models").iterdir() if path.name.startswith(".")]
    lost.unlink()
    measure(mini_suite(folder), copy, MODELS)
    assert not [path for path in copy.rglob("*") if path.name.startswith(".")]


@pytest.mark.long
def test_what_is_missing_is_made_again_and_no_more(folder: Path, whole: BenchmarkResults) -> None:
    copy = folder / "copy"
    shutil.copytree(folder / "whole", copy)
    lost = next((copy / "cells").glob("chain-small-seed2-*.json"))
    lost.unlink()
    times = {path: path.stat().st_mtime_ns for path in (copy / "cells").iterdir()}
    assert measure(mini_suite(folder), copy, MODELS).results == whole
    assert lost.is_file()
    assert {path: path.stat().st_mtime_ns for path in times} == times


@pytest.mark.long
def test_a_truth_that_was_deleted_is_made_again_and_no_cell(folder: Path, whole: BenchmarkResults) -> None:
    copy = folder / "no-truths"
    shutil.copytree(folder / "whole", copy)
    before = {path: path.read_bytes() for path in (copy / "truths").iterdir()}
    times = {path: path.stat().st_mtime_ns for path in (copy / "cells").iterdir()}
    assert len(before) == 4
    for path in before:
        path.unlink()
    outcome = measure(mini_suite(folder), copy, MODELS)
    assert not outcome.missing
    assert outcome.results == whole
    assert {path: path.read_bytes() for path in (copy / "truths").iterdir()} == before
    assert {path: path.stat().st_mtime_ns for path in times} == times


@pytest.mark.long
def test_a_shard_gives_no_cell_whose_truth_another_has_to_make(folder: Path, whole: BenchmarkResults) -> None:
    copy = folder / "no-truth"
    shutil.copytree(folder / "whole", copy)
    (copy / "truths" / "chain-masked.json").unlink()
    number = [(cell.language, cell.objective) for cell in planned(folder)].index(("chain", "masked"))
    outcome = measure(mini_suite(folder), copy, MODELS, share=Share((number + 1) % 2, 2))
    assert [(cell.language, cell.objective) for cell in outcome.missing] == [("chain", "masked")]
    write_results(folder / "shard.json", outcome.results)
    read_results(folder / "shard.json")


@pytest.mark.long
def test_the_words_of_a_language_are_counted_once(
    folder: Path, whole: BenchmarkResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in the record of the truth, so that results are collected without reading the corpus."""
    copy = folder / "counted"
    shutil.copytree(folder / "whole", copy)
    for path in (copy / "truths").iterdir():
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record["words"] == whole["languages"][path.name.split("-")[0]]["words"]
    monkeypatch.setattr(Corpus, "coded", None)  # nothing is read any more
    assert measure(mini_suite(folder), copy, MODELS).results == whole


@pytest.mark.long
def test_a_cell_reads_the_train_split_once(
    folder: Path, whole: BenchmarkResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = []

    def coded(self: Corpus, split: str) -> CodedSentences:
        splits.append(split)
        return read(self, split)

    read = Corpus.coded
    shutil.copytree(folder / "whole" / "corpora", folder / "once" / "corpora")
    shutil.copy(folder / "whole" / "suite.json", folder / "once")
    monkeypatch.setattr(Corpus, "coded", coded)
    outcome = measure(mini_suite(folder), folder / "once", ["small"], languages=["chain"], seeds=[1])
    assert [model["name"] for model in outcome.results["models"]] == ["small"]
    assert sorted(splits) == ["dev", "train"]


@pytest.mark.long
def test_a_folder_of_another_suite_is_refused(folder: Path, whole: BenchmarkResults) -> None:
    suite = mini_suite(folder)
    other = suite.model_copy(update={"seed": 9})
    with pytest.raises(InputError) as refused:
        measure(other, folder / "whole", ["bigram"])
    assert refused.value.code == "other-suite"
    with pytest.raises(InputError) as refused:
        read_for(other, folder / "results.json")
    assert refused.value.code == "other-suite"


def test_a_folder_of_something_else_is_refused(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(InputError):
        measure(mini_suite(folder), folder / "mine", ["bigram"])
    assert [path.name for path in (folder / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.long
def test_a_model_that_is_too_large_fails_and_the_others_go_on(folder: Path) -> None:
    suite = mini_suite(folder)
    narrow = suite.model_copy(update={"training": suite.training.model_copy(update={"parameters": 100})})
    outcome = measure(narrow, folder / "narrow", ["small", "bigram"], languages=["chain"], seeds=[1])
    assert [cell.candidate.name for cell in (failure.task for failure in outcome.failures)] == ["small"]
    assert [model["name"] for model in outcome.results["models"]] == ["bigram"]


def test_unknown_languages_and_seeds_are_refused(folder: Path) -> None:
    for asked, code in (({"languages": ["klingon"]}, "unknown-language"), ({"seeds": [7]}, "unknown-seed")):
        with pytest.raises(InputError) as refused:
            measure(mini_suite(folder), folder / "none", ["bigram"], **asked)  # type: ignore[arg-type]
        assert refused.value.code == code


def test_cells_of_other_settings_have_other_names(folder: Path) -> None:
    suite = mini_suite(folder)
    ids = {
        cell.id
        for overrides in ([], ["model.dim=16"], ["training.learning_rate=0.1"])
        for cell in planned_cells(suite, candidates(suite, ["small"], overrides, "same"), ["chain"], [1, 2])
    }
    assert len(ids) == 6


# -- files of results --------------------------------------------------------------------------------


@pytest.mark.long
def test_results_are_read_as_they_were_written(folder: Path, whole: BenchmarkResults) -> None:
    found = json.loads(json.dumps(read_results(folder / "results.json")))
    assert found == round_floats(json.loads(json.dumps(whole)))
    lines = (folder / "results.json").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 40  # a cell is a line


@pytest.mark.long
def test_results_join_and_names_stay_apart(folder: Path, whole: BenchmarkResults) -> None:
    found = joined(whole, [("yours", whole), ("yours", whole)])
    names = [model["name"] for model in found["models"] if model["objective"] == "causal"]
    assert names == [
        *("oracle", "bigram", "small"),
        *("oracle (yours)", "bigram (yours)", "small (yours)"),
        *("oracle (yours 2)", "bigram (yours 2)", "small (yours 2)"),
    ]


@pytest.mark.long
def test_results_of_other_truths_do_not_join(whole: BenchmarkResults) -> None:
    other: Any = json.loads(json.dumps(whole))
    other["languages"]["chain"]["truth"]["causal"]["test"]["information"][0] *= 1.001
    with pytest.raises(InputError) as refused:
        joined(whole, [("other", other)])
    assert refused.value.code == "other-truth"


@pytest.mark.long
@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.update(format="other"),
        lambda d: d["models"][0]["cells"][0].update(language="klingon"),
        lambda d: d["models"][0]["cells"][0]["test"]["kl"].pop(),
        lambda d: d["models"][0]["cells"][0]["test"].update(kl=[-1.0] * 10),
        lambda d: d["models"][0]["cells"][0]["test"].update(wrong=2.0),
        lambda d: d["models"][0].update(objective="other"),
        lambda d: d.pop("suite"),
    ],
)
def test_damaged_results_are_refused(folder: Path, whole: BenchmarkResults, damage: Any) -> None:
    values = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    damage(values)
    path = folder / "damaged.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(InputError):
        read_results(path)


# -- checking ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_cell_computed_again_is_the_same(folder: Path, whole: BenchmarkResults) -> None:
    found = check_cell(mini_suite(folder), whole, "chain/small/2")
    assert (found.model, found.language, found.seed) == ("small", "chain", 2)
    assert found.exact
    assert found.agrees
    assert found.difference == 0.0


@pytest.mark.long
def test_numbers_that_were_changed_are_found(folder: Path, whole: BenchmarkResults) -> None:
    changed: Any = json.loads(json.dumps(whole))
    model = next(each for each in changed["models"] if each["name"] == "small")
    for cell in model["cells"]:
        cell["test"]["kl"] = [0.1 * value for value in cell["test"]["kl"]]
    found = check_cell(mini_suite(folder), changed, None)
    assert not found.exact
    assert not found.agrees


@pytest.mark.long
@pytest.mark.parametrize("cell", ["chain/small/9", "chain", "klingon/small/1"])
def test_a_cell_that_is_not_there_is_refused(folder: Path, whole: BenchmarkResults, cell: str) -> None:
    with pytest.raises(InputError) as refused:
        check_cell(mini_suite(folder), whole, cell)
    assert refused.value.code == "no-cell"


# -- models that were trained elsewhere ---------------------------------------------------------------------


def trained(folder: Path, language: str) -> Path:
    """The model ``small`` of the first seed that `whole` trained on a language."""
    return next((folder / "whole" / "models").glob(f"{language}-small-seed1-*"))


@pytest.mark.long
def test_a_model_that_was_trained_elsewhere_has_the_numbers_of_one_trained_here(
    folder: Path, whole: BenchmarkResults
) -> None:
    given = folder / "given"
    for language in ("brackets", "chain"):
        shutil.copytree(trained(folder, language), given / language)
    results = measure(mini_suite(folder), folder / "elsewhere", [f"mine={given}"]).results
    (mine,) = results["models"]
    (small,) = (model for model in whole["models"] if model["name"] == "small")
    first = [cell for cell in small["cells"] if cell["seed"] == 1]
    for name in ("language", "test", "longer", "calibration"):
        assert [cell[name] for cell in mine["cells"]] == [cell[name] for cell in first]  # type: ignore[literal-required]
    with pytest.raises(InputError, match="trained elsewhere") as caught:
        check_cell(mini_suite(folder), results, "chain/mine/1")
    assert caught.value.code == "trained"


@pytest.mark.long
def test_a_model_of_pieces_is_measured_in_words(folder: Path, whole: BenchmarkResults) -> None:
    """Its cell has the divergences per word that `compare_distributions` has, and the contexts of models of words."""
    text = Corpus.load(folder / "whole" / "corpora" / "brackets").sentences("train")
    given = folder / "pieces"
    save_piece_model(given / "brackets", text, "bpe", 12)
    results = measure(mini_suite(folder), folder / "of-pieces", [f"mine={given}"], languages=["brackets"]).results
    ((cell,),) = [model["cells"] for model in results["models"] if model["name"] == "mine"]
    corpus = Corpus.load(folder / "of-pieces" / "corpora" / "brackets")
    setting = Setting(load_truth("dyck:k=2,depth=2"), corpus.sentences("test"), lengths=corpus.lengths)
    model = load_model(given / "brackets", device="cpu")
    compared = compare_distributions(model, setting)
    assert sum(cell["test"]["kl"]) == pytest.approx(compared.scores["kl"].value * compared.contexts, rel=1e-6)
    assert cell["longer"] is not None
    assert 0.0 < cell["test"]["wrong"] < 1.0


def test_a_masked_model_of_pieces_is_refused(
    folder: Path, whole: BenchmarkResults, caplog: pytest.LogCaptureFixture
) -> None:
    """A cell is per word, and divergences of masked pieces do not add up to words."""
    text = Corpus.load(folder / "whole" / "corpora" / "brackets").sentences("train")
    given = folder / "masked-pieces"
    save_piece_model(given / "brackets", text, "bpe", 12, architecture="bert")
    outcome = measure(mini_suite(folder), folder / "of-masked", [f"mine={given}"], languages=["brackets"])
    assert "mine" not in {model["name"] for model in outcome.results["models"]}
    assert "failed: brackets cannot be compared per word: divergences of pieces add up" in caplog.text


@pytest.mark.long
def test_the_command_samples_corpora_measures_and_fails_above_a_threshold(
    folder: Path, whole: BenchmarkResults, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = ["benchmark", "--suite", folder / "mini.yaml", "--languages", "chain", "-o", "out"]
    assert command(*suite, "--corpora").code == 0
    there = Corpus.load("out/corpora/chain").sentences("train")
    assert there == Corpus.load(folder / "whole" / "corpora" / "chain").sentences("train")
    model = ["--model", f"mine={trained(folder, 'chain')}"]
    assert command(*suite, *model, "--fail-above", "1000").code == 0
    above = command(*suite, *model, "--fail-above", "1.000001", "--json", "out.json", "--force")
    assert above.code == ABOVE and "mine on chain" in above.err
    assert {row["model"] for row in json.loads(Path("out.json").read_text())["standings"]} >= {"mine"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("language", "model", "more", "code"),
    [
        ("chain", "brackets", [], 2),  # another language
        ("brackets,chain", "chain", [], 2),  # one model for two languages
        ("chain", "chain", ["--set", "model.dim=8"], 2),
        ("chain", None, [], 2),
    ],
)
def test_models_that_cannot_be_of_this_language_are_refused(
    folder: Path,
    whole: BenchmarkResults,
    tmp_path: Path,
    command: Command,
    language: str,
    model: str | None,
    more: list[str],
    code: int,
) -> None:
    path = tmp_path / "nowhere" if model is None else trained(folder, model)
    suite = ["benchmark", "--suite", folder / "mini.yaml", "--languages", language, "-o", tmp_path / "out"]
    found = command(*suite, "--model", f"mine={path}", *more)
    assert found.code == code and "mine" in found.err
    assert not list((tmp_path / "out").glob("cells/*.json"))
