"""Naturalness and full distributions in a run: the stages, what they leave, and the sections of the report."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tiny_run import BANK, RunCopies, run

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.report import shared_tables
from truesource.grammar.support.errors import InputError
from truesource.run.experiment import build_report, load_config, plan

CONFIG = """\
name: toy
seed: 3
treebank: {files: bank.mrg, held_out: 0.4}
grammar: {split_merge: {cycles: 1, em_split: 2, em_merge: 1, em_smooth: 1}}
corpus: {lengths: 2..9, splits: {train: 120, dev: 20, eval: 40}}
models:
  - name: net
    preset: tiny
    model: {dim: 16, heads: 2, layers: 1}
    training: {max_steps: 4, eval_every: 4, batch_tokens: 64}
  - {name: masked, preset: tiny, model: {architecture: bert, dim: 16, heads: 2, layers: 1}, training: {max_steps: 2}}
  - {name: mle, model: {architecture: ngram, order: 3, smoothing: mle}}
  - {name: pieces, model: {architecture: ngram, order: 2, tokenizer: bpe, vocab_size: 40}}
evaluation: {divergence: {sentences: 30, top_k: 3}, naturalness: {sentences: 100}}
"""
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def finished(finished_run: RunCopies) -> Path:
    """A folder with a finished run; not to be changed."""

    def fill(folder: Path) -> None:
        (folder / "bank.mrg").write_text(8 * BANK, encoding="utf-8")
        (folder / "toy.yaml").write_text(CONFIG, encoding="utf-8")
        run(folder)

    return finished_run("divergence", fill)


def section(finished: Path, name: str) -> str:
    page = (finished / "runs" / "toy" / "report.html").read_text(encoding="utf-8")
    page = page[page.index(f'<section id="{name}">') :]
    return page[: page.index("</section>")]


def svgs(text: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)


def record(finished: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((finished / "runs" / "toy" / name).read_text(encoding="utf-8"))
    return found


def test_all_models_have_a_stage(finished: Path) -> None:
    names = [stage.name for stage in plan(load_config(finished / "toy.yaml"))]
    measured = [name for name in names if name.startswith("divergence")]
    assert measured == ["divergence:net", "divergence:masked", "divergence:mle", "divergence:pieces"]
    of_pieces = load_config(finished / "toy.yaml", ["models.1.model.tokenizer=bpe", "models.1.model.vocab_size=40"])
    assert not of_pieces.models[1].of_words
    assert "divergence:masked" in {stage.name for stage in plan(of_pieces)}
    bare = load_config(finished / "toy.yaml", ["evaluation={}"])
    assert not {"naturalness", "divergence:net"} & {stage.name for stage in plan(bare)}


def test_the_records_are_those_of_the_comparison(finished: Path) -> None:
    from truesource.evaluation.divergence import USUAL
    from truesource.evaluation.divergence.compare import compare_distributions
    from truesource.generator.corpus import Corpus
    from truesource.grammar.pcfg import PCFG
    from truesource.lmtrain.models import load_model

    folder = finished / "runs" / "toy"
    corpus = Corpus.load(folder / "corpus")
    again = compare_distributions(
        load_model(folder / "models" / "net"),
        Setting(
            PCFG.load(folder / "grammar" / "grammar.npz"), corpus.sentences("eval")[:30], lengths=corpus.lengths, seed=3
        ),
        top=3,
        by=USUAL,
    )
    found = record(finished, "divergence/net.json")
    assert found["contexts"] == again.contexts
    assert found["records"] == json.loads(json.dumps(again.records()))


def test_the_section_has_a_row_and_a_figure_a_model(finished: Path) -> None:
    text = section(finished, "divergence")
    figures = svgs(text)
    assert len(figures) == 4
    ids = [re.findall(r'\bid="([^"]+)"', figure) for figure in figures]
    assert len({i for part in ids for i in part}) == sum(len(set(part)) for part in ids)
    for figure in figures:
        ElementTree.fromstring(figure.replace("xlink:", ""))
    kl = next(r["value"] for r in record(finished, "divergence/net.json")["records"] if r["name"] == "kl")
    assert f"{kl:.4f}" in text
    assert "infinite in " in text  # of the counts without smoothing
    assert "By class of the next word" in text


def test_the_corpus_stands_beside_trees(finished: Path) -> None:
    found = record(finished, "naturalness/naturalness.json")
    assert list(found["sentences"]) == ["held-out trees", "trees learned from", "raw grammar", "corpus"]
    assert found["sentences"]["held-out trees"] == 13 and found["sentences"]["corpus"] == 100
    text = section(finished, "naturalness")
    assert len(svgs(text)) == 1
    mean = next(r["value"] for r in found["records"] if r["source"] == "corpus" and r["name"] == "mean_length")
    assert f"{mean:.4f}" in text


def test_the_section_has_the_tables_that_a_run_asks_for(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    run(copy, "evaluation.divergence.by=[ambiguity,probability]")
    text = section(copy, "divergence")
    assert "By ambiguity of the sentence" in text and "By true probability in the context" in text
    assert "By class of the next word" not in text and "The class of a word is the label" not in text
    assert text.count("mass of Q") == 4  # a column of each model


def test_words_and_pieces_share_only_tables_of_words(finished: Path) -> None:
    records = {name: record(finished, f"divergence/{name}.json") for name in ("net", "mle", "pieces")}
    other = {**records["pieces"], "model": "other"}
    (phrases,) = shared_tables("phrase", {**records, "other": other})
    assert (phrases.columns[1], phrases.note.partition(";")[0]) == ("words", "nats per word")
    words, pieces, others = shared_tables("position", {**records, "other": other})
    assert [column.partition("\n")[0] for column in words.columns[2:]] == ["net", "mle"]
    assert (pieces.title, others.title) == ("By position, pieces", "By position, other")
    assert words.note == "nats per token" and pieces.note.startswith("nats per token, and shares of contexts")


@pytest.mark.usefixtures("quick_report")
def test_classes_of_pieces_are_a_note(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    run(copy, "evaluation.divergence.by=[class]")
    state = json.loads((copy / "runs" / "toy" / "stages.json").read_text("utf-8"))["stages"]
    assert "by class is of whole words" in state["divergence:pieces"]["unmeasured"]["reason"]
    assert "unmeasured" not in state["divergence:net"]


@pytest.mark.usefixtures("quick_report")
def test_nothing_is_scored_again_for_a_new_section(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    made = run(copy, "evaluation.divergence.top_k=2")
    assert made == ["divergence:net", "divergence:masked", "divergence:mle", "divergence:pieces", "report"]


@pytest.mark.parametrize("name", ["divergence/net.json", "naturalness/naturalness.json"])
def test_damaged_files_are_refused(name: str, finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished / "runs" / "toy", tmp_path / "copy"))
    (copy / name).write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=rf"damaged.*; delete it and run the experiment again .*{name}"):
        build_report(copy)


@pytest.mark.usefixtures("quick_report")
def test_what_cannot_be_compared_is_refused(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy", ignore=shutil.ignore_patterns("runs")))
    with pytest.raises(InputError, match=r"evaluation\.naturalness needs held-out trees; set treebank\.held_out"):
        run(copy, "treebank.held_out=0", "models=[]")
    run(copy, "corpus.lengths=3..3", "models=[]")
    note = json.loads((copy / "runs" / "toy" / "stages.json").read_text("utf-8"))["stages"]["naturalness"]["unmeasured"]
    assert note["code"] == "too-few-sentences"
    assert "held-out trees of 3..3 words, but there are only 0; hold out more" in note["reason"]
    with pytest.raises(InputError, match=r"compares with held-out trees, so it needs a treebank"):
        load_config(copy / "toy.yaml", ["treebank=null", "grammar={method: file, file: toy.txt}"])


def test_a_corpus_whose_sentences_are_longer_than_the_figure_of_lengths_shows_has_a_report(tmp_path: Path) -> None:
    grammar = "{language: random-hierarchy, depth: 7, symbols: 2, productions: 2}"  # 128 words each
    text = f"name: toy\ngrammar: {grammar}\ncorpus: {{splits: {{train: 5, eval: 5}}}}\n"
    (tmp_path / "toy.yaml").write_text(text, encoding="utf-8")
    run(tmp_path)
    assert "Sentence lengths, sampled and exact" in section(tmp_path, "corpus")
