"""Corpus folders: the same bytes again, after a kill too; what others read in them; bad input."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import yaml

from truesource.generator import columns
from truesource.generator.corpus import Corpus
from truesource.generator.plan import Columns
from truesource.generator.sampler import Sampler, sample_treebank
from truesource.generator.shard_writer import ShardSampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file

RULES = [
    ("ROOT", ("NP-1", "@S-0"), 0.5),
    ("ROOT", ("ROOT", "NP-1"), 0.2),
    ("ROOT", ("NP-1",), 0.3),
    ("@S-0", ("V-0", "@S-1"), 0.6),
    ("@S-0", ("V-0", "NP-1"), 0.4),
    ("@S-1", ("NP-1", "NP-1"), 1.0),
    ("NP-1", ("it",), 0.5),
    ("NP-1", ("us",), 0.5),
    ("V-0", ("see",), 0.7),
    ("V-0", ("hear",), 0.3),
]
LABELS = {"@S-0": "@S", "@S-1": "@S", "NP-1": "NP", "V-0": "V"}
SPLITS = {"train": 700, "dev": 150, "test": 50}
LENGTHS = LengthRange(2, 9)


def make(rules, **kwargs):
    words = {children[0] for _, children, _ in rules if len(children) == 1} - {parent for parent, _, _ in rules}
    return PCFG.from_rules(rules, start="ROOT", words=lambda _, children: children[0] in words, **kwargs)


@pytest.fixture(scope="module")
def pcfg():
    return make(RULES, labels=LABELS)


def sample(pcfg, path, **changes):
    call = {"splits": SPLITS, "seed": 7, "lengths": LENGTHS, "shard_size": 200, **changes}
    return Corpus.sample(pcfg, call.pop("splits"), path=path, **call)


@pytest.fixture(scope="module")
def corpus(pcfg, tmp_path_factory):
    return sample(pcfg, tmp_path_factory.mktemp("corpora") / "c")


def files(folder):
    return {str(f.relative_to(folder)): digest_file(f) for f in folder.rglob("*") if f.is_file()}


# -- what is in it --------------------------------------------------------------------------------------


@pytest.mark.long
def test_what_was_sampled_is_read_back(pcfg, corpus):
    sampler = Sampler(pcfg, LENGTHS)
    drawn = [sampler.draw(n, random_state(7, 0, k)) for k, n in enumerate((200, 200, 200, 100))]
    assert corpus.sentences("train") == [s for d in drawn for s in sampler.sentences(d)]
    assert corpus.log_probs("train").tolist() == [x for d in drawn for x in d.log_prob.tolist()]
    for coarse in (True, False):
        for binarised in (True, False):
            kind = {"coarse": coarse, "binarised": binarised}
            assert list(corpus.trees("train", **kind)) == [t for d in drawn for t in sampler.trees(d, **kind)]
    assert {node.label for tree in corpus.trees("dev") for node in tree.subtrees()} == {"ROOT", "NP", "V"}


def test_counts_and_condition(pcfg, corpus):
    assert corpus.splits == SPLITS
    assert corpus.lengths == LENGTHS
    assert corpus.grammar_digest == pcfg.digest
    for split, n in SPLITS.items():
        sentences = corpus.sentences(split)
        assert len(sentences) == corpus.n_sentences(split) == n
        assert sum(map(len, sentences)) == corpus.n_tokens(split)
        assert all(len(sentence) in LENGTHS for sentence in sentences)
    z = pcfg.exact.length_masses(9)[2:, pcfg.start].sum()
    assert corpus.record["condition"]["probability"] == pytest.approx(z, rel=1e-12)
    corpus.verify()


def test_splits_are_independent_streams(pcfg, corpus, tmp_path):
    texts = [" ".join(s) for s in corpus.sentences("train")]
    assert texts[:150] != texts[200:350]
    assert texts[:150] != [" ".join(s) for s in corpus.sentences("dev")]
    other = sample(pcfg, tmp_path / "c", seed=8)
    assert other.sentences("train") != corpus.sentences("train")
    assert other.digest != corpus.digest
    treebank = [t.leaves() for t in sample_treebank(pcfg, 150, 7, LENGTHS)]
    assert treebank != corpus.sentences("train")[:150]


def test_overlap_with_train_is_reported(corpus):
    train = {tuple(s) for s in corpus.sentences("train")}
    assert corpus.record["splits"]["train"]["overlap"] is None
    for split in ("dev", "test"):
        sentences = [tuple(s) for s in corpus.sentences(split)]
        overlap = corpus.record["splits"][split]["overlap"]
        assert overlap["tokens"] == pytest.approx(np.mean([s in train for s in sentences]))
        assert overlap["types"] == pytest.approx(np.mean([s in train for s in set(sentences)]))
        assert 0 < overlap["types"] < overlap["tokens"] < 1
        assert f"{overlap['types']:.2%}" in (corpus.path / "README.md").read_text()


def test_card(corpus):
    card = (corpus.path / "README.md").read_text()
    _, header, body = card.split("---\n", 2)
    fields = yaml.safe_load(header)
    assert fields["license"] == "unknown" and "language" not in fields
    assert fields["size_categories"] == ["n<1K"]
    assert fields["configs"][0]["data_files"] == [{"split": s, "path": f"data/{s}-*.parquet"} for s in SPLITS]
    for text in ("P(sentence | 2 <= tokens <= 9)", "seed: 7", corpus.digest, corpus.grammar_digest, "`tree`"):
        assert text in body
    for split in SPLITS:
        assert f"| {split} | {corpus.n_sentences(split):,} | {corpus.n_tokens(split):,} |" in body


def test_without_trees_and_range(pcfg, tmp_path):
    plain = sample(pcfg, tmp_path / "c", lengths=None, columns=Columns(trees="none"), splits={"only": 300})
    assert plain.lengths is None
    assert plain.record["condition"] is None
    assert {len(s) for s in plain.sentences("only")} > {1, 2}
    card = (plain.path / "README.md").read_text()
    assert "exactly `P(sentence)`" in card
    assert "`tree`" not in card
    for method in (plain.trees, plain.brackets):
        with pytest.raises(InputError, match="without trees"):
            method("only")


@pytest.mark.long
def test_words_and_symbols_that_files_cannot_hold(tmp_path):
    names = [
        "New\N{NO-BREAK SPACE}York",
        "New\N{OPEN BOX}York",
        "(",
        "-LRB-",
        ")x",
        "a\x85b",
        "\N{NO-BREAK SPACE}",
        "œ(",
        "%",
    ]
    rules = [("ROOT", ("ROOT", "N P"), 0.4), ("ROOT", ("N P",), 0.6)]
    rules += [("N P", (name,), 1.0) for name in names] + [("N P", ("N(P",), 1.0), ("N P", ("N-LRB-P",), 1.0)]
    rules += [("N(P", ("(",), 1.0), ("N-LRB-P", ("-LRB-",), 1.0)]
    grammar = make(rules, normalise=True)
    odd = sample(grammar, tmp_path / "c", splits={"train": 300})
    sampler = Sampler(grammar, LENGTHS)
    drawn = [sampler.draw(n, random_state(7, 0, k)) for k, n in enumerate((200, 100))]
    assert odd.sentences("train") == [s for d in drawn for s in sampler.sentences(d)]
    assert {word for s in odd.sentences("train") for word in s} == set(names)
    for kind in ({"coarse": True}, {"coarse": False, "binarised": True}):
        assert list(odd.trees("train", **kind)) == [t for d in drawn for t in sampler.trees(d, **kind)]
    column = columns.read_columns(odd.path / "data/train-00000-of-00002.parquet", ["text", "n_tokens"])
    for text, n in zip(column["text"].to_pylist(), column["n_tokens"].to_pylist(), strict=True):
        assert len(text.split()) == n


# -- others read it -------------------------------------------------------------------------------------


def test_datasets_reads_it_offline(corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    datasets = pytest.importorskip("datasets")

    datasets.disable_progress_bars()
    loaded = datasets.load_dataset(str(corpus.path), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in loaded.items()} == SPLITS
    assert loaded["train"].column_names == ["text", "n_tokens", "logprob", "split", "tree"]
    assert [text.split() for text in loaded["train"]["text"]] == corpus.sentences("train")
    assert loaded["dev"]["logprob"][:] == corpus.log_probs("dev").tolist()


@pytest.mark.long
def test_pandas_reads_it(corpus):
    import pandas as pd

    frame = pd.read_parquet(corpus.path / "data")
    assert len(frame) == sum(SPLITS.values())
    assert frame["n_tokens"].sum() == sum(corpus.n_tokens(split) for split in SPLITS)
    assert frame["text"].str.split().str.len().tolist() == frame["n_tokens"].tolist()


# -- the same again -------------------------------------------------------------------------------------


@pytest.mark.long
def test_workers_do_not_change_a_byte(pcfg, corpus, tmp_path):
    parallel = sample(pcfg, tmp_path / "c", workers=2)
    assert files(parallel.path) == files(corpus.path)


def test_replay(pcfg, corpus, tmp_path):
    again = Corpus.replay(corpus.record, pcfg, tmp_path / "a" / "c")
    assert files(again.path) == files(corpus.path)
    again = Corpus.replay(corpus.path / "record.json", pcfg, tmp_path / "c")
    assert files(again.path) == files(corpus.path)
    with pytest.raises(InputError, match="another grammar"):
        Corpus.replay(corpus.record, make(RULES), tmp_path / "d")
    changed = {**corpus.record, "digest": "0" * 64, "versions": {"numpy": "1.0"}}
    with pytest.raises(InputError, match="the bytes of the corpus differ from the record, which was written with"):
        Corpus.replay(changed, pcfg, tmp_path / "e")
    with pytest.raises(InputError, match="the record of this corpus is damaged: format: this key is missing"):
        Corpus.replay({}, pcfg, tmp_path / "f")


def test_interrupted_and_resumed(pcfg, corpus, tmp_path, monkeypatch):
    written = []
    write = ShardSampler.write

    def interrupted(self, shard):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(shard.name)
        return write(self, shard)

    monkeypatch.setattr(ShardSampler, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sample(pcfg, tmp_path / "c")
    assert not (tmp_path / "c").exists()
    partial = tmp_path / ".c.partial"
    assert sorted(f.name for f in (partial / "data").iterdir()) == sorted(written)
    # one finished shard is damaged meanwhile, and rubbish of a killed process lies about
    (partial / "data" / written[1]).write_bytes(b"PAR1")
    (partial / "data" / ".train-00003.123").write_bytes(b"half")
    resumed = []

    def recorded(self, shard):
        resumed.append(shard.name)
        return write(self, shard)

    monkeypatch.setattr(ShardSampler, "write", recorded)
    again = sample(pcfg, tmp_path / "c")
    assert len(resumed) == 4
    assert written[1] in resumed
    assert files(again.path) == files(corpus.path)
    assert [f.name for f in tmp_path.iterdir()] == ["c"]


def test_interrupted_while_writing_leaves_no_half_shard(pcfg, tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    def half(_table, where, **_):
        where.write_bytes(b"PAR1 half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "write_table", half)
    with pytest.raises(KeyboardInterrupt):
        sample(pcfg, tmp_path / "c")
    assert list((tmp_path / ".c.partial" / "data").iterdir()) == []


def test_another_call_does_not_resume(pcfg, corpus, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("truesource.generator.corpus_builder.settle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sample(pcfg, tmp_path / "c", seed=99)
    assert files(sample(pcfg, tmp_path / "c").path) == files(corpus.path)


@pytest.mark.long
def test_killed_and_resumed(pcfg, corpus, tmp_path):
    pcfg.save(tmp_path / "g.npz")
    program = f"""
        import os, signal
        from truesource.generator.corpus import Corpus
        from truesource.generator.shard_writer import ShardSampler
        from truesource.grammar.conditioning import LengthRange
        from truesource.grammar.pcfg import PCFG
        write, done = ShardSampler.write, []
        def killed(*args):
            if len(done) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            done.append(write(*args))
            return done[-1]
        ShardSampler.write = killed
        Corpus.sample(PCFG.load({str(tmp_path / "g.npz")!r}), {SPLITS!r}, seed=7, lengths=LengthRange(2, 9),
                      shard_size=200, path={str(tmp_path / "c")!r})
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert len(list((tmp_path / ".c.partial" / "data").iterdir())) == 3
    assert files(sample(pcfg, tmp_path / "c").path) == files(corpus.path)


# -- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"splits": {}}, "at least one split"),
        ({"splits": {"train": 10, "dev": 0}}, "the size of the split 'dev' must be a whole number, 1 or more, got 0"),
        ({"splits": {"tr/ain": 10}}, "letters, digits and _"),
        ({"seed": -1}, "a seed must be a whole number, 0 or more, got"),
        ({"seed": 1.5}, "a seed must be a whole number, 0 or more, got"),
        ({"shard_size": 0}, "the shard size must be 1 or more, got 0"),
        ({"workers": 0}, "the number of workers must be 1 or more"),
        ({"overlap": "some"}, "overlap must be one of iid, disjoint, unique, got 'some'"),
        ({"max_height": 1}, "must be at least 2"),
        ({"max_height": 2}, "only 0 of the trees have a height up to 2"),
    ],
)
def test_bad_arguments(pcfg, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        sample(pcfg, tmp_path / "c", **changes)
    assert list(tmp_path.iterdir()) == []


def test_impossible_range(tmp_path):
    grammar = make([("ROOT", ("A", "A"), 1.0), ("A", ("a",), 1.0)])
    with pytest.raises(InputError, match=r"no sentence of 3\.\.5 tokens; possible lengths near it: 2"):
        sample(grammar, tmp_path / "c", lengths=LengthRange(3, 5))
    assert list(tmp_path.iterdir()) == []


def test_occupied_path(pcfg, corpus, tmp_path):
    mine = tmp_path / "c"
    mine.mkdir()
    sample(pcfg, mine, splits={"train": 10})  # an empty folder may be there
    before = files(mine)
    with pytest.raises(InputError, match="will not overwrite"):
        sample(pcfg, mine)
    assert files(mine) == before
    assert files(sample(pcfg, mine, force=True).path) == files(corpus.path)
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").write_text("all of it")
    with pytest.raises(InputError, match="this is not a corpus, so it will not be replaced; choose another path"):
        sample(pcfg, other, force=True)
    with pytest.raises(InputError, match="this is not a corpus, so it will not be replaced; choose another path"):
        sample(pcfg, other / "chapter.tex", force=True)
    assert (other / "chapter.tex").read_text() == "all of it"
    with pytest.raises(InputError, match="cannot write here"):
        sample(pcfg, other / "chapter.tex" / "c")
    with pytest.raises(InputError, match="use a folder name"):
        sample(pcfg, ".", force=True)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["c", "thesis"]


@pytest.mark.parametrize(
    "where",
    [
        "pyarrow.parquet.write_table",
        "truesource.generator.shard_writer.write_json",
        "truesource.generator.corpus_builder.write_json",
        "truesource.generator.corpus_builder.write_text",
        "truesource.generator.corpus_builder.settle",
    ],
)
def test_full_disk(pcfg, corpus, tmp_path, monkeypatch, where):
    sample(pcfg, tmp_path / "c", splits={"train": 10})
    before = files(tmp_path / "c")

    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(where, full)
        with pytest.raises(InputError, match="cannot write the corpus: No space left on device; existing files are"):
            sample(pcfg, tmp_path / "c", force=True)
    assert files(tmp_path / "c") == before
    assert files(sample(pcfg, tmp_path / "c", force=True).path) == files(corpus.path)


def test_the_old_corpus_comes_back_when_the_swap_fails(pcfg, tmp_path, monkeypatch):
    sample(pcfg, tmp_path / "c", splits={"train": 10})
    before = files(tmp_path / "c")
    replace = type(tmp_path).replace

    def failing(self, target):
        if self.name == ".c.partial":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return replace(self, target)

    monkeypatch.setattr(type(tmp_path), "replace", failing)
    with pytest.raises(InputError, match="Input/output error"):
        sample(pcfg, tmp_path / "c", force=True)
    assert files(tmp_path / "c") == before


@pytest.fixture
def copy(corpus, tmp_path):
    import shutil

    return shutil.copytree(corpus.path, tmp_path / "copy")


def test_missing_and_damaged_folders(copy, tmp_path):
    with pytest.raises(InputError, match="no such corpus folder"):
        Corpus.load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"record\.json is missing"):
        Corpus.load(tmp_path)
    shard = copy / "data" / "dev-00000-of-00001.parquet"
    content = shard.read_bytes()
    shard.write_bytes(content[:-10])
    with pytest.raises(InputError, match="damaged"):
        Corpus.load(copy)
    shard.unlink()
    with pytest.raises(InputError, match="this file is missing"):
        Corpus.load(copy)
    middle = bytearray(content)
    middle[len(content) // 3] ^= 1
    shard.write_bytes(middle)
    with pytest.raises(InputError, match="this file has changed"):
        Corpus.load(copy).verify()
    shard.write_bytes(b"\0" * len(content))
    with pytest.raises(InputError, match="this part of the corpus is damaged"):
        Corpus.load(copy).sentences("dev")
    (copy / "symbols.json").write_text("{")
    with pytest.raises(InputError, match="the table of symbols is not JSON"):
        Corpus.load(copy).sentences("train")


def test_a_flipped_bit_is_never_read_as_text(corpus, copy):
    name = "dev-00000-of-00001.parquet"
    content = (copy / "data" / name).read_bytes()
    sentences, seen = corpus.sentences("dev"), 0
    for position in range(10, len(content), 61):
        damaged = bytearray(content)
        damaged[position] ^= 4
        (copy / "data" / name).write_bytes(damaged)
        try:
            assert Corpus.load(copy).sentences("dev") == sentences  # another column, or unused
        except InputError as error:
            assert "this part of the corpus is damaged" in str(error)
            seen += 1
    assert seen > 5


def changed(record, path, value):
    """A deep copy of a record with one entry changed."""
    again = json.loads(json.dumps(record))
    inner = again
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(again)


def test_bad_records(copy):
    file = copy / "record.json"
    record = json.loads(file.read_text())
    name = record["shards"][0]["file"]
    for content, message in [
        ("{", "record of this corpus is not JSON"),
        ("[" * 100_000, "recursion limit"),
        ("[]", "record of this corpus is damaged"),
        (json.dumps({**record, "format_version": 99}), "format version 4 of a corpus, got 99"),
        (json.dumps({**record, "format_version": 3}), "format version 4 of a corpus, got 3"),
        (json.dumps({k: v for k, v in record.items() if k != "shards"}), "shards: this key is missing"),
        (changed(record, ["call", "lengths"], "long"), "call.lengths: "),
        (changed(record, ["call", "trees"], "yes"), "call.trees: "),
        (changed(record, ["splits", "dev", "sentences"], "3"), "splits.dev.sentences: "),
        (changed(record, ["splits", "dev", "sentences"], 1), "do not add up to its splits"),
        (changed(record, ["shards", 1, "file"], name), "names a file twice"),
        (changed(record, ["shards", 0, "bytes"], True), "shards.0.bytes: "),
    ]:
        file.write_text(content)
        with pytest.raises(InputError, match=message):
            Corpus.load(copy)
    old = {k: v for k, v in record.items() if k not in ("condition", "height_cap", "overlap_with")}
    file.write_text(json.dumps(old))
    assert Corpus.load(copy).record["height_cap"] is None


@pytest.mark.parametrize(
    "name", ["../../secret.parquet", "..\\secret.parquet", "/secret.parquet", "sub/secret.parquet", ".."]
)
def test_a_record_never_names_a_file_outside_its_folder(copy, name):
    import shutil

    file = copy / "record.json"
    record = json.loads(file.read_text())
    (copy / "data" / "sub").mkdir()
    for place in (copy.parent, copy / "data" / "sub"):
        shutil.copy(copy / "data" / record["shards"][0]["file"], place / "secret.parquet")
    file.write_text(changed(record, ["shards", 0, "file"], name))
    with pytest.raises(InputError, match=r"shards\.0\.file: not a plain file name"):
        Corpus.load(copy)


@pytest.mark.parametrize(
    "key",
    [
        {"symbols": [1, 2], "labels": ["a", "b"], "original_symbols": {}, "original_words": {}},
        {"symbols": ["a"], "labels": [None], "original_symbols": {}, "original_words": {}},
        {"symbols": ["a"], "labels": ["a", "b"], "original_symbols": {}, "original_words": {}},
        {"symbols": ["a"], "labels": ["a"], "original_symbols": {}, "original_words": {"a": 1}},
        {"symbols": ["a"], "labels": ["a"], "original_symbols": {}},
        {"symbols": ["a"], "labels": ["b"], "original_symbols": {}, "original_words": {}},  # of another corpus
        [],
    ],
)
def test_a_table_of_symbols_holds_texts(copy, key):
    (copy / "symbols.json").write_text(json.dumps(key))
    with pytest.raises(InputError, match="the table of symbols is damaged"):
        Corpus.load(copy).sentences("train")


def with_column(copy, name, column):
    """The corpus with one column of its dev split replaced."""
    import pyarrow.parquet as pq

    file = copy / "data" / "dev-00000-of-00001.parquet"
    table = pq.read_table(file, partitioning=None)
    pq.write_table(table.set_column(table.column_names.index(name), name, column(table.column(name))), file)
    record = json.loads((copy / "record.json").read_text())
    (shard,) = (shard for shard in record["shards"] if shard["file"] == file.name)
    shard["bytes"] = file.stat().st_size
    (copy / "record.json").write_text(json.dumps(record))
    return Corpus.load(copy)


def test_a_tree_that_does_not_fit_is_refused(copy, corpus):
    import pyarrow as pa

    n_symbols = len(json.loads((copy / "symbols.json").read_text())["symbols"])
    (good,) = with_column(copy, "tree", lambda column: column)._tables("dev", ["text", "tree"])
    assert good.num_rows == corpus.n_sentences("dev")
    for change in (
        lambda row: [],
        lambda row: row[:-1],
        lambda row: [*row, row[-1]],
        lambda row: [-3, *row[1:]],
        lambda row: [row[0] + 3 * n_symbols, *row[1:]],
        lambda row: [row[-1], *row[:-1]],
        lambda row: [1, *row[1:]] if row[0] % 3 != 1 else [2, *row[1:]],
    ):
        rows = [change(row) if i == 1 else row for i, row in enumerate(good.column("tree").to_pylist())]
        broken = with_column(copy, "tree", lambda column, rows=rows: pa.array(rows, column.type))
        for read in (broken.trees, broken.brackets):
            with pytest.raises(InputError, match="a tree does not fit"):
                list(read("dev"))
        assert broken.sentences("dev") == corpus.sentences("dev")


def test_columns_of_another_type_or_length_are_refused(copy):
    import pyarrow as pa

    numbers = with_column(copy, "text", lambda column: pa.array(range(len(column))))
    with pytest.raises(InputError, match="'text' holds values of type int64"):
        numbers.sentences("dev")
    empty = with_column(copy, "text", lambda column: pa.array([None] * len(column), pa.string()))
    with pytest.raises(InputError, match="'text' has empty values"):
        empty.sentences("dev")


def test_unknown_split(corpus):
    for method in (corpus.sentences, corpus.trees, corpus.log_probs, corpus.n_tokens, corpus.n_sentences):
        with pytest.raises(InputError, match="no split 'eval'; it has train, dev, test"):
            method("eval")
