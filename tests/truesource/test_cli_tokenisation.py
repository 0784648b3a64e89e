"""`truesource evaluate tokenisation`: tables, records, figures, the distance to the truth, and bad luck."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from byte_tokenizers import bpe, llama, sequences
from command_line import Command
from piece_models import cuts_of
from pyarrow import parquet
from saved_models import save_model, save_piece_model
from seat_grammar import SEAT_GRAMMAR

from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.oracle import Oracle
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

pytestmark = pytest.mark.long

LENGTHS = LengthRange(2, 5)
CALL = ("evaluate", "tokenisation")
WORDS = ["the", "a", "cat", "seat", "heath", "sees", "eats"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of untrained networks: of pieces, with and without scores, of whole words, and a masked one."""
    folder = tmp_path_factory.mktemp("models")
    for kind in ("unigram", "bpe"):
        save_piece_model(folder / kind, [WORDS], kind, 22, max_positions=60)
    save_piece_model(folder / "masked", [WORDS], "bpe", 22, architecture="bert", max_positions=40)
    save_piece_model(folder / "narrow", [WORDS], "unigram", 22, max_positions=12)
    save_model(folder / "words")
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command, models: Path) -> Path:
    """A folder with a grammar, a corpus of it and the models, as working directory."""
    monkeypatch.chdir(tmp_path)
    PCFG.from_text(SEAT_GRAMMAR).save(tmp_path / "toy.npz")
    for name in models.iterdir():
        (tmp_path / name.name).symlink_to(name)
    made = command("sample", "toy.npz", "-n", 40, "-o", "corpus", "--lengths", str(LENGTHS), "--shares", "eval=1")
    assert made.code == 0
    return tmp_path


def records_of(path: Path, **where: object) -> dict[str, dict[str, Any]]:
    """By name, of one run or table; those without such entries by default."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    where = {"table": None, "by": None, **where}
    return {r["name"]: r for r in rows if all(r.get(key) == value for key, value in where.items())}


def test_estimators_stand_side_by_side_and_everything_is_written(here: Path, command: Command) -> None:
    found = command(
        *CALL, "unigram", "corpus", "--estimators", "exact,nbest,wor1,wr", "--samples", 8, "--sentences", 6,
        "--json", "t.json", "--document-table", "t.parquet", "--figure", "t.svg", "--no-oracle",
    )  # fmt: skip
    assert (found.code, found.err) == (0, "")
    assert found.last == ("Wrote t.json and t.parquet and t.svg. Next: truesource evaluate tokenisation unigram corpus")
    for text in ("one-best", "wor1", "lower bound", "unbiased", "marginal gap", "6 documents"):
        assert text in found.out
    rows = json.loads((here / "t.json").read_text(encoding="utf-8"))
    assert all({"name", "value", "low", "high", "signature"} <= row.keys() for row in rows)
    assert all(math.isfinite(row["value"]) for row in rows)
    by = {name: records_of(here / "t.json", run=name) for name in ("one-best", "exact", "nbest", "wor1", "wr")}
    assert by["one-best"]["log_p"]["value"] < by["nbest"]["log_p"]["value"] < by["exact"]["log_p"]["value"]
    assert [by[name]["log_p"]["bound"] for name in by] == ["lower", "exact", "lower", "unbiased", "unbiased"]
    assert abs(by["wor1"]["log_p"]["value"] - by["exact"]["log_p"]["value"]) < 6 * by["wor1"]["standard_error"]["value"]
    gap = by["exact"]["log_p"]["value"] - by["one-best"]["log_p"]["value"]
    assert by["exact"]["gap"]["value"] == pytest.approx(gap / 6, rel=1e-12)
    assert {"proposal:own", "estimator:exact", "eos:in"} <= set(by["exact"]["ppl"]["signature"].split("|"))
    words = sum(len(text.split()) for text in corpus_texts()[:6])
    assert by["exact"]["ppl"]["value"] == pytest.approx(math.exp(-by["exact"]["log_p"]["value"] / words), rel=1e-12)
    table = parquet.read_table(here / "t.parquet").to_pandas()
    assert sorted(table["run"].unique()) == ["exact", "nbest", "one-best", "wor1", "wr"]
    assert len(table) == 5 * 6
    of_exact = table[table["run"] == "exact"]
    assert of_exact["log_p"].sum() == pytest.approx(by["exact"]["log_p"]["value"], rel=1e-12)
    assert (of_exact["entropy"] > 0.0).any()
    drawn = "".join(ElementTree.parse(here / "t.svg").getroot().itertext())
    assert "marginal gap, nats per piece" in drawn
    assert "true NLL" not in drawn


def corpus_texts() -> list[str]:
    from truesource.generator.corpus import Corpus

    return [" ".join(sentence) for sentence in Corpus.load("corpus").sentences("eval")]


def test_byte_tokens_are_in_the_sum(here: Path, command: Command) -> None:
    """The sum over all token sequences that the tokeniser decodes to a text, among them those of a letter in bytes."""
    backend = bpe(b" a" + "é".encode(), ("▁", "a", "▁a"))
    model = llama(backend)
    model.model.save_pretrained(here / "llama")
    model.tokenizer.save_pretrained(here / "llama")
    (here / "two.txt").write_text("aé\né a\n", encoding="utf-8")
    call = ("llama", "two.txt", "--estimators", "exact", "--json", "t.json", "--word-table", "w.parquet", "--canonical")
    found = command(*CALL, *call)
    assert found.code == 0 and "bytes" not in found.err
    rows = [[np.array(row) for row in sequences(backend, text, 4)] for text in ("aé", "é a")]
    total = sum(float(np.logaddexp.reduce(model.log_probs(of_text))) for of_text in rows)
    record = records_of(here / "t.json", run="exact")["log_p"]
    assert (record["bound"], record["value"]) == ("exact", pytest.approx(total, abs=1e-4))
    assert "no-bytes" not in (here / "t.json").read_text(encoding="utf-8")
    assert parquet.read_table(here / "w.parquet").to_pandas()["word"].tolist() == ["aé", "é", "a"]
    found = command(*CALL, "llama", "two.txt", "--lattice", "--proposal", "uniform")
    assert found.code == 0 and "<0xC3> <0xA9>" in found.out


def test_the_sum_is_that_of_all_cuts_by_hand(here: Path, command: Command) -> None:
    """Every cut of two texts, found by trying all divisions, scored in one batch."""
    from truesource.lmtrain.models import load_model

    (here / "two.txt").write_text("cat eats\nthe heath\n", encoding="utf-8")
    call = ("unigram", "two.txt", "--estimators", "exact,wor1", "--samples", 4096, "--json", "t.json")
    assert command(*CALL, *call).code == 0
    model: Any = load_model("unigram")
    inventory = model.pieces.inventory
    ids = dict(zip(inventory.pieces, inventory.ids.tolist(), strict=True))

    def cuts(spelling: str) -> list[list[int]]:
        if not spelling:
            return [[]]
        return [
            [ids[spelling[:k]], *rest]
            for k in range(1, len(spelling) + 1)
            if spelling[:k] in ids
            for rest in cuts(spelling[k:])
        ]

    total = 0.0
    for text in ("cat eats", "the heath"):
        rows = cuts(model.pieces.read(text).spelling)
        assert len(rows) > 5
        total += np.logaddexp.reduce(model.log_probs([np.array(row) for row in rows]))
    for run in ("exact", "wor1"):  # more samples than cuts: the sum of all
        record = records_of(here / "t.json", run=run)["log_p"]
        assert record["value"] == pytest.approx(total, abs=1e-5)  # single precision of the network
        assert record["bound"] == "exact"


def test_the_distance_to_the_truth_is_divided(here: Path, command: Command) -> None:
    found = command(
        *CALL, "unigram", "corpus", "--estimators", "exact", "--sentences", 12, "--oracle", "toy.npz",
        "--json", "t.json", "--figure", "t.svg",
    )  # fmt: skip
    assert (found.code, found.err) == (0, "")
    assert found.last == "Wrote t.json and t.svg. Next: truesource cite"
    records = records_of(here / "t.json", run="exact")
    value = {name: record["value"] for name, record in records.items()}
    for end in ("", "_per_word"):
        assert value[f"distance{end}"] == pytest.approx(value[f"one_best_nll{end}"] - value[f"true_nll{end}"], rel=1e-9)
        parts = value[f"tokenisation_gap{end}"] + value[f"model_gap{end}"]
        assert parts == pytest.approx(value[f"distance{end}"], rel=1e-9)
        assert value[f"tokenisation_gap{end}"] > 0.0
    assert value["tokenisation_share"] + value["model_share"] == pytest.approx(1.0, rel=1e-9)
    sentences = [text.split() for text in corpus_texts()[:12]]
    truth = Oracle(PCFG.load("toy.npz"), lengths=LENGTHS).score(sentences, ScoringFrame()).log_prob.sum()
    assert value["true_nll"] == pytest.approx(-truth / len(sentences), rel=1e-12)
    assert value["one_best_nll"] == pytest.approx(
        -records_of(here / "t.json", run="one-best")["log_p"]["value"] / len(sentences), rel=1e-12
    )
    assert f"given:{LENGTHS}" in records["distance"]["signature"].split("|")
    for name in ("tokenisation_gap_per_word", "true_nll_per_word"):
        assert f" {value[name]:.4f} " in found.out or f" {value[name]:.6f} " in found.out
    drawn = "".join(ElementTree.parse(here / "t.svg").getroot().itertext())
    for text in ("true NLL", "tokenisation gap", "the two gaps, with 95% intervals"):
        assert text in drawn


def test_the_truth_of_a_disjoint_split_leaves_the_earlier_splits_out(here: Path, command: Command) -> None:
    splits = ("--shares", "train=.5,eval=.5", "--overlap", "disjoint", "--lengths", LENGTHS)
    assert command("sample", "toy.npz", "-n", 60, "-o", "apart", *splits).code == 0
    found = command(
        *CALL, "unigram", "apart", "--estimators", "nbest", "--samples", 4, "--oracle", "toy.npz", "--json", "t.json",
        "--word-table", "w.parquet", "--candidates", 1, "--particles", 1, "--no-tail",
    )  # fmt: skip
    assert found.code == 0
    corpus, pcfg = Corpus.load("apart"), PCFG.load("toy.npz")
    excluded = Exclusion.of(corpus, "eval", pcfg, LENGTHS)
    assert excluded is not None and excluded.exact
    said = f"eval of apart excludes the {len(excluded.sentences)} sentences of earlier splits"
    assert found.err.startswith(said) and "add" not in found.err
    records = records_of(here / "t.json", run="nbest")
    sentences = corpus.sentences("eval")
    free = pcfg.exact.string_log_probs(sentences, LENGTHS).sum()
    correction = corpus.record["splits"]["eval"]["excluded"]["log_correction"]
    wanted = -(free + correction * len(sentences)) / len(sentences)
    assert records["true_nll"]["value"] == pytest.approx(wanted, rel=1e-10)
    signed = f"|given:{LENGTHS}|disjoint:{excluded.part}|grammar:{pcfg.digest[:8]}|"
    for name in ("true_nll", "model_gap_per_word"):
        assert signed in records[name]["signature"]
    words = records_of(here / "t.json", table="words")["surprisal_truth"]
    assert f"|disjoint:{excluded.part}|" in words["signature"]


def test_pieces_without_scores_get_fitted_ones(here: Path, command: Command) -> None:
    call = (*CALL, "bpe", "corpus", "--sentences", 4, "--samples", 8, "--estimators", "nbest,wor1")
    for options, proposal in (((), "fitted"), (("--proposal", "uniform"), "uniform")):
        found = command(*call, *options, "--json", "t.json", "--force")
        assert found.code == 0
        warned = records_of(here / "t.json", run="wor1").get("below_bound")  # wor1 may fall short of nbest
        assert found.err == ("" if warned is None else f"Warning: corpus: {warned['warning']}\n")
        assert f"proposal:{proposal}" in records_of(here / "t.json", run="wor1")["ppl"]["signature"].split("|")
    refused = command(*call, "--proposal", "own")
    assert refused.code == 2
    assert "a bpe tokeniser has no scores" in refused.err


def test_one_seed_gives_the_same_numbers(here: Path, command: Command) -> None:
    call = (*CALL, "unigram", "corpus", "--sentences", 5, "--samples", 4, "--estimators", "wr,wor")
    texts = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert command(*call, "--seed", seed, "--json", f"{name}.json").code == 0
        texts.append((here / f"{name}.json").read_text(encoding="utf-8"))
    assert texts[0] == texts[1] != texts[2]


def test_the_tables(here: Path, command: Command) -> None:
    lines = ["the cat sees the cat", "a seat eats a seat", "the heath sees a heath a cat"]
    (here / "long.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = command(
        *CALL, "unigram", "long.txt", "--estimators", "wor1", "--samples", 4, "--oracle", "toy.npz", "--grid",
        "--curves", "--caching", "--equal-cost", 1, "--out-of-domain", "zipf=0.5", "--json", "t.json",
        "--figure", "t.svg",
    )  # fmt: skip
    assert found.code == 0, found.err
    titles = ("Published estimators", "by number of segmentations", "by inverse temperature", "Loss of a repeated word")
    for text in (*titles, "Estimators by cost", "Changed grammars", "zipf=0.5", "in-domain"):
        assert text in found.out
    rows = json.loads((here / "t.json").read_text(encoding="utf-8"))
    assert all({"name", "value", "low", "high", "signature"} <= row.keys() for row in rows)
    tables = {row.get("table") for row in rows}
    assert tables == {None, "grid", "order", "samples", "temperature", "equal-cost", "caching", "out-of-domain"}
    order = [row["value"] for row in rows if row.get("table") == "order" and row["order"] == "model"]
    assert order == sorted(order, reverse=True)
    assert len(order) == 4
    signatures = {row["signature"] for row in rows if row.get("table") == "samples"}
    assert len(signatures) == sum(row.get("table") == "samples" for row in rows)
    drawn = "".join(ElementTree.parse(here / "t.svg").getroot().itertext())
    assert "error of ln P(text), nats, root mean square" in drawn


def test_words_have_surprisals_and_cuts_in_context(here: Path, command: Command) -> None:
    found = command(
        *CALL, "unigram", "corpus", "--estimators", "exact", "--sentences", 4, "--oracle", "toy.npz", "--candidates",
        64, "--particles", 1000, "--canonical", "--word-table", "w.parquet", "--json", "t.json",
    )  # fmt: skip
    assert (found.code, found.err) == (0, "")
    assert found.last == "Wrote t.json and w.parquet. Next: truesource cite"
    rows = parquet.read_table(here / "w.parquet").to_pandas()
    sentences = [text.split() for text in corpus_texts()[:4]]
    assert rows["word"].tolist() == [word for sentence in sentences for word in sentence]
    assert rows["document"].tolist() == [i for i, sentence in enumerate(sentences) for _ in sentence]
    assert rows["position"].tolist() == [i for sentence in sentences for i, _ in enumerate(sentence)]
    truth = Oracle(PCFG.load("toy.npz"), lengths=LENGTHS).score(sentences, ScoringFrame(eos=False)).log_prob
    assert rows["surprisal_truth"].tolist() == (-truth).tolist()
    means = records_of(here / "t.json", table="words")
    for column in ("surprisal", "surprisal_marginal", "surprisal_truth"):
        assert means[column]["value"] == pytest.approx(rows[column].mean(), rel=1e-12)
    assert means["surprisal_difference"]["value"] > 0.0
    assert set(records_of(here / "t.json", table="canonical")) == {"locally_canonical", "local_canonical_mass"}
    for record in (means["surprisal_excess"], records_of(here / "t.json", table="canonical")["locally_canonical"]):
        assert f"{record['value']:.4f}" in found.out
    assert {record["words"] for record in means.values()} == {len(rows)}


def test_settings_of_estimators_are_heard(here: Path, command: Command) -> None:
    call = (*CALL, "unigram", "corpus", "--sentences", 3, "--oracle", "toy.npz", "--json", "t.json", "--force")
    found = command(*call, "--estimators", "bracket,dpf,exact", "--tolerance", 0.3, "--candidates", 1, "--no-tail")
    assert found.code == 0
    records = {name: records_of(here / "t.json", run=name) for name in ("bracket", "dpf", "exact")}
    low, high = (records["bracket"][name]["value"] for name in ("log_p", "log_upper"))
    assert low < records["exact"]["log_p"]["value"] < high
    assert f"{-low:.3f} (to \N{MINUS SIGN}{-high:.3f})" in found.out
    assert "tolerance:0.3" in records["bracket"]["ppl"]["signature"].split("|")
    assert records["dpf"]["log_p"]["bound"] == "lower"  # the best cut of each word, and nothing drawn
    assert "tail:False" in records["dpf"]["ppl"]["signature"].split("|")
    assert records["dpf"]["log_p"]["value"] < records["exact"]["log_p"]["value"]
    few = command(*call, "--estimators", "bracket", "--most-prefixes", 1)
    assert (few.code, "no document is left to evaluate" in few.err) == (2, True)


def test_sentences_joined_to_documents_and_words_of_another_spelling(here: Path, command: Command) -> None:
    found = command(
        *CALL, "unigram", "corpus", "--estimators", "nbest", "--samples", 4, "--sentences", 6, "--oracle", "toy.npz",
        "--per-document", 3, "--out-of-domain", "respell=0.5", "--json", "t.json",
    )  # fmt: skip
    assert found.code == 0, found.err
    records = records_of(here / "t.json", run="nbest")
    parts = records["distance"]["signature"].split("|")
    assert "sentences-a-document:3" in parts
    rows = json.loads((here / "t.json").read_text(encoding="utf-8"))
    assert {row["set"] for row in rows if row.get("table") == "out-of-domain"} == {"in-domain", "respell=0.5"}


def test_tokens_around_a_text_can_be_chosen(here: Path, command: Command) -> None:
    call = ("evaluate", "tokenisation", "bpe", "corpus", "--sentences", "3", "--estimators", "nbest", "--samples", "4")
    found = command(*call, "--before", "eos", "--no-end")
    assert found.code == 0
    assert "|before:eos|" in found.out and "|eos:out|" in found.out
    assert "|before:" not in command(*call).out
    for options, message in (
        (("--before", "rubbish"), "has no token 'rubbish' to put before a text"),
        (("--no-end", "--oracle", "toy.npz"), "--oracle and --word-table need the end of a text"),
    ):
        refused = command(*call, *options)
        assert refused.code == 2 and message in refused.err


def test_texts_that_are_too_long_are_left_out_where_that_is_asked_for(here: Path, command: Command) -> None:
    (here / "odd.txt").write_text(f"the cat\n{' '.join(WORDS)}\na cat\n", encoding="utf-8")
    call = (*CALL, "narrow", "odd.txt", "--estimators", "wr,exact", "--samples", 4, "--grid", "--json", "t.json")
    refused = command(*call, "--no-leave-out-long")
    assert refused.code == 2
    assert "text 2: the window of narrow is too short: the canonical tokenisation of a text has " in refused.err
    assert "the model reads 12; divide the text, or exclude it with --leave-out-long" in refused.err
    found = command(*call)
    assert found.code == 0
    assert found.err == (
        "Warning: 1 of 3 documents of odd.txt are excluded; the canonical tokenisation has more tokens than the 12 that"
        " the model reads\n"
    )
    assert records_of(here / "t.json", run="wr")["documents"]["value"] == 2
    grid = [row for row in json.loads((here / "t.json").read_text("utf-8")) if row.get("table") == "grid"]
    assert grid
    assert all({"documents:2", "left-out:1"} <= set(row["signature"].split("|")) for row in grid)


# -- what is too low --------------------------------------------------------------------------------


def test_a_total_that_is_certainly_too_low_is_said_and_has_no_shares(here: Path, command: Command) -> None:
    call = (*CALL, "bpe", "corpus", "--sentences", 4, "--samples", 8, "--proposal", "uniform", "--oracle", "toy.npz")
    found = command(*call, "--estimators", "nbest,wor1", "--json", "t.json")
    assert found.code == 0
    records = records_of(here / "t.json", run="wor1")
    nats = records_of(here / "t.json", run="nbest")["log_p"]["value"] - records["log_p"]["value"]
    assert nats > 3 * records["standard_error"]["value"]
    assert records["below_bound"]["value"] == pytest.approx(nats)
    assert records["below_bound"]["below"] == "nbest"
    assert found.err == f"Warning: corpus: {records['below_bound']['warning']}\n"
    assert records["error_too_small"]["note"] == f"error bar too small: {nats:.3g} below nbest"
    assert f"error bar too small: {nats:.3g} below nbest)" in found.out
    assert "gap" in records
    assert not {"canonical_mass", "tokenisation_share", "model_share"} & set(records)
    assert "canonical mass" not in found.out


def test_what_stands_for_the_sum(here: Path, command: Command) -> None:
    call = (*CALL, "unigram", "corpus", "--sentences", 3, "--samples", 4, "--json", "t.json", "--force")
    for names, marginal in (
        ("guided,nbest", "nbest"),
        ("guided,wr", "wr"),
        ("guided", "guided"),
        ("one-best,consistent-wor1", "consistent-wor1"),
    ):
        assert command(*call, "--estimators", names).code == 0
        rows = json.loads((here / "t.json").read_text("utf-8"))
        assert [row["run"] for row in rows if row["name"] == "gap"] == [marginal]


def test_errors_below_rounding_are_said_so(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.evaluation.tokenisation.results.SINGLE", 0.5)  # of ln P, in place of 1e-7
    call = (*CALL, "unigram", "corpus", "--sentences", 12, "--estimators", "dpf", "--candidates", 64, "--particles", 2)
    found = command(*call, "--oracle", "toy.npz", "--json", "t.json")
    assert found.code == 0
    records = records_of(here / "t.json", run="dpf")
    assert f"(below rounding, ±{records['rounding']['value']:.1g})" in found.out
    assert f"{records['estimation_error_per_word']['value']:.4f}" in found.out
    assert records["rounding"]["value"] > records["standard_error"]["value"] > 0.0


def test_perplexities_that_no_float_can_hold(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "one.txt").write_text("theheathseesthecat\n", encoding="utf-8")
    call = (*CALL, "unigram", "one.txt", "--estimators", "nbest,wor1", "--samples", 4, "--grid", "--curves")
    with monkeypatch.context() as patch:
        patch.setattr("truesource.evaluation.tokenisation.summaries.MOST", 1.0)  # nats a word, in place of some 709
        found = command(*call, "--json", "t.json", "--figure", "t.svg")
    assert found.code == 0, found.err
    assert found.out.count("over 1e308") > 10
    assert "bits_per_character|estimator:wor1" in found.out
    rows = json.loads((here / "t.json").read_text("utf-8"))
    assert not any(row["name"] == "ppl" for row in rows)
    assert {row.get("table") for row in rows} >= {None, "temperature"}
    found = command(*call, "--json", "t.json", "--force")
    large = records_of(here / "t.json", run="nbest")["ppl"]["value"]
    assert large > 1e9
    assert f"{large:.4g}" in found.out


def test_too_few_samples_for_the_curves_are_refused_at_once(here: Path, command: Command) -> None:
    call = (*CALL, "unigram", "corpus", "--estimators", "nbest", "--sentences", 2, "--curves", "--json", "t.json")
    found = command(*call, "--samples", 2)
    assert (found.code, found.out) == (2, "")
    assert "--curves needs at least 3 samples" in found.err
    assert command(*call, "--samples", 3).code == 0


def test_exact_is_left_out_where_a_text_has_too_many_segmentations(here: Path, command: Command) -> None:
    call = (*CALL, "unigram", "corpus", "--sentences", 2, "--most-prefixes", 1, "--json", "t.json")
    found = command(*call, "--estimators", "exact,nbest", "--samples", 2)
    assert found.code == 0
    assert found.err.startswith("Warning: ") and "exact" in found.err
    runs = {row["run"] for row in json.loads((here / "t.json").read_text("utf-8"))}
    assert runs == {"one-best", "nbest"}
    assert command(*call, "--estimators", "exact", "--force").code == 2


def test_records_are_kept_where_a_table_fails(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object, **named: object) -> None:
        raise InputError("no grid today")

    monkeypatch.setattr("truesource.evaluation.tokenisation.summaries.perplexity_grid", fails)
    call = (*CALL, "unigram", "corpus", "--estimators", "nbest", "--sentences", 2, "--grid")
    found = command(*call, "--json", "t.json", "--document-table", "t.parquet")
    assert (found.code, found.err) == (2, "truesource: no grid today\n")
    assert records_of(here / "t.json", run="nbest")["log_p"]["value"] < 0.0
    assert len(parquet.read_table(here / "t.parquet")) == 2 * 2


def test_the_guide_names_every_estimator() -> None:
    from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS

    guide = (Path(__file__).parents[2] / "docs" / "concepts" / "estimators.md").read_text(encoding="utf-8")
    table = guide.partition("## The estimators")[2].partition("\n\n")[2].partition("\n\n")[0]
    for name in ESTIMATORS:
        assert f"`{name.removeprefix('consistent-')}`" in table, name
    assert "`consistent-...`" in table


# -- bad input --------------------------------------------------------------------------------------


def test_what_the_tokeniser_reads_otherwise_is_said_and_counted(here: Path, command: Command) -> None:
    (here / "odd.txt").write_text("the cat\nthe zebra\na  seat \nthe heath\n", encoding="utf-8")
    call = (*CALL, "unigram", "odd.txt", "--estimators", "exact", "--oracle", "toy.npz", "--json", "t.json")
    (here / "toy.npz").unlink()
    PCFG.from_text("S -> D N 1.0\nD -> the 0.6 | a 0.4\nN -> cat 0.5 | seat 0.3 | heath 0.2").save("toy.npz")
    found = command(*call)
    assert found.code == 0
    one, two, three = found.err.splitlines()
    assert one.startswith("Warning: 1 of 4 documents of odd.txt (line 2) are excluded: no piece spells ")
    assert "'z'" in one
    assert two.startswith("Warning: the tokeniser alters white space of 1 of 4 documents of odd.txt (line 3)")
    assert three.startswith("Warning: 1 sentences of odd.txt that the tokeniser alters are not in the distance")
    assert records_of(here / "t.json", run="exact")["documents"]["value"] == 3
    assert records_of(here / "t.json", run="exact")["left_out"]["value"] == 1
    characters = len("the cat") + len("a  seat ") + len("the heath")
    found_log_p = records_of(here / "t.json", run="exact")["log_p"]["value"]
    bits = -found_log_p / math.log(2) / characters
    assert records_of(here / "t.json", run="exact")["bits_per_character"]["value"] == pytest.approx(bits, rel=1e-12)


@pytest.mark.parametrize("option", ["--proposal best", "--tolerance nan", "--candidates 0", "--sentences 0"])
def test_values_out_of_range_are_refused(option: str, here: Path, command: Command) -> None:
    found = command(*CALL, "unigram", "corpus", *option.split())
    assert (found.code, found.out) == (2, "")
    assert option.split()[0] in found.err


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("words corpus", "evaluate tokenisation needs a tokeniser of pieces"),
        ("masked corpus", "a masked model gives no probability to a text"),
        ("missing corpus", "missing"),
        ("unigram missing", "missing"),
        ("unigram corpus --split dev", "dev"),
        ("unigram empty.txt", "this line is empty; expecting one document a line (empty.txt:2)"),
        ("unigram blank.txt", "the file is empty; expecting one document a line"),
        ("unigram foreign.txt", "none of the 2 texts can be segmented into pieces"),
        ("unigram corpus --estimators exact,magic", "there is no estimator 'magic'; choose one of auto, exact, "),
        ("unigram corpus --estimators ,", "no estimator is given; name at least one of auto, exact"),
        ("unigram corpus --estimators wr,wr", "an estimator is repeated in wr,wr"),
        ("unigram corpus --estimators wor --samples 1", "wor needs at least 2 samples, got 1"),
        ("unigram corpus --inverse-temperature inf", "--inverse-temperature: "),
        ("unigram long.txt --estimators exact", "text 2 has too many segmentations for exact; use dpf (long.txt)"),
        ("narrow long.txt --estimators nbest --no-leave-out-long", "the canonical tokenisation of a text has "),
        ("unigram corpus --no-oracle --per-document 2", "--per-document needs the grammar of the text"),
        ("unigram corpus --oracle toy.npz --out-of-domain respell=2", "above 0 and at most 1, got 2"),
        ("unigram corpus --word-table toy.npz", "will not overwrite toy.npz without --force"),
        ("unigram corpus --oracle missing.npz", "missing.npz"),
        ("unigram corpus --no-oracle --out-of-domain zipf=2", "add it with --oracle"),
        ("unigram corpus --oracle toy.npz --out-of-domain nothing", "there is no variant 'nothing'"),
        ("unigram corpus --lengths 9", "6..25 (inclusive) or none, got '9'"),
        ("unigram corpus --json toy.npz", "will not overwrite toy.npz without --force"),
        ("unigram corpus --figure old.svg", "will not overwrite old.svg without --force"),
        ("unigram corpus --document-table old.csv", "will not overwrite old.csv without --force"),
        ("unigram corpus --document-table d.md", "--document-table writes .csv or .parquet"),
    ],
)
def test_bad_input_is_one_sentence(line: str, part: str, here: Path, command: Command) -> None:
    for name in ("old.svg", "old.csv"):
        (here / name).touch()
    (here / "empty.txt").write_text("the cat\n \nthe seat\n", encoding="utf-8")
    (here / "blank.txt").write_text("", encoding="utf-8")
    (here / "foreign.txt").write_text("xyz\nwww\n", encoding="utf-8")
    (here / "long.txt").write_text("the cat\n" + " ".join(["the heath sees the seat"] * 2) + "\n", encoding="utf-8")
    found = command(*CALL, *line.split())
    assert found.code == 2
    assert part in found.err
    assert found.err.count("\n") == 1
    assert found.err.startswith("truesource: ")


def test_where_cuts_do_not_fit_the_window_the_sum_is_over_the_others(here: Path, command: Command) -> None:
    """``the heath sees`` can be cut into 15 pieces; 11 of them fit after the token before the text."""
    from truesource.evaluation.tokenisation.documents import documents
    from truesource.evaluation.tokenisation.lattice import LatticeBuilder
    from truesource.lmtrain.models import load_model

    (here / "two.txt").write_text("a cat\nthe heath sees\n", encoding="utf-8")
    asked = ("exact", "nbest", "wor1", "dpf", "block", "guided", "bracket")
    call = (*CALL, "narrow", "two.txt", "--estimators", ",".join(asked), "--samples", 20, "--tolerance", 0)
    found = command(*call, "--grid", "--caching", "--canonical", "--word-table", "w.parquet", "--json", "t.json")
    assert found.code == 0, found.err
    assert found.err == (
        "Warning: two.txt: 1 of 2 documents have segmentations of over 12 tokens, which narrow cannot read; their sums"
        " are over the segmentations that fit, a lower bound of P\n"
    )
    model: Any = load_model("narrow")
    inventory = model.pieces.inventory
    builder = LatticeBuilder(inventory)
    total = 0.0
    for document in documents(model, ["a cat", "the heath sees"], builder).documents:
        cuts = [inventory.ids[list(cut)] for cut in cuts_of(inventory, document.lattice.spelling)]
        fit = [cut for cut in cuts if len(cut) <= 11]
        total += np.logaddexp.reduce(model.log_probs(fit))
    assert len(fit) < len(cuts)
    by = {name: records_of(here / "t.json", run=name)["log_p"] for name in asked}
    assert by["exact"]["value"] == pytest.approx(total, rel=1e-7)
    assert by["bracket"]["value"] == pytest.approx(total, rel=1e-7)
    assert by["nbest"]["value"] < total + 1e-4
    bounds = {name: record["bound"] for name, record in by.items()}
    assert bounds == dict.fromkeys(("exact", "nbest", "bracket", "dpf"), "lower") | dict.fromkeys(
        ("wor1", "block", "guided"), "part"
    )
    assert all("window:12" in record["signature"].split("|") for record in by.values())
    upper = records_of(here / "t.json", run="exact")["log_upper"]["value"]
    assert upper > by["exact"]["value"]
    assert len(parquet.read_table(here / "w.parquet")) == 5
