"""Columns of a corpus that other libraries read: the split, and trees as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nltk
import pandas as pd
import pyarrow.parquet as pq
import pytest
from toy_english import TOY

from truesource.generator.corpus import Corpus
from truesource.generator.plan import Columns, Reversal, Trees
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

PCFG_TOY = PCFG.from_text(TOY)
SPLITS = {"train": 300, "dev": 70, "test": 40}
#: words with brackets and white space, a symbol with brackets, a chain of binary rules
ODD = PCFG.from_text("S -> <(A)> <(A)> <(A)> 0.5 | <(A)> 0.5\n<(A)> -> '(' 0.3 | 'New\u00a0York' 0.3 | 'a\\\\x28' 0.4")


def sample(path: Path, trees: Trees = "ids", pcfg: PCFG = PCFG_TOY, **changes: Any) -> Corpus:
    call = {"splits": SPLITS, "seed": 3, "lengths": LengthRange(1, 9), "shard_size": 64, **changes}
    columns = call.pop("columns", Columns(trees=trees))
    return Corpus.sample(pcfg, call.pop("splits"), path=path, columns=columns, **call)


def test_pandas_reads_one_split_of_the_folder(tmp_path: Path) -> None:
    corpus = sample(tmp_path / "c")
    for split, sentences in SPLITS.items():
        frame = pd.read_parquet(corpus.path / "data", filters=[("split", "==", split)])
        assert len(frame) == sentences and set(frame["split"]) == {split}
        assert frame["text"].tolist() == [" ".join(words) for words in corpus.sentences(split)]
    assert 'filters=[("split", "==", "train")]' in (corpus.path / "README.md").read_text()


def test_the_split_takes_next_to_nothing(tmp_path: Path) -> None:
    corpus = sample(tmp_path / "c", shard_size=400)
    file = pq.ParquetFile(corpus.path / "data" / "train-00000-of-00001.parquet")
    sizes = {
        (chunk := file.metadata.row_group(0).column(j)).path_in_schema: chunk.total_compressed_size
        for j in range(file.metadata.num_columns)
    }
    assert sizes["split"] < 150 and sizes["text"] > 1000


@pytest.mark.long
@pytest.mark.parametrize("trees", ["ids", "text", "none"])
def test_any_number_of_workers_and_a_replay_write_the_same_bytes(trees: Trees, tmp_path: Path) -> None:
    one = sample(tmp_path / "one", trees, overlap="disjoint")
    assert sample(tmp_path / "two", trees, overlap="disjoint", workers=2).digest == one.digest
    assert Corpus.replay(one.path / "record.json", PCFG_TOY, tmp_path / "again").digest == one.digest


@pytest.mark.parametrize("pcfg", [PCFG_TOY, ODD])
@pytest.mark.parametrize("transform", [None, Reversal()])
def test_trees_as_text_are_those_as_numbers(pcfg: PCFG, transform: Any, tmp_path: Path) -> None:
    ids = sample(tmp_path / "ids", "ids", pcfg, transform=transform)
    text = sample(tmp_path / "text", "text", pcfg, transform=transform)
    assert (ids.trees_as, text.trees_as) == ("ids", "text")
    for split in SPLITS:
        assert list(text.sentences(split)) == list(ids.sentences(split))
        assert list(text.trees(split)) == list(ids.trees(split))
        assert list(text.brackets(split)) == list(ids.brackets(split))
    for kind in ({"coarse": False}, {"binarised": True}):
        with pytest.raises(InputError, match="sample it with --trees ids"):
            next(text.trees("dev", **kind))
        with pytest.raises(InputError, match="sample it with --trees ids"):
            text.brackets("dev", **kind)


def test_others_read_trees_as_text(tmp_path: Path) -> None:
    corpus = sample(tmp_path / "c", "text")
    frame = pd.read_parquet(corpus.path / "data", filters=[("split", "==", "dev")])
    for text, bracketing in zip(frame["text"], frame["tree"], strict=True):
        assert nltk.Tree.fromstring(bracketing).leaves() == text.split(" ")
    assert "Penn bracketing" in (corpus.path / "README.md").read_text()
    assert "coarse=False" not in (corpus.path / "README.md").read_text()


def test_a_text_that_is_no_tree_is_refused(tmp_path: Path) -> None:
    corpus = sample(tmp_path / "c", "text", splits={"train": 3})
    file = next((corpus.path / "data").glob("*.parquet"))
    table = pq.read_table(file)
    for rows, message in (
        (["(S a)", "(S a", "(S b)"], "is still open"),
        (["(S a)", "(S b) (S c)", "(S d)"], "damaged, after row 2"),
    ):
        pq.write_table(table.set_column(table.column_names.index("tree"), "tree", [rows]), file)
        with pytest.raises(InputError, match=message):
            list(corpus.trees("train"))


def test_other_ways_to_write_trees_are_refused() -> None:
    with pytest.raises(InputError, match="trees must be one of ids, text, none, got True"):
        Columns(trees=True)  # type: ignore[arg-type]
