"""`sample` and what is done with corpora, as commands: splits, conditions, variants, jobs, brackets, warnings."""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from command_line import Command
from scipy import stats
from toy_english import TOY

from truesource.generator.corpus import Corpus
from truesource.generator.text_files import read_sentences
from truesource.grammar.pcfg import PCFG
from truesource.grammar.treebank import Treebank

SPLIT = ("--lengths", "2..8", "--shares", "train=.6,test=.4")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_splits_are_explained(here: Path, command: Command) -> None:
    code, out, _ = command("sample", "toy.npz", "-n", 400, "-o", "a", *SPLIT)
    assert code == 0
    assert "of test (" in out
    assert "of its sentence types) also occur in train" in " ".join(out.split())
    out = command("sample", "toy.npz", "-n", 400, "-o", "b", *SPLIT, "--overlap", "disjoint").out
    excluded = Corpus.load(here / "b").record["splits"]["test"]["excluded"]
    assert f"test: earlier splits hold exactly {excluded['probability']:.6g} of the probability" in out
    assert f"add {excluded['log_correction']:.6g} nats" in " ".join(out.split())
    out = command("sample", "toy.npz", "-n", 200, "-o", "c", *SPLIT, "--overlap", "unique").out
    assert "sampled sentences repeated an earlier one" in out
    twice = command("bound", "toy.npz", "c", "--split", "test").err
    assert "no sentence occurs twice in c" in " ".join(twice.split())
    assert command("bound", "toy.npz", "a", "--split", "test").err == ""


@pytest.mark.long
def test_the_bound_of_disjoint_splits_is_corrected(here: Path, command: Command) -> None:
    """Exactly, or where the excluded probability is an estimate, not at all, with a warning."""
    assert command("sample", "toy.npz", "-n", 400, "-o", "b", *SPLIT, "--overlap", "disjoint").code == 0
    corpus = Corpus.load(here / "b")
    sentences, excluded = corpus.sentences("test"), corpus.record["splits"]["test"]["excluded"]
    found = command("bound", "toy.npz", "b", "--split", "test", "--no-masked", "--json", "b.json")
    assert "test of b excludes the" in found.err and "Warning" not in found.err
    (score,) = json.loads((here / "b.json").read_text())["summary"]
    assert "|disjoint:" in score["signature"]
    free = PCFG.load(here / "toy.npz").exact.string_log_probs(sentences, corpus.lengths)
    tokens = sum(len(sentence) + 1 for sentence in sentences)
    nats = -(free.sum() + len(sentences) * excluded["log_correction"]) / tokens
    assert math.log(score["value"]) == pytest.approx(nats, rel=1e-10)

    record = json.loads((here / "b" / "record.json").read_text())
    record["splits"]["test"]["excluded"]["exact"] = False
    (here / "b" / "record.json").write_text(json.dumps(record))
    found = command("bound", "toy.npz", "b", "--split", "test", "--no-masked")
    assert f"add {excluded['log_correction']:.6g} nats" in " ".join(found.err.split())
    assert "|disjoint:uncorrected|" in found.out


@pytest.mark.long
def test_conditions_of_the_sampler(here: Path, command: Command) -> None:
    code, out, _ = command("sample", "toy.npz", "-n", 300, "-o", "low", *SPLIT, "--max-height", 6)
    assert code == 0
    cap = Corpus.load(here / "low").record["height_cap"]
    assert f"height     {1 - cap['probability']:.3g} of the probability is in trees above 6" in out
    assert "underestimates ln P" in " ".join(command("bound", "toy.npz", "low", "--split", "test").err.split())
    assert (
        command("sample", "toy.npz", "-n", 50, "-o", "np", "--lengths", "1..4", "--shares", "x=1", "--start", "NP").code
        == 0
    )
    phrases = Corpus.load(here / "np").sentences("x")
    assert {len(phrase) for phrase in phrases} == {1, 2}
    command(
        "sample", "toy.npz", "-n", 3000, "-o", "cold", "--shares", "x=1", "--lengths", "none", "--temperature", 0.25
    )
    nouns = [
        word for s in Corpus.load(here / "cold").sentences("x") for word in s if word in ("dog", "cat", "man", "park")
    ]
    weights = np.array([0.4, 0.3, 0.2, 0.1]) ** 4
    counts = [nouns.count(word) for word in ("dog", "cat", "man", "park")]
    assert stats.chisquare(counts, len(nouns) * weights / weights.sum()).pvalue > 1e-3
    cold = PCFG.load(here / "cold" / "grammar.npz")
    assert cold.digest == Corpus.load(here / "cold").grammar_digest != PCFG.from_text(TOY).digest
    out = command("sample", "toy.npz", "--tokens", 5000, "-o", "tokens", *SPLIT).last
    assert Corpus.load(here / "tokens").n_tokens("train") == pytest.approx(3000, rel=0.1), out


def test_columns(here: Path, command: Command, caplog: pytest.LogCaptureFixture) -> None:
    import pandas as pd

    flags = ("--trees", "none", "--string-logprob", "--ids")
    assert command("sample", "toy.npz", "-n", 50, "-o", "c", *SPLIT, *flags).code == 0
    columns = ["text", "n_tokens", "logprob", "split", "string_logprob", "ids"]
    assert list(pd.read_parquet(here / "c" / "data")) == columns
    assert command("sample", "toy.npz", "-n", 50, "-o", "d", *SPLIT, "--trees", "none").code == 0
    assert Corpus.load(here / "d").trees_as == "none"


def test_trees_as_text(here: Path, command: Command) -> None:
    call = ("sample", "toy.npz", "-n", 60, *SPLIT)
    assert command(*call, "-o", "ids").code == command(*call, "-o", "text", "--trees", "text").code == 0
    assert command("convert", "ids", "a.mrg").code == command("convert", "text", "b.mrg").code == 0
    assert (here / "a.mrg").read_bytes() == (here / "b.mrg").read_bytes()
    refused = command("convert", "text", "c.mrg", "--symbols")
    assert refused.code == 2 and "sample it with --trees ids" in refused.err and not (here / "c.mrg").exists()


@pytest.mark.long
def test_the_licence_is_that_of_the_option_or_of_the_grammar(here: Path, command: Command) -> None:
    call = ("sample", "toy.npz", "-n", 10, *SPLIT)
    assert command(*call, "-o", "own", "--license", "CC-BY-4.0").code == 0
    assert command("sample", "dyck", "-n", 10, "-o", "dyck", *SPLIT).code == 0
    assert command("language", "dyck", "-o", "d.npz", "--license", "MIT").code == 0
    assert command("sample", "d.npz", "-n", 10, "-o", "mit", *SPLIT).code == 0
    assert command(*call, "-o", "none").code == 0
    found = {}
    for name in ("own", "dyck", "mit", "none"):
        found[name] = yaml.safe_load((here / name / "README.md").read_text(encoding="utf-8").split("---\n")[1])[
            "license"
        ]
    assert found == {"own": "cc-by-4.0", "dyck": "apache-2.0", "mit": "mit", "none": "unknown"}
    refused = command(*call, "-o", "bad", "--license", "CC BY")
    assert refused.code == 2 and "SPDX identifier" in refused.err
    assert command("language", "dyck", "-o", "d.txt", "--license", "MIT").code == 2


@pytest.mark.long
def test_jobs(here: Path, command: Command) -> None:
    call = ("sample", "toy.npz", "-n", 300, *SPLIT, "--shard-size", 40)
    assert command(*call, "-o", "whole", "--workers", 2).code == 0
    assert command(*call, "-o", "c", "--shard", "1/2").out.startswith("Wrote this job's shards of c.")
    assert command(*call, "-o", "c", "--shard", "0/2").last.startswith("Wrote c: 300 sentences")
    assert Corpus.load(here / "c").digest == Corpus.load(here / "whole").digest


def test_brackets_of_a_corpus(here: Path, command: Command) -> None:
    command("sample", "toy.npz", "-n", 100, "-o", "c", *SPLIT)
    code, out, _ = command("convert", "c", "trees.mrg.gz", "--split", "test")
    assert code == 0
    assert "40 trees" in out
    corpus = Corpus.load(here / "c")
    assert list(Treebank.read(here / "trees.mrg.gz", normalise=None)) == list(corpus.trees("test"))
    first = gzip.decompress((here / "trees.mrg.gz").read_bytes()).decode().splitlines()[0]
    assert first.startswith("(S ")
    assert command("convert", "c", "text.txt").code == 0
    assert (here / "text.txt").read_text().splitlines() == [" ".join(s) for s in corpus.sentences("train")]
    assert "are for trees" in command("convert", "c", "more.txt", "--symbols").err
    assert "no split 'dev'" in command("convert", "c", "more.mrg", "--split", "dev").err
    assert "will not overwrite" in command("convert", "c", "trees.mrg.gz").err


def test_parallel_corpora(here: Path, command: Command) -> None:
    specs = ("mirror=VP+PP", "zipf=1.5")
    call = ("sample", "toy.npz", "-n", 200, "-o", "c", *SPLIT)
    code, out, _ = command(*call, *(part for spec in specs for part in ("--variant", spec)))
    assert code == 0, out
    assert "KL(P||Q)" in out
    assert f"Wrote {Path('c/original')}" in out.splitlines()[-1]
    original, mirrored, words = (Corpus.load(here / "c" / name) for name in ("original", "mirror-VP+PP", "zipf-1.5"))

    def turned(node):
        if isinstance(node, str):
            return [node]
        parts = [turned(child) for child in node.children]
        return [w for part in (reversed(parts) if node.label in ("VP", "PP") else parts) for w in part]

    trees = list(original.trees("train"))
    assert mirrored.sentences("train") == [turned(tree) for tree in trees]
    assert mirrored.log_probs("train") == pytest.approx(original.log_probs("train"), abs=1e-9)
    mirror = PCFG.load(here / "c" / "mirror-VP+PP" / "grammar.npz")
    assert mirror.digest == mirrored.grammar_digest
    assert mirrored.sentences("train") != original.sentences("train")
    for before, after in zip(trees, words.trees("train"), strict=True):
        same = [[n.label for n in tree.subtrees()] for tree in (before, after)]
        assert same[0] == same[1]
    assert words.sentences("train") != original.sentences("train")
    record = json.loads((here / "c" / "variants.json").read_text())
    assert [(entry["corpus"], entry["retold"]) for entry in record["variants"]] == [
        ("mirror-VP+PP", True),
        ("zipf-1.5", False),
    ]
    from truesource.grammar.support.errors import InputError

    with pytest.raises(InputError, match="reorders another"):
        Corpus.replay(mirrored.record, mirror, here / "again")


def test_sentences_have_all_lengths_unless_a_range_is_asked_for(here: Path, command: Command) -> None:
    """Of S -> S S 0.49 | a 0.51, lengths follow the Catalan numbers; their mean is 0.51 / 0.02 = 25.5."""
    (here / "mine.txt").write_text("S -> S S 0.49 | 'a' 0.51\n", encoding="utf-8")
    found = command("sample", "mine.txt", "-n", 4000, "-o", "c", "--shares", "train=1")
    assert (found.code, found.err) == (0, "")
    corpus = Corpus.load(here / "c")
    assert corpus.lengths is None and corpus.record["condition"] is None
    lengths = np.array([len(sentence) for sentence in corpus.sentences("train")])
    assert f" tokens, mean length {lengths.mean():.2f}, no length range. Next: " in found.last
    exact = [math.comb(2 * n - 2, n - 1) / n * 0.49 ** (n - 1) * 0.51**n for n in range(1, 51)]
    observed = [*np.bincount(lengths[lengths <= 50], minlength=51)[1:], np.sum(lengths > 50)]
    assert stats.chisquare(observed, 4000 * np.array([*exact, 1 - sum(exact)])).pvalue > 1e-3
    none = command("sample", "mine.txt", "-n", 4000, "-o", "n", "--shares", "train=1", "--lengths", "none")
    assert none.code == 0 and Corpus.load(here / "n").digest == corpus.digest


@pytest.mark.long
def test_an_inconsistent_grammar_is_sampled_in_the_way_that_its_refusal_names(here: Path, command: Command) -> None:
    (here / "grows.txt").write_text("S -> S S 0.6 | NP 0.4\nNP -> NP NP NP 0.2 | 'a' 0.8\n", encoding="utf-8")
    call = ("sample", "grows.txt", "-n", 40, "--shares", "train=1", "-o", "c")
    refused = command(*call)
    assert refused.code == 2 and not (here / "c").exists()
    way_out = re.search(r"to sample this grammar, give a range of lengths, such as (--lengths) (\S+) \(", refused.err)
    assert way_out is not None
    assert command(*call, *way_out.groups()).last.startswith("Wrote c: 40 sentences")
    assert Corpus.load(here / "c").record["call"]["lengths"] == way_out[2]
    assert command(*call[:-1], "np", "--start", "NP").code == 0  # of which all derivations end
    assert command(*call[:-1], "hot", "--start", "NP", "--temperature", 9).code == 2  # about 1/2 each


@pytest.mark.parametrize(("depth", "warns"), [(6, False), (7, True)])
def test_long_sentences_are_warned_of_not_refused(depth: int, warns: bool, here: Path, command: Command) -> None:
    """Published languages have sentences of 3^6 = 729 tokens; 3^7 = 2,187 are rarely what is wanted."""
    rules = [f"A{i} -> A{i + 1} A{i + 1} A{i + 1} 1.0" for i in range(depth)]
    (here / "deep.txt").write_text("\n".join([*rules, f"A{depth} -> 'a' 0.5 | 'b' 0.5"]), encoding="utf-8")
    call = ("sample", "deep.txt", "-n", 5, "--shares", "train=1")
    found = command(*call, "-o", "c")
    assert found.code == 0 and f"mean length {3**depth}.00, no length range" in found.last
    expected = "Warning: sentences of this grammar have 2,187 tokens on average; a range of lengths, such as --lengths"
    assert found.err.startswith(expected) if warns else found.err == ""
    for option in (("--lengths", f"1..{3**depth}"), ("--max-height", 40)):
        assert command(*call, *option, "-o", option[0].strip("-")).err == ""


def test_a_length_range_needs_no_consistent_grammar(here: Path, command: Command) -> None:
    """Of S -> S S 0.6 | a 0.4, lengths 1 and 2 have 0.4 and 0.6 * 0.4 ** 2 before conditioning."""
    PCFG.from_text("S -> S S 0.6 | a 0.4").save(here / "grows.npz")
    code, _, err = command("sample", "grows.npz", "-n", 2000, "-o", "c", "--lengths", "1..2", "--shares", "train=1")
    assert (code, err) == (0, "")
    short = sum(len(sentence) == 1 for sentence in Corpus.load(here / "c").sentences("train"))
    assert stats.binomtest(short, 2000, 0.4 / (0.4 + 0.6 * 0.4**2)).pvalue > 1e-3
    code, _, err = command("sample", "grows.npz", "-n", 20, "-o", "d", "--lengths", "none", "--shares", "train=1")
    assert code == 2
    assert "spectral radius" in err
    assert not (here / "d").exists()


@pytest.mark.parametrize("lengths", ["1..9", "none"])
def test_rounded_probabilities_are_sampled(lengths: str, here: Path, command: Command) -> None:
    (here / "mild.txt").write_text("S -> S S 0.3 | a 0.6999993\n", encoding="utf-8")
    arguments = ("sample", "mild.txt", "-n", 50, "-o", "c", "--lengths", lengths, "--shares", "train=1")
    assert command(*arguments).code == 0
    assert command("convert", "mild.txt", "mended.npz", "--normalise").code == 0
    assert command("inspect", "mended.npz").out.splitlines()[-1].startswith("No problem found.")
    assert command("inspect", "mild.txt").out.splitlines()[-1].startswith("No problem found.")


def test_text_and_trees_of_a_corpus_read_back(here: Path, command: Command) -> None:
    PCFG.from_text("S -> S S 0.3 | 'New\u00a0York' 0.4 | 'x' 0.3").save(here / "nb.npz")
    assert command("sample", "nb.npz", "-n", 60, "-o", "nb", "--lengths", "1..4", "--shares", "eval=1").code == 0
    code, out, _ = command("convert", "nb", "nb.txt", "--split", "eval")
    assert code == 0
    assert out.splitlines()[-1].endswith("Next: truesource inspect GRAMMAR nb.txt")
    assert read_sentences(here / "nb.txt") == Corpus.load(here / "nb").sentences("eval")
    found = [
        [line for line in command("bound", "nb.npz", source, "--lengths", "1..4").out.splitlines() if "|" in line]
        for source in ("nb", "nb.txt")
    ]
    assert found[0] == [line.replace("_perplexity|", "_bound|") for line in found[1]] and len(found[0]) == 2
    code, out, _ = command("convert", "nb", "nb.mrg", "--split", "eval")
    assert out.splitlines()[-1].endswith("Next: truesource induce nb.mrg -o grammar.npz")


@pytest.mark.parametrize(
    "option",
    [("--prune", 0.1), ("--level", 0), ("--start", "S"), ("--normalise",), ("--to", "text"), ("--from", "npz")],
)
def test_options_of_grammars_are_refused_for_corpora(option: tuple[object, ...], here: Path, command: Command) -> None:
    (here / "folder").mkdir()
    code, _, err = command("convert", "folder", "t.mrg", *option)
    assert code == 2
    assert f"this is a corpus folder, but {option[0]} applies to grammars only" in err
