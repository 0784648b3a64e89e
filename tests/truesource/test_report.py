"""The report of a run, on a small run folder made here."""

import json
import math
import re
import shutil
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.token_table import write_token_table
from truesource.evaluation.measures.contrast import Contrast, PairTest
from truesource.evaluation.show import figures, words
from truesource.generator.corpus import Corpus
from truesource.generator.plan import Columns
from truesource.generator.sampler import sample_treebank
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.diagnostics import diagnose
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.lmtrain.training_record import write_times
from truesource.report.finished_run import read_run, some_sentences, with_models
from truesource.run.experiment import build_report
from truesource.run.grammar.section import draw_tree, frequent_rules, placed_nodes, typical_tree
from truesource.run.scores.section import nearer_test

pytestmark = pytest.mark.long

GRAMMAR = r"""
ROOT -> S '.' 1.0
S -> NP VP 0.9 | S-C S 0.1
S-C -> S CC 1.0
CC -> 'and' 0.7 | 'or' 0.3
NP -> DT N 0.5 | NP-2 PP 0.2 | 'we' 0.3
NP-2 -> DT N 0.8 | 'they' 0.2
PP -> P NP 1.0
P -> 'of' 0.6 | 'with' 0.4
VP -> V NP 0.5 | V 0.2 | V S 0.1 | VP PP 0.2
DT -> 'the' 0.7 | 'a' 0.3
N -> 'dog' 0.4 | 'cat' 0.3 | 'tree' 0.2 | '<b>&amp;' 0.1
V -> 'sees' 0.5 | 'knows' 0.3 | 'likes' 0.2
%label NP-2 NP
%label S-C @S
"""


class Blurred:
    """The oracle's scores made worse by a known amount and some noise."""

    vocabulary = None
    unchecked = True  # noise is by place in the text

    def __init__(self, pcfg, name, objective, lengths, loss):
        self.name, self.objective = name, objective
        self._oracle, self._loss = Oracle(pcfg, objective, lengths=lengths), loss

    def score(self, sentences, frame):
        scores = self._oracle.score(sentences, frame)
        noise = np.random.default_rng(0).normal(0.0, 0.3, len(scores.log_prob))
        return replace(scores, log_prob=np.minimum(scores.log_prob - self._loss + noise, -1e-4))


def make_run(folder: Path) -> Path:
    lengths = LengthRange(4, 20)
    pcfg = PCFG.from_text(GRAMMAR)
    pcfg.save(folder / "grammar" / "grammar.npz")
    corpus = Corpus.sample(
        pcfg, {"train": 3000, "dev": 100, "eval": 200}, seed=3, lengths=lengths, path=folder / "corpus", shard_size=1000
    )
    write_json(
        folder / "config.json",
        {"name": "toy", "seed": 3, "evaluation": {"split": "eval"}, "corpus": {"lengths": "4..20"}},
    )
    write_json(
        folder / "provenance.json",
        {"truesource": "0.1.0", "python": "3.11", "command": "truesource run toy.yaml", "seed": 3},
    )
    stage = {
        "inputs": "a" * 64,
        "output": "b" * 64,
        "seconds": 61.2,
        "skipped": False,
        "finished": "2030-01-02T03:04:05+00:00",
    }
    write_json(folder / "stages.json", {"stages": {"grammar": stage, "corpus": {**stage, "skipped": True}}})
    diagnosis = {
        **asdict(diagnose(pcfg)),
        "held_out": {"sentences": 50, "impossible": 2, "log_prob_per_token": -1.5, "truth_log_prob_per_token": -1.4},
    }
    write_json(folder / "grammar" / "diagnosis.json", diagnosis)
    trace = [
        {
            "cycle": c,
            "phase": p,
            "iteration": i,
            "log_likelihood": -3 + 0.2 * c + 0.02 * i,
            "held_out": -3.1 + 0.15 * c,
            "substates": 10 * (c + 1),
        }
        for c in (1, 2)
        for p in ("split", "merge", "smooth")
        for i in range(6)
    ]
    (folder / "grammar" / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in trace))
    bank = {
        "source": "toy.mrg",
        "statistics": {"trees": 90, "tokens": 800},
        "lengths": [0, 0, 1, 2, 8, 9, 8, 8, 7, 5, 3],
        "reading": {"summary": ["refused    2 of 92 trees, the first (toy.mrg:3): empty tree"]},
        "truth": {"grammar": pcfg.sizes(), "mean_length": 7.5},
    }
    write_json(folder / "treebank" / "statistics.json", bank)
    sentences = corpus.sentences("eval")
    results = []
    for objective in ("causal", "masked"):
        results.append(
            compare_in(Oracle(pcfg, objective, lengths=lengths), Setting(pcfg, sentences, lengths=lengths)).as_record()
        )
        name = f"{objective}-small"
        found = compare_in(Blurred(pcfg, name, objective, lengths, 0.08), Setting(pcfg, sentences, lengths=lengths))
        write_token_table(folder / "scores" / f"{name}.parquet", found.paired, sentences, {})
        results.append({**found.as_record(), "parameters": 1_234_567})
        metrics = [{"step": 0, "tokens": 0, "loss": None, "dev_loss": 3.0}] + [
            {
                "step": s,
                "tokens": 100 * s,
                "loss": 1.5 + 1.5 * math.exp(-s / 30),
                "lr": 1e-3,
                "dev_loss": 1.4 + 1.5 * math.exp(-s / 30),
            }
            for s in range(10, 200, 10)
        ]
        model = folder / "models" / name
        model.mkdir(parents=True)
        (model / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics))
        write_times(model, [{"step": 0, "seconds": 0.1}, {"step": 190, "seconds": 75.0}])
    write_json(folder / "results.json", results)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = make_run(tmp_path_factory.mktemp("runs") / "toy")
    build_report(folder)
    return folder


@pytest.fixture
def run(made, tmp_path):
    """A copy to break."""
    return Path(shutil.copytree(made, tmp_path / "toy"))


def page(run: Path) -> str:
    return build_report(run).read_text(encoding="utf-8")


def inner_text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html[html.index("<body>") :]))


def test_page_needs_nothing_outside_itself(made):
    html = (made / "report.html").read_text(encoding="utf-8")
    assert "<link" not in html and "<img" not in html and "@import" not in html
    assert set(re.findall(r"<script[^>]*>", html)) <= {
        "<script>",
        *(f'<script type="application/json" id="{name}">' for name in ("page-data", "token-data")),
    }
    outside = set(re.findall(r"(?:https?:)?//[a-z][^\s\"'<>)]+", html))
    assert outside <= {
        *("http://www.w3.org/1999/xlink", "//www.w3.org/1999/xlink"),
        *("http://www.w3.org/2000/svg", "//www.w3.org/2000/svg"),
    }
    assert len(html.encode()) < 3_000_000


def test_page_is_well_formed_and_ids_differ(made):
    html = (made / "report.html").read_text(encoding="utf-8")
    html = re.sub("<script>.*?</script>", "", html, flags=re.DOTALL)
    body = re.sub(r"<(meta|br)([^>]*)>", r"<\1\2/>", html.replace("<!DOCTYPE html>", ""))
    root = ElementTree.fromstring(body)
    ids = [node.attrib["id"] for node in root.iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', html))
    assert used <= set(ids)
    assert len(root.findall(".//section")) == 7


def test_answer_comes_first_and_is_that_of_the_results(made):
    text = inner_text((made / "report.html").read_text(encoding="utf-8"))
    rows = {row["model"]: row for row in json.loads((made / "results.json").read_text()) if row["model"] != "oracle"}
    for name, row in rows.items():
        low, high = row["relative_ppl_low"], row["relative_ppl_high"]
        expected = f"{name} reaches a relative perplexity of {row['relative_ppl']:.3f} [{low:.3f}, {high:.3f}]"
        assert 0 < text.index(expected) < text.index("What was run")
    assert "No model is significantly below its bound" in text


def test_every_number_of_the_table_is_there(made):
    html = (made / "report.html").read_text(encoding="utf-8")
    for row in json.loads((made / "results.json").read_text()):
        assert row["signature"] in html
        for name in ("rho", "r2_pearson", "r2_identity", "relative_ppl"):
            assert f"{row[name]:.3f}<" in html
        assert f"{row['bound']:.2f}<" in html


def test_two_builds_give_the_same_bytes(run):
    assert page(run) == page(run)


def test_words_are_escaped(made):
    html = (made / "report.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;&amp;amp;" in html
    assert "<b>&amp;" not in html


def test_model_significantly_below_the_bound_raises_an_alarm(run):
    results = json.loads((run / "results.json").read_text())
    results[1] |= {"relative_ppl": 0.9, "relative_ppl_low": 0.88, "relative_ppl_high": 0.93}
    write_json(run / "results.json", results)
    html = page(run)
    assert 'class="answer alarm"' in html
    assert "causal-small (0.900 [0.880, 0.930]) is significantly below the bound" in inner_text(html)
    assert "No model is significantly below" not in html


def test_everything_optional_may_be_absent(run):
    for name in (
        "provenance.json",
        "stages.json",
        "treebank/statistics.json",
        "grammar/diagnosis.json",
        "grammar/trace.jsonl",
    ):
        (run / name).unlink()
    shutil.rmtree(run / "scores")
    shutil.rmtree(run / "models")
    text = inner_text(page(run))
    assert "none: the grammar was read from a file" in text
    assert "This run has no record of its training." in text
    assert "This run has no per-token scores of models." in text
    assert "How it was induced" not in text


@pytest.mark.parametrize("rows", ["oracle only", "none"])
def test_without_models_it_says_so(run, rows):
    results = json.loads((run / "results.json").read_text())
    write_json(run / "results.json", [r for r in results if r["model"] == "oracle" and rows != "none"])
    text = inner_text(page(run))
    assert "This run trained no language model, so there is nothing to compare" in text
    assert ("Nothing was scored" in text) == (rows == "none")


def test_corpus_without_length_condition_and_without_trees(tmp_path):
    folder = tmp_path / "bare"
    pcfg = PCFG.from_text("S -> S S 0.3 | 'a' 0.4 | 'b' 0.3")
    pcfg.save(folder / "grammar" / "grammar.npz")
    Corpus.sample(pcfg, {"train": 50}, seed=1, path=folder / "corpus", columns=Columns(trees="none"))
    write_json(folder / "config.json", {"name": "bare"})
    write_json(folder / "results.json", [])
    html = page(folder)
    assert 'data-figure="tree"' not in html and "dotted line" not in html
    assert "rule to one child" not in html


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("config.json", "missing"),
        ("results.json", "missing"),
        ("grammar/grammar.npz", "missing"),
        ("corpus/record.json", "missing"),
        ("config.json", "damaged"),
        ("results.json", "damaged"),
        ("provenance.json", "damaged"),
        ("grammar/trace.jsonl", "damaged"),
        ("models/causal-small/metrics.jsonl", "damaged"),
        ("scores/causal-small.parquet", "damaged"),
    ],
)
def test_missing_or_damaged_file_is_named_and_the_old_page_survives(run, file, what):
    before = (run / "report.html").read_bytes()
    if what == "missing":
        (run / file).unlink()
    else:
        (run / file).write_text("{ not what it was")
    with pytest.raises(InputError) as caught:
        build_report(run)
    assert Path(file).parts[0] in str(caught.value)
    assert (run / "report.html").read_bytes() == before


def test_results_without_a_measure_are_damaged(run):
    results = json.loads((run / "results.json").read_text())
    del results[0]["bound"]
    write_json(run / "results.json", results)
    with pytest.raises(InputError, match="bound"):
        build_report(run)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("results.json", lambda rows: rows[0].update(bound="5.0"), r"0\.bound: "),
        ("results.json", lambda rows: rows[0].update(tokens=True), r"0\.tokens: "),
        ("results.json", lambda rows: rows[-1].update(model="../../secret"), "model: not a plain file name"),
        ("stages.json", lambda record: record["stages"]["grammar"].update(seconds="1"), r"stages\.grammar\.seconds: "),
        ("provenance.json", lambda record: record.update(cores="many"), "cores: "),
        ("config.json", lambda record: record.update(evaluation=[]), "evaluation: "),
        ("grammar/diagnosis.json", lambda record: record.update(mean_length=[[]]), "mean_length: "),
        ("grammar/diagnosis.json", lambda record: record.update(held_out={"sentences": [[]]}), "held_out.sentences: "),
    ],
)
def test_a_record_with_a_value_of_another_kind_is_refused(run, file, change, message):
    record = json.loads((run / file).read_text())
    change(record)
    (run / file).write_text(json.dumps(record))
    with pytest.raises(InputError, match=rf"is damaged: .*{message}.*; delete it and run .* again \(.*{file}"):
        build_report(run)


@pytest.mark.parametrize(
    "line", ['{"step": 1, "loss": "2.5"}', '{"step": "1"}', '{"step": 1, "loss": 1e5}', '{"loss": 1.0}', "[" * 100_000]
)
def test_a_line_of_metrics_with_a_value_of_another_kind_is_refused(run, line):
    file = run / "models" / "causal-small" / "metrics.jsonl"
    file.write_text(f'{{"step": 0, "loss": 3.0}}\n{line}\n')
    with pytest.raises(InputError, match=r"metrics\.jsonl:2\)$"):
        build_report(run)


def test_corpus_of_another_grammar_is_refused(run):
    PCFG.from_text("S -> 'a' 1.0").save(run / "grammar" / "grammar.npz", force=True)
    with pytest.raises(InputError, match="another grammar"):
        build_report(run)


def test_no_run_folder(tmp_path):
    with pytest.raises(InputError, match="no such run folder"):
        build_report(tmp_path / "nothing")


def test_some_sentences_are_the_first_of_the_split(made):
    corpus = read_run(made).corpus
    everything = corpus.sentences("train")
    assert some_sentences(corpus, "train", 1500) == everything[:1500]
    assert some_sentences(corpus, "train", 10**9) == everything


def test_frequent_rules_agree_with_counting_in_sampled_trees(made):
    pcfg, n = read_run(made).truth, 4000
    labels = dict(zip(pcfg.symbols, pcfg.labels, strict=True))
    uses: Counter[tuple[str, ...]] = Counter()
    parents: Counter[str] = Counter()
    for tree in sample_treebank(pcfg, n, 5, coarse=False):
        for node in tree.subtrees():
            uses[(labels[node.label], *(labels[c.label] if isinstance(c, Tree) else c for c in node.children))] += 1
            parents[labels[node.label]] += 1
    for kind in ("binary", "unary", "lexical"):
        found = frequent_rules(pcfg, kind, most=4)
        assert found == sorted(found, key=lambda rule: -rule.expected)
        assert len(found) == min(4, len(getattr(pcfg, kind)))
        for rule in found:
            seen = uses[(rule.parent, *rule.children)]
            assert rule.expected == pytest.approx(seen / n, rel=0.1)
            assert rule.probability == pytest.approx(seen / parents[rule.parent], rel=0.1)


def test_drawn_tree_has_every_label_and_word_in_order_and_fits():
    shared = Tree("NP", (Tree("DT", ("the",)), Tree("N", ("a<b",))))
    tree = Tree("S", (shared, Tree("VP", (Tree("V", ("sees",)), shared, "now"))))
    nodes = placed_nodes(tree)
    words = [node for node in nodes if node.kind == "word"]
    assert [node.text for node in words] == ["the", "a<b", "sees", "the", "a<b", "now"]
    assert [node.x for node in words] == sorted({node.x for node in words})
    assert sorted(n.text for n in nodes if n.kind != "word") == sorted(n.label for n in tree.subtrees())
    assert all(nodes[node.parent].y < node.y for node in nodes if node.parent >= 0)
    root = ElementTree.fromstring(draw_tree(tree))
    assert sorted(texts(root)) == sorted(node.text for node in nodes)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert all(0 < node.x < width and 0 < node.y < height for node in nodes)
    assert root.attrib["aria-label"] == str(tree)
    assert len(list(root.iter("path"))) >= len(nodes) - 1


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()).strip() for node in root.iter("text")]


def test_very_deep_tree_can_be_placed():
    tree: Tree = Tree("X", ("w",))
    for _ in range(5000):
        tree = Tree("X", (tree,))
    assert len(placed_nodes(tree)) == 5002


def test_typical_tree_is_of_medium_length():
    def flat(n):
        return Tree("S", tuple(Tree("W", (str(i),)) for i in range(n)))

    assert len((typical_tree(map(flat, (2, 30, 9, 4))) or flat(1)).leaves()) == 9
    assert len((typical_tree(map(flat, (2, 30, 14))) or flat(1)).leaves()) == 14
    assert typical_tree(()) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, words.NONE), (0.04, "0.0 s"), (41.2, "41 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")],
)
def test_duration(seconds, text):
    assert words.duration(seconds) == text


def test_the_time_of_training_is_shown(run):
    assert "1,234,567(75 s)" in inner_text(page(run))
    model = run / "models" / "causal-small"
    (model / "times.jsonl").unlink()
    assert inner_text(page(run)).count("1,234,567(75 s)") == 1
    (model / "times.jsonl").write_text('{"step": 0, "seconds": "1"}')
    with pytest.raises(InputError, match=r"seconds: .*times\.jsonl:1\)"):
        build_report(run)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, words.NONE),
        (0.0, "0"),
        (1234567, "1,234,567"),
        (12.3456, "12.35"),
        (0.0123456, "0.01235"),
        (98765.4, "98,765"),
    ],
)
def test_number(value, text):
    assert words.number(value) == text


@settings(deadline=None, max_examples=50)
@given(low=st.floats(1e-3, 1e4), factor=st.floats(1.01, 1e5))
def test_round_ticks_lie_inside_and_are_few(low, factor):
    ticks = figures.round_ticks(low, low * factor)
    assert 2 <= len(ticks) <= 9
    assert ticks == sorted(ticks)
    assert all(0.99 * low <= t <= 1.01 * low * factor for t in ticks)


@given(value=st.floats(0.5, 2.0), half=st.floats(0.0, 0.3))
def test_verdict_warns_exactly_when_the_whole_interval_is_below_one(value, half):
    row = {
        "model": "m",
        "objective": "causal",
        "relative_ppl": value,
        "relative_ppl_low": value - half,
        "relative_ppl_high": value + half,
    }
    assert words.verdict([row]).startswith("Warning") == (value + half < 1.0 - words.PERFECT)
    other = {**row, "model": "n", "relative_ppl": 2.5}
    assert f"{value:.3f}" in words.answer([row], lambda *_: None)[0]
    assert "may be chance" not in words.answer([row], lambda *_: None)[0]
    for p in (0.012, 0.12):
        pair = PairTest(Contrast(0.1, p=p / 3), p, 3)
        (said,) = words.answer([other, row], lambda *_: pair)  # noqa: B023
        says = "may be chance" if p > 0.05 else "is significant"
        assert f" That it is better than n {says} (p {p:.3f}; Holm: for 3 pairs of models)." in said
    assert "no scores of tokens" in words.answer([other, row], lambda *_: None)[0]


def test_the_best_model_is_tested_against_the_next_by_the_scores_of_both():
    rng, sentence = np.random.default_rng(1), np.repeat(np.arange(100), 5)
    oracle = rng.normal(-3.0, 1.0, 500)
    tables = {
        name: {"sentence": sentence, "oracle": oracle, "model": oracle - gap + rng.normal(0.0, 0.3, 500)}
        for name, gap in (("near", 0.1), ("same", 0.1), ("far", 0.5), ("far-2", 0.501))
    }
    near, same, far, gone = (
        {"model": name, "objective": "causal", "sentences": 100, "excluded": 0}
        for name in ("near", "same", "far", "gone")
    )
    seeds = {**far, "replicates": [far, {"model": "far-2"}]}
    run = SimpleNamespace(tokens_of=tables.get, comparison=[], models=[near, same, far, gone], config={"seed": 3})
    found = nearer_test(run, near, far)
    assert found is not None and found.tests == 3 and found.contrast.value == pytest.approx(0.4, abs=0.05)
    assert (found.p_adjusted or 1.0) < 1e-9 and nearer_test(run, far, near) == found.reversed
    alike = nearer_test(run, near, same)
    assert alike is not None and (alike.p_adjusted or 0.0) > 0.05
    assert nearer_test(run, near, gone) is None
    few = {**far, "sentences": 12, "excluded": 88}  # leaves out most sentences, so it is in no family with the others
    apart = nearer_test(SimpleNamespace(**{**vars(run), "models": [near, same, few]}), near, same)
    assert apart is not None and apart.tests == 1
    replicated = nearer_test(SimpleNamespace(**{**vars(run), "models": [near, seeds]}), near, seeds)
    assert replicated is not None and (replicated.p_adjusted or 1.0) < 0.001


@pytest.mark.parametrize("share", [0.822, 0.0, 1.0])
def test_the_page_says_how_much_of_the_evaluation_text_is_in_the_training_text(run, share):
    record = json.loads((run / "corpus" / "record.json").read_text(encoding="utf-8"))
    record["splits"]["eval"]["overlap"] = {"types": share / 2.0, "tokens": share}
    write_json(run / "corpus" / "record.json", record)
    text = inner_text(page(run))
    n = json.loads((run / "results.json").read_text())[0]["sentences"]
    assert f"{n} sentences of the split eval ({share:.1%} of its sentences also occur in train)" in text
    assert "none of the training split" not in text


def test_oracles_are_shown_of_objectives_that_a_model_has():
    causal, masked = ({"model": "oracle", "objective": objective} for objective in ("causal", "masked"))
    model = {"model": "m", "objective": "causal"}
    silent = {"model": "n", "objective": "masked", "relative_ppl": None}
    assert with_models([causal, masked, model]) == [causal, model]
    assert with_models([causal, masked, model], [silent]) == [causal, masked, model]
    assert with_models([causal, masked]) == [causal, masked]


def test_a_report_of_causal_models_has_no_masked_table(run):
    rows = json.loads((run / "results.json").read_text())
    assert {row["objective"] for row in rows} == {"causal", "masked"}
    assert "Masked models" in inner_text(page(run)) or "masked: " in inner_text(page(run))
    write_json(run / "results.json", [row for row in rows if row["objective"] == "causal" or row["model"] == "oracle"])
    text = inner_text(page(run))
    assert "causal-small" in text and "masked: " not in text


def test_a_model_that_makes_few_sentences_stands_apart(run):
    """An unsmoothed trigram is not the best model for what it leaves out."""
    rows = json.loads((run / "results.json").read_text())
    few = {**rows[1], "model": "trigram", "relative_ppl": 1.001, "relative_ppl_low": 0.9, "relative_ppl_high": 1.1}
    few |= {"sentences": 12, "excluded": 188, "impossible_model": 180, "impossible_oracle": 8}
    write_json(run / "results.json", [*rows, few])
    text = inner_text(page(run))
    assert "The best causal model, causal-small," in text
    assert "trigram: the oracle cannot make 8 and the model cannot make 180 of 200 sentences;" in text
    assert "trigram (causal, 12 sentences)" in text
    assert text.index("causal-small") < text.index("trigram")
    assert words.ranked([few]) == [few]
    assert "better than trigram" not in text
    assert not words.verdict([{**few, "relative_ppl_high": 0.95}]).startswith("Warning")  # it chose its sentences
    assert words.left_out(rows) == []


def test_the_bound_of_other_positions_is_not_drawn_in_training_curves(run):
    config = json.loads((run / "config.json").read_text())
    write_json(run / "config.json", {**config, "evaluation": {**config.get("evaluation", {}), "frame": "paper"}})
    text = inner_text(page(run))
    assert "exact bound" not in text
    assert "its bound is not one of these curves" in text


def test_pieces_have_no_bound_in_the_curve_and_counts_have_no_curve(run):
    rows = json.loads((run / "results.json").read_text())
    assert inner_text(page(run)).count("exact bound") == 2 + 1  # the sentence above the curves
    rows[1]["tokenizer"] = "bpe"
    write_json(run / "results.json", rows)
    text = inner_text(page(run))
    assert text.count("exact bound") == 1 + 1
    assert "perplexity of a piece" in text and "its tokens are pieces, so the bound" in text
    metrics = run / "models" / "causal-small" / "metrics.jsonl"
    metrics.write_text(metrics.read_text().splitlines()[-1] + "\n")
    assert "perplexity of a piece" not in inner_text(page(run))
