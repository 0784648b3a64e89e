"""The verbs about grammar files: convert between formats, inspect with and without a text."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Command

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.estimate.data_floor import data_floor, free_parameters
from truesource.grammar.inference.dependence import halves_information, mutual_information
from truesource.grammar.pcfg import PCFG

TOY = "S -> S S 0.3 | N 0.2 | 'a' 0.5\nN -> 'b' 0.4 | 'ü' 0.6\n"
EARLEYX = "ROOT->[S] : 1.0\nS->[S S] : 0.3\nS->[_a] : 0.7\n"
GRAMMAR = "ROOT_0 -> ROOT_0 1.0\nROOT_0 -> S_0 1.0\nS_0 -> S_0 S_0 0.2\nS_0 -> S_0 1.0\nS_0 -> N_1 0.8\n"
LEXICON = "N dog [0.5, 0.9]\nN cat [0.5, 0.0]\n"
NLTK = 'S -> S S [0.3] | "it\'s" [0.7]\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one grammar of each format, and texts, as working directory."""
    files = {
        "toy.txt": TOY,
        "nltk.txt": NLTK,
        "earleyx.txt": EARLEYX,
        "dump.grammar": GRAMMAR,
        "dump.lexicon": LEXICON,
        "half.grammar": GRAMMAR,
        "bad.grammar": GRAMMAR + "S_0 -> oops\n",
        "bad.lexicon": LEXICON,
        "quotes.txt": "S -> 'it\\'s\"so\"' 1.0\n",
        "blank.txt": "S -> 'a b' 1.0\n",
        "cycle.txt": "S -> N 0.3 | S a 0.2 | a 0.5\nN -> S 0.5 | b 0.5\n",
        "text.txt": "a a\nb zebra a\n\u00fc\nzebra yak\n",
        "gap.txt": "a\n\nb\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("target", ["npz", "text", "nltk", "berkeley", "earleyx"])
@pytest.mark.parametrize("source", ["toy.npz", "toy.txt", "nltk.txt", "earleyx.txt", "dump"])
def test_any_format_becomes_any_other(source: str, target: str, here: Path, command: Command) -> None:
    code, out, _ = command("convert", source, "new", "--to", target)
    assert code == 0, out
    written = "new.grammar" if target == "berkeley" else "new"
    assert out.splitlines()[-1].endswith(f"Next: truesource inspect {written}")
    assert command("convert", "new", "back.npz", "--from", target).code == 0
    first, back = PCFG.load(here / source), PCFG.load(here / "back.npz")
    words = [[word] for word in first.vocabulary] + [[first.vocabulary[0], first.vocabulary[-1]]]
    assert back.exact.string_log_probs(words) == pytest.approx(first.exact.string_log_probs(words), abs=1e-12)
    assert PCFG.load(here / "new").n_rules == back.n_rules


@pytest.mark.long
def test_a_berkeley_pair_in_and_out_says_what_was_done(here: Path) -> None:
    """In a process of its own, to see stderr as it is."""

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        code = "from truesource.cli.main import main; main()"
        return subprocess.run([sys.executable, "-c", code, *args], cwd=here, capture_output=True, text=True, check=True)

    done = run("convert", "dump.lexicon", "new.lexicon.gz", "--to", "berkeley")
    assert done.stdout.startswith("Wrote new.grammar.gz and new.lexicon.gz: PCFG(")
    said = " ".join(done.stderr.split())  # lines are cut at 80 columns
    assert "removed 2 identities and 0 chains, kept 2 unary rules" in said
    assert "the rules of 1 symbol did not sum to one; divided by their sums, 0.9 to 0.9 (furthest: N_1)" in said
    assert "N dog [0.5, 1.0]" in gzip.decompress((here / "new.lexicon.gz").read_bytes()).decode()
    assert run("convert", "new", "back.npz").stderr == ""  # proper now
    assert run("--quiet", "convert", "dump", "quiet.npz").stderr == ""


def test_start_and_format_are_taken_from_the_options(here: Path, command: Command) -> None:
    for source, start in (("toy.npz", "N"), ("toy.txt", "N"), ("earleyx.txt", "S"), ("dump", "N_1")):
        assert command("convert", source, "new.npz", "--start", start, "--force").code == 0
        pcfg = PCFG.load(here / "new.npz")
        assert pcfg.symbols[pcfg.start] == start
    assert command("convert", "earleyx.txt", "new.npz", "--from", "earleyx", "--force").code == 0
    assert command("convert", "half.grammar", "as.npz", "--from", "text").code == 2  # rows with the closure in them


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("convert toy.txt new --to xml", ["no grammar format 'xml'", "berkeley, earleyx, nltk, npz, text"]),
        ("convert toy.txt new --from xml", ["no grammar format 'xml'"]),
        ("convert toy.txt new --from earleyx", ["expecting a rule such as VP->[V NP] : 0.6", "toy.txt:1"]),
        ("convert toy.txt new --from nltk", ["bracket probabilities", "toy.txt:1"]),
        ("convert toy.txt new --from npz", ["use a truesource grammar", "toy.txt"]),
        ("convert toy.npz new --from text", ["neither an .npz grammar nor UTF-8 text"]),
        ("convert toy.txt new --from berkeley", ["no files NAME.grammar and NAME.lexicon of this name"]),
        ("convert half.grammar new", ["half.lexicon is missing", "half.grammar"]),
        ("convert bad new", ["expecting a rule such as S_0 -> NP_1 VP_0 0.9", "bad.grammar:6"]),
        ("convert toy.txt new --start X", ["start symbol 'X' has no rules"]),
        ("convert toy.npz new --start X", ["start symbol 'X' has no rules"]),
        ("convert earleyx.txt new --start X", ["start symbol 'X' has no rules"]),
        ("convert dump new --start X", ["start symbol 'X' has no rules"]),
        ("convert quotes.txt new --to nltk", ["NLTK text cannot hold the word", "both kinds of quotes"]),
        ("convert blank.txt new --to berkeley", ["the word 'a b' has white space in it", "--cut-words", "blank.txt"]),
        ("convert toy.txt dump --to berkeley", ["will not overwrite dump.grammar without --force"]),
        ("convert toy.txt nltk.txt --to nltk", ["will not overwrite nltk.txt without --force"]),
        ("convert absent new", ["no such file", "absent"]),
        ("inspect toy.txt absent.txt", ["there is no such file"]),
        ("inspect toy.txt gap.txt", ["this line is empty", "gap.txt:2"]),
        ("inspect toy.txt text.txt --lengths six", ["such as 6..25"]),
        ("inspect toy.txt --lengths 1..2", ["--lengths needs a TEXT or --distances"]),
        ("inspect cycle.txt text.txt --lengths 0..2", ["1 <= low <= high"]),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(line: str, parts: list[str], here: Path, command: Command) -> None:
    before = {p.name: p.read_bytes() for p in here.iterdir()}
    code, _, err = command(*line.split())
    assert code == 2
    (sentence,) = [row for row in err.splitlines() if row.startswith("truesource: ")]
    for part in parts:
        assert part in sentence
    assert "Traceback" not in err
    assert {p.name: p.read_bytes() for p in here.iterdir()} == before


def test_inspect_shows_cycles(here: Path, command: Command) -> None:
    out = command("inspect", "cycle.txt").out.splitlines()
    assert "unary cycles: 2 symbols in 1 group, such as S -> N -> S" in out
    assert "left recursion: 2 symbols in 1 group, such as S -> S" in out
    out = command("inspect", "toy.npz").out.splitlines()
    assert "unary cycles: none" in out
    assert "left recursion: 1 symbol in 1 group, such as S -> S" in out


def test_inspect_shows_words_and_sentences_so_that_a_misspelt_symbol_is_seen(here: Path, command: Command) -> None:
    (here / "typo.txt").write_text("S -> they VP 0.5 | we VP_s 0.5\nVP -> run 0.5 | sleep 0.5\n", encoding="utf-8")
    rows = command("inspect", "typo.txt", "-n", 20, "--json", "found.json").out.splitlines()
    (words,) = [row for row in rows if row.startswith("the words: ")]
    assert set(words.removeprefix("the words: ").split()) == {"they", "we", "VP_s", "run", "sleep"}
    first = rows.index("for example:") + 1
    shown = [row.strip() for row in rows[first : first + 20]]
    assert set(shown) == {"they run", "they sleep", "we VP_s"}
    assert json.loads((here / "found.json").read_text(encoding="utf-8"))["samples"] == shown
    assert "for example:" not in command("inspect", "typo.txt", "-n", 0).out.splitlines()


def test_inspect_lists_no_words_of_a_large_grammar(here: Path, command: Command) -> None:
    words = " | ".join(f"w{i} {1 / 64}" for i in range(64))
    (here / "large.txt").write_text(f"S -> {words}\n", encoding="utf-8")
    assert "the words: " not in command("inspect", "large.txt").out


def test_inspect_reports_how_much_of_a_text_is_covered(here: Path, command: Command) -> None:
    code, out, _ = command("inspect", "toy.npz", "text.txt", "--json", "found.json")
    assert code == 0
    rows = out.splitlines()
    assert "text: 4 sentences, 8 tokens, 5 types" in rows
    assert "unknown words: 3 tokens (37.50%), 2 types (40.00%): zebra (2), yak (1)" in rows
    assert "sentences with probability 0: 2: lines 2, 4" in rows
    mean = (math.log(0.3 * 0.25) + math.log(0.2 * 0.6)) / 2
    assert f"mean log probability of the others: {mean:.4f} nats per sentence" in rows
    assert rows[-1].startswith("No problem found. Wrote found.json. Next: ")
    found = json.loads((here / "found.json").read_text(encoding="utf-8"))
    assert found["left_recursive"] == 1
    assert found["coverage"]["impossible"] == [2, 4]
    assert found["coverage"]["unknown"] == [["zebra", 2], ["yak", 1]]
    assert found["coverage"]["mean_log_prob"] == pytest.approx(mean, abs=1e-12)


def test_inspect_conditions_on_lengths(here: Path, command: Command) -> None:
    rows = command("inspect", "toy.npz", "text.txt", "--lengths", "2..2").out.splitlines()
    assert "sentences with probability 0 with 2..2 tokens: 3: lines 2, 3, 4" in rows
    assert f"mean log probability of the others: {math.log(0.5**2 / 0.7**2):.4f} nats per sentence" in rows


@pytest.mark.long
def test_inspect_shows_how_far_words_depend_on_each_other(here: Path, command: Command) -> None:
    pcfg = PCFG.load(here / "toy.npz")
    for lengths, more in ((None, ()), (LengthRange(1, 4), ("--lengths", "1..4"))):
        called = command("inspect", "toy.npz", "--distances", 3, *more, "--json", "new.json", "--force")
        assert called.code == 0, called.err
        wanted = mutual_information(pcfg, 3, lengths).tolist()
        assert json.loads((here / "new.json").read_text("utf-8"))["mutual_information"] == wanted
        assert ", ".join(f"{value:.4f}" for value in wanted) in called.out
    called = command("inspect", "toy.npz", "text.txt", "--distances", 1, "--json", "new.json", "--force")
    halves = halves_information(pcfg, [["a", "a"]])  # the others have words that the grammar lacks, or one word
    assert json.loads((here / "new.json").read_text("utf-8"))["halves"] == {
        "value": float(halves[0]),
        "low": None,
        "high": None,
    }
    assert f"given its length, nats: {halves[0]:.4f}\n" in called.out


def test_inspect_shows_the_floor_of_the_data(here: Path, command: Command) -> None:
    pcfg = PCFG.load(here / "toy.npz")
    called = command("inspect", "toy.npz", "--floor", 500, "--json", "floor.json")
    assert called.code == 0, called.err
    record = json.loads((here / "floor.json").read_text("utf-8"))["data_floor"]
    floor = data_floor(pcfg, 500)
    assert record["nats_a_sentence"] == floor and record["trees"] == 500
    assert record["nats_a_token"] == pytest.approx(floor / (pcfg.exact.mean_length + 1.0), rel=1e-12)
    assert record["free_probabilities"] == free_parameters(pcfg)
    assert f"counts 500 trees is {floor:.4f} nats a sentence" in called.out


def test_inspect_of_a_text_with_nothing_in_common(here: Path, command: Command) -> None:
    (here / "other.txt").write_text("".join(f"w{i:02}\n" for i in range(12)), encoding="utf-8")
    code, out, _ = command("inspect", "toy.npz", "other.txt")
    assert code == 0
    assert "12 types (100.00%): w00 (1), w01 (1)," in out
    assert "w09 (1), ..." in out
    assert "probability 0: 12: lines 1, 2, 3, 4, 5, ..." in out
    assert "mean log probability" not in out


def test_a_symbol_without_rules_is_no_word_where_words_are_quoted(command: Command, here: Path) -> None:
    """``inspect`` shows it beside what else it finds; all other commands refuse the grammar."""
    (here / "g.txt").write_text("S -> NP VP 1\nNP -> 'dogs' 1\nVP -> 'run' 0.5 | Vt NP 0.5\n")
    code, out, _ = command("inspect", "g.txt", "--json", "g.json")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("!")] == [
        "! names without rules lack the quotes that other words have: Vt (line 3);"
        " quote those that are words, and give rules to the others"
    ]
    assert "No problem found" not in out
    assert "correct g.txt" in out
    assert json.loads((here / "g.json").read_text())["unquoted"] == ["Vt"]
    for call in (["sample", "g.txt", "-n", 5, "-o", "c"], ["convert", "g.txt", "g.npz"]):
        code, _, err = command(*call)
        assert code == 2
        assert "'Vt' has no rules" in err
        assert "g.txt:3" in err
    assert not (here / "c").exists()
    assert not (here / "g.npz").exists()
