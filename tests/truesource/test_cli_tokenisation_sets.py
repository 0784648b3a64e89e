"""`truesource evaluate tokenisation --also`: several sets of texts side by side, and pooled."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command_line import Command
from pyarrow import parquet
from saved_models import save_piece_model
from seat_grammar import SEAT_GRAMMAR

from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG

pytestmark = pytest.mark.long

CALL = ("evaluate", "tokenisation")
WORDS = ["the", "a", "cat", "seat", "heath", "sees", "eats"]
SETS = {"home": ["the cat sees the cat", "a seat eats", "the heath"], "away": ["cat a cat", "sees heath the"]}
ALSO = ("--also", "away=away.txt", "--also", "corpus")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """A folder with a corpus and untrained models, as working directory."""
    monkeypatch.chdir(tmp_path)
    for name, kind, longest in (("unigram", "unigram", 60), ("bpe", "bpe", 60), ("narrow", "unigram", 12)):
        save_piece_model(tmp_path / name, [WORDS], kind, 22, max_positions=longest)  # type: ignore[arg-type]
    PCFG.from_text(SEAT_GRAMMAR).save(tmp_path / "toy.npz")
    made = command("sample", "toy.npz", "-n", 20, "-o", "corpus", "--lengths", "2..5", "--shares", "eval=1")
    assert made.code == 0
    return tmp_path


def records_of(path: Path, **where: object) -> dict[str, dict[str, Any]]:
    """By name, of one run, set or table; those without such entries by default."""
    where = {"table": None, "set": None, **where}
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {row["name"]: row for row in rows if all(row.get(key) == value for key, value in where.items())}


def corpus_texts() -> list[str]:
    return [" ".join(sentence) for sentence in Corpus.load("corpus").sentences("eval")]


@pytest.fixture
def sets(here: Path) -> list[str]:
    """Every text of two files and of the corpus, in order."""
    for name, texts in SETS.items():
        (here / f"{name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return [*SETS["home"], *SETS["away"], *corpus_texts()[:3]]


def test_sets_of_texts_stand_side_by_side_and_pooled(here: Path, sets: list[str], command: Command) -> None:
    call = ("--estimators", "exact,nbest,wor1", "--samples", 4, "--sentences", 3)
    tables = ("--grid", "--curves", "--caching", "--canonical")
    found = command(
        *CALL, "unigram", "home.txt", *ALSO, *call, *tables, "--json", "t.json", "--document-table", "t.parquet",
        "--figure", "t.svg",
    )  # fmt: skip
    assert (found.code, found.err) == (0, "")
    for title in ("Several texts", "Published estimators", "inverse temperature", "Loss of a repeated word"):
        rows = found.out.partition(title)[2]
        assert re.search(r"home.*away.*corpus", rows, re.DOTALL), title
    (here / "all.txt").write_text("\n".join(sets) + "\n", encoding="utf-8")
    whole = [*CALL, "unigram", "all.txt", *call[:4], "--grid", "--json", "all.json"]
    assert command(*whole).code == 0
    values = ("ppl", "bits_per_character", "improvement", "log_p", "gap", "gap_per_piece", "entropy_gap_rho")
    pooled = records_of(here / "t.json", run="exact", table="sets", set="pooled")
    alone = records_of(here / "all.json", run="exact")
    assert {n: pooled[n]["value"] for n in values} == pytest.approx({n: alone[n]["value"] for n in values}, rel=1e-9)
    same = {"documents:8", "q-scores:" + alone["ppl"]["signature"].partition("|q-scores:")[2].partition("|")[0]}
    assert same <= set(pooled["ppl"]["signature"].split("|"))
    digests = []
    for name, path in (("home", "home.txt"), ("away", "away.txt"), ("corpus", "corpus")):
        own = [*CALL, "unigram", path, *call, *tables, "--json", "one.json", "--force"]
        own += ["--no-oracle"] if path == "corpus" else []
        assert command(*own).code == 0
        rows = json.loads((here / "one.json").read_text("utf-8"))
        of_set = [
            {key: value for key, value in row.items() if key != "set"}
            for row in json.loads((here / "t.json").read_text("utf-8"))
            if row.get("set") == name
        ]
        assert of_set == [{**row, "table": f"sets-{row['table']}" if "table" in row else "sets"} for row in rows]
        signed = records_of(here / "one.json", run="exact")["ppl"]["signature"]
        digests.append(f"{name}:{signed.partition('|data:')[2][:8]}")
    assert f"|data:{'+'.join(digests)}|" in pooled["ppl"]["signature"]
    assert "set" not in records_of(here / "t.json", run="exact")["ppl"]  # of the first set, as without the others
    table = parquet.read_table(here / "t.parquet").to_pandas()
    assert table.groupby("set", sort=False).size().to_dict() == {"home": 12, "away": 8, "corpus": 12}
    drawn = "".join(ElementTree.parse(here / "t.svg").getroot().itertext())
    for text in ("home", "away", "corpus", f"{pooled['entropy_gap_rho']['value']:.2f}, all sets"):
        assert text in drawn


@pytest.mark.usefixtures("sets")
def test_a_treebank_is_read_as_its_words(here: Path, command: Command) -> None:
    trees = "(S (NP (DT the) (NN cat)) (VP (VBZ eats)))\n( (NP (NN heath) (-NONE- *T*-1)) )\n"
    for name, text in (("trees.mrg", trees), ("words.txt", "the cat eats\nheath\n")):
        (here / name).write_text(text, encoding="utf-8")
    (here / "packed.mrg.gz").write_bytes(gzip.compress(trees.encode()))
    found = []
    for name in ("trees.mrg", "packed.mrg.gz", "words.txt"):
        call = ("home.txt", "--also", f"away={name}", "--estimators", "exact", "--json", "t.json", "--force")
        assert command(*CALL, "unigram", *call).code == 0
        found.append(records_of(here / "t.json", run="exact", table="sets", set="away"))
    assert found[0]["documents"]["value"] == 2
    assert found[0] == found[1] == found[2]


def test_scores_of_cuts_are_fitted_to_all_sets(here: Path, sets: list[str], command: Command) -> None:
    call = ("--estimators", "nbest", "--samples", 2, "--json", "t.json", "--force")
    assert command(*CALL, "bpe", "home.txt", "--also", "away.txt", *call).code == 0
    signed = records_of(here / "t.json", table="sets", set="pooled", run="nbest")["ppl"]["signature"]
    (here / "all.txt").write_text("\n".join(sets[:5]) + "\n", encoding="utf-8")
    assert command(*CALL, "bpe", "all.txt", *call).code == 0
    q = records_of(here / "t.json", run="nbest")["ppl"]["signature"].partition("|q-scores:")[2].partition("|")[0]
    assert f"|q-scores:{q}|" in signed


@pytest.mark.usefixtures("sets")
@pytest.mark.parametrize(
    ("also", "part"),
    [
        (("home.txt",), "two sets of texts have the name 'home'; give them different names, NAME=TEXT"),
        (("x=away.txt", "x=corpus"), "two files of --also have the name 'x'"),
        (("pooled=away.txt",), "'pooled' is not a name for a set of texts"),
        (("a|b=away.txt",), "'a|b' is not a name for a set of texts"),
        (("missing.txt",), "missing.txt"),
        (("x=foreign.txt",), "none of the 1 texts can be segmented into pieces: no piece spells"),
        (("x=long.txt",), "text 1 has too many segmentations for exact; use dpf (long.txt)"),
    ],
)
def test_sets_that_cannot_be_are_refused(also: tuple[str, ...], part: str, here: Path, command: Command) -> None:
    (here / "foreign.txt").write_text("xyz\n", encoding="utf-8")
    (here / "long.txt").write_text(" ".join(["the heath sees the seat"] * 2) + "\n", encoding="utf-8")
    options = [word for each in also for word in ("--also", each)]
    found = command(*CALL, "unigram", "home.txt", *options, "--estimators", "exact", "--json", "t.json")
    assert found.code == 2
    assert part in found.err and found.err.startswith("truesource: ") and found.err.count("\n") == 1
    assert not (here / "t.json").exists()


def test_a_set_that_is_too_long_is_named(here: Path, command: Command) -> None:
    (here / "short.txt").write_text("the cat\n", encoding="utf-8")
    (here / "odd.txt").write_text(f"the cat\n{' '.join(WORDS)}\n", encoding="utf-8")
    call = (*CALL, "narrow", "short.txt", "--also", "odd.txt", "--estimators", "nbest", "--samples", 4)
    refused = command(*call, "--no-leave-out-long")
    assert refused.code == 2 and "text 2: the window of narrow is too short" in refused.err
    assert "(odd.txt)" in refused.err
    found = command(*call)
    assert found.code == 0
    assert found.err == (
        "Warning: 1 of 2 documents of odd.txt are excluded; the canonical tokenisation has more tokens than the 12 that"
        " the model reads\n"
    )
