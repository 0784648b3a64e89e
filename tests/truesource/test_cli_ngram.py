"""n-gram models from the command line and in a configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.run.experiment import execute, load_config
from truesource.run.models import ModelEntry

TOY = """
S -> NP VP 1.0
NP -> D N 0.7 | man 0.3
VP -> V NP 0.5 | walks 0.5
D -> the 0.6 | a 0.4
N -> dog 0.5 | cat 0.3 | park 0.2
V -> sees 1.0
"""


@pytest.fixture(scope="module")
def grammar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grammar") / "toy.npz"
    PCFG.from_text(TOY).save(path)
    return path


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_train_and_score(command: Command, grammar: Path, tmp_path: Path) -> None:
    text = write(tmp_path / "train.txt", *["the dog walks", "man walks", "a cat sees the dog"] * 4)
    held_out = write(tmp_path / "eval.txt", "the dog walks", "the cat walks", "a cat sees the dog walks", "man walks")
    done = command("train", text, "--model", "ngram", "-o", tmp_path / "kn")
    assert (done.code, done.out.splitlines()[-1].split(":")[0]) == (0, f"Wrote {tmp_path / 'kn'}")
    done = command("train", text, "--model", "ngram", "--preset", "paper", "-o", tmp_path / "mle")
    assert done.code == 0
    assert json.loads((tmp_path / "mle" / "config.json").read_text())["smoothing"] == "mle"
    for name, excluded in (("kn", 1), ("mle", 2)):  # the third sentence is none of the grammar
        done = command("score", tmp_path / name, held_out, "--oracle", grammar)
        assert done.code == 0, done.err
        assert f"{excluded} of 4 sentences have probability 0 and are excluded" in done.err
        assert "transformers" not in done.err
    nothing = write(tmp_path / "nothing.txt", "a dog walks")
    done = command("score", tmp_path / "mle", nothing, "--oracle", grammar)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "of 1 sentences, the oracle cannot make 0 and the model cannot make 1" in done.err


@pytest.mark.long
def test_both_sides_are_counted_apart_where_a_model_is_divided_by_word_frequencies(
    command: Command, grammar: Path, tmp_path: Path
) -> None:
    text = write(tmp_path / "train.txt", *["the dog walks", "man walks"] * 4)
    held_out = write(tmp_path / "eval.txt", "the dog walks", "the cat sees the dog", "walks zebra", "man walks")
    assert command("train", text, "--model", "ngram", "--preset", "paper", "-o", tmp_path / "mle").code == 0
    sides = "excluded: the oracle cannot make 1 and the model cannot make 2"
    for verb in (("score",), ("evaluate", "pplu")):
        done = command(*verb, tmp_path / "mle", held_out, "--oracle", grammar)
        assert (done.code, done.err) == (
            0,
            f"2 of 4 sentences have probability 0 and are {sides}; the grammar lacks the word 'zebra'\n",
        )
    done = command("evaluate", "pplu", tmp_path / "mle", held_out)
    assert done.err == "2 of 4 sentences have probability 0 and are excluded: the model cannot make 2\n"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_pieces_of_words(command: Command, grammar: Path, kind: str, tmp_path: Path) -> None:
    """Trained, scored, compared with the truth of their pieces, drawn from, and refused where words are wanted."""
    text = write(tmp_path / "train.txt", *["the dog walks", "man walks", "a cat sees the dog"] * 4)
    held_out = write(tmp_path / "eval.txt", "the dog walks", "the cat sees a park", "man walks")
    settings = ["--set", f"model.tokenizer={kind}", "--set", "model.vocab_size=40", "--set", "model.order=4"]
    done = command("train", text, "--model", "ngram", "--preset", "tiny", *settings, "-o", tmp_path / "m")
    assert (done.code, done.last.split(":")[0]) == (0, f"Wrote {tmp_path / 'm'}"), done.err
    assert json.loads((tmp_path / "m" / "config.json").read_text())["tokenizer"] == kind
    done = command("score", tmp_path / "m", held_out, "--oracle", grammar, "--json", tmp_path / "s.json")
    assert done.code == 0, done.err
    assert "reading:pieces/bow/bos=2/eos=3" in (tmp_path / "s.json").read_text()
    assert "1 of 3 sentences have probability 0 and are excluded" in done.err  # the p of park was not seen in training
    done = command("generate", tmp_path / "m", "-n", 20, "-o", tmp_path / "drawn")
    assert done.code == 0, done.err
    done = command("evaluate", "divergence", tmp_path / "m", held_out, "--oracle", grammar)
    assert done.code == 0, done.err
    assert "infinite in" in done.out  # it gives the p of park no probability
    done = command("evaluate", "control", tmp_path / "m", held_out, "--oracle", grammar)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "a language of pieces does not have" in done.err


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.epochs=2", "ngram takes no epochs"),
        ("model.layers=4", "ngram takes no layers"),
        ("model.order=0", "model.order"),
        ("model.smoothing=laplace", "model.smoothing"),
    ],
)
def test_settings_that_do_not_fit(command: Command, override: str, message: str, tmp_path: Path) -> None:
    text = write(tmp_path / "train.txt", "man walks")
    done = command("train", text, "--model", "ngram", "--set", override, "-o", tmp_path / "m")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert message in done.err
    assert not (tmp_path / "m").exists()


def test_an_entry_of_a_configuration() -> None:
    shape, training = ModelEntry(name="tri", model={"architecture": "ngram", "smoothing": "mle"}).resolve()
    assert (shape.label, shape.order, shape.smoothing, training) == ("tri", 3, "mle", None)


@pytest.mark.long
@pytest.mark.usefixtures("quick_report")
def test_a_run_with_ngrams(grammar: Path, tmp_path: Path) -> None:
    """The stages know both kinds of folder; a change of settings makes the model anew."""
    config = write(
        tmp_path / "toy.yaml",
        "name: toy",
        f"grammar: {{method: file, file: {grammar}}}",
        "corpus: {lengths: 1..9, splits: {train: 200, dev: 20, eval: 40}}",
        "models:",
        "  - {name: tri, model: {architecture: ngram}}",
        "  - {name: raw, model: {architecture: ngram, order: 2, smoothing: mle}}",
    )
    execute(load_config(config), base=tmp_path, runs=tmp_path / "runs")
    folder = tmp_path / "runs" / "toy"
    records = {r["model"]: r for r in json.loads((folder / "results.json").read_text())}
    assert records["tri"]["relative_ppl"] > 1.0
    assert records["tri"]["excluded"] == 0
    assert records["tri"]["parameters"] > records["raw"]["parameters"] > 0
    execute(load_config(config, ["corpus.splits.dev=20"]), base=tmp_path, runs=tmp_path / "runs")
    stages = json.loads((folder / "stages.json").read_text())["stages"]
    assert stages["train:tri"]["skipped"]
    assert stages["train:raw"]["skipped"]
    (folder / "models" / "tri" / "ngram.npz").unlink()
    execute(load_config(config), base=tmp_path, runs=tmp_path / "runs")
    stages = json.loads((folder / "stages.json").read_text())["stages"]
    assert [stages[f"train:{name}"]["skipped"] for name in ("tri", "raw")] == [False, True]
    assert (folder / "models" / "tri" / "ngram.npz").is_file()


@pytest.mark.long
def test_a_model_that_can_make_no_sentence_does_not_stop_a_run(tmp_path: Path) -> None:
    """Every word is one of thousands, so counts of three sentences allow none of the others."""
    words = " | ".join(f"w{i} {1 / 4096}" for i in range(4096))
    (tmp_path / "many.txt").write_text(f"S -> W W 1.0\nW -> {words}\n")
    config = write(
        tmp_path / "toy.yaml",
        "name: toy",
        "grammar: {method: file, file: many.txt}",
        "corpus: {lengths: 2..2, splits: {train: 3, eval: 4}}",
        "models:",
        "  - {name: smooth, model: {architecture: ngram, order: 2}}",
        "  - {name: raw, model: {architecture: ngram, order: 2, smoothing: mle}}",
        "evaluation: {pplu: true, divergence: {sentences: 4}}",
    )
    report = execute(load_config(config), base=tmp_path, runs=tmp_path / "runs")
    rows = {row["model"]: row for row in json.loads((report.parent / "results.json").read_text())}
    assert rows["smooth"]["relative_ppl"] > 1.0
    assert rows["raw"]["relative_ppl"] is None and rows["raw"]["excluded"] == 4
    assert (rows["raw"]["impossible_model"], rows["raw"]["impossible_oracle"]) == (4, 0)
    assert "raw has no perplexity: the model cannot make 4 of 4 sentences." in report.read_text()


def test_damaged_results_are_shown_or_refused(tmp_path: Path) -> None:
    """Whatever value of ``results.json`` is missing or null, the end of a run is a table or a sentence."""
    from truesource.cli.run import results_of, show_results

    measures = {"ppl": 2.0, "bound": 1.9, "relative_ppl": 1.05, "rho": 0.5, "r2_pearson": 0.4, "r2_identity": 0.3}
    counts = {"tokens": 9, "sentences": 3, "excluded": 4, "impossible_model": 1, "impossible_oracle": 3}
    row = {"model": "some", "objective": "causal", "signature": "x", **measures, **counts}

    def shown(changed: dict[str, Any]) -> bool:
        (tmp_path / "results.json").write_text(json.dumps([changed]))
        try:
            show_results(results_of(tmp_path / "report.html"))
        except InputError:
            return False
        return True

    assert shown(row)
    for key in row:
        missing = shown({name: value for name, value in row.items() if name != key})
        assert not missing
        assert shown({**row, key: None}) == (key in measures)


def test_a_table_says_what_a_model_cannot_make(capsys: pytest.CaptureFixture[str]) -> None:
    from truesource.cli.run import show_results

    measures = {"ppl": 2.0, "bound": 1.9, "relative_ppl": 1.05, "relative_ppl_low": 1.01, "relative_ppl_high": 1.1}
    row = {"model": "some", "objective": "causal", **measures, "rho": 0.5, "r2_pearson": 0.4, "tokens": 9}
    none = {"model": "none", "objective": "causal", "relative_ppl": None, "tokens": 0, "sentences": 0, "excluded": 7}
    none |= {"impossible_model": 7, "impossible_oracle": 0}
    sides = {"impossible_model": 1, "impossible_oracle": 3}
    foreign = {**row, "model": "foreign", "sentences": 3, "excluded": 4, "impossible_model": 0, "impossible_oracle": 4}
    show_results([{**row, "sentences": 3, "excluded": 4, **sides}, none, foreign])
    said = capsys.readouterr().out.replace("\n", " ")
    assert "some: the oracle cannot make 3 and the model cannot make 1 of 7 sentences; the numbers" in said
    assert "none has no perplexity: the model cannot make 7 of 7 sentences." in said
    assert "foreign: the oracle cannot make 4 of 7 sentences;" in said


def test_the_language_of_a_model_is_written_as_a_grammar(command: Command, tmp_path: Path) -> None:
    """The model is then at its bound: its relative perplexity is 1, but for the first words of Kneser-Ney."""
    text = write(tmp_path / "train.txt", *["the dog walks", "man walks", "a cat sees the dog"] * 4)
    for name, options in (("mle", ["--preset", "paper"]), ("kn", [])):
        assert command("train", text, "--model", "ngram", *options, "-o", tmp_path / name).code == 0
        done = command("convert", tmp_path / name, tmp_path / f"{name}.npz")
        assert done.code == 0, done.err
        assert ("Removed the empty sentence" in done.out) == (name == "kn")
        record = tmp_path / f"{name}.json"
        assert command("score", tmp_path / name, text, "--oracle", tmp_path / f"{name}.npz", "--json", record).code == 0
        relative = next(row["value"] for row in json.loads(record.read_text()) if row["name"] == "relative_ppl")
        if name == "mle":
            assert relative == pytest.approx(1.0, abs=1e-12)
        else:
            empty = PCFG.load(tmp_path / "kn.npz").meta["empty"]["mass"]
            assert relative == pytest.approx((1.0 - empty) ** (-3 / 13), rel=1e-10)  # 3 sentences, 13 tokens


def test_only_models_of_counts_are_written_as_grammars(command: Command, tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    write(tmp_path / "net" / "config.json", '{"model_type": "gpt2"}')
    done = command("convert", tmp_path / "net", tmp_path / "g.npz")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "only n-gram models can be written as grammars" in done.err
    done = command("convert", tmp_path / "net", tmp_path / "g.npz", "--start", "S")
    assert done.code == 2
    assert "--start applies to grammars only" in done.err
    assert not (tmp_path / "g.npz").exists()
