"""The library as a notebook uses it: a corpus that knows its truth, one class of result, short lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Command

import truesource as ts
from truesource.evaluation.pplu.evaluator import PpluSettings
from truesource.lmtrain.truth import ExactTargets

pytestmark = pytest.mark.usefixtures("one_thread")
GRAMMAR = ts.PCFG.from_text("S -> a S 0.4 | b S 0.2 | a 0.1 | b 0.3")
WORDS = ["a", "b"]


def trigrams(sentences: list[list[str]]) -> list[np.ndarray]:
    """The same distribution everywhere: a .4, b .3, <unk> .0, end .3."""
    row = np.log(np.array([0.4, 0.3, 1e-9, 0.3]))
    return [np.tile(row, (len(sentence) + 1, 1)) for sentence in sentences]


@pytest.fixture(scope="module")
def model() -> ts.FunctionModel:
    return ts.FunctionModel(vocabulary=WORDS, distributions=trigrams, name="flat")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> ts.Corpus:
    path = tmp_path_factory.mktemp("public") / "c"
    return ts.sample(GRAMMAR, 400, path, lengths="1..9", shares={"train": 0.5, "eval": 0.5})


def test_a_corpus_knows_its_truth(corpus: ts.Corpus, tmp_path: Path) -> None:
    assert corpus.truth == GRAMMAR and corpus.lengths == ts.LengthRange(1, 9)
    assert len(corpus) == 400 and "train" in corpus and list(corpus) == ["train", "eval"]
    assert corpus["eval"] == corpus.sentences("eval")
    other = ts.Corpus.sample(GRAMMAR, {"eval": 5}, path=tmp_path / "o", lengths=(1, 9))
    assert other.grammar_file is not None
    ts.PCFG.from_text("S -> a 0.5 | b 0.5").save(other.grammar_file, force=True)
    with pytest.raises(ts.InputError, match="not sampled from this grammar") as refused:
        _ = ts.Corpus.load(other.path).truth
    assert refused.value.code == "other-grammar"
    other.grammar_file.unlink()
    with pytest.raises(ts.InputError, match="has no grammar"):
        _ = ts.Corpus.load(other.path).truth


def test_a_few_sentences_are_one_split_that_measures_take() -> None:
    corpus = ts.sample(GRAMMAR, 20)
    assert list(corpus.splits) == ["eval"] and ts.bound(corpus)["causal_bound"].value > 1.0
    assert list(ts.sample(GRAMMAR, 100).splits) == ["train", "dev", "test", "eval"]


def test_a_corpus_in_memory_goes_with_its_object() -> None:
    corpus = ts.sample(GRAMMAR, 50, lengths=(1, 9), shares="train=1")
    folder = corpus.path
    assert folder.is_dir() and sum(corpus.splits.values()) == 50
    assert ts.sample(GRAMMAR, 50, lengths=(1, 9), shares="train=1").digest == corpus.digest
    del corpus
    assert not folder.parent.exists()


@pytest.mark.long
def test_compare_takes_what_the_corpus_knows(model: ts.FunctionModel, corpus: ts.Corpus) -> None:
    result = ts.compare(model, corpus)
    for given in (corpus.path, str(corpus.path), ts.Text.of(corpus, "eval"), ts.Setting.of(ts.Text.of(corpus, "eval"))):
        assert ts.compare(model, given).records() == result.records()
    explicit = ts.compare(model, corpus["eval"], GRAMMAR, lengths=(1, 9))
    assert explicit["kl"] == result["kl"]
    assert result["bound"].value == pytest.approx(ts.bound(corpus)["causal_bound"].value, rel=1e-12)
    alone = ts.compare(model, corpus, oracle=False)
    assert {"ppl", "tokens"} <= {each["name"] for each in alone.records()} and alone.kind == "score"
    assert ts.compare(model, corpus, sentences=50)["sentences"].value == 50
    assert ts.compare(model, corpus, lengths="none")["kl"] != result["kl"]


def test_the_kl_of_a_flat_model_is_that_by_hand(model: ts.FunctionModel, corpus: ts.Corpus) -> None:
    sentences, oracle = corpus["eval"], ts.Oracle(GRAMMAR, lengths=corpus.lengths)
    truth = oracle.score(sentences).log_prob.sum()
    words = sum(map(len, sentences))
    a = sum(sentence.count("a") for sentence in sentences)
    flat = a * math.log(0.4) + (words - a + len(sentences)) * math.log(0.3)
    kl = ts.compare(model, corpus)["kl"].value
    assert kl == pytest.approx((truth - flat) / (words + len(sentences)), rel=1e-10)


@pytest.mark.long
def test_every_result_has_the_same_methods(model: ts.FunctionModel, corpus: ts.Corpus, tmp_path: Path) -> None:
    results = {
        "compare": ts.compare(model, corpus),
        "two": ts.compare([model, ts.Oracle(GRAMMAR, lengths=corpus.lengths)], corpus),
        "divergence": ts.evaluate("divergence", model, corpus),
        "pplu": ts.evaluate("pplu", model, corpus, reduce=True),
        "bound": ts.bound(corpus),
        "infill": ts.infill(GRAMMAR, "a ___ b"),
    }
    for name, result in results.items():
        assert repr(result).startswith("Result(") and len(repr(result)) < 200 and "\n" not in repr(result)
        assert str(result.table()) in str(result) and result._repr_html_().count("<table") == len(result.tables)
        assert len(result.to_pandas()) == len(result.records()) > 0
        assert r"\begin{tabular}" in result.to_latex()
        result.save(tmp_path / f"{name}.json")
        again = ts.Result.load(tmp_path / f"{name}.json")
        assert (str(again), again.records(), again.kind) == (str(result), result.records(), result.kind)
        result.save(tmp_path / f"{name}.csv")
    for name in ("compare", "two", "pplu"):
        assert (
            results[name].figure(tmp_path / f"{name}.svg").startswith("<svg") and (tmp_path / f"{name}.svg").is_file()
        )
    with pytest.raises(ts.InputError) as refused:
        results["bound"].figure()
    assert refused.value.code == "no-figure"
    assert results["two"]["flat", "kl"].value == results["compare"]["kl"].value
    with pytest.raises(KeyError, match=r"kl is known of .*flat.*oracle"):
        _ = results["two"]["kl"]
    with pytest.raises(KeyError, match="there is no nothing"):
        _ = results["compare"]["nothing"]


@pytest.mark.long
def test_a_verb_and_its_call_give_the_same_records(
    corpus: ts.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    import json

    monkeypatch.chdir(tmp_path)
    trigram = ts.train(corpus, "ngram", None, "m")
    assert command("score", "m", corpus.path, "--json", "score.json").code == 0
    assert ts.compare("m", corpus).records() == json.loads(Path("score.json").read_text("utf-8"))
    assert command("evaluate", "pplu", "m", corpus.path, "--json", "pplu.json").code == 0
    assert ts.evaluate("pplu", trigram, corpus).records() == json.loads(Path("pplu.json").read_text("utf-8"))
    assert command("bound", corpus.path, "--json", "bound.json").code == 0
    assert ts.bound(corpus).records() == json.loads(Path("bound.json").read_text("utf-8"))["summary"]
    ts.train(corpus, ts.model_settings("ngram", order=2), None, "n")
    assert command("compare", "a=m", "b=n", corpus.path, "--json", "compare.json").code == 0
    both = ts.compare({"a": trigram, "b": "n"}, corpus).to_pandas()
    shown = json.loads(Path("compare.json").read_text("utf-8"))
    assert list(both["value"]) == [each["value"] for each in shown]
    assert command("score", "m", corpus.path, "--no-oracle", "--json", "alone.json").code == 0
    assert ts.compare("m", corpus, oracle=False).records() == json.loads(Path("alone.json").read_text("utf-8"))


@pytest.mark.long
def test_the_evaluators_of_other_inputs_are_calls_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    import json

    from agreement_grammar import agreement_grammar
    from saved_models import save_piece_model
    from toy_english import BANK

    monkeypatch.chdir(tmp_path)

    def written(*call: object) -> Any:
        outcome = command("evaluate", *call, "--json", "x.json", "--force")
        assert outcome.code == 0, outcome.err
        return json.loads(Path("x.json").read_text("utf-8"))

    grammar = agreement_grammar()
    grammar.save("g.npz")
    corpus = ts.sample(grammar, 300, "c", lengths="3..9", shares="train=.8,eval=.1,test=.1")
    model = ts.train(corpus, "ngram", None, "m")
    few: dict[str, Any] = {"number": 6, "seed": 3, "tries": 60, "tolerance": 0.8}
    loose = ("--tries", 60, "--tolerance", 0.8)
    pairs = ts.evaluate("pairs", model, corpus, **few)
    assert pairs.records() == written("pairs", "m", "--oracle", "g.npz", "-n", 6, "--seed", 3, *loose)
    assert pairs.records() == ts.evaluate("pairs", "m", grammar, **few).records()
    assert len(pairs.detail.pairs) == 30 and pairs.drawn().startswith("<svg")
    alone = ts.evaluate("pairs", None, corpus, **few)
    assert alone.detail.pairs == pairs.detail.pairs and "subject-verb" in str(alone)
    short: dict[str, Any] = {"chance": 19, "permutations": 39, "number": 60}
    options = ("--chance", 19, "--permutations", 39, "-n", 60)
    exact = ts.evaluate("tendencies", "m", corpus, **short)
    assert exact.records() == written("tendencies", "m", "--oracle", "g.npz", *options)
    assert exact.inputs[0].startswith("lengths of the truth: 3..9")
    assert [
        each["value"] for each in ts.evaluate("tendencies", {"m": model}, grammar, lengths="3..9", **short).records()
    ] == [each["value"] for each in exact.records()]
    beside = ts.evaluate("tendencies", "m", corpus, oracle=False, **short)
    assert beside.records() == written("tendencies", "m", "--reference", "c", *options)
    assert beside.records() != exact.records() and beside.drawn().startswith("<svg")
    Path("bank.mrg").write_text(BANK * 40, encoding="utf-8")
    natural = ts.evaluate("naturalness", ["c", "g.npz"], "bank.mrg", sentences=200)
    assert natural.records() == written("naturalness", "c", "g.npz", "--reference", "bank.mrg", "--sentences", 200)
    by_name = ts.evaluate("naturalness", {"c": corpus, "g": grammar}, "bank.mrg", sentences=200)
    assert [each["value"] for each in by_name.records()] == [each["value"] for each in natural.records()]
    save_piece_model(tmp_path / "pieces", [grammar.vocabulary], "unigram", 60, max_positions=200)
    some: dict[str, Any] = {"sentences": 5, "estimators": ("nbest", "wr"), "samples": 8}
    sums = ts.evaluate("tokenisation", "pieces", corpus, **some)
    call = ("tokenisation", "pieces", "c", "--sentences", 5, "--estimators", "nbest,wr", "--samples", 8)
    assert sums.records() == written(*call) and sums.detail.measured.decomposition is not None


def _log_probs(sentences: list[list[str]]) -> list[np.ndarray]:
    known = {"a": math.log(0.4), "b": math.log(0.3)}
    return [np.array([*(known[word] for word in sentence), math.log(0.3)]) for sentence in sentences]


@pytest.mark.long
def test_models_are_taken_as_people_have_them(model: ts.FunctionModel, corpus: ts.Corpus) -> None:
    kl = ts.compare(model, corpus)["kl"].value
    assert ts.compare((_log_probs, WORDS), corpus)["kl"].value == pytest.approx(kl, abs=1e-9)
    assert ts.load_model(model) is model

    class Logits(torch.nn.Module):
        """The same distribution everywhere."""

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            """Return weights of a, b and the end."""
            return torch.tensor([0.4, 0.3, 0.3], dtype=torch.float64).log().expand(*input_ids.shape, 3)

    network = Logits()
    mine = ts.load_model(network, WORDS, name="mine")
    assert mine.name == "mine" and ts.compare(mine, corpus)["kl"].value == pytest.approx(kl, abs=1e-9)
    several = ts.compare({"mine": (network, WORDS), "flat": model}, corpus)
    assert several["mine", "kl"].value == pytest.approx(kl, abs=1e-9)
    listed = ts.compare([(network, WORDS), model], corpus)
    assert listed["Logits", "kl"].value == pytest.approx(kl, abs=1e-9)
    assert ts.evaluate("divergence", (network, WORDS), corpus).records()[0]["model"] == "Logits"


@pytest.mark.long
@pytest.mark.parametrize("pieces", [False, True])
def test_a_network_of_transformers_with_its_tokeniser_is_what_its_folder_is(
    pieces: bool, corpus: ts.Corpus, tmp_path: Path
) -> None:
    from saved_models import save_piece_model
    from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

    folder = tmp_path / "net"
    if pieces:
        save_piece_model(folder, [WORDS], "unigram", 12, max_positions=60)
    else:
        ts.train(corpus, "gpt2", {"max_steps": 20}, folder)
    network, tokeniser = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    network.train()
    saved, memory = ts.compare(folder, corpus), ts.compare((network, tokeniser), corpus)
    assert memory["kl"].value == pytest.approx(saved["kl"].value, rel=1e-6)
    assert memory.scores[0].get("model") == type(network).__name__
    if pieces:
        piped = ts.load_model(pipeline("text-generation", model=network, tokenizer=tokeniser))
        assert ts.compare(piped, corpus)["kl"].value == memory["kl"].value
        assert ts.evaluate("tokenisation", (network, tokeniser), corpus, sentences=4, samples=4).records()
    with pytest.raises(ts.InputError, match="needs its fast tokeniser"):
        ts.load_model(network, WORDS)


@pytest.mark.long
def test_a_module_trained_with_exact_targets_is_a_model(corpus: ts.Corpus) -> None:
    targets = ExactTargets(GRAMMAR, lengths=(1, 9))

    class Logits(torch.nn.Module):
        """Weights of two words and the end, whatever came before."""

        def __init__(self) -> None:
            super().__init__()
            self.weights = torch.nn.Parameter(torch.log(torch.tensor([0.4, 0.3, 0.3])))

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.weights.expand(*inputs.shape, 3)

    model = ts.FunctionModel.from_module(Logits(), targets, name="flat")
    flat = ts.FunctionModel(vocabulary=WORDS, distributions=trigrams, name="flat")
    assert ts.compare(model, corpus)["kl"].value == pytest.approx(ts.compare(flat, corpus)["kl"].value, rel=1e-6)
    assert ts.evaluate("divergence", model, corpus)["kl"].value == pytest.approx(
        ts.evaluate("divergence", flat, corpus)["kl"].value, rel=1e-6
    )
    impossible = model.score([["a", "zebra", "b"], ["b"]]).impossible
    assert impossible.tolist() == [0]
    with pytest.raises(ts.InputError, match="has to return logits"):
        ts.FunctionModel.from_module(torch.nn.Embedding(3, 2), targets).score([["a"]])


REFUSED: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "an unknown evaluator": (lambda m, c: ts.evaluate("pplX", m, c), "did you mean pplu"),
    "an unknown setting": (
        lambda m, c: ts.evaluate("pplu", m, c, redcue=1),
        "redcue: unknown key; did you mean reduce",
    ),
    "other inputs": (lambda m, c: ts.evaluate("explain", m, c), "call truesource.explain"),
    "an argument of others": (lambda m, c: ts.evaluate("pairs", m, c, frame="paper"), "pairs takes no frame"),
    "a split of pairs": (lambda m, c: ts.evaluate("pairs", m, c, split="dev"), "pairs takes no split"),
    "pairs of a text": (lambda m, c: ts.evaluate("pairs", m, [["a"]]), "expecting a grammar or process as the truth"),
    "two samples of one name": (
        lambda m, c: ts.evaluate("tendencies", [ts.Text([["a"]]), ts.Text([["b"]])], GRAMMAR, lengths="none"),
        "two samples are called 'sentences'",
    ),
    "samples without a condition": (lambda m, c: ts.evaluate("tendencies", [["a"]], GRAMMAR), "give --lengths"),
    "a sentence as a path": (lambda m, _: ts.compare(m, "the cat"), "pass sentences as a list"),
    "no truth": (lambda m, _: ts.evaluate("divergence", m, [["a"]]), "oracle=GRAMMAR"),
    "lengths of no truth": (lambda m, _: ts.compare(m, [["a"]], lengths="1..3"), "oracle=GRAMMAR, or remove lengths"),
    "no truth of a bound": (lambda _, __: ts.bound([["a"]]), "oracle=GRAMMAR"),
    "an evaluator last": (lambda m, c: ts.evaluate(m, c, "pplu"), "the name of the evaluator comes first"),
    "a model as text": (lambda m, c: ts.compare(m, m), "the order is model, text"),
    "a network": (lambda _, c: ts.compare(torch.nn.Linear(2, 2), c), r"as a pair: \(module, words\)"),
    "a function alone": (lambda _, c: ts.compare(trigrams, c), r"as a pair: \(function, words\)"),
    "a module with one string": (
        lambda _, c: ts.load_model(torch.nn.Linear(2, 2), "ab"),
        "list of words",
    ),
    "a vocabulary of a folder": (lambda _, c: ts.load_model("m", ["a"]), "a vocabulary goes with an object"),
    "no words": (lambda _, __: ts.infill(GRAMMAR, "a b"), "there is no gap"),
    "a number of sentences": (lambda _, __: ts.sample(GRAMMAR, 0), "1 or more"),
    "shares": (lambda _, __: ts.sample(GRAMMAR, 10, shares={"train": 0.5}), "sum to 0.5"),
    "an ending of a figure": (lambda m, c: ts.compare(m, c).figure("f.gif"), "ends in .svg, .pdf, .png"),
    "another file as a result": (lambda _, c: ts.Result.load(c.path / "record.json"), "not a result"),
    "a text to explain": (lambda m, _: ts.explain(m, [["a"]]), "not a text"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", REFUSED)
def test_refusals_are_one_sentence(call: str, model: ts.FunctionModel, corpus: ts.Corpus) -> None:
    act, message = REFUSED[call]
    with pytest.raises(ts.InputError, match=message) as refused:
        act(model, corpus)
    assert "\n" not in str(refused.value)


def test_lines_of_exported_classes_are_short(model: ts.FunctionModel, corpus: ts.Corpus) -> None:
    english = ts.language("english", size="small")
    text = ts.Text.of(corpus, "eval")
    long = ts.Text(corpus["eval"] * 50)
    objects = {
        "PCFG": english,
        "Corpus": corpus,
        "Text": text,
        "a long text": long,
        "Setting": ts.Setting.of(text),
        "a long setting": ts.Setting(english, long.sentences, "1..9"),
        "Oracle": ts.Oracle(english, vocabulary=english.vocabulary),
        "FunctionModel": model,
        "Comparison": ts.compare(model, corpus).detail,
        "Score": ts.compare(model, corpus)["kl"],
        "TokenScores": model.score(corpus["eval"]),
        "LengthRange": ts.LengthRange(1, 9),
        "ScoringFrame": ts.ScoringFrame(),
        "Exclusion": ts.Exclusion.from_sentences(corpus["eval"], GRAMMAR, None),
        "ReportTable": ts.compare(model, corpus).table(),
        "NextToken": english.next_token([]),
        "TrainConfig": ts.TrainConfig(epochs=1),
        "ModelConfig": ts.model_settings("gpt2"),
        "SplitMerge": ts.SplitMerge(),
        "Treebank": ts.Treebank.from_trees([ts.Tree("S", (ts.Tree("A", ("a",)), ts.Tree("B", ("b",))))] * 500, None),
        "PpluSettings": PpluSettings(),
        "ParallelText": ts.ParallelText(language=english, sentences=corpus["eval"], models=[model]),
    }
    long_lines = {
        name: repr(each)[:120] for name, each in objects.items() if len(repr(each)) >= 200 or "\n" in repr(each)
    }
    assert long_lines == {}


def test_the_probability_of_a_next_word_is_by_its_name() -> None:
    after = GRAMMAR.next_token(["a"])
    assert after["b"] == pytest.approx(dict(after.top(2))["b"])
    with pytest.raises(KeyError, match="'zebra'"):
        _ = after["zebra"]
