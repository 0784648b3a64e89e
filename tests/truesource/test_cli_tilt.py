"""`truesource tilt`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from command_line import Command

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.tilting.rewards import Count, Words
from truesource.grammar.tilting.tilt import Tilting, tilt

pytestmark = pytest.mark.long

TOY = "S -> S S 0.2 | A 0.3 | b 0.5\nA -> a A 0.4 | c 0.6\n"


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g.txt").write_text(TOY, "utf-8")


def test_an_event_is_required_and_the_grammar_of_it_written(command: Command) -> None:
    done = command("tilt", "g.txt", "--count", "c=1..2", "-o", "t.npz", "--json", "t.json")
    assert done.code == 0, done.err
    wanted, found = tilt(PCFG.load("g.txt"), Count(("c",), 1, 2)), json.loads(Path("t.json").read_text("utf-8"))
    assert PCFG.load("t.npz").digest == wanted.pcfg.digest == found["after"]["digest"]
    assert found["log_z"] == pytest.approx(wanted.log_z) and found["kl"] == pytest.approx(-wanted.log_z)
    assert found["kind"] == "event" and found["expected_reward"] == 1.0 and f"{math.exp(wanted.log_z):.4g}" in done.out
    other = command("tilt", "g.txt", "--count", "c=1..2", "--complement", "--json", "-")
    assert json.loads(other.out[other.out.index("{") :])["log_z"] == pytest.approx(math.log1p(-math.exp(wanted.log_z)))
    assert command("sample", "t.npz", "-n", 50, "--shares", "train=1", "-o", "corpus").code == 0


def test_rewards_add_up_given_lengths(command: Command) -> None:
    Path("words.tsv").write_text("a\t-0.5\n", "utf-8")
    options = ("--count", "c>=2", "--reward", "words.tsv", "--beta", 2, "--lengths", "2..6")
    done = command("tilt", "g.txt", *options, "--json", "t.json", "--figure", "f.svg")
    assert done.code == 0, done.err
    found = json.loads(Path("t.json").read_text("utf-8"))
    once = Tilting(Tilting(PCFG.load("g.txt"), Count(("c",), 2, None)).at(2.0).pcfg, Words({"a": -0.5})).at(2.0)
    assert found["after"]["mean_length"] == pytest.approx(_mean_length(once.pcfg), abs=1e-12)
    frontier = found["frontier"]
    assert frontier[0]["kl"] == 0.0 and len(frontier) > 10
    assert all(a["kl"] < b["kl"] and a["reward"] < b["reward"] for a, b in itertools.pairwise(frontier))
    own = [p["reward"] - (found["expected_reward"] + 2 * (p["kl"] - found["kl"])) for p in frontier]
    assert max(own) < 1e-6, "the frontier is concave: its tangent at a tilt, of slope beta, is above it"
    assert "frontier" in Path("f.svg").read_text("utf-8")


def _mean_length(pcfg: PCFG) -> float:
    masses = pcfg.exact.length_masses(6)[2:, pcfg.start]
    return float((masses * range(2, 7)).sum() / masses.sum())


def test_an_event_gets_a_probability_and_derivations_a_power(command: Command) -> None:
    assert command("tilt", "g.txt", "--regex", ".* c .*", "--probability", 0.01, "--json", "p.json").code == 0
    assert json.loads(Path("p.json").read_text("utf-8"))["expected_reward"] == pytest.approx(0.01, abs=1e-12)
    options = ("--count", "c>=1", "--probability", 0.01, "--lengths", "1..3")
    assert command("tilt", "g.txt", *options, "-o", "p.npz", "--json", "given.json").code == 0
    found = json.loads(Path("given.json").read_text("utf-8"))
    assert (found["kind"], found["probability"], found["lengths"]) == ("probability", 0.01, "1..3")
    given = Tilting(PCFG.load("p.npz"), Count(("c",), 1, None)).event_probability(LengthRange(1, 3))
    assert found["expected_reward"] == pytest.approx(given, abs=1e-12) == pytest.approx(0.01, abs=1e-12)
    done = command("sample", "p.npz", "-n", 500, "--shares", "train=1", "--lengths", "1..3", "--stratified", "-o", "c")
    assert "5 of 500 sentences of train have the event" in done.out
    done = command("tilt", "g.txt", "--power", 2, "--lengths", "1..3", "--json", "w.json")
    assert done.code == 0, done.err
    found = json.loads(Path("w.json").read_text("utf-8"))
    assert found["kind"] == "power" and found["kl"] > 0.0 and LengthRange.parse(found["lengths"]) == LengthRange(1, 3)


def test_a_sum_that_is_infinite_over_all_lengths_is_taken_over_those_that_are_given(command: Command) -> None:
    """Z = 4 of S -> a S 0.5 | b 0.5 with 4 for each a, given 1 to 3 words."""
    Path("chain.txt").write_text("S -> 'a' S 0.5 | 'b' 0.5\n", "utf-8")
    Path("four.tsv").write_text(f"a {math.log(4.0)!r}\n", "utf-8")
    options = ("tilt", "chain.txt", "--reward", "four.tsv", "--beta", 1)
    done = command(*options, "-o", "t.npz")
    assert done.code == 2 and "is infinite" in done.err and "or a range of lengths" in done.err
    assert not Path("t.npz").exists()
    done = command(*options, "--lengths", "1..3", "-o", "t.npz", "--json", "t.json", "--figure", "f.svg")
    assert done.code == 0, done.err
    record = json.loads(Path("t.json").read_text("utf-8"))
    assert record["log_z"] == pytest.approx(math.log(4.0), abs=1e-14)
    assert record["expected_reward"] == pytest.approx(math.log(4.0) * 5.0 / 3.5, abs=1e-14)
    assert record["after"]["mean_length"] == pytest.approx((0.5 + 2.0 + 6.0) / 3.5, abs=1e-14)
    assert len(record["frontier"]) == 41 and record["lengths"] == "1..3"
    tilted = PCFG.load("t.npz")
    assert tilted.exact.total_mass == pytest.approx(1.0, abs=1e-14)
    assert tilted.exact.length_pmf(4)[1:].tolist() == pytest.approx([0.5 / 3.5, 1.0 / 3.5, 2.0 / 3.5, 0.0], abs=1e-14)
    assert command("sample", "t.npz", "-n", 50, "--lengths", "1..3", "--shares", "train=1", "-o", "drawn").code == 0
    done = command("tilt", "chain.txt", "--power", 0.01, "--lengths", "1..3", "--json", "p.json")
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ((), "the tilt is not specified"),
        (("--count", "b=1", "--power", 2), "the tilt is not specified"),
        (("--count", "b"), "expecting a count such as"),
        (("--count", "b=1", "--beta", 1, "--complement"), "exclude each other"),
        (("--count", "b=1", "--regex", ".* c"), "needs --beta"),
        (("--power", 2, "--beta", 1), "--power has no reward"),
        (("--power", 2, "--figure", "f.svg"), "--figure draws the frontier"),
        (("--regex", "(a"), "regular expression"),
        (("--count", "zebra=1"), "no word 'zebra'"),
        (("--regex", "c c c b b a"), "no sentence of the grammar satisfies"),
        (("--count", "b=600"), "512"),
        (("--reward", "none.tsv", "--beta", 1), "there is no such file"),
        (("--count", "b>=0", "--complement"), "fails"),
    ],
)
def test_what_cannot_be_done_is_refused(command: Command, options: tuple[object, ...], what: str) -> None:
    done = command("tilt", "g.txt", *options, "-o", "t.npz")
    assert done.code == 2 and what in done.err and "Traceback" not in done.err
    assert not Path("t.npz").exists()
