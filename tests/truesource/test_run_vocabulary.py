"""Runs and comparisons of models that know different words: scored and ranked in one vocabulary."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from tiny_run import prepare, run

from truesource.cli.run import results_of
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.core.vocabulary import ModelWords
from truesource.evaluation.show.words import vocabulary_note
from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.models import load_model
from truesource.lmtrain.training import train
from truesource.run.experiment import load_config, plan
from truesource.studies.compare.calls import compare
from truesource.studies.compare.scoring import require_seeds

pytestmark = pytest.mark.long

#: rare words say which frequent word follows; who reads them as <unk> cannot know it
GRAMMAR = """\
S -> P S 0.5 | P 0.5
P -> B 'x' 0.4 | C 'a' 0.6
B -> 'b' 0.5 | 'c' 0.5
C -> 'd' 0.5 | 'e' 0.5
"""
CONFIG = """\
name: toy
seed: 3
grammar: {method: file, file: toy.txt}
corpus: {lengths: 1..6, splits: {train: 300, eval: 60}}
models:
  - {name: coarse, preset: tiny, model: {architecture: ngram, min_count: 200}}
  - {name: fine, preset: tiny, model: {architecture: ngram, min_count: 1}}
evaluation: {divergence: {sentences: 20}, pplu: true}
"""
Row = dict[str, Any]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = prepare(tmp_path_factory.mktemp("vocabulary"), CONFIG, GRAMMAR)
    run(folder)
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, to be changed."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def rows(folder: Path) -> dict[str, Row]:
    results = results_of(folder / "runs/toy/report.html")
    return {row["model"]: dict(row) for row in results if row["objective"] == "causal"}


def text_of(page: Path) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page.read_text(encoding="utf-8").partition("<h1>")[2]).split())


def test_results_stay_those_of_own_vocabularies_and_the_comparison_is_in_one(finished: Path) -> None:
    own = {row["model"]: row for row in json.loads((finished / "runs/toy/results.json").read_text("utf-8"))}
    found = rows(finished)
    assert own["coarse"]["relative_ppl"] < own["fine"]["relative_ppl"]  # the coarser one looks better
    assert found["coarse"]["relative_ppl"] > found["fine"]["relative_ppl"]
    for model in ("coarse", "fine"):
        parts = parts_of(found[model]["signature"])
        assert (parts["compared"], parts["vocab"].partition("/")[0]) == ("common", "2")
        assert "compared" not in parts_of(own[model]["signature"])
        assert found[model]["parameters"] == own[model]["parameters"]
    assert found["oracle"]["relative_ppl"] == pytest.approx(1.0, abs=1e-12)
    assert found["oracle"]["bound"] == pytest.approx(found["fine"]["bound"], rel=1e-12)


def test_evaluators_follow_the_vocabulary(finished: Path) -> None:
    for name in ("divergence", "pplu"):
        for model in ("coarse", "fine"):
            records = json.loads((finished / f"runs/toy/{name}/{model}.json").read_text("utf-8"))["records"]
            assert {parts_of(record["signature"])["compared"] for record in records} == {"common"}


def test_the_page_ranks_in_one_vocabulary_and_shows_the_others_apart(finished: Path) -> None:
    text = text_of(finished / "runs/toy/report.html")
    assert "The best causal model, fine," in text
    assert "All predict the 2 words that every model and the truth know" in text
    own = text.partition("Each model in its own vocabulary")[2]
    assert own.index("coarse") < own.index("fine")  # as configured
    assert "Not a ranking" in own


def test_own_vocabularies_are_never_ranked(folder: Path) -> None:
    run(folder, "evaluation.vocabulary=own")
    text = text_of(folder / "runs/toy/report.html")
    assert "The best causal model" not in text and "so they are not ranked" in text
    assert {parts_of(row["signature"]).get("compared") for row in rows(folder).values()} == {None}
    assert not list((folder / "runs/toy/comparison").glob("*.parquet"))


def test_full_shares_unknown_words_out_by_the_training_text(folder: Path) -> None:
    made = run(folder, "evaluation.vocabulary=full")
    assert made[:3] == ["vocabulary", "compare:coarse", "compare:fine"]
    found = rows(folder)
    compared = {model: parts_of(found[model]["signature"])["compared"] for model in ("coarse", "fine")}
    assert compared == {"coarse": "full/training+1", "fine": "full"}
    assert found["coarse"]["relative_ppl"] > found["fine"]["relative_ppl"]


def test_a_finished_run_is_left_alone_and_what_is_gone_leaves_nothing(folder: Path) -> None:
    assert run(folder) == []
    (folder / "toy.yaml").write_text(CONFIG.replace("min_count: 200", "min_count: 1"), encoding="utf-8")
    run(folder)  # the same words
    assert not list((folder / "runs/toy/comparison").glob("*.parquet"))
    assert {parts_of(row["signature"]).get("compared") for row in rows(folder).values()} == {None}
    alone = CONFIG.replace("  - {name: coarse, preset: tiny, model: {architecture: ngram, min_count: 200}}\n", "")
    (folder / "toy.yaml").write_text(alone, encoding="utf-8")
    run(folder)
    assert "compared" not in parts_of(rows(folder)["fine"]["signature"])


def test_models_that_no_other_can_be_compared_with_have_no_stage(tmp_path: Path) -> None:
    two = CONFIG.replace(
        "{name: fine, preset: tiny, model: {architecture: ngram, min_count: 1}}",
        "{name: both, preset: tiny, model: {architecture: bert}, training: {max_steps: 2}}",
    )
    for config, wanted in ((CONFIG, ["coarse", "fine"]), (two, [])):
        (tmp_path / "c.yaml").write_text(config, encoding="utf-8")
        names = [stage.name for stage in plan(load_config(tmp_path / "c.yaml"))]
        assert [name.partition(":")[2] for name in names if name.startswith("compare:")] == wanted
        assert ("vocabulary" in names) == bool(wanted)


def test_runs_are_compared_as_they_were_scored(finished: Path, command: Command) -> None:
    done = command("compare", finished / "runs/toy", "--json", "-")
    records = [record for record in json.loads(done.out) if record["name"] == "kl" and record["model"] != "oracle"]
    assert {parts_of(record["signature"])["compared"] for record in records} == {"common"}
    refused = command("compare", finished / "runs/toy", "--vocabulary", "full")
    assert refused.code == 2 and "--vocabulary applies to models" in refused.err


def test_compare_takes_a_vocabulary(finished: Path, command: Command) -> None:
    models = [finished / f"runs/toy/models/{name}" for name in ("coarse", "fine")]
    text = (finished / "runs/toy/corpus", "--oracle", finished / "runs/toy/corpus/grammar.npz")
    found = {}
    for kind in ("common", "full", "own"):
        done = command("compare", *models, *text, "--vocabulary", kind, "--json", "-", "--exact-kl", "10")
        assert done.code == 0
        found[kind] = json.loads(done.out)
    usual = command("compare", *models, *text, "--json", "-", "--exact-kl", "10")
    assert json.loads(usual.out) == found["common"]
    for kind, records in found.items():
        kl = {r["model"]: r["value"] for r in records if r["name"] == "kl"}
        assert (kl["coarse"] < kl["fine"]) == (kind == "own")
        assert any(r["name"] == "kl_difference" for r in records) == (kind != "own")
        exact = [r for r in records if r["name"] == "exact_kl"]
        compared = {parts_of(r["signature"]).get("compared", "own").partition("/")[0] for r in exact}
        assert len(exact) == 2 and compared == {kind}


def test_knowing_fewer_words_never_looks_better(finished: Path, tmp_path: Path) -> None:
    """One trigram, four values of ``min_count``: the smaller the vocabulary, the further off, in one vocabulary."""
    corpus, truth = Corpus.load(finished / "runs/toy/corpus"), PCFG.load(finished / "toy.txt")
    models = {
        str(n): train(corpus, model_settings("ngram", min_count=n), None, tmp_path / str(n), seed=1)
        for n in (1, 120, 200, 250)
    }
    assert [len(model.vocabulary or ()) for model in models.values()] == [6, 4, 2, 1]
    kl = {}
    for kind in ("common", "full"):
        (found,) = compare(models, corpus.sentences("eval"), truth, lengths=corpus.lengths, vocabulary=kind).detail
        kl[kind] = [row.measures["kl"].value for row in found.rows]
        assert all(pair.contrast.value > -1e-3 for pair in found.differences)
    assert kl["common"][0] < kl["common"][2] < kl["common"][3] and kl["full"][0] < kl["full"][1] < kl["full"][2]


def test_models_of_one_name_answer_one_question(finished: Path, command: Command) -> None:
    """Seeds differ in nothing but chance, so models with other words or another objective are no seeds."""
    models = finished / "runs/toy/models"
    text = (finished / "runs/toy/corpus", "--oracle", finished / "runs/toy/corpus/grammar.npz")
    refused = command("compare", f"t={models / 'coarse'}", f"t={models / 'fine'}", "own.py:x", *text)
    assert refused.code == 2
    with pytest.raises(InputError, match="t is the name of models that know different words") as error:
        require_seeds({"t": [load_model(models / "coarse"), load_model(models / "fine")]}, PCFG.load(text[2]))
    assert error.value.code == "different-seeds"
    other = ModelWords("m", "masked", ("a",), has_distributions=True)
    with pytest.raises(InputError, match="t is the name of causal and masked models"):
        require_seeds({"t": [load_model(models / "fine"), other]}, PCFG.load(text[2]))


def test_pieces_have_no_common_vocabulary_which_is_said_before_anything_is_made(tmp_path: Path) -> None:
    pieces = CONFIG.replace("min_count: 200", "tokenizer: bpe, vocab_size: 20").replace(
        "pplu: true", "vocabulary: common"
    )
    (tmp_path / "c.yaml").write_text(pieces, encoding="utf-8")
    with pytest.raises(InputError, match="coarse predicts pieces of words; use full"):
        load_config(tmp_path / "c.yaml")


def test_notes_say_what_frames_and_splits_do_to_a_comparison() -> None:
    signed = "objective:causal|unk:{}|vocab:{}|compared:common|disjoint:{}|v:1"
    plain = vocabulary_note([signed.format("token", "2/ab/full-contexts", "9/ab")] * 2)
    skipped = vocabulary_note([signed.format("skip", "2/ab/full-contexts", "9/ab")] * 2)
    assert "looks better" in skipped and "looks better" not in plain
    assert "not exclude" not in plain
    assert "not exclude" in vocabulary_note([signed.format("token", "2/ab/full-contexts", "uncorrected")] * 2)
    own = "objective:causal|unk:skip|vocab:2/ab{}|v:1"
    assert "the truth, too, predicts every other as <unk> but reads every word." in vocabulary_note(
        [own.format("/full-contexts")]
    )
    assert "reads and predicts every other as <unk>." in vocabulary_note([own.format("")])
