"""Sampled text and PPLu in a run: the stages, what they leave, when they are skipped, their part of the report."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tiny_run import RunCopies, prepare, run

from truesource.evaluation.core.score import Score
from truesource.evaluation.measures.monte_carlo import ChanceTest, holm
from truesource.evaluation.pplu.reduced_vocabulary import PROTOCOLS
from truesource.evaluation.pplu.report import figure as reduction_figure
from truesource.evaluation.tendencies import TendencySettings
from truesource.evaluation.tendencies.against_sample import against_sample
from truesource.evaluation.tendencies.against_truth import against_truth
from truesource.evaluation.tendencies.decoding_schemes import HEADLINE, ModelSample, same_size
from truesource.evaluation.tendencies.evaluator import TendenciesSettings
from truesource.evaluation.tendencies.figures import drawn_of, tendencies_figure
from truesource.evaluation.tendencies.findings import Finding, Tendencies
from truesource.evaluation.tendencies.report import MEASURES, _most, _reading, starred
from truesource.evaluation.tendencies.truth import TrueText, symbols
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.run.experiment import build_report, load_config, plan

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]

GRAMMAR = """\
S -> NP VP 0.6 | NP VP P 0.4
NP -> D N 0.7 | N 0.3
VP -> V NP 0.4 | V 0.6
P -> . 1.0
D -> the 0.6 | a 0.4
N -> cat 0.5 | seat 0.3 | heath 0.2
V -> sees 0.6 | eats 0.4
"""
CONFIG = """\
name: toy
seed: 3
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..6, splits: {train: 200, dev: 20, eval: 60}}
models:
  - {name: one, model: {architecture: ngram, order: 1}}
  - {name: three, model: {architecture: ngram, order: 3}}
evaluation:
  pplu: true
  tendencies: {schemes: [ancestral, {scheme: beam_sampling, beams: 3}], number: 150, chance: 39}
"""
NEW = [
    *("pplu:one", "pplu:three", "samples:one", "samples:three"),
    *("tendencies", "report"),
]
MASKED = "models=[{name: both, model: {architecture: bert, dim: 8, heads: 2, layers: 1}, training: {max_steps: 2}}]"


@pytest.fixture(scope="module")
def finished(finished_run: RunCopies) -> Path:
    """A finished run, in a folder with its configuration."""
    return finished_run("tendencies", lambda folder: run(prepare(folder, CONFIG, GRAMMAR)))


def found(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "runs" / "toy" / "tendencies" / "tendencies.json").read_text("utf-8"))
    return value


def section(folder: Path) -> tuple[str, str]:
    """The section of the page, as it stands and as text."""
    html = build_report(folder / "runs" / "toy").read_text(encoding="utf-8")
    root = ElementTree.fromstring(re.sub(r"<(meta|br)([^>]*)>", r"<\1\2/>", html.replace("<!DOCTYPE html>", "")))
    ids = [node.attrib["id"] for node in root.iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids))
    start = html.index('<section id="tendencies">')
    part = html[start : html.index("</section>", start)]
    plain = re.sub(r"<svg.*?</svg>", "", part, flags=re.DOTALL)
    return part, re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", plain))


def test_stages_are_there_when_asked_for(finished: Path) -> None:
    stages = [stage.name for stage in plan(load_config(finished / "toy.yaml"))]
    assert stages[-6:] == NEW
    off = ["evaluation.tendencies=null", "evaluation.pplu=false"]
    assert not set(NEW[:-1]) & {stage.name for stage in plan(load_config(finished / "toy.yaml", off))}
    masked = [stage.name for stage in plan(load_config(finished / "toy.yaml", [MASKED]))]
    assert masked[-2:] == ["pplu:both", "report"]  # it has no distribution to draw text from


def test_what_the_stages_leave(finished: Path) -> None:
    value = found(finished)
    assert {(s["model"], s["scheme"]) for s in value["samples"]} == {
        (model, scheme) for model in ("one", "three") for scheme in ("ancestral", "beam_sampling-3")
    }
    for s in value["samples"]:
        record = json.loads(
            (finished / "runs" / "toy" / "samples" / s["model"] / s["scheme"] / "record.json").read_text("utf-8")
        )
        assert s["cut"] == record["counts"]["sentences"] - record["counts"]["finished"]
        assert s["sentences"] + s["cut"] + s["empty"] <= 150
    rows = {(r["scheme"], r["source"], r["name"]): r for r in value["records"]}
    assert all({"name", "value", "low", "high", "signature"} <= r.keys() for r in value["records"])
    assert rows["ancestral", "oracle", "length_ks"]["value"] == rows["beam_sampling-3", "oracle", "length_ks"]["value"]
    assert min(rows["ancestral", "oracle", name]["p"] for name in ("length_ks", "unigram_tv", "types")) > 0.01
    assert rows["ancestral", "one", "length_ks"]["p"] < 0.01  # a unigram model's lengths are geometric
    pplu = json.loads((finished / "runs" / "toy" / "pplu" / "three.json").read_text("utf-8"))
    scores = {r["name"]: r["value"] for r in pplu["records"]}
    assert scores["pplu"] == pytest.approx(scores["ppl"] / scores["ppl_unigram"])


def test_the_report_has_a_section(finished: Path) -> None:
    part, text = section(finished)
    for words in (
        "8 What the text looks like",
        "ancestral",
        "beam_sampling-3",
        "oracle",
        "chance",
        "What differs most is",
        "a length that no sentence can have",
    ):
        assert words in text, words
    assert part.count("<svg ") == 2
    assert "Left out:" in text
    value = next(r for r in found(finished)["records"] if (r["source"], r["name"]) == ("one", "length_ks"))
    assert f"{value['value']:.4f}*" in text
    html = (finished / "runs" / "toy" / "report.html").read_text("utf-8")
    assert "7</span>What models know of context (PPLu)" in html and "three<br>causal</th>" in html
    assert "9 Provenance" in html


@pytest.mark.usefixtures("quick_report")
def test_only_what_has_changed_is_made_again(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree(finished, tmp_path / "copy")
    assert set(run(copy)) <= {"report"}  # which the test before may have drawn anew
    assert run(copy) == []
    assert run(copy, "evaluation.tendencies.chance=19") == ["tendencies", "report"]
    stands = (copy / "runs" / "toy" / "samples" / "one" / "ancestral" / "record.json").stat().st_mtime_ns
    schemes = "evaluation.tendencies.schemes=[ancestral, {scheme: top_k, top_k: 2}]"
    assert run(copy, schemes) == ["samples:one", "samples:three", "tendencies", "report"]
    assert (copy / "runs" / "toy" / "samples" / "one" / "ancestral" / "record.json").stat().st_mtime_ns == stands
    assert run(copy, "evaluation.pplu=false", schemes) == ["report"]
    split = ("evaluation.tendencies.reference=split", "evaluation.tendencies.permutations=39")
    assert run(copy, schemes, *split) == ["tendencies", "report"]
    _, text = section(copy)
    assert "compared with the evaluation sentences" in text
    assert found(copy)["against"] == "sample"
    (copy / "runs" / "toy" / "tendencies" / "tendencies.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"this file is damaged: .*tendencies\.json"):
        build_report(copy / "runs" / "toy")


@pytest.mark.parametrize(
    ("schemes", "message"),
    [
        (["nucleus"], "needs top_p"),
        (["greedy"], "schemes: scheme: "),
        ([{"scheme": "ancestral", "nonsense": 1}], "nonsense: unknown key"),
        ([{"scheme": "beam_sampling", "keep": "all"}], "not independent"),
        (["beam"], "always gives the same"),
        (["ancestral", "ancestral"], "is given twice"),
        ([], "name one or more"),
    ],
)
def test_schemes_are_checked(schemes: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TendenciesSettings(schemes=schemes)


def test_names_of_schemes() -> None:
    names = ["ancestral", "nucleus-0.9", "beam_sampling-5"]
    assert list(TendenciesSettings().decodings()) == names


def test_samples_that_lack_a_few_sentences_set_the_size_of_all() -> None:
    drawn = [ModelSample(str(n), "s", [["a"]] * n, 0, 0) for n in (100, 97, 40)]
    assert [len(d.sentences) for d in same_size(drawn)] == [97, 97, 40]


def test_stars_are_adjusted_within_the_table() -> None:
    rows = {"x": {"length_ks": 0.02, "types": 0.001}, "y": {"length_ks": 0.04}}
    members = {name: ["length_ks", "types"] for name in rows}
    records = adjusted(rows, members)
    assert all(starred(r) for row in records.values() for r in row.values())
    assert records["x"]["types"]["family"] == "3 tests"
    apart = adjusted({"x": {"length_ks": 0.03}, "y": {"length_ks": 0.04}}, members)
    assert not any(starred(r) for row in apart.values() for r in row.values())


def adjusted(p: dict[str, dict[str, float]], members: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """Records of findings with these p-values."""
    findings = {
        source: {
            name: Finding("length", Score(name, 1.0, "s"), ChanceTest(1.0, value, 0.1, 0.0, 0.2, 999))
            for name, value in row.items()
        }
        for source, row in p.items()
    }
    found = Tendencies("truth", "t", findings, {}).adjusted_for(members, "{} tests")
    return {
        source: {name: f.as_score().as_record() for name, f in row.items()} for source, row in found.findings.items()
    }


def test_stars_of_the_report_are_those_of_the_json(finished: Path) -> None:
    """Each family by hand: of a scheme the models' columns, the oracle's own, and all tests for other measures."""
    records = found(finished)["records"]
    for scheme in ("ancestral", "beam_sampling-3"):
        rows = [r for r in records if r["scheme"] == scheme and r["name"] in HEADLINE and "p" in r]
        for family in ([r for r in rows if r["source"] != "oracle"], [r for r in rows if r["source"] == "oracle"]):
            assert [r["p_holm"] for r in family] == pytest.approx(holm([r["p"] for r in family]))
            assert {r["family"].split(" tests")[0] for r in family} == {f"the {len(family)}"}
    others = [r for r in records if r["name"] not in HEADLINE and "p" in r]
    assert {r["family"] for r in others} == {others[0]["family"]}
    assert others[0]["family"].endswith("tests of the comparison")
    stars = {
        (r["scheme"], r["source"], r["name"])
        for r in records
        if any(r["name"] == name for name, *_ in MEASURES) and r.get("p_holm", 1) <= 0.05
    }
    part, _ = section(finished)
    assert part.count("*<small>") == len(stars) > 0


def record(name: str, value: float, high: float, p: float, draws: int, null: str, **more: float) -> dict[str, Any]:
    chance = {"chance_mean": high / 2, "chance_low": 0.0, "chance_high": high}
    return {"name": name, "value": value, "p": p, "draws": draws, "null": null, **chance, **more}


def test_what_differs_most_may_have_too_few_draws_for_a_star() -> None:
    """Word frequencies 20 times chance and beyond all its 99 draws come before lengths with a star, 2 times chance."""
    row = {
        "length_ks": record("length_ks", 0.1, 0.05, 0.0002, 9999, "draws") | {"p_holm": 0.01},
        "unigram_tv": record("unigram_tv", 0.8, 0.04, 0.01, 99, "samples"),
        "rank_ks": record("rank_ks", 0.9, 0.04, 0.02, 99, "samples"),
    }
    far, words = _reading(row, "the truth", {"m": row})
    assert far == pytest.approx(20)
    assert len(words) == 2  # ranks have no star, and a draw reaches them
    assert words[0].endswith(", TV 20 times the 97.5% quantile of chance, beyond all 99 samples of the truth")
    assert words[1].endswith(", KS 2.0 times the 97.5% quantile of chance")  # one of its draws reaches it
    table = {"scheme": "ancestral", "reading": [{"model": "m", "far": far, "words": words}]}
    assert str(_most([table])).startswith("What differs most is ancestral of m: 80.0% of the tokens")
    types = record("types", 70.0, 120.0, 0.01, 99, "samples") | {"chance_low": 80.0, "chance_mean": 100.0}
    assert "1.5 times half the width of the middle 95% of chance" in _reading({"types": types}, "", {})[1][0]


def test_words_outside_the_grammar_are_said() -> None:
    row = {
        "unigram_tv": record("unigram_tv", 0.8, 0.04, 0.01, 99, "samples"),
        "outside_share": {"value": 0.25},
    }
    _, (words,) = _reading(row, "the truth", {})
    assert "25.0% are words that the grammar does not have" in words


TEXT = [["the", "cat", "sees", "a", "seat", "."], ["a", "heath", "eats"], ["cat", "eats", "."]] * 30


def words(svg: str) -> str:
    text = ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    return " ".join("".join(n.itertext()) for n in text.iter("{http://www.w3.org/2000/svg}text"))


def test_figures_of_odd_samples() -> None:
    fast = TendencySettings({"symbols": symbols}, chance=19, permutations=19, draws=49)
    truth = TrueText(PCFG.from_text(GRAMMAR), LengthRange(2, 6))
    samples = {"a $name": TEXT, "one word": [["cat"]] * 50, "few": TEXT[:2]}
    text = words(tendencies_figure(drawn_of(against_truth(samples, truth, fast))))
    assert all(name in text for name in samples)
    assert "truth (exact)" in text
    assert "shaded: 95% of samples of the truth" in text
    text = words(tendencies_figure(drawn_of(against_sample(samples, TEXT[::-1], fast, name="other"))))
    assert "line the reference" in text
    assert "other" in text
    alone = words(
        tendencies_figure(
            drawn_of(against_sample({"w": [["cat"]] * 9}, [["cat"]] * 9, TendencySettings(), name="other"))
        )
    )
    assert "total variation" in alone
    assert "KS distances to" not in alone
    many = {f"sample {i}": TEXT[i:] for i in range(7)}
    text = words(tendencies_figure(drawn_of(against_sample(many, TEXT, fast))))
    assert all(name in text for name in many)


def test_the_figure_of_reduction() -> None:
    rows = [
        {"table": "reduction", "side": side, "protocol": protocol, "words": n, "name": name, "value": 0.1}
        for side in ("model", "truth")
        for n in (10, 100)
        for protocol in PROTOCOLS
        for name in ("change_ppl", "change_pplu")
    ]
    text = words(reduction_figure({"model": "m", "records": rows}, "x") or "")
    assert all(part in text for part in ("PPL, m", "PPLu, the truth", "merge", "skip", "renormalise", "100"))
    alone = [row for row in rows if row["side"] == "model"]
    assert "PPL, m" in words(reduction_figure({"model": "m", "records": alone}, "x") or "")
    assert reduction_figure({"model": "m", "records": []}, "x") is None
