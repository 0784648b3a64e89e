"""What holds for every evaluator: its verb and its stage are one, and a new one is a file and a line."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import Command
from tiny_run import BANK, RunCopies, prepare, run

import truesource.evaluation.evaluators
from truesource.cli.app import VERBS
from truesource.cli.evaluate import verb_of
from truesource.evaluation.core.evaluator import Evaluator
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.evaluator import DIVERGENCE
from truesource.evaluation.evaluators import EVALUATORS
from truesource.evaluation.show.declared import measured, template_of
from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import Settings
from truesource.run.experiment import build_report, execute, load_config, plan
from truesource.run.stages import STAGES

#: all that a new evaluator takes: one file of eleven lines, and its name in `truesource.evaluation.evaluators`
ELEVEN = """
from pydantic import Field
from truesource.grammar.support.settings import Settings
from truesource.evaluation.core.evaluator import Evaluator, Measure, EvaluatorOutput

class CountSettings(Settings):
    sentences: int = Field(5, ge=1, description="Number of sentences to count.")

def measure(model, setting, settings):
    tokens = sum(map(len, setting.sentences))
    return EvaluatorOutput(scores=[setting.score(model, "count", tokens)])

COUNT = Evaluator(
    name="count", title="Number of tokens", summary="Count tokens.", settings=CountSettings,
    measures=(Measure("count", "tokens", ",", "of the text"),))
"""
CONFIG = """\
name: toy
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..8, splits: {train: 30, eval: 20}}
models:
  - {name: bigram, model: {architecture: ngram, order: 2}}
  - {name: trigram, model: {architecture: ngram}}
evaluation: {count: {sentences: 7}}
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a grammar, a configuration and an evaluator of its own, which is registered."""
    (tmp_path / "count_evaluator.py").write_text(ELEVEN.lstrip("\n"), encoding="utf-8")
    (tmp_path / "toy.txt").write_text("S -> S S 0.3 | 'a' 0.7\n", encoding="utf-8")
    (tmp_path / "toy.yaml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    from count_evaluator import COUNT  # type: ignore[import-not-found]

    monkeypatch.setattr(truesource.evaluation.evaluators, "EVALUATORS", (*EVALUATORS, COUNT))
    yield tmp_path
    del sys.modules["count_evaluator"]


@pytest.mark.long
def test_a_new_evaluator_is_one_file(toy: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a verb, a key, a stage, JSON, a section of the report, tables, and a column of `compare`."""
    assert sum(bool(line) for line in ELEVEN.splitlines()) == 11
    monkeypatch.chdir(toy)
    config = load_config(toy / "toy.yaml")
    assert [stage.name for stage in plan(config)][-3:] == ["count:bigram", "count:trigram", "report"]
    report = execute(config, base=toy, runs=toy / "runs")
    kept = json.loads((report.parent / "count" / "bigram.json").read_text("utf-8"))
    corpus = Corpus.load(report.parent / "corpus")
    tokens = sum(map(len, corpus.sentences("eval")[:7]))
    (record,) = kept["records"]
    assert (record["value"], kept["objective"]) == (tokens, "causal") and "sentences:7" in record["signature"]
    page = report.read_text("utf-8")
    assert "</span>Number of tokens</h2>" in page and f">{tokens}<" in page and "of the text" in page
    with pytest.raises(ValueError, match=r"evaluation\.count\.sentences"):
        load_config(toy / "toy.yaml", ["evaluation.count.sentences=0"])
    grammar = ("--oracle", "runs/toy/grammar/grammar.npz")
    call = ("evaluate", "count", "runs/toy/models/bigram", "runs/toy/corpus", *grammar, "--sentences", "7")
    told = command(*call, "--json", "verb.json", "--table", "verb.csv")
    assert told.code == 0, told.err
    assert json.loads(Path("verb.json").read_text("utf-8")) == kept["records"]
    assert f",tokens,{tokens},of the text" in Path("verb.csv").read_text("utf-8")
    assert "Number of sentences to count" in command("evaluate", "count", "--help").out
    models = ("runs/toy/models/bigram", "runs/toy/models/trigram", "runs/toy/corpus")
    compared = command(
        "compare", *models, *grammar, "--evaluators", "count", "--sentences", "7", "--json", "compared.json"
    )
    assert compared.code == 0, compared.err
    assert "tokens" in compared.out
    counts = [r for r in json.loads(Path("compared.json").read_text("utf-8")) if r["name"] == "count"]
    of_five = sum(map(len, corpus.sentences("eval")[:5]))  # as many as its settings count by default
    assert [(r["model"], r["value"]) for r in counts] == [(name, of_five) for name in models[:2]]


def test_a_model_that_lacks_an_ability_is_refused_wherever_it_is_measured() -> None:
    """By the verb, in a run, and beside a comparison of models."""
    scores_alone = SimpleNamespace(name="mine", objective="causal", vocabulary=("a",))
    pcfg = PCFG.from_text("S -> S S 0.3 | 'a' 0.7")
    with pytest.raises(InputError, match="evaluate divergence needs the probabilities of all words") as refused:
        measured(DIVERGENCE, scores_alone, Setting(pcfg, [["a"]] * 3), "x")
    assert refused.value.code == "missing-ability"


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda each: each.name)
def test_an_evaluator_has_what_its_kind_needs(evaluator: Evaluator) -> None:
    assert evaluator.verb in VERBS if evaluator.verb else callable(verb_of(evaluator))
    assert evaluator.declared == (evaluator.function("measure") is not None and bool(evaluator.help))
    assert evaluator.declared != (evaluator.name in STAGES)
    assert evaluator.draws == (evaluator.declared and evaluator.function("figure") is not None)
    assert template_of(evaluator).is_file()
    assert issubclass(evaluator.settings, Settings)
    for name, field in evaluator.settings.model_fields.items():
        assert name in evaluator.settings.yaml_only or field.description, f"{name} has no help"


#: a run with every evaluator whose verb is called below
EVERYTHING = """\
name: toy
treebank: {files: bank.mrg, held_out: 0.4}
grammar: {method: relative_frequency}
corpus: {lengths: 2..9, splits: {train: 120, dev: 20, eval: 40}}
models:
  - {name: net, model: {architecture: ngram}}
  - {name: gpt2, model: {dim: 8, heads: 2, layers: 1}, training: {max_steps: 2, snapshots: log}}
  - {name: gaps, model: {architecture: diffusion, dim: 8, heads: 2, layers: 1}, training: {max_steps: 2}}
  - {name: pieces, model: {architecture: ngram, order: 2, tokenizer: bpe, vocab_size: 30}}
evaluation:
  naturalness: {sentences: 100, definitions: paper}
  divergence: {sentences: 30, top_k: 3, by: [position]}
  context: {sentences: 30, lines: 3, placed: true}
  diffusion: {sentences: 12, steps: [1, 2], orders: [confidence, random], samples: 12, short: 3}
  control: {events: [the=1], best_of: [2], filters: [1, 2], filtered: 12, samples: 20, prices: [1], tuning_steps: 2}
  memory: {sentences: 30, unseen: true}
  pairs: {number: 5, phenomena: [word-order]}
  pplu: {unigram: train, smoothing: 1, reduce: true, split_words: [dog, the], beta: 0.3, rank: 2}
  dynamics: {sentences: 30, contexts: 40, by: [class, depth], measure: median}
  tokenisation: {estimators: [wor1, dpf], samples: 4, candidates: 3, sentences: 12, also: {other: other.txt},
    out_of_domain: [respell=0.5], grid: true, curves: true, caching: true, canonical: true, equal_cost: 1}
  probing: {targets: [tag, span], mdl: false, control: none, split_by: position, right: sampled}
  beliefs: {kinds: [open, depth], last_words: 1, untrained: false, pairs: 10}
  treebank_baseline: true
"""
MODEL = "runs/toy/models/net runs/toy/corpus --oracle runs/toy/grammar/grammar.npz"
TWINS = "runs/toy/treebank_baseline/models/net"
GPT2 = MODEL.replace("/net ", "/gpt2 ")
#: by evaluator: what its stage leaves, and the verb that measures the same
SAME = {
    "naturalness": (
        "naturalness/naturalness.json",
        "'trees learned from=runs/toy/treebank/treebank.mrg.gz' corpus=runs/toy/corpus"
        " --reference 'held-out trees=runs/toy/treebank/held_out.mrg.gz' --oracle runs/toy/grammar/grammar.npz"
        " --sentences 100 --definitions paper",
    ),
    "treebank_baseline": (
        "treebank_baseline/net.json",
        f"treebank={TWINS}/treebank sampled-equal={TWINS}/sampled-equal sampled=runs/toy/models/net"
        " runs/toy/treebank_baseline/text/held_out.txt --oracle runs/toy/grammar/grammar.npz",
    ),
    "divergence": ("divergence/net.json", f"{MODEL} --sentences 30 --top-k 3 --by position"),
    "context": ("context/net.json", f"{MODEL} --sentences 30 --lines 3 --placed"),
    "diffusion": (
        "diffusion/gaps.json",
        f"{MODEL.replace('/net ', '/gaps ')} --sentences 12 --steps 1,2 --orders confidence,random --samples 12"
        " --short 3",
    ),
    "control": (
        "control/gpt2.json",
        f"{MODEL.replace('/net ', '/gpt2 ')} --events the=1 --best-of 2 --filters 1,2 --filtered 12 --samples 20"
        " --prices 1 --tuning-steps 2",
    ),
    "memory": ("memory/net.json", f"{MODEL} --sentences 30 --unseen"),
    "pairs": (
        "pairs/models/net.json",
        "runs/toy/models/net --oracle runs/toy/grammar/grammar.npz --lengths 2..9 -n 5 --phenomena word-order",
    ),
    "pplu": (
        "pplu/net.json",
        f"{MODEL} --unigram train --smoothing 1 --reduce --split-words dog --split-words the --beta 0.3 --rank 2",
    ),
    "dynamics": (
        "dynamics/gpt2.json",
        f"{GPT2} --sentences 30 --contexts 40 --by class,depth --measure median",
    ),
    "tokenisation": (
        "tokenisation/pieces.json",
        "runs/toy/models/pieces eval=runs/toy/corpus --oracle runs/toy/grammar/grammar.npz --estimators wor1,dpf"
        " --samples 4 --candidates 3 --sentences 12 --also other.txt --out-of-domain respell=0.5 --grid --curves"
        " --caching --canonical --equal-cost 1",
    ),
    "beliefs": (
        "beliefs/gpt2.json",
        f"{GPT2} --kinds open,depth --last-words 1 --no-untrained --pairs 10",
    ),
    "probing": (
        "probing/gpt2.json",
        f"{GPT2} --targets tag,span --no-mdl --control none --split-by position --right sampled",
    ),
}


@pytest.fixture(scope="module")
def finished(finished_run: RunCopies) -> Path:
    """A folder with a finished run of everything; not to be changed."""

    def fill(folder: Path) -> None:
        (folder / "bank.mrg").write_text(8 * BANK, encoding="utf-8")
        (folder / "other.txt").write_text("the dog sees the dog\na cat in a park\n", encoding="utf-8")
        run(prepare(folder, EVERYTHING, ""))

    return finished_run("everything", fill)


@pytest.mark.long
@pytest.mark.parametrize("name", SAME)
def test_verb_and_stage_write_the_same_records(
    name: str, finished: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    left, line = SAME[name]
    verb = {each.name: each.verb for each in EVALUATORS}[name]
    call = (verb,) if verb else ("evaluate", name)
    called = command(*call, *shlex.split(line), "--json", tmp_path / "verb.json")
    assert called.code == 0, called.err
    records = json.loads((finished / "runs" / "toy" / left).read_text("utf-8"))["records"]
    if name == "treebank_baseline":  # of the sampled text, compare makes other records
        records = [record for record in records if record["text"] == "real"]
    assert records and json.loads((tmp_path / "verb.json").read_text("utf-8")) == records


USED = {"divergence": 30, "context": 30, "diffusion": 12, "memory": 30, "dynamics": 30}  #: of 40 sentences


@pytest.mark.long
@pytest.mark.parametrize("name", USED)
def test_the_title_names_the_sentences_that_are_used(
    name: str, finished: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    said = f"the first {USED[name]} of 40 sentences"
    called = command("evaluate", name, *shlex.split(SAME[name][1]))
    assert said in " ".join(called.out.split()), called.out
    whole = shlex.split(SAME[name][1].replace(f"--sentences {USED[name]}", "--sentences 40"))
    assert "the first" not in command("evaluate", name, *whole).out
    page = Path("runs/toy/report.html").read_text("utf-8")
    section = page[page.index(f'<section id="{name}">') :]
    assert f"Measured on {said} of the split eval." in section[: section.index("</section>")]


def test_an_extent_counts_documents_where_the_settings_do() -> None:
    evaluators = {each.name: each for each in EVALUATORS}
    for name, said in (
        ("divergence", "the first 300 of 1,000 sentences"),
        ("documents", "the first 200 of 1,000 documents"),
        ("dynamics", ""),
        ("beliefs", ""),
    ):
        assert evaluators[name].extent(evaluators[name].settings(), 1000) == said


SAMPLED = """\
name: toy
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..9, splits: {train: 120, eval: 40}}
models: [{name: net, model: {architecture: ngram}}]
evaluation: {tendencies: {schemes: [ancestral], number: 60, chance: 19}}
"""


@pytest.mark.long
def test_tendencies_of_a_sample_are_those_of_the_run(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the adjustment of p-values: a run has a sample of the truth, and tables of decoding schemes."""
    run(prepare(tmp_path, SAMPLED, "S -> A S 0.4 | A 0.6\nA -> 'a' 0.5 | 'b' 0.3 | 'c' 0.2\n"))
    monkeypatch.chdir(tmp_path / "runs" / "toy")
    files = ("net=samples/net/ancestral", "--oracle", "grammar/grammar.npz", "--vocabulary", "models/net")
    called = command("evaluate", "tendencies", *files, "--chance", 19, "--json", "verb.json")
    assert called.code == 0, called.err
    by_verb = json.loads(Path("verb.json").read_text("utf-8"))
    by_stage = json.loads(Path("tendencies/tendencies.json").read_text("utf-8"))["records"]
    of_table = {"scheme", "p_holm", "family"}
    of_model = [{k: v for k, v in r.items() if k not in of_table} for r in by_stage if r["source"] == "net"]
    assert of_model and [{k: v for k, v in r.items() if k not in of_table} for r in by_verb] == of_model


DOCUMENTS = """\
name: toy
grammar: {language: pool, family: ngram/order=2/vocabulary=3/mean_length=3, languages: 4, strings: 3}
corpus: {splits: {train: 60, eval: 30}}
models: [{name: net, model: {architecture: ngram}}]
evaluation: {documents: {sentences: 20, family: "dirichlet-markov:vocabulary=3,mean_length=3,strings=3"}}
"""


@pytest.mark.long
def test_documents_of_the_verb_are_those_of_the_run(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a run of its own: the one of all evaluators has a grammar of sentences, which are no documents."""
    run(prepare(tmp_path, DOCUMENTS, ""))
    monkeypatch.chdir(tmp_path / "runs" / "toy")
    files = ("models/net", "corpus", "--oracle", "grammar/grammar.npz", "--sentences", 20)
    family = ("--family", "dirichlet-markov:vocabulary=3,mean_length=3,strings=3")
    called = command("evaluate", "documents", *files, *family, "--json", "verb.json", "--figure", "documents.svg")
    assert called.code == 0, called.err
    record = json.loads(Path("documents/net.json").read_text("utf-8"))
    assert json.loads(Path("verb.json").read_text("utf-8")) == record["records"]
    page, drawn = build_report(Path()).read_text("utf-8"), Path("documents.svg").read_text("utf-8")
    assert "</span>Learning a language while reading</h2>" in page and "By string and position, net" in page
    assert all("KL(family‖model)" in text and "entropy of the language, nats" in text for text in (page, drawn))
    assert "KL(reader‖model)" in called.out and "words before" in called.out
    told = command("evaluate", "documents", *files, "--family", "dyck:k=1")
    assert told.code == 2 and told.err.rstrip().endswith("such as dirichlet-markov:vocabulary=8, which dyck:k=1 is not")
    with pytest.raises(ValueError, match="a family is a language of documents"):
        load_config(tmp_path / "toy.yaml", ["evaluation.documents.family=dyck:k=1"])
    plain = command("evaluate", "documents", *files[:3], family[1])
    assert plain.code == 0 and "there is no entropy of them and no regret" in plain.err
    assert "regret of a perfect reader" not in plain.out


def test_no_evaluator_is_left_out() -> None:
    assert {*SAME, "documents", "tendencies", "explain"} == {each.name for each in EVALUATORS}


def test_the_page_of_settings_has_every_key() -> None:
    from settings_page import page

    text = page()
    for evaluator in EVALUATORS:
        assert f"## evaluate {evaluator.name}\n" in text
        section = text.partition(f"## evaluate {evaluator.name}\n")[2].partition("\n## ")[0]
        assert [key for key in evaluator.settings.model_fields if f"`{key}`" not in section] == []
