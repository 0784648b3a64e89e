"""Berkeley parser text: reading pairs, undoing the closure of unary rules, writing, damage."""

from __future__ import annotations

import gzip
import logging
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import WORDS, sentences, small_pcfgs
from reference_inference import rules_of

from truesource.grammar.formats import save_grammar
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

SHARED = os.environ.get("TRUESOURCE_SHARED_DATA")

#: ROOT -> S; S_0 -> NP VP | VP (and, by closure, ROOT -> VP and the chains to V); identities everywhere
GRAMMAR = """\
S_0 -> NP_0 VP_0 0.7
NP_0 -> D_0 @NP_0 0.6
NP_1 -> D_0 @NP_0 1.0
@NP_0 -> J_0 N_1 1.0
ROOT_0 -> ROOT_0 1.0
ROOT_0 -> S_0 1.0
ROOT_0 -> VP_0 0.3
ROOT_0 -> V_0 0.15
S_0 -> S_0 1.0
S_0 -> VP_0 0.3
S_0 -> V_0 0.15
VP_0 -> VP_0 1.0
VP_0 -> V_0 0.5
VP_0 -> V_1 0.5
S_0 -> V_1 0.15
ROOT_0 -> V_1 0.15
NP_0 -> N_1 0.4
N_0 -> N_0 1.0
"""
LEXICON = """\
D the [1.0]
J big [0.5]
J\tUNK-L-y\t[0.5]
N dog [0.75, 0.25]
N cat [0.25, 0.65]
V runs [0.9, 0.0]
V 1\u00a01/2 [0.1, 1.0]
"""
SPLITS = "NP\t(0 (0 0 1))\nN\t(0 (0 0) (1 1))\n"


def write(folder: Path, grammar: str = GRAMMAR, lexicon: str = LEXICON, name: str = "toy") -> Path:
    (folder / f"{name}.grammar").write_text(grammar, encoding="utf-8")
    (folder / f"{name}.lexicon").write_text(lexicon, encoding="utf-8")
    return folder / f"{name}.grammar"


def table(pcfg: PCFG) -> dict[tuple[str, ...], float]:
    rules = rules_of(pcfg)
    found: dict[tuple[str, ...], float] = {("binary", a, b, c): p for a, b, c, p in rules.binary}
    found |= {("unary", a, b): p for a, b, p in rules.unary}
    return found | {("lexical", a, w): p for a, w, p in rules.lexical}


def test_a_dump_is_read_without_its_closure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path)
    with caplog.at_level(logging.INFO, logger="truesource"):
        pcfg = PCFG.load(path)
    assert table(pcfg) == pytest.approx(
        {
            ("binary", "S_0", "NP_0", "VP_0"): 0.7,
            ("binary", "NP_0", "D_0", "@NP_0"): 0.6,
            ("binary", "NP_1", "D_0", "@NP_0"): 1.0,
            ("binary", "@NP_0", "J_0", "N_1"): 1.0,
            ("unary", "ROOT_0", "S_0"): 1.0,
            ("unary", "S_0", "VP_0"): 0.3,
            ("unary", "VP_0", "V_0"): 0.5,
            ("unary", "VP_0", "V_1"): 0.5,
            ("unary", "NP_0", "N_1"): 0.4,
            ("lexical", "D_0", "the"): 1.0,
            ("lexical", "J_0", "big"): 0.5,
            ("lexical", "J_0", "UNK-L-y"): 0.5,
            ("lexical", "N_0", "dog"): 0.75,
            ("lexical", "N_0", "cat"): 0.25,
            ("lexical", "N_1", "dog"): 0.25 / 0.9,
            ("lexical", "N_1", "cat"): 0.65 / 0.9,
            ("lexical", "V_0", "runs"): 0.9,
            ("lexical", "V_0", "1\u00a01/2"): 0.1,
            ("lexical", "V_1", "1\u00a01/2"): 1.0,
        }
    )
    labels = dict(zip(pcfg.symbols, pcfg.labels, strict=True))
    assert (labels["NP_1"], labels["@NP_0"], labels["V_0"]) == ("NP", "@NP", "V")
    assert pcfg.symbols[pcfg.start] == "ROOT_0"
    assert pcfg.meta["closure"] == {"identities": 4, "chains": 5, "kept": 5}
    assert pcfg.meta["normalised"]["symbols"] == 1
    assert pcfg.meta["normalised"]["worst"] == "N_1"
    assert pcfg.meta["normalised"]["lowest"] == pytest.approx(0.9)
    assert "4 identities and 5 chains" in caplog.text
    assert "rules of 1 symbol did not sum to one" in caplog.text
    assert "N_1" in caplog.text


def test_chains_added_up_over_a_label_go_where_the_row_is_too_heavy(tmp_path: Path) -> None:
    """S -> V_0 and S -> V_1 are sums over the two states of VP, not products; T -> V_0 0.4 is a rule of its own."""
    grammar = (
        "ROOT_0 -> S_0 0.5\nROOT_0 -> T_0 0.5\nROOT_0 -> ROOT_0 1.0\nS_0 -> VP_0 0.6\nS_0 -> VP_1 0.4\n"
        "VP_0 -> V_0 1.0\nVP_1 -> V_0 0.5\nVP_1 -> V_1 0.5\nS_0 -> V_0 0.8\nS_0 -> V_1 0.2\n"
        "T_0 -> VP_1 0.6\nT_0 -> V_0 0.4\nT_0 -> V_1 0.3\n"
    )
    pcfg = PCFG.load(write(tmp_path, grammar, "V go [0.5, 1.0]\nV run [0.5, 0.0]\n"))
    assert below(pcfg, "S_0") == pytest.approx({"VP_0": 0.6, "VP_1": 0.4})
    assert below(pcfg, "T_0") == pytest.approx({"VP_1": 0.6, "V_0": 0.4})


def below(pcfg: PCFG, parent: str) -> dict[str, float]:
    return {key[2]: p for key, p in table(pcfg).items() if key[:2] == ("unary", parent)}


IDENTITY = "ROOT_0 -> T_0 1.0\nROOT_0 -> ROOT_0 1.0\n"


def test_a_rule_stays_that_the_row_needs(tmp_path: Path) -> None:
    """T -> V is explained best, but without it the row would hold half its mass."""
    rows = "T_0 -> X_0 0.5\nT_0 -> V_0 0.5\nT_0 -> W_0 0.000502\nX_0 -> V_0 0.999\nX_0 -> W_0 0.001\n"
    pcfg = PCFG.load(write(tmp_path, IDENTITY + rows, "V go [1.0]\nW run [1.0]\n"))
    assert below(pcfg, "T_0") == pytest.approx({"X_0": 0.5, "V_0": 0.5})


def test_chains_through_different_labels_do_not_add_up(tmp_path: Path) -> None:
    """T -> V has two chains, by X and by Y, of 0.18 each; T -> W one of 0.22, which explains more of it."""
    rows = (
        "T_0 -> X_0 0.4\nT_0 -> Y_0 0.4\nT_0 -> V_0 0.2\nT_0 -> W_0 0.2201\nT_0 -> U_0 0.22\n"
        "X_0 -> V_0 0.45\nX_0 -> W_0 0.55\nY_0 -> V_0 0.45\nY_0 -> U_0 0.55\n"
    )
    pcfg = PCFG.load(write(tmp_path, IDENTITY + rows, "V go [1.0]\nW run [1.0]\nU sit [1.0]\n"))
    assert below(pcfg, "T_0") == pytest.approx({"X_0": 0.4, "Y_0": 0.4, "V_0": 0.2})


def closed(unary: dict[tuple[str, str], float], symbols: tuple[str, ...]) -> dict[tuple[str, str], float]:
    """Most probable chain between any two symbols (Floyd and Warshall), and the identities."""
    best = dict(unary)
    for k in symbols:
        for a in symbols:
            for b in symbols:
                value = best.get((a, k), 0.0) * best.get((k, b), 0.0)
                if a != b and value > best.get((a, b), 0.0):
                    best[a, b] = value
    return {key: p for key, p in best.items() if key[0] != key[1]} | {(s, s): 1.0 for s in symbols}


@pytest.mark.long
@given(small_pcfgs())
def test_the_closure_of_any_grammar_is_undone(tmp_path_factory: pytest.TempPathFactory, pcfg: PCFG) -> None:
    """Wherever no rule is at most as probable as a chain beside it, and no symbol rewrites to itself."""
    rules = rules_of(pcfg)
    unary = {(a, b): p for a, b, p in rules.unary}
    assume(not any(a == b for a, b in unary))
    full = closed(unary, pcfg.symbols)
    for (a, b), p in unary.items():
        assume(all(full.get((a, k), 0.0) * full.get((k, b), 0.0) < p * 0.999 for k in pcfg.symbols if k not in (a, b)))
    grammar = "".join(f"{a}_0 -> {b}_0 {c}_0 {p!r}\n" for a, b, c, p in rules.binary)
    grammar += "".join(f"{a}_0 -> {b}_0 {p!r}\n" for (a, b), p in full.items())
    lexicon = "".join(f"{a} {w} [{p!r}]\n" for a, w, p in rules.lexical)
    folder = tmp_path_factory.mktemp("closed")
    found = PCFG.load(write(folder, grammar, lexicon), start="S_0")
    bare = replace(found, symbols=tuple(s.removesuffix("_0") for s in found.symbols))
    assert table(bare) == pytest.approx(table(pcfg), rel=1e-12)


@pytest.mark.long
@given(small_pcfgs(), st.lists(sentences(), min_size=1, max_size=4))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, pcfg: PCFG, texts: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("berkeley") / "toy"
    save_grammar(pcfg, path, format="berkeley")
    found = PCFG.load(path)
    above = {("unary", "ROOT_0", "S_0"): 1.0}
    named = {(key[0], *(n if n in WORDS else f"{n}_0" for n in key[1:])): p for key, p in table(pcfg).items()}
    assert table(found) == pytest.approx(named | above, rel=1e-15)
    np.testing.assert_allclose(
        found.exact.string_log_probs(texts), pcfg.exact.string_log_probs(texts), rtol=0, atol=1e-10
    )
    save_grammar(found, path.with_name("again"), format="berkeley")
    again = PCFG.load(path.with_name("again"))
    assert table(again) == pytest.approx(table(found), rel=1e-15)
    assert again.symbols[again.start] == "ROOT_0"


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("given_as", ["toy", "toy.grammar", "toy.lexicon"])
def test_either_file_or_their_prefix_may_be_given(tmp_path: Path, packed: str, given_as: str) -> None:
    wanted = PCFG.load(write(tmp_path))
    (tmp_path / "toy.splits").write_text(SPLITS)
    for part in ("grammar", "lexicon", "splits"):
        whole = (tmp_path / f"toy.{part}").read_bytes()
        (tmp_path / f"toy.{part}").unlink()
        (tmp_path / f"toy.{part}{packed}").write_bytes(gzip.compress(whole) if packed else whole)
    name = given_as if given_as == "toy" else given_as + packed
    for format_name in (None, "berkeley"):
        found = PCFG.load(tmp_path / name, format=format_name)
        assert found == wanted
        assert found.meta["splits"] == {"NP": "(0 (0 0 1))", "N": "(0 (0 0) (1 1))"}
    save_grammar(found, tmp_path / f"out.lexicon{packed}", format="berkeley")
    assert {p.name for p in tmp_path.glob("out*")} == {
        f"out.{part}{packed}" for part in ("grammar", "lexicon", "splits")
    }
    assert table(PCFG.load(tmp_path / "out")) == pytest.approx(table(found), rel=1e-15)
    assert PCFG.load(tmp_path / "out").meta["splits"] == found.meta["splits"]


def test_nothing_of_a_pair_is_overwritten(tmp_path: Path) -> None:
    pcfg = PCFG.load(write(tmp_path))
    (tmp_path / "new.lexicon").write_text("precious")
    with pytest.raises(InputError, match=r"will not overwrite .*new\.lexicon"):
        save_grammar(pcfg, tmp_path / "new", format="berkeley")
    assert not (tmp_path / "new.grammar").exists()
    save_grammar(pcfg, tmp_path / "new", format="berkeley", force=True)
    assert PCFG.load(tmp_path / "new").n_rules == pcfg.n_rules


def test_states_keep_their_numbers_and_their_labels(tmp_path: Path) -> None:
    """Substates of our own training are called NP-1; other names are counted within their label."""
    text = "%start ROOT\n%label NP-0 NP\n%label NP-2 NP\nROOT -> NP-0 NP-2 1.0\nNP-0 -> a 1.0\nNP-2 -> b 1.0"
    save_grammar(PCFG.from_text(text), tmp_path / "one", format="berkeley")
    found = PCFG.load(tmp_path / "one")
    assert dict(zip(found.symbols, found.labels, strict=True)) == {"ROOT_0": "ROOT", "NP_0": "NP", "NP_2": "NP"}
    assert (tmp_path / "one.lexicon").read_text() == "NP a [1.0, 0.0, 0.0]\nNP b [0.0, 0.0, 1.0]\n"
    text = "%start X\n%label X ROOT\n%label Y NP\n%label Z NP\nX -> Y Z 1.0\nY -> a 1.0\nZ -> b 1.0"
    save_grammar(PCFG.from_text(text), tmp_path / "two", format="berkeley")
    assert table(PCFG.load(tmp_path / "two")).keys() == {
        ("binary", "ROOT_0", "NP_0", "NP_1"),
        ("lexical", "NP_0", "a"),
        ("lexical", "NP_1", "b"),
    }
    text = "%label NP-0 NP\n%label NP_0 NP\nS -> NP-0 NP_0 1.0\nNP-0 -> a 1.0\nNP_0 -> b 1.0"
    save_grammar(PCFG.from_text(text), tmp_path / "three", format="berkeley")
    assert PCFG.load(tmp_path / "three").log_prob(["a", "b"]) == pytest.approx(0.0)
    assert PCFG.load(tmp_path / "three").log_prob(["a", "a"]) == -np.inf


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S -> <A B> 1.0\n<A B> -> a 1.0", "cannot hold the label 'A B'"),
        ("S -> ROOT 0.5 | a 0.5\nROOT -> a 1.0", "starts at ROOT_0, another symbol here"),
        ("S -> A 0.5 | a 0.5\nA -> A 1.0", "rewrites only to itself"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        save_grammar(PCFG.from_text(text), tmp_path / "toy", format="berkeley")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("grammar", "lexicon", "message"),
    [
        ("S_0 -> N_0 1.0\nS_0 N_0 1.0\n", "N a [1.0]\n", r"expecting a rule such as S_0 -> .*toy\.grammar:2"),
        ("S_0 -> N_0 1.0\nS_0 -> N 1.0\n", "N a [1.0]\n", r"expecting a rule.*toy\.grammar:2"),
        ("S_0 -> N_0 1.0\nS_0 -> N_0 N_0 N_0 1.0\n", "N a [1.0]\n", r"expecting a rule.*toy\.grammar:2"),
        ("S_0 -> N_0 1.0\nS_0 -> N_0 NaN\n", "N a [1.0]\n", r"'NaN' is not a probability.*toy\.grammar:2"),
        ("S_0 -> N_0 1.0\nS_0 -> N_0 -0.5\n", "N a [1.0]\n", r"'-0.5' is not a probability.*toy\.grammar:2"),
        ("S_0 -> N_0 0.0\n", "N a [1.0]\n", "no rules"),
        ("S_0 -> N_0 1.0\n", "", "the lexicon has no words"),
        ("S_0 -> N_0 1.0\n", "N a [1.0]\nN b 1.0\n", r"expecting a line such as NN dog .*toy\.lexicon:2"),
        ("S_0 -> N_0 1.0\n", "N a [1.0]\nN b [1.0\n", r"expecting a line.*toy\.lexicon:2"),
        ("S_0 -> N_0 1.0\n", "N a [1.0, x]\n", r"' x' is not a probability.*toy\.lexicon:1"),
        ("S_0 -> N_0 1.0\n", "N a [1.0, Infinity]\n", "is not a probability"),
        ("S_0 -> N_1 1.0\n", "N a [1.0]\n", "'N_1' is used but has no rules"),
    ],
)
def test_a_damaged_pair_is_refused_with_its_line(tmp_path: Path, grammar: str, lexicon: str, message: str) -> None:
    write(tmp_path, grammar, lexicon)
    with pytest.raises(InputError, match=message) as caught:
        PCFG.load(tmp_path / "toy.grammar", format="berkeley")
    assert "\n" not in str(caught.value)


def test_half_a_pair_is_refused_and_never_read_as_other_text(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "toy.lexicon").unlink()
    with pytest.raises(InputError, match=r"pair of files, but .*toy\.lexicon is missing \(.*toy\.grammar") as caught:
        PCFG.load(path)
    assert caught.value.code == "missing"
    with pytest.raises(InputError, match=r"toy\.lexicon is missing"):
        PCFG.load(tmp_path / "toy")
    path = write(tmp_path, name="other")
    path.unlink()
    with pytest.raises(InputError, match=r"other\.grammar is missing"):
        PCFG.load(tmp_path / "other.lexicon")
    with pytest.raises(InputError, match=r"there are no files NAME\.grammar and NAME\.lexicon of this name; check the"):
        PCFG.load(tmp_path / "absent", format="berkeley")
    with pytest.raises(InputError, match="start symbol 'X_0' has no rules"):
        PCFG.load(write(tmp_path), start="X_0")


@pytest.mark.parametrize("tenths", range(1, 10))
def test_a_truncated_pair_is_refused(tmp_path: Path, tenths: int) -> None:
    write(tmp_path)
    for part in ("grammar", "lexicon"):
        whole = gzip.compress((tmp_path / f"toy.{part}").read_bytes())
        (tmp_path / f"toy.{part}").write_bytes(whole[: len(whole) * tenths // 10] if part == "lexicon" else whole)
    with pytest.raises(InputError, match=r"toy\.lexicon"):
        PCFG.load(tmp_path / "toy", format="berkeley")
    (tmp_path / "toy.lexicon").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InputError, match="not UTF-8"):
        PCFG.load(tmp_path / "toy", format="berkeley")


@pytest.mark.long
@pytest.mark.skipif(SHARED is None, reason="TRUESOURCE_SHARED_DATA is not set")
def test_a_dump_of_the_reference_trainer() -> None:
    """Its phrasal rows are proper once the closure is undone; its lexicon is not."""
    assert SHARED is not None
    pcfg = PCFG.load(Path(SHARED) / "reference" / "berkeley_dump_wsj3c.grammar.gz")
    assert (len(pcfg.symbols), len(pcfg.binary), len(pcfg.unary)) == (313, 17_308, 968)
    assert pcfg.symbols[pcfg.start] == "ROOT_0"
    assert {*pcfg.meta["splits"], "ROOT"} == set(pcfg.labels)
    assert pcfg.meta["closure"]["identities"] == 313
    assert pcfg.meta["normalised"]["worst"] == "RBR_0"
    assert not (pcfg.unary[:, 0] == pcfg.unary[:, 1]).any()
    assert pcfg.exact.total_mass == pytest.approx(1.0, abs=1e-9)
    assert pcfg.exact.spectral_radius < 0.9
    assert 20.0 < pcfg.exact.mean_length < 28.0  # the treebank's sentences have 24 tokens
