"""The verb induce: methods, lexicon modes, what it says; and parsing with what it makes."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command

from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.files import round_floats
from truesource.grammar.treebank import Treebank
from truesource.run.grammar.induce import useless_cycles
from truesource.run.grammar.section import spectrum_figure, substates_figure

TREES = """
(ROOT (S (NP (PRP he)) (VP (V sees) (NP (D the) (N dog)))))
(ROOT (S (NP (PRP he)) (VP (V walks))))
(ROOT (S (NP (PRP she)) (VP (V sees) (NP (D a) (N cat)))))
(ROOT (S (NP (PRP she)) (VP (V talks))))
(ROOT (S (NP (D the) (N cows)) (VP (V sleep))))
(ROOT (S (NP (D the) (N pigs)) (VP (V sleep))))
"""
BAD = "(ROOT (S (NP (-NONE- *))))\n"
TEXT = "she sees the hens\nhe balks\nhe sees the dog\n"
GOLD = """
(ROOT (S (NP (PRP she)) (VP (V sees) (NP (D the) (N hens)))))
(ROOT (S (NP (PRP he)) (VP (V balks))))
(ROOT (S (NP (PRP he)) (VP (V sees) (NP (D the) (N dog)))))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A treebank, gold trees with words that it does not have, their text; the working directory."""
    for name, text in (("bank.mrg", TREES * 4 + BAD), ("gold.mrg", GOLD), ("text.txt", TEXT)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_it_says_what_it_read_and_what_came_of_it(here: Path, command: Command) -> None:
    code, out, err = command("induce", "bank.mrg", "-o", "new.npz", "--cycles", 2, "--held-out", "gold.mrg")
    assert (code, err) == (0, "")
    rows = out.splitlines()
    assert rows[0] == "24 trees, 72 words, 12 types"
    assert any(row.startswith("refused    1 of 25 trees, the first (bank.mrg:") for row in rows)
    pcfg = PCFG.load(here / "new.npz")
    assert pcfg.meta == round_floats(pcfg.meta)  # digits that depend on the number of threads are cut off
    found = {row.split()[0]: row for row in rows}
    value = f"training   {pcfg.meta['log_likelihood_per_token']:.4f} nats per token"
    assert found["training"] == f"{value} by the grammar as written, smoothed and filtered"
    held_out = pcfg.meta["held_out"]
    value = f"{held_out['log_likelihood_per_token']:.4f}"
    assert (
        found["held"]
        == f"held out   {value} nats per token of 1 of 3 trees; the other 2 have probability 0 and are excluded"
    )
    assert found["grammar"].startswith(f"grammar    {len(pcfg.symbols)} symbols of 8 labels; rules: ")
    assert found["filter"].startswith("filter     ")
    assert " of the derivations used one of them" in found["filter"]
    assert "unknown" not in found
    assert rows[-1].endswith("Next: truesource sample new.npz -n 100000 -o corpus/")
    assert sorted(path.name for path in here.iterdir()) == ["bank.mrg", "gold.mrg", "new.npz", "text.txt"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "method", "symbols"),
    [
        (("--method", "relative-frequency"), "relative-frequency", {"NP", "VP", "PRP"}),
        (("--cycles", 0), "split-merge", {"NP", "VP", "PRP"}),
        (("--method", "parent"), "relative-frequency", {"NP^S", "NP^VP", "VP^S", "PRP"}),
        (("--method", "parent", "--lexicon", "parse"), "relative-frequency", {"NP^S-0", "NP^VP-0", "VP^S-0", "PRP-0"}),
        (("--method", "relative-frequency", "--held-out", "gold.mrg"), "relative-frequency", {"NP-0", "VP-0"}),
    ],
)
def test_baselines(options: tuple[object, ...], method: str, symbols: set[str], here: Path, command: Command) -> None:
    assert command("induce", "bank.mrg", "-o", "new.npz", *options).code == 0
    pcfg = PCFG.load(here / "new.npz")
    assert symbols <= set(pcfg.symbols)
    assert set(pcfg.labels) == {"ROOT", "S", "NP", "VP", "PRP", "V", "D", "N"}
    assert pcfg.meta["method"] == method
    parent = "parent" in options
    assert pcfg.meta["binarisation"]["vertical"] == (2 if parent else 1)
    if "--lexicon" not in options:
        pronoun = 16 / 24 if parent else 16 / 32  # of subjects; of all noun phrases
        expected = pronoun * 1 / 2 * 16 / 24 * 4 / 24
        assert pcfg.log_prob(["he", "walks"]) == pytest.approx(math.log(expected))


@pytest.mark.long
@pytest.mark.parametrize("method", ["split-merge", "parent", "relative-frequency"])
def test_lexicon_parse_reads_unseen_words(method: str, here: Path, command: Command) -> None:
    cycles = ("--cycles", 1) if method == "split-merge" else ()
    code, out, _ = command("induce", "bank.mrg", "-o", "new.npz", *cycles, "--lexicon", "parse", "--method", method)
    assert code == 0
    assert "word classes, learned from 12 words seen 20 times or fewer" in out
    assert out.splitlines()[-1].endswith("Next: truesource parse new.npz TEXT -o trees.mrg --method max-rule")
    pcfg = PCFG.load(here / "new.npz")
    np.testing.assert_allclose(pcfg.row_sums, 1.0, rtol=0, atol=1e-12)
    for way in ("viterbi", "max-rule"):
        arguments = (
            "parse",
            "new.npz",
            "text.txt",
            "-o",
            "trees.mrg",
            "--gold",
            "gold.mrg",
            "--method",
            way,
            "--force",
        )
        code, out, err = command(*arguments)
        assert (code, err) == (0, "")
        assert out.startswith("labelled F1 100.00% (precision 100.00%, recall 100.00%), exact match 100.00%")
        assert Treebank.read("trees.mrg", None).sentences() == [line.split() for line in TEXT.splitlines()]


@pytest.mark.long
def test_lexicon_generate_cannot_parse_unseen_words(here: Path, command: Command) -> None:
    assert command("induce", "bank.mrg", "-o", "new.npz", "--cycles", 1).code == 0
    _, _, err = command("parse", "new.npz", "text.txt", "-o", "trees.mrg")
    assert err.startswith("2 of 3 sentences cannot be made by the grammar, their trees are (): lines 1, 2 (")
    assert "induce --lexicon parse" in err


@pytest.mark.long
def test_the_trace_has_a_line_for_every_iteration(here: Path, command: Command) -> None:
    assert command("induce", "bank.mrg", "-o", "new.npz", "--cycles", 1, "--trace", "t.jsonl").code == 0
    records = [json.loads(line) for line in (here / "t.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(records) == 1 + 51 + 21 + 11
    assert records[-1]["phase"] == "smooth"
    assert {"log_likelihood", "held_out", "substates", "rules"} <= records[0].keys()
    pcfg = PCFG.load(here / "new.npz")
    assert records[-1]["log_likelihood"] == pytest.approx(pcfg.meta["log_likelihood_per_token"], rel=1e-5)
    assert "--force" in command("induce", "bank.mrg", "-o", "other.npz", "--trace", "t.jsonl").err
    plain = command("induce", "bank.mrg", "-o", "o.npz", "--method", "relative-frequency", "--trace", "u.jsonl")
    assert plain.code == 2 and "remove --trace" in plain.err
    assert not (here / "o.npz").exists()


@pytest.mark.long
def test_brackets_bind_and_their_labels_do_not_count(here: Path, command: Command) -> None:
    """Of the two trees of x x x, the brackets choose; without them the grammar stays as it is."""
    PCFG.from_text("S -> A B 0.5 | B A 0.5\nA -> B B 0.5 | x 0.5\nB -> x 1.0").save(here / "start.npz")
    (here / "brackets.mrg").write_text("(R (Q (Q (T x) (T x)) (T x)))\n", encoding="utf-8")
    (here / "plain.txt").write_text("x x x\n", encoding="utf-8")
    chosen = {}
    for option, source in (("--brackets", "brackets.mrg"), ("--unbracketed", "plain.txt")):
        arguments = ("induce", option, source, "--start-from", "start.npz", "-o", f"{option}.npz", "--trace", "t.jsonl")
        code, out, _ = command(*arguments, "--force")
        assert code == 0
        assert "Wrote " in out
        pcfg = PCFG.load(here / f"{option}.npz")
        names = [tuple(pcfg.symbols[i] for i in rule) for rule in pcfg.binary]
        chosen[option] = dict(zip(names, np.exp(pcfg.binary_logp).round(6).tolist(), strict=True))
    assert chosen["--brackets"] == {("S", "A", "B"): 1.0, ("A", "B", "B"): 1.0}
    assert chosen["--unbracketed"] == {("S", "A", "B"): 0.5, ("S", "B", "A"): 0.5, ("A", "B", "B"): 1.0}
    record = json.loads((here / "t.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert record["log_likelihood"] == pytest.approx(math.log(0.5) / 3)


@pytest.mark.parametrize(
    "options", [(), ("bank.mrg", "--start-from", "s.npz"), ("--start-from", "s.npz"), ("bank.mrg", "--brackets", "b")]
)
def test_one_kind_of_input_is_wanted(options: tuple[str, ...], here: Path, command: Command) -> None:
    code, _, err = command("induce", *options, "-o", "new.npz")
    assert code == 2
    assert "a treebank, or --start-from GRAMMAR with one of --unbracketed and --brackets" in err


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (
            ("--start-from", "s.npz", "--unbracketed", "text.txt", "--method", "parent"),
            ["--method cannot be combined with --start-from"],
        ),
        (
            ("--start-from", "s.npz", "--unbracketed", "text.txt", "--lexicon", "parse"),
            ["--lexicon cannot be combined with --start-from"],
        ),
        (
            ("--start-from", "s.npz", "--brackets", "bank.mrg", "--cycles", 5),
            ["--cycles cannot be combined with --start-from"],
        ),
        (("bank.mrg", "--iterations", 50), ["--iterations needs --start-from"]),
        (("bank.mrg", "--cycles", 2, "--method", "relative-frequency"), ["--cycles applies to the method split-merge"]),
    ],
)
def test_settings_that_would_do_nothing_are_refused(
    options: tuple[object, ...], parts: list[str], here: Path, command: Command
) -> None:
    PCFG.from_text("S -> S S 0.3 | x 0.7").save(here / "s.npz")
    code, _, err = command("induce", *options, "-o", "new.npz")
    assert code == 2
    for part in parts:
        assert part in err
    assert not (here / "new.npz").exists()


@pytest.mark.long
def test_reestimation_scores_what_is_held_out_and_forgets_idle_words(here: Path, command: Command) -> None:
    start = PCFG.from_text("S -> S S 0.3 | x 0.3 | y 0.2 | z 0.2").with_meta(license="CC0", filter={"rules": 3})
    start.save(here / "s.npz")
    (here / "plain.txt").write_text("x y\nx\n", encoding="utf-8")
    (here / "more.txt").write_text("y\nz\n", encoding="utf-8")
    arguments = ("induce", "--unbracketed", "plain.txt", "--start-from", "s.npz", "--held-out", "more.txt")
    code, out, _ = command(*arguments, "-o", "new.npz")
    assert code == 0
    pcfg = PCFG.load(here / "new.npz")
    assert pcfg.vocabulary == ("x", "y")
    assert pcfg.meta["license"] == "CC0"
    assert "filter" not in pcfg.meta
    value = math.log(3 / 4 * 1 / 3)
    assert (
        f"held out: {value:.6f} nats per token of 1 of 2 sentences; the other 1 have probability 0 and are excluded"
        in out
    )
    assert pcfg.meta["held_out"]["log_likelihood_per_token"] == pytest.approx(value)
    rows = command("inspect", "new.npz", "more.txt").out.splitlines()
    assert "unknown words: 1 tokens (50.00%), 1 types (50.00%): z (1)" in rows


@pytest.mark.long
def test_reestimation_keeps_what_split_grammars_need_to_be_made_coarser(here: Path, command: Command) -> None:
    assert command("induce", "bank.mrg", "-o", "fine.npz", "--cycles", 1).code == 0
    assert command("induce", "--brackets", "bank.mrg", "--start-from", "fine.npz", "-o", "new.npz").code == 0
    assert command("convert", "new.npz", "coarse.npz", "--level", 0).code == 0
    assert set(PCFG.load(here / "coarse.npz").symbols) == {"ROOT", "S", "NP", "VP", "PRP", "V", "D", "N"}


@pytest.mark.long
def test_grammars_with_classes_of_unknown_words_are_not_reestimated(here: Path, command: Command) -> None:
    assert command("induce", "bank.mrg", "-o", "s.npz", "--cycles", 0, "--lexicon", "parse").code == 0
    code, _, err = command("induce", "--unbracketed", "text.txt", "--start-from", "s.npz", "-o", "new.npz")
    assert code == 2
    assert "the grammar has classes of unknown words" in err
    assert not (here / "new.npz").exists()


@pytest.mark.long
@pytest.mark.parametrize("way", ["viterbi", "max-rule"])
def test_a_sentence_too_long_for_the_memory_reads_empty(
    way: str, here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    PCFG.from_text("S -> S S 0.3 | x 0.7").save(here / "s.npz")
    (here / "long.txt").write_text("x x\nx" + " x" * 400 + "\nx\n", encoding="utf-8")
    monkeypatch.setattr("truesource.grammar.inference.batch.memory", lambda: 100_000)
    code, out, err = command("parse", "s.npz", "long.txt", "-o", "t.mrg", "--method", way, "--longest", 500)
    assert code == 0
    need = "need larger charts than this machine has memory for"
    assert err == f"1 of 3 sentences {need}, their trees are (): line 2\n"
    assert "Wrote t.mrg: 2 trees" in out
    lines = (here / "t.mrg").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "()"
    assert lines[0] == "(S (S x) (S x))"
    for verb in (("inspect", "s.npz", "long.txt"), ("bound", "s.npz", "long.txt")):
        code, _, err = command(*verb)
        assert code == 2
        assert "sentence 2 has 401 tokens: its chart needs" in err
    assert len(Treebank.read("t.mrg")) == 2
    assert [refusal.reason for refusal in Treebank.read("t.mrg", None).refused] == ["no words left"]


@pytest.mark.long
def test_long_sentences_are_left_out_of_the_score(here: Path, command: Command) -> None:
    assert command("induce", "bank.mrg", "-o", "new.npz", "--cycles", 1, "--lexicon", "parse").code == 0
    code, out, err = command("parse", "new.npz", "text.txt", "-o", "t.mrg", "--gold", "gold.mrg", "--longest", 2)
    skipped = "2 of 3 sentences have more than 2 words (--longest), their trees are (): lines 1, 3\n"
    assert (code, err) == (0, skipped)
    assert out.splitlines()[0].endswith("1 sentences, 0 without a parse")
    assert (here / "t.mrg").read_text(encoding="utf-8").splitlines()[::2] == ["()", "()"]


@pytest.mark.long
def test_convert_makes_a_split_grammar_coarser_or_smaller(here: Path, command: Command) -> None:
    assert command("induce", "bank.mrg", "-o", "fine.npz", "--cycles", 2).code == 0
    assert command("convert", "fine.npz", "coarse.npz", "--level", 0).code == 0
    coarse = PCFG.load(here / "coarse.npz")
    assert set(coarse.symbols) == {"ROOT", "S", "NP", "VP", "PRP", "V", "D", "N"}
    code, out, _ = command("convert", "coarse.npz", "small.npz", "--prune", 0.2)
    assert code == 0
    small = PCFG.load(here / "small.npz")
    assert len(small.lexical) < len(coarse.lexical)
    np.testing.assert_allclose(small.row_sums, 1.0, rtol=0, atol=1e-12)
    assert out.splitlines()[0].startswith(f"{small.meta['pruning']['rules']} rules below 0.2 dropped: ")
    code, _, err = command("convert", "coarse.npz", "none.npz", "--level", 3)
    assert code == 2 and "level" in err
    assert not (here / "none.npz").exists()


@pytest.mark.long
def test_too_many_cycles_stop_and_say_so(here: Path, command: Command) -> None:
    code, out, _ = command("induce", "bank.mrg", "-o", "new.npz", "--cycles", 40)
    assert code == 0
    (row,) = [line for line in out.splitlines() if line.startswith("! ")]
    assert "of 40 cycles: a further split would make" in row
    assert "from 72 words; use more trees" in row


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("--lexicon magic", ["split_merge.lexicon: expected one of 'generate' or 'parse', not 'magic'"]),
        ("--method magic", ["is not one of"]),
        ("--held-out absent.mrg", ["no such file", "absent.mrg"]),
        ("--cycles -1", ["greater than or equal to 0"]),
    ],
)
def test_bad_options_are_refused(line: str, parts: list[str], here: Path, command: Command) -> None:
    code, _, err = command("induce", "bank.mrg", "-o", "new.npz", *line.split())
    assert code == 2
    for part in parts:
        assert part in err
    assert not (here / "new.npz").exists()


@pytest.mark.long
def test_figures_of_the_grammar() -> None:
    pcfg = PCFG.from_text("S -> A B 0.5 | A C 0.5\nA -> x 0.001 | y 0.999\nB -> x 1.0\nC -> B 1.0")
    assert substates_figure(pcfg) is None
    split = replace(pcfg, labels=("S", "PRP$", "@B", "@B"))
    drawn = substates_figure(split)
    assert drawn is not None
    names = re.findall(r">([^<>\n]+)</text>", drawn)
    assert names[:3] == ["@B", "S", "PRP$"]  # most states first
    assert {"labels of phrases", "labels of words", "intermediate nodes (@)"} <= set(names)
    spectrum = spectrum_figure(pcfg)
    for kind in ("two children", "one child", "a word"):
        assert f"rules to {kind}" in spectrum
    assert "rules to one child" not in spectrum_figure(PCFG.from_text("S -> S S 0.5 | a 0.5"))
    assert substates_figure(split) == drawn


@pytest.mark.long
def test_conventions_of_treebanks(here: Path, command: Command) -> None:
    """What reading drops and cuts is said; markers of another convention are a warning, until it is named."""
    (here / "swb.mrg").write_text(
        "*x*  notice\n( (CODE (SYM SpeakerA7) (. .)))\n"
        "( (S (NP-SBJ (PRP he)) (VP (VBZ walks) (NP (-NONE- *T*-1))) (-DFL- E_S)))\n" * 3
    )
    call = ("induce", "swb.mrg", "--method", "relative-frequency", "--force", "-o")
    code, out, err = command(*call, "as-penn.npz")
    assert code == 0
    assert "convention penn: dropped 3 words (-NONE- 3); cut 3 labels from 1 types to 1 (such as NP-SBJ to NP)" in out
    assert "Warning: 9 of 48 (18.8%) words or labels look like markers of the convention switch" in err
    assert "--convention switchboard" in err
    code, out, err = command(*call, "new.npz", "--convention", "switchboard")
    assert (code, err) == (0, "")
    assert "convention switchboard: dropped 12 words (CODE 6, -NONE- 3, -DFL- 3); cut 3 labels" in out
    assert PCFG.load(here / "new.npz").vocabulary == ("he", "walks")
    assert "'nega' is not one of" in command(*call, "x.npz", "--convention", "nega").err
    assert "--convention" in command("parse", "new.npz", "text.txt", "-o", "t.mrg", "--convention", "negra").err
    brackets = ("induce", "--start-from", "new.npz", "--brackets", "swb.mrg", "--convention", "switchboard")
    assert "convention switchboard: dropped 12 words" in command(*brackets, "--iterations", 1, "-o", "again.npz").out
    text = ("induce", "--start-from", "new.npz", "--unbracketed", "text.txt", "--convention", "negra", "-o", "u.npz")
    assert "--convention applies to treebanks" in command(*text).err


def trace(*held_out: float, lost: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """Two steps a cycle, of which the second has these held-out values; cycle 0 is the start."""
    rows = []
    for cycle, value in enumerate(held_out):
        for step in (value - 0.5, value):
            missing = lost[cycle] if lost else 0
            rows.append({"cycle": cycle, "phase": "split", "held_out": step, "held_out_impossible": missing})
    return rows


def test_cycles_that_do_not_help_held_out_trees_are_named() -> None:
    said = useless_cycles(trace(-6.0, -5.5, -5.495, -5.6), 100)
    assert said.startswith("Further cycles did not help") and "so cycles 2 to 3 did not" in said
    assert "-5.5000 nats per token after cycle 1 and -5.6000 after the last one" in said
    assert "the 100 of 100 trees" in said
    assert "so cycle 3 did not" in useless_cycles(trace(-6.0, -5.5, -5.4, -5.4), 100)
    assert useless_cycles(trace(-6.0, -5.5, -5.4, -5.38), 100) == ""
    assert useless_cycles(trace(-6.0, -5.5), 100) == ""
    assert useless_cycles(trace(-6.0, -5.5, -5.5), None) == ""
    assert useless_cycles([{"cycle": n, "phase": "split", "held_out": None} for n in (1, 2, 3)], 100) == ""


def test_means_over_other_trees_are_not_compared() -> None:
    """A curve may look flat because later grammars make other trees."""
    assert useless_cycles(trace(-6.0, -5.5, -5.5, lost=(50, 50, 40)), 100) == ""
    said = useless_cycles(trace(-6.0, -5.5, -5.5, lost=(50, 50, 49)), 100)
    assert "(means over the 50 and 51 of 100 trees that it can make)" in said


@pytest.mark.long
def test_trees_as_brackets_recover_their_language_if_labels_name_all_siblings(here: Path, command: Command) -> None:
    """As the guide to grammars says; with fewer siblings the language is a more general one."""
    Path("wide.txt").write_text("S -> A B C 0.5 | B A A C 0.3 | C 0.2\nA -> a 1\nB -> b 1\nC -> c 1\n", "utf-8")
    assert command("sample", "wide.txt", "-n", 2000, "-o", "wide").code == 0
    assert command("convert", "wide", "trees.mrg").code == 0
    true, kl = PCFG.load("wide.txt"), {}
    sentences = Corpus.load("wide").sentences("eval")
    for siblings in (0, "none"):
        options = ("--convention", "plain", "--set", f"binarise.horizontal={siblings}", "-o", "again.npz", "--force")
        done = command("induce", "trees.mrg", "--method", "relative-frequency", *options)
        assert done.code == 0, done.err
        gaps = true.exact.string_log_probs(sentences) - PCFG.load("again.npz").exact.string_log_probs(sentences)
        kl[siblings] = float(gaps.mean())
    assert kl["none"] < 0.02 < 0.2 < kl[0]


@pytest.mark.parametrize(
    "call",
    [
        ("induce", "bank", "-o", "g.npz", "--method", "relative-frequency"),
        ("split", "bank", "-o", "text", "--held-out", "0.5"),
        ("convert", "bank", "all.txt"),
    ],
)
def test_the_files_of_a_folder_are_counted(
    call: tuple[str, ...], command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bank").mkdir()
    for name in ("a.mrg", "b.nw", ".c.mrg"):
        Path("bank", name).write_text(TREES)
    code, out, err = command(*call)
    assert code == 0
    counts = "files      read 1 file (*.mrg 1); skipped 2 files (*.nw 1, hidden 1); 1 of these begins like trees"
    assert counts in out.splitlines()
    assert "Warning: skipped 1 file that begins like trees, with unknown suffixes (b.nw)" in err
