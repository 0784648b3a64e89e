"""The treebank as a whole: sources, refusals, writing, digests, statistics, and real treebanks."""

import gc
import gzip
import hashlib
import json
import os
import re
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.grammar import tree
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree, no_garbage_collection
from truesource.grammar.treebank import Binarisation, Normalisation, Refusal, Treebank

DOG = "( (S (NP-SBJ (DT the) (NN dog)) (VP (VBZ barks))))"
CAT = "( (S (NP-SBJ (PRP it)) (VP (VBZ eats) (NP (DT a) (JJ big) (NN dog))) (. .)))"
TRACE = "( (NP (-NONE- *)))"
DOG_NORMAL = "(ROOT (S (NP (DT the) (NN dog)) (VP (VBZ barks))))"
CAT_NORMAL = "(ROOT (S (NP (PRP it)) (VP (VBZ eats) (NP (DT a) (JJ big) (NN dog))) (. .)))"

NAMES = st.text("abXY-$@^é", min_size=1, max_size=3)
TREES = st.recursive(
    st.builds(lambda tag, word: Tree(tag, (word,)), NAMES, NAMES),
    lambda inner: st.builds(lambda x, kids: Tree(x, tuple(kids)), NAMES, st.lists(inner, min_size=1, max_size=4)),
    max_leaves=10,
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "1.mrg").write_text(f"{DOG}\n{TRACE}\n")
    (tmp_path / "bank" / "2.mrg.gz").write_bytes(gzip.compress(CAT.encode()))
    return tmp_path / "bank"


def strings(bank):
    return [str(tree) for tree in bank]


# -- reading ------------------------------------------------------------------------------------------


def test_reads_and_counts_what_it_refuses(folder):
    bank = Treebank.read(folder)
    assert strings(bank) == [DOG_NORMAL, CAT_NORMAL]
    assert bank.refused == (Refusal("no words left", str(folder / "1.mrg"), 2, "no words left"),)
    assert bank.source == str(folder)
    assert len(bank) == 2
    assert str(bank[1]) == CAT_NORMAL
    assert bank.sentences() == [["the", "dog", "barks"], ["it", "eats", "a", "big", "dog", "."]]
    assert repr(bank) == f"Treebank(2 trees from {folder}, 1 refused)"


def test_trees_as_they_are(folder):
    assert strings(Treebank.read(folder, None)) == [DOG, TRACE, CAT]


def test_several_sources_and_a_limit(folder):
    files = [folder / "2.mrg.gz", f"{folder}/*.mrg"]
    assert strings(Treebank.read(files)) == [CAT_NORMAL, DOG_NORMAL]
    assert strings(Treebank.read(files, limit=1)) == [CAT_NORMAL]
    assert len(Treebank.read(folder, limit=2)) == 2
    with pytest.raises(InputError, match="limit of 0"):
        Treebank.read(folder, limit=0)


def test_lengths_are_refused_with_the_reason(folder):
    bank = Treebank.read(folder, Normalisation(lengths=LengthRange(4, 9)))
    assert strings(bank) == [CAT_NORMAL]
    assert [(r.reason, r.line) for r in bank.refused] == [("length outside 4..9", 1), ("no words left", 2)]


def test_an_empty_treebank(tmp_path, folder):
    empty = tmp_path / "empty.mrg"
    empty.write_text("\n")
    with pytest.raises(InputError, match="holds no tree") as caught:
        Treebank.read(empty)
    assert str(empty) in str(caught.value)
    with pytest.raises(InputError, match=r"all 3 were refused \(.*length outside 9..9, .*no words left"):
        Treebank.read(folder, Normalisation(lengths=LengthRange(9, 9)))
    with pytest.raises(InputError, match="no such file"):
        Treebank.read(tmp_path / "absent")


def test_garbage_collection_is_back_after_an_error(tmp_path):
    path = tmp_path / "bad.mrg"
    path.write_text("(S (NP")
    with pytest.raises(InputError, match="2 brackets are still open"):
        Treebank.read(path)
    assert gc.isenabled()


@pytest.mark.long
def test_only_many_new_objects_are_left_out_of_later_collections(monkeypatch):
    monkeypatch.setattr(tree, "MANY", 500)
    gc.collect()
    for n, more in ((1000, True), (10, False)):
        before = gc.get_freeze_count()
        with no_garbage_collection():
            objects = [[i] for i in range(n)]
        assert (gc.get_freeze_count() - before >= len(objects)) is more


def test_rare_words_are_counted_in_the_trees_that_are_kept():
    trees = [Tree("ROOT", (Tree("A", ("a",)), Tree("A", ("Bs",)))), Tree("ROOT", (Tree("A", ("a",)),))]
    norm = Normalisation(rare_below=2, unknown="signature")
    assert Treebank.from_trees(trees, norm).sentences() == [["a", "<unk-cap>"], ["a"]]
    short = Normalisation(rare_below=2, unknown="unk", lengths=LengthRange(1, 1))
    assert Treebank.from_trees(trees, short).sentences() == [["<unk>"]]
    assert Treebank.from_trees(trees).replace_unknown(["a"]).sentences() == [["a", "<unk>"], ["a"]]


def test_a_label_may_be_both_a_phrase_and_a_preterminal():
    bank = Treebank.from_trees([Tree("NP", (Tree("NP", ("a",)), Tree("B", (Tree("NP", ("b",)),))))])
    assert strings(bank) == ["(ROOT (NP (NP a) (B (NP b))))"]
    stats = bank.statistics
    assert (stats.phrasal["NP"], stats.preterminal["NP"]) == (1, 2)


# -- writing ------------------------------------------------------------------------------------------


@pytest.mark.long
@given(bank=st.lists(TREES, min_size=1, max_size=5), suffix=st.sampled_from(["mrg", "mrg.gz"]))
def test_writing_and_reading_back(tmp_path_factory, bank, suffix):
    path = tmp_path_factory.mktemp("bank") / f"out.{suffix}"
    one = Treebank(tuple(bank))
    one.write(path)
    again = Treebank.read(path, None)
    assert again.trees == one.trees
    assert again.digest == one.digest


def test_the_digest_is_of_the_lines_written(tmp_path, folder):
    bank = Treebank.read(folder)
    bank.write(tmp_path / "out.mrg")
    written = (tmp_path / "out.mrg").read_bytes()
    assert written.decode() == f"{DOG_NORMAL}\n{CAT_NORMAL}\n"
    assert bank.digest == hashlib.sha256(written).hexdigest()
    assert Treebank(bank.trees[::-1]).digest != bank.digest


def test_equal_trees_give_equal_bytes(tmp_path, folder):
    bank = Treebank.read(folder)
    for name in ("a.gz", "b.gz"):
        bank.write(tmp_path / name)
    first = (tmp_path / "a.gz").read_bytes()
    assert first == (tmp_path / "b.gz").read_bytes()
    assert first[3:8] == bytes(5)  # neither name nor time stand in the header


def test_no_overwriting_without_force(tmp_path, folder):
    bank = Treebank.read(folder)
    path = tmp_path / "out.mrg"
    path.write_text("mine")
    with pytest.raises(InputError, match="will not overwrite"):
        bank.write(path)
    assert path.read_text() == "mine"
    bank.write(path, force=True)
    assert strings(Treebank.read(path)) == strings(bank)


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.mrg"
    path.write_text("mine")
    bank = Treebank((Tree("A", ("a" * 200_000,)),))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(InputError, match="cannot write"):
            bank.write(path, force=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "mine"
    assert os.listdir(tmp_path) == ["out.mrg"]  # noqa: PTH208


# -- binarising ---------------------------------------------------------------------------------------


def test_binarising_a_treebank(folder):
    scheme = Binarisation("left", horizontal=1, vertical=2)
    bank = Treebank.read(folder)
    binary = bank.binarise(scheme)
    assert strings(binary)[1] == str(scheme.binarise(bank[1])) != CAT_NORMAL
    assert binary.refused == bank.refused
    assert binary.unbinarise(scheme).trees == bank.trees


# -- NLTK ---------------------------------------------------------------------------------------------


def test_nltk_trees_and_back(folder):
    bank = Treebank.read(folder)
    theirs = bank.to_nltk()
    assert theirs[0].label() == "ROOT"
    assert [tree.leaves() for tree in theirs] == bank.sentences()
    assert [tree.pformat(margin=10**6) for tree in theirs] == strings(bank)
    assert Treebank.from_nltk(theirs).trees == bank.trees


@pytest.mark.long
def test_nltk_trees_of_any_depth():
    text = "(A " * 3000 + "(B b)" + " (C c))" * 3000
    deep = Treebank.from_trees([Tree("A", (Tree("B", ("b",)),))], None)
    one = Tree("B", ("b",))
    for _ in range(3000):
        one = Tree("A", (one, Tree("C", ("c",))))
    deep = Treebank((one,))
    assert strings(Treebank.from_nltk(deep.to_nltk(), None)) == [text]


def test_brackets_in_nltk_words_stay():
    from nltk import Tree as NltkTree

    bank = Treebank.from_nltk([NltkTree("X", [NltkTree("(", ["("])])], None)
    assert bank.trees == (Tree("X", (Tree("(", ("(",)),)),)
    assert strings(Treebank.from_nltk(bank.to_nltk(), None)) == [r"(X (\x28 \x28))"]


@pytest.mark.parametrize("children", [[("a", "NN")], ["a b"], [""], [7]])
def test_nltk_trees_that_are_no_constituents(children):
    from nltk import Tree as NltkTree

    with pytest.raises(InputError, match="in tree 2 "):
        Treebank.from_nltk([NltkTree("X", ["a"]), NltkTree("S", [NltkTree("X", children)])])
    with pytest.raises(InputError, match="tree 1 is a str"):
        Treebank.from_nltk(["(X a)"])


@pytest.fixture
def nltk_data(tmp_path, monkeypatch):
    import nltk

    folder = tmp_path / "nltk_data"
    folder.mkdir()
    monkeypatch.setattr(nltk.data, "path", [str(folder)])
    yield folder
    for loader in (nltk.corpus.treebank, nltk.corpus.brown):
        if hasattr(loader, "_unload"):
            loader._unload()  # another test must not find the corpus of this one


def test_a_corpus_that_nltk_has(nltk_data):
    combined = nltk_data / "corpora" / "treebank" / "combined"
    combined.mkdir(parents=True)
    (combined / "wsj_0002.mrg").write_text(f"\n{CAT}\n{TRACE}")
    (combined / "wsj_0001.mrg").write_text(DOG)
    bank = Treebank.from_nltk_corpus()
    assert strings(bank) == [DOG_NORMAL, CAT_NORMAL]
    assert bank.source == "nltk:treebank"
    assert bank.refused == (Refusal("no words left", "nltk:treebank/wsj_0002.mrg", 3, "no words left"),)
    assert len(Treebank.from_nltk_corpus(limit=1)) == 1


def test_corpora_that_nltk_has_not(nltk_data):
    with pytest.raises(InputError, match="NLTK's corpus 'treebank' is not on this machine; download it by `python -m"):
        Treebank.from_nltk_corpus("treebank")
    with pytest.raises(InputError, match="NLTK has no corpus 'wall_street'"):
        Treebank.from_nltk_corpus("wall_street")


def test_a_corpus_without_trees(nltk_data):
    brown = nltk_data / "corpora" / "brown"
    brown.mkdir(parents=True)
    (brown / "ca01").write_text("The/at dog/nn")
    (brown / "cats.txt").write_text("ca01 news\n")
    with pytest.raises(InputError, match="holds no bracketed trees"):
        Treebank.from_nltk_corpus("brown")


# -- datasets -----------------------------------------------------------------------------------------

ROWS = [{"tree": DOG, "id": 1}, {"tree": TRACE, "id": 2}, {"tree": CAT, "id": 3}]


def write_json_lines(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def write_parquet(path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(ROWS), path)


def write_shards(path):
    path.mkdir()
    write_parquet(path / "train-0.parquet")


def write_saved(path):
    pytest.importorskip("datasets")
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    Dataset.from_list(ROWS).save_to_disk(str(path))


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("rows.jsonl", write_json_lines),
        ("rows.parquet", write_parquet),
        ("shards", write_shards),
        ("saved", write_saved),
    ],
)
def test_trees_in_a_column(tmp_path, name, write):
    path = tmp_path / name
    write(path)
    bank = Treebank.from_dataset(path)
    assert strings(bank) == [DOG_NORMAL, CAT_NORMAL]
    assert bank.refused == (Refusal("no words left", str(path), 2, "no words left"),)
    with pytest.raises(InputError, match=r"no column 'parse'; it has tree, id"):
        Treebank.from_dataset(str(path), "parse")


def test_datasets_in_memory():
    pytest.importorskip("datasets")
    from datasets import Dataset, DatasetDict

    dataset = Dataset.from_list(ROWS).rename_column("tree", "parse")
    assert strings(Treebank.from_dataset(dataset, "parse")) == [DOG_NORMAL, CAT_NORMAL]
    with pytest.raises(InputError, match="the dataset has no column 'tree'; it has "):
        Treebank.from_dataset(dataset)
    parts = DatasetDict({"train": dataset, "dev": dataset.select([2])})
    assert strings(Treebank.from_dataset(parts, "parse", split="dev")) == [CAT_NORMAL]
    with pytest.raises(InputError, match="the parts train, dev"):
        Treebank.from_dataset(parts, "parse")
    assert strings(Treebank.from_dataset(iter(ROWS), limit=1)) == [DOG_NORMAL]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"tree": DOG}, {"tree": None}], "row 2 holds NoneType"),
        ([{"tree": DOG}, {"text": DOG}], "row 2 has no column 'tree'; it has text"),
        ([DOG], "row 1 is a str"),
        ([], "holds no tree"),
    ],
)
def test_rows_that_hold_no_trees(rows, message):
    with pytest.raises(InputError, match=message):
        Treebank.from_dataset(rows)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"[1]\n", "this line is damaged: expected values by name, not \\[1\\]; use a file with a JSON"),
        ("a.jsonl", b"{", "this line is not JSON"),
        ("a.jsonl", b"\xff", "this line is not JSON"),
        ("a.parquet", b"PAR1", "this file is damaged: .*; use a Parquet file of bracketings"),
    ],
)
def test_files_that_are_no_datasets(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        Treebank.from_dataset(tmp_path / name)


def test_datasets_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="neither a saved dataset nor Parquet"):
        Treebank.from_dataset(tmp_path)
    for name in ("absent", "absent.parquet"):
        with pytest.raises(InputError, match=r"no such file|is missing"):
            Treebank.from_dataset(tmp_path / name)


# -- statistics ---------------------------------------------------------------------------------------


def test_statistics(folder):
    stats = Treebank.read(folder).statistics
    assert (stats.trees, stats.tokens, stats.types) == (2, 9, 8)
    assert np.array_equal(stats.lengths, [0, 0, 0, 1, 0, 0, 1])
    assert stats.phrasal == {"NP": 3, "ROOT": 2, "S": 2, "VP": 2}
    assert next(iter(stats.phrasal)) == "NP"
    assert stats.preterminal == {"DT": 2, "NN": 2, "VBZ": 2, "PRP": 1, "JJ": 1, ".": 1}
    # ROOT -> S; S -> NP VP, S -> NP VP .; NP -> DT NN, NP -> PRP, NP -> DT JJ NN; VP -> VBZ, VP -> VBZ NP
    assert (stats.phrasal_rules, stats.lexical_rules) == (8, 8)
    assert (stats.mean_height, stats.max_height) == (5.5, 6)
    assert (stats.unary_share, stats.binary_share, stats.nary_share) == (4 / 9, 3 / 9, 2 / 9)
    assert stats.refused == {"no words left": 1}
    records = {record["name"]: record["value"] for record in stats.as_records()}
    assert records == stats.as_dict()
    assert (records["mean_length"], records["max_length"], records["refused: no words left"]) == (4.5, 6, 1)
    json.dumps(records)
    for part in (
        "2 trees, 9 words, 8 types",
        "NP 3, ROOT 2",
        "one 44.4%, two 33.3%",
        "1 (no words left)",
    ):
        assert part in str(stats)


def test_statistics_of_preterminals_alone():
    stats = Treebank((Tree("A", ("a",)),)).statistics
    assert (stats.trees, stats.phrasal, stats.unary_share, stats.max_height) == (1, {}, 0.0, 2)
    assert "refused    none" in str(stats)


# -- real treebanks -----------------------------------------------------------------------------------

SHARED = os.environ.get("TRUESOURCE_SHARED_DATA")
real = pytest.mark.skipif(SHARED is None, reason="TRUESOURCE_SHARED_DATA is not set")


@pytest.fixture(scope="module")
def wsj():
    return Treebank.read(Path(str(SHARED)) / "wsj.train.mrg.gz")


@pytest.mark.long
@real
def test_the_penn_sample(wsj):
    stats = wsj.statistics
    assert (stats.trees, len(wsj.refused), stats.tokens) == (3509, 0, 84_627)
    assert (len(stats.phrasal), len(stats.preterminal)) == (28, 45)
    assert stats.phrasal["ROOT"] == 3509
    text = gzip.decompress((Path(str(SHARED)) / "wsj.train.mrg.gz").read_bytes()).decode()
    tags = re.findall(r"\(([^\s()]+) [^\s()]+\s*\)", text)
    assert sum(tag != "-NONE-" for tag in tags) == stats.tokens


@pytest.mark.long
@real
@pytest.mark.parametrize("scheme", [Binarisation(), Binarisation("left", 1, 2), Binarisation("head", None, 3)])
def test_the_penn_sample_binarised_and_back(wsj, scheme):
    binary = wsj.binarise(scheme)
    # A binary tree of n words has n - 1 binary nodes.
    assert sum(len(n.children) == 2 for tree in binary for n in tree.subtrees()) == 84_627 - 3_509
    assert binary.unbinarise(scheme).digest == wsj.digest


@pytest.mark.long
@real
def test_the_gum_trees():
    bank = Treebank.read(Path(str(SHARED)) / "gum.dev.mrg.gz")
    assert (len(bank), len(bank.refused)) == (1575, 0)
    assert {tree.label for tree in bank} == {"ROOT"}
    assert all(len(node.children) == 1 for node in bank)
