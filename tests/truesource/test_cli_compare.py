"""`truesource compare`: models on a corpus, and models of runs, in one table."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import Command
from tiny_run import BANK, RunCopies, prepare, run

from truesource import PCFG, Corpus, LengthRange, ParallelText, compare_parallel
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.signature import parts_of
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.lmtrain.models import load_model
from truesource.run.model_scores import read_runs

GRAMMAR = "S -> 'a' S 0.3 | 'b' S 0.3 | 'a' 0.2 | 'c' 0.2\n"
NETWORK = "{name: net, preset: tiny, model: {dim: 8, heads: 1, layers: 1}, training: {max_steps: 4, batch_tokens: 64}}"
CONFIG = f"""\
name: toy
seed: 3
seeds: [3, 4, 5]
grammar: {{method: file, file: toy.txt}}
corpus: {{lengths: 1..6, splits: {{train: 60, eval: 30}}}}
models:
  - {NETWORK}
  - {{name: counts_2, preset: tiny, model: {{architecture: ngram, order: 2}}}}
evaluation: {{divergence: {{sentences: 12, by: []}}}}
"""
CODE = """
import numpy as np
from truesource.generator.language_model import assemble_scores

class Unigram:
    objective, vocabulary = "causal", None
    def __init__(self, name, words):
        self.name, self.words = name, words
    def score(self, sentences, frame):
        rows = [np.array([self.words.get(w, -np.inf) for w in [*s, "</s>"]]) for s in sentences]
        return assemble_scores(rows, [np.zeros(len(s), dtype=bool) for s in sentences], frame)

table = Unigram("table", {"a": -1.1, "b": -1.4, "c": -2.0, "</s>": -1.3})
no_b = Unigram("no_b", {"a": -1.0, "c": -2.0, "</s>": -1.2})
looks_ahead = Unigram("looks_ahead", {"a": -0.3, "b": -0.4, "c": -0.5, "</s>": -0.1})
looks_ahead.unchecked = True
only_b = Unigram("only_b", {"b": -1.0, "</s>": -1.2})

class Begins(Unigram):
    def score(self, sentences, frame):
        rows = [np.full(len(s) + 1, -1.5 if s[0] == self.words else -np.inf) for s in sentences]
        return assemble_scores(rows, [np.zeros(len(s), dtype=bool) for s in sentences], frame)

begins_a, begins_b = Begins("begins_a", "a"), Begins("begins_b", "b")

class Masked(Unigram):
    objective = "masked"
    def score(self, sentences, frame):
        rows = [np.full(len(s), -1.1) for s in sentences]
        return assemble_scores(rows, [np.zeros(len(s), dtype=bool) for s in sentences], frame)

masked = Masked("masked", {})
"""


@pytest.fixture(scope="module")
def home(finished_run: RunCopies) -> Path:
    """A run of three seeds of a network and one model of counts, and models in code."""
    folder = finished_run("compare", lambda folder: run(prepare(folder, CONFIG, GRAMMAR)))
    (folder / "own.py").write_text(CODE, encoding="utf-8")
    return folder


@pytest.fixture
def here(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, to be read only, and a folder to write to, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "toy").symlink_to(home / "runs" / "toy")
    (tmp_path / "toy.txt").write_text(GRAMMAR, encoding="utf-8")
    return tmp_path


NETS = tuple(f"toy/models/net-seed{seed}" for seed in (3, 4, 5))
ON = ("toy/corpus", "--oracle", "toy/grammar/grammar.npz")


def numbers(file: str = "out.json") -> dict[tuple[str, str], dict[str, Any]]:
    """The records of models, without those of single seeds; of differences those to the baseline, which come first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for record in json.loads(Path(file).read_text("utf-8")):
        if "seed_of" not in record:
            found.setdefault((record["model"], record["name"]), record)
    return found


@pytest.mark.long
def test_models_of_all_kinds_stand_in_one_table(here: Path, command: Command) -> None:
    found = command("compare", *NETS, "toy/models/counts_2", "own.py:table", *ON, "--json", "out.json")
    assert found.code == 0, found.err
    assert "own.py:table" in found.out and "counts_2" in found.out
    assert found.last == "Wrote out.json. Next: truesource cite"
    of = numbers()
    assert list(dict.fromkeys(model for model, _ in of)) == ["oracle", "net", "counts_2", "own.py:table"]
    assert {model: of[model, "kl"]["seeds"] for model in ("net", "counts_2")} == {"net": 3, "counts_2": 1}
    assert of["oracle", "kl"]["value"] == 0.0
    for model in ("counts_2", "own.py:table"):
        record = of[model, "kl_difference"]
        assert record["baseline"] == "net"
        assert record["value"] == pytest.approx(of[model, "kl"]["value"] - of["net", "kl"]["value"], abs=1e-12)
        assert record["p"] <= record["p_adjusted"] <= 3 * record["p"]  # three pairs of models


@pytest.mark.long
def test_a_model_has_the_numbers_that_score_gives_it(here: Path, command: Command) -> None:
    assert command("score", "toy/models/counts_2", *ON, "--json", "score.json").code == 0
    assert command("compare", "toy/models/counts_2", "own.py:table", *ON, "--json", "out.json").code == 0
    alone, of = numbers("score.json"), numbers()
    for name in ("ppl", "bound", "relative_ppl", "kl"):
        compared = of["counts_2", name]
        assert {key: compared[key] for key in alone["counts_2", name]} == alone["counts_2", name]


@pytest.mark.long
def test_the_first_sentences_are_the_same_for_score_bound_and_compare(here: Path, command: Command) -> None:
    few = ("--sentences", "12", "--json")
    assert command("score", "toy/models/counts_2", *ON, *few, "score.json").code == 0
    assert command("bound", "toy/grammar/grammar.npz", "toy/corpus", "--no-masked", *few, "bound.json").code == 0
    assert command("compare", "toy/models/counts_2", "own.py:table", *ON, *few, "out.json").code == 0
    alone, of = numbers("score.json"), numbers()
    kept = alone["counts_2", "bound"]
    assert kept["signature"] == of["counts_2", "bound"]["signature"]
    assert parts_of(kept["signature"])["sentences"] == "12"
    assert kept["value"] == of["counts_2", "bound"]["value"]
    (bound,) = json.loads(Path("bound.json").read_text("utf-8"))["summary"]
    assert bound["value"] == pytest.approx(kept["value"], abs=1e-12)
    assert command("score", "toy/models/counts_2", *ON, "--json", "all.json").code == 0
    assert numbers("all.json")["counts_2", "bound"]["value"] != kept["value"]
    refused = command("compare", "toy", *few, "no.json")
    assert refused.code == 2 and "--sentences applies to models" in refused.err


@pytest.mark.long
def test_a_model_below_the_truth_is_warned_of(here: Path, command: Command) -> None:
    below = "is significantly below the bound"
    for call in (("score",), ("compare", "own.py:table")):
        found = command(*call, "own.py:looks_ahead", *ON)
        said = " ".join(found.out.split())
        assert found.code == 0 and said.count(below) == 1 and "Warning: " in said and "looks_ahead (0." in said
        assert said.count("looks_ahead looks ahead was not checked") == 1
    assert below not in " ".join(command("score", "own.py:table", *ON).out.split())


def test_runs_are_compared_as_they_were_scored(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.lmtrain.models.load_model", None)  # no model is loaded
    found = command("compare", "toy", "--json", "out.json")
    assert found.code == 0, found.err
    of = numbers()
    rows = {row["model"]: row for row in json.loads(Path("toy/results.json").read_text("utf-8"))}
    for name in ("ppl", "bound", "relative_ppl"):
        *kept, signed = (of["counts_2", name][key] for key in ("value", "low", "high", "signature"))
        assert kept == [rows["counts_2"][key] for key in (name, f"{name}_low", f"{name}_high")]
        assert {**parts_of(signed), "unit": "nats/token"} == parts_of(rows["counts_2"]["signature"])
    kl = [np.log(rows[f"net-seed{seed}"]["relative_ppl"]) for seed in (3, 4, 5)]
    assert of["net", "kl"]["value"] == pytest.approx(np.mean(kl), abs=1e-9)
    assert of["net", "kl"]["sd"] == pytest.approx(np.std(kl, ddof=1), abs=1e-9)


@pytest.mark.long
def test_one_number_has_one_interval_in_run_score_bound_and_compare(here: Path, command: Command) -> None:
    """Value, ends and signature, of the run's seed and of another."""
    (row,) = (row for row in json.loads(Path("toy/results.json").read_text("utf-8")) if row["model"] == "counts_2")
    page = Path("toy/report.html").read_text("utf-8")
    found = {}
    for seed in (3, 8):
        at = ("--seed", seed, "--json")
        assert command("score", "toy/models/counts_2", *ON, *at, f"score{seed}.json").code == 0
        assert command("compare", "toy", *at, f"run{seed}.json").code == 0
        assert command("compare", "toy/models/counts_2", "own.py:table", *ON, *at, f"models{seed}.json").code == 0
        assert (
            command("bound", "toy/grammar/grammar.npz", "toy/corpus", "--no-masked", *at, f"bound{seed}.json").code == 0
        )
        every = [numbers(f"{name}{seed}.json") for name in ("score", "run", "models")]
        for name in ("ppl", "bound", "relative_ppl"):
            kept = [[of["counts_2", name][key] for key in ("value", "low", "high", "signature")] for of in every]
            assert parts_of(kept[0][3])["unit"] == ("ratio" if name == "relative_ppl" else "perplexity")
            assert kept[0] == kept[1] == kept[2]
            assert f"|ci:sentence-bootstrap-t95/seed{seed}|" in kept[0][3]
            found[name, seed] = kept[0]
        (bound,) = json.loads(Path(f"bound{seed}.json").read_text("utf-8"))["summary"]
        assert [bound[key] for key in ("value", "low", "high")] == pytest.approx(found["bound", seed][:3], abs=1e-12)
        alone, beside = parts_of(bound["signature"]), parts_of(found["bound", seed][3])
        shared = alone.keys() & beside.keys()
        assert {"ci", "given", "eos", "sentences", "tokens", "data", "grammar", "v"} <= shared
        assert {key: alone[key] for key in shared} == {key: beside[key] for key in shared}
    for name in ("ppl", "bound", "relative_ppl"):
        value, low, high, signed = found[name, 3]
        assert [value, low, high] == [row[name], row[f"{name}_low"], row[f"{name}_high"]]
        assert {**parts_of(signed), "unit": "nats/token"} == parts_of(row["signature"])
        assert found[name, 3][1:3] != found[name, 8][1:3]
        assert found[name, 3][0] == found[name, 8][0]
    _, low, high, signed = found["relative_ppl", 3]
    assert f"{low:.3f} \N{EN DASH} {high:.3f}" in page or f"[{low:.3f}, {high:.3f}]" in page
    assert signed.replace("|unit:ratio|", "|unit:nats/token|") in page  # one signature for the measures of a row


@pytest.mark.long
def test_without_a_seed_the_default_is_in_the_signature(here: Path, command: Command) -> None:
    said = f"|ci:sentence-bootstrap-t95/seed{DEFAULT_SEED}|"
    assert said in command("score", "toy/models/counts_2", *ON).out
    assert said in command("score", "toy/models/counts_2", "toy/corpus").out
    assert said in command("bound", "toy/grammar/grammar.npz", "toy/corpus").out


@pytest.mark.long
@pytest.mark.parametrize("sentences", [1, 9, 10])
def test_few_sentences_have_no_interval_and_a_sentence_says_why(sentences: int, here: Path, command: Command) -> None:
    Path("few").write_text("".join(f"{line}\n" for line in (["b a", "a c", "a a", "a", "c"] * 2)[:sentences]), "utf-8")
    text = ("few", "--oracle", "toy/grammar/grammar.npz", "--json")
    calls = {
        "score.json": ("score", "toy/models/counts_2", *text),
        "alone.json": ("score", "toy/models/counts_2", "few", "--json"),
        "compare.json": ("compare", "toy/models/counts_2", "own.py:table", *text),
        "bound.json": ("bound", "toy/grammar/grammar.npz", "few", "--json"),
    }
    few = sentences < 10
    for file, call in calls.items():
        found = command(*call, file)
        assert found.code == 0, found.err
        said = " ".join((found.out + found.err).split())
        assert ("fewer than 10 sentences" in said or "takes 10 or more" in said) == few, said
        read = json.loads(Path(file).read_text("utf-8"))
        records = [r for r in (read["summary"] if file == "bound.json" else read) if not isinstance(r["value"], int)]
        assert records
        for record in records:
            if record["name"] in ("ppl", "relative_ppl", "causal_bound", "masked_bound", "kl_difference"):
                assert (record["low"] is None) == few
                assert record.get("no_interval") == ("fewer-than-10-sentences" if few else None)


@pytest.mark.long
def test_runs_and_models_give_the_same_differences(here: Path, command: Command) -> None:
    assert command("compare", "toy", "--baseline", "counts_2", "--json", "run.json").code == 0
    drawn_as_in_the_run = ("--seed", json.loads(Path("toy/config.json").read_text("utf-8"))["seed"])
    assert (
        command("compare", "toy/models/counts_2", *NETS, *ON, "--json", "models.json", *drawn_as_in_the_run).code == 0
    )
    first, second = (numbers(f"{name}.json")["net", "kl_difference"] for name in ("run", "models"))
    assert {**first, "signature": ""} == {**second, "signature": ""}


def test_a_run_has_the_numbers_of_its_report(here: Path, command: Command) -> None:
    assert command("compare", "toy", "--json", "out.json", "--force").code == 0
    printed, reported = (json.loads(Path(file).read_text("utf-8")) for file in ("out.json", "toy/comparison.json"))
    differences = [record for record in reported if record["name"] == "kl_difference"]
    assert differences
    assert [record for record in printed if record["name"] == "kl_difference"] == differences
    assert {record["model"] for record in printed if record not in reported} == {"oracle"}


@pytest.mark.long
def test_exact_divergences_stand_beside(here: Path, command: Command) -> None:
    kept = json.loads(Path("toy/divergence/net-seed4.json").read_text("utf-8"))["records"]
    (kl,) = (record["value"] for record in kept if record["name"] == "kl")
    for call in (("toy",), (*NETS, "own.py:table", *ON, "--exact-kl", 12)):
        found = command("compare", *call, "--json", "out.json", "--force")
        assert found.code == 0, found.err
        assert "exact KL" in found.out
        records = json.loads(Path("out.json").read_text("utf-8"))
        exact = {record["seed"]: record["value"] for record in records if record["name"] == "exact_kl"}
        assert exact[4] == pytest.approx(kl, abs=1e-9)
        assert {3, 4, 5} <= exact.keys()


def test_the_truth_is_computed_once_for_each_vocabulary(
    here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    score = Oracle.score
    monkeypatch.setattr(Oracle, "score", lambda self, *given: calls.append(self) or score(self, *given))
    assert command("compare", *NETS, "toy/models/counts_2", "own.py:table", "t=own.py:no_b", *ON).code == 0
    assert len(calls) == 2  # the words of trained models, and all words


@pytest.mark.long
def test_files_for_papers(here: Path, command: Command, caplog: pytest.LogCaptureFixture) -> None:
    call = ("compare", "counts_2=toy/models/counts_2", *NETS, *ON)
    found = command(*call, "--table", "t.csv", "--table", "t.tex", "--figure", "t.svg")
    assert found.code == 0, found.err
    assert found.last == "Wrote t.svg and t.csv and t.tex. Next: truesource cite"
    rows = list(csv.DictReader(Path("t.csv").read_text("utf-8").splitlines()))
    assert [row["model"] for row in rows] == ["oracle", "counts_2", "net"]
    assert float(rows[2]["kl_low"]) < float(rows[2]["kl"]) < float(rows[2]["kl_high"])
    assert rows[1]["difference_note"] == "baseline" and rows[0]["difference"] == rows[1]["difference"] == ""
    assert float(rows[2]["difference"]) == pytest.approx(float(rows[2]["kl"]) - float(rows[1]["kl"]), abs=1e-12)
    assert rows[2]["seeds"] == "3" and "kl_difference|" in rows[2]["signature"]
    latex = Path("t.tex").read_text("utf-8")
    assert r"\toprule" in latex and r"counts\_2 & " in latex and "\N{MINUS SIGN}" not in latex
    drawn = ElementTree.parse("t.svg").getroot()
    texts = "".join(drawn.itertext())
    assert "net (3 seeds)" in texts and "KL minus the KL of counts_2" in texts
    refused = command(*call, "--table", "t.csv")
    assert refused.code == 2 and "t.csv" in refused.err
    again = command(*call, "--table", "t.csv", "--table", "t.tex", "--force")
    assert again.code == 0
    assert Path("t.tex").read_text("utf-8") == latex


@pytest.mark.long
def test_each_objective_has_a_table_of_its_own(here: Path, command: Command) -> None:
    """One causal and one masked model: both beside the truth, and no difference between them."""
    files = ("--table", "t.csv", "--table", "t.tex", "--json", "out.json", "--figure", "t.svg")
    found = command("compare", "own.py:table", "own.py:masked", *ON, *files)
    assert found.code == 0, found.err
    records = json.loads(Path("out.json").read_text("utf-8"))
    named = [("oracle", "causal"), ("own.py:table", "causal"), ("oracle", "masked"), ("own.py:masked", "masked")]
    assert list(dict.fromkeys((record["model"], record["objective"]) for record in records)) == named
    assert {record["name"] for record in records} == {"ppl", "bound", "relative_ppl", "kl"}
    rows = list(csv.DictReader(Path("t.csv").read_text("utf-8").splitlines()))
    assert [(row["model"], parts_of(row["signature"])["objective"]) for row in rows] == named
    assert len({row["table"] for row in rows}) == 2
    latex = Path("t.tex").read_text("utf-8")
    assert latex.count(r"\begin{table}") == 2 and latex.index(r"\caption{Causal ") < latex.index(r"\caption{Masked ")
    assert "relative perplexity of masked models" in "".join(ElementTree.parse("t.svg").getroot().itertext())


def test_differences_are_taken_within_an_objective(here: Path, command: Command) -> None:
    models = ("own.py:table", "own.py:masked", "own.py:no_b")
    assert command("compare", *models, *ON, "--baseline", "own.py:no_b", "--json", "out.json").code == 0
    records = json.loads(Path("out.json").read_text("utf-8"))
    pairs = [(record["model"], record["baseline"]) for record in records if record["name"] == "kl_difference"]
    assert pairs == [("own.py:table", "own.py:no_b")]


@pytest.mark.long
def test_a_run_of_one_causal_and_one_masked_model_is_compared(home: Path, here: Path, command: Command) -> None:
    masked = NETWORK.replace("net", "bert").replace("{dim", "{architecture: bert, dim")
    run(home, f"models=[{NETWORK}, {masked}]", "seeds=null", "name=both", "evaluation={}")
    both = home / "runs" / "both"
    assert command("compare", both, "--json", "out.json").code == 0
    of = numbers()
    rows = {row["model"]: row for row in json.loads((both / "results.json").read_text("utf-8"))}
    for name, objective in (("net", "causal"), ("bert", "masked")):
        assert of[name, "relative_ppl"]["objective"] == objective
        assert of[name, "relative_ppl"]["value"] == rows[name]["relative_ppl"]
    run(home, "seeds=null", "name=alone", "evaluation={}")
    assert command("report", both, home / "runs" / "alone", "-o", "both.html").code == 0
    page = Path("both.html").read_text("utf-8")
    assert "Of the causal models, " in page
    assert "bert compares with no other masked model here: relative perplexity " in page
    assert "<caption>Causal models, " in page and "<caption>Masked models, " in page


def test_columns_are_chosen(here: Path, command: Command) -> None:
    found = command("compare", "toy", "--columns", "tokens,p,kl", "--table", "t.csv")
    assert found.code == 0, found.err
    head = Path("t.csv").read_text("utf-8").splitlines()[0]
    assert head == "table,model,tokens,p,kl,kl_low,kl_high,signature"


@pytest.mark.long
def test_seeds_of_two_runs_come_together_and_other_texts_stay_apart(home: Path, here: Path, command: Command) -> None:
    runs = home / "runs"
    if not (runs / "more").is_dir():
        run(home, "seeds=[6]", "name=more", "evaluation={}")
        run(home, "seeds=null", "name=other", "evaluation={}", "corpus.splits.eval=25")
    found = command("compare", runs / "toy", runs / "more", "--json", "out.json")
    assert found.code == 0, found.err
    of = numbers()
    assert of["net", "kl"]["seeds"] == 4
    assert ("toy/counts_2", "kl") in of and ("more/counts_2", "kl") in of  # one seed, trained twice
    assert of["more/counts_2", "kl"]["value"] == of["toy/counts_2", "kl"]["value"]
    found = command("compare", runs / "toy", runs / "other", "--json", "apart.json")
    assert found.code == 0, found.err
    assert "the causal models have different sentences, so they are compared in 2 groups" in found.err
    of = numbers("apart.json")
    pairs = {(record["model"], record["baseline"]) for (_, name), record in of.items() if name == "kl_difference"}
    assert pairs == {("toy/counts_2", "toy/net"), ("other/counts_2", "other/net")}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("own.py:table", *ON), "a comparison needs at least two models followed by the corpus, but got own.py:table"),
        ((*NETS, *ON), "but got net with several seeds; name another model"),
        ((*NETS, "own.py:table", *ON, "--baseline", "gru"), "the baseline 'gru' is not a model"),
        (("own.py:begins_a", "own.py:begins_b", *ON), "no sentence of 30 is possible for the oracle and all models"),
        (("own.py:table", "own.py:only_b", *ON), "own.py:only_b: no position is left to compare: of 30 sentences"),
        (("own.py:table", "own.py:table", *ON), "own.py:table is given twice"),
        (("oracle=own.py:table", "own.py:no_b", *ON), "oracle is the name of the truth"),
        (("own.py:table", "toy", *ON), "toy is the folder of a run; compare it with runs"),
        (
            ("own.py:table", "own.py:no_b"),
            "own.py:table is not the folder of a run; to compare models, name their corpus last",
        ),
        (("own.py:table", "own.py:no_b", "nowhere", *ON[1:]), "the last argument is the corpus or text"),
        (("own.py:table", "nothing", *ON), "there is no model 'nothing'"),
        (("toy", "toy"), "a run is repeated"),
        (("toy", "--split", "eval"), "--split applies to models"),
        (("toy", "--columns", "kl,speed"), "there is no column 'speed'; there are seeds, ppl"),
        (("toy", "--columns", "kl,kl"), "name each column once"),
    ],
)
def test_bad_calls_end_in_one_sentence(here: Path, command: Command, call: tuple[str, ...], said: str) -> None:
    found = command("-q", "compare", *call, "--table", "t.csv")
    assert found.code == 2
    assert said in " ".join(found.err.split())
    assert not Path("t.csv").exists()


@pytest.mark.parametrize("damage", ["unfinished", "scores of others", "no number", "no json"])
def test_damaged_runs_are_refused(home: Path, here: Path, command: Command, damage: str) -> None:
    folder = here / "copy"
    folder.mkdir()
    for name in ("results.json", "stages.json"):
        shutil.copy(home / "runs" / "toy" / name, folder)
    shutil.copytree(home / "runs" / "toy" / "scores", folder / "scores")
    if damage == "unfinished":
        (folder / "results.json").unlink()
    elif damage == "scores of others":
        shutil.copy(folder / "scores" / "net-seed3.parquet", folder / "scores" / "counts_2.parquet")
    elif damage == "no number":
        (folder / "scores" / "net-seed4.parquet").write_bytes(b"PAR1")
    else:
        (folder / "results.json").write_text("[{}]", encoding="utf-8")
    found = command("compare", "copy")
    assert found.code == 2
    assert len(found.err.strip().splitlines()) == 1 and "copy" in found.err and "again" in found.err


def test_real_text_has_no_truth_to_be_compared_with(here: Path, command: Command) -> None:
    (here / "bank.txt").write_text(BANK * 4, encoding="utf-8")
    assert command("split", "bank.txt", "-o", "real").code == 0
    models = ("own.py:table", "own.py:no_b", "real/held_out.txt")
    found = command("-q", "compare", *models, "--oracle", "toy.txt", "--exact-kl", 5, "--columns", "kl")
    assert found.code == 2
    assert "the true distribution of real text is not known, so --exact-kl and --columns" in " ".join(found.err.split())
    assert "NAME=MODEL" in command("compare", "a=own.py:table", "b=own.py:no_b", "a=own.py:no_c", models[-1]).err


def test_a_run_keeps_what_its_models_cannot_make(home: Path) -> None:
    (models,) = [read_runs([home / "runs" / "toy"]).models]
    assert [(model.name, len(model.seeds), [seed.seed for seed in model.seeds]) for model in models] == [
        ("net", 3, [3, 4, 5]),
        ("counts_2", 1, [None]),
    ]


@pytest.fixture
def variants(here: Path, command: Command) -> Path:
    """Corpora of the toy grammar and of its mirror image, sentence beside sentence."""
    call = ("sample", "toy.txt", "--variant", "mirror=all", "-n", "80", "--shares", "train=.5,eval=.5")
    assert command(*call, "--lengths", "1..6", "--seed", "2", "-o", "variants").code == 0
    return here / "variants"


@pytest.mark.long
def test_models_of_variants_are_compared_sentence_by_sentence_as_in_python(variants: Path, command: Command) -> None:
    models = ("original=own.py:table", "mirror-all=own.py:table", "mirror-all=own.py:no_b")
    found = command("compare", *models, variants, "--json", "out.json")
    assert found.code == 0, found.err
    assert "oracle of original" in found.out
    texts = {}
    for name, learned in (("original", ["own.py:table"]), ("mirror-all", ["own.py:table", "own.py:no_b"])):
        pcfg, sentences = PCFG.load(variants / name / "grammar.npz"), Corpus.load(variants / name).sentences("eval")
        texts[name] = ParallelText(language=pcfg, sentences=sentences, models=[load_model(text) for text in learned])
    alone = compare_parallel(texts, lengths=LengthRange(1, 6))
    records = [json.loads(Path("out.json").read_text("utf-8")), json.loads(json.dumps(alone.records()))]
    without_names_of_seeds = [[{**record, "seed_of": "seed_of" in record} for record in each] for each in records]
    assert without_names_of_seeds[0] == without_names_of_seeds[1]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("original=own.py:table", "mirror=own.py:table"), "not a corpus of variants; did you mean mirror-all"),
        (("own.py:table", "mirror-all=own.py:table"), "as in original=MODEL; the corpora are original and mirror-all"),
        (("original=own.py:table", "original=own.py:no_b"), "got original with several seeds"),
        (("original=own.py:table", "original=own.py:table"), "own.py:table is given twice"),
        (("original=own.py:table", "mirror-all=own.py:table", "--oracle", "toy.txt"), "remove --oracle"),
    ],
)
def test_bad_calls_on_variants(variants: Path, command: Command, call: tuple[str, ...], said: str) -> None:
    found = command("-q", "compare", *call[:2], "variants", *call[2:])
    assert found.code == 2
    assert said in " ".join(found.err.split())


def test_a_folder_of_variants_is_recognised_where_a_corpus_belongs(variants: Path, command: Command) -> None:
    found = command("-q", "score", "own.py:table", "variants", "--oracle", "toy.txt")
    assert found.code == 2
    assert "this is a folder of parallel corpora; its corpora are variants/mirror-all, variants/original" in found.err
