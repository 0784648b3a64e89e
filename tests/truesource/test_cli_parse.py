"""`parse` of whole corpora: shards of trees, workers, jobs, calls that go on, hostile text."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from command_line import Command
from toy_english import BANK, TOY

from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.grammar.treebank import Treebank
from truesource.studies.parsing.record import ParsedCorpus
from truesource.studies.parsing.settings import ParseOutcome
from truesource.studies.parsing.source import CorpusSource, ForwardReader, TextSource

SHARDS = ("--shard-size", 7)
LINES = (
    "the dog sees a cat",
    "",
    "dog dog",  # no sentence of the grammar
    "zebra quagga \u00a0 \u2028 \x1b[31m \x00 ()",  # unknown words only, with characters that terminals obey
    "man walks",
    " \t\v\f ",
    " ".join(["dog"] * 10_000),
    "the cat walks in the park\r",
    "man " + "walks " * 12,
)
CODES = ("parsed", "empty", "impossible", "impossible", "parsed", "empty", "skipped", "parsed", "impossible")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a grammar and text, as working directory."""
    (tmp_path / "toy.txt").write_text(TOY, encoding="utf-8")
    rng = random.Random(3)
    text = "\n".join(rng.choice(LINES[:6]) for _ in range(40))
    (tmp_path / "text.txt").write_text(f"{text}\nman walks\n", encoding="utf-8")
    (tmp_path / "hostile.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def digests(folder: Path) -> dict[str, str]:
    """Of all files but the card, which has the name of the folder."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != "README.md")
    return {str(file.relative_to(folder)): digest_file(file) for file in files}


def rows(folder: Path) -> list[dict[str, object]]:
    return [row for file in sorted((folder / "data").glob("rows-*.parquet")) for row in pq.read_table(file).to_pylist()]


def test_every_line_has_a_row_whatever_it_is(here: Path, command: Command) -> None:
    code, out, err = command("parse", "toy.txt", "hostile.txt", "-o", "trees", "--json", "counts.json", *SHARDS)
    assert code == 0
    assert [re.sub(r" \(the grammar lacks .*\)$", "", line) for line in err.splitlines()] == [
        "3 of 9 sentences cannot be made by the grammar, they have no tree: lines 3, 4, 9",
        "1 of 9 sentences have more than 300 words (--longest), they have no tree: line 7",
        "2 of 9 sentences have no words, they have no tree: lines 2, 6",
    ]
    assert out == "Wrote trees and counts.json: 3 trees. Next: truesource induce trees -o grammar.npz\n"
    table = rows(here / "trees")
    assert [row["number"] for row in table] == list(range(1, 10))
    assert [row["outcome"] for row in table] == list(CODES)
    assert [row["words"] for row in table] == [5, 0, 2, 7, 2, 0, 10_000, 6, 13]
    assert [row["unknown"] for row in table] == [0, 0, 0, 7, 0, 0, 0, 0, 0]
    assert [row["score"] is not None for row in table] == [code == "parsed" for code in CODES]
    counts = json.loads((here / "counts.json").read_text(encoding="utf-8"))
    assert counts["counts"]["outcomes"] == {"parsed": 3, "impossible": 3, "too_long": 0, "skipped": 1, "empty": 2}
    assert counts["counts"]["searches"] == {"pruned": 0, "looser": 0, "exact": 3}  # a grammar without splits
    assert counts["missing"] == {"impossible": [3, 4, 9], "skipped": [7], "empty": [2, 6]}
    assert counts["time"]["sentences_per_second"] > 0.0


@pytest.mark.long
def test_split_grammars_are_pruned_unless_all_is_asked_for(here: Path, command: Command) -> None:
    (here / "bank.mrg").write_text(BANK * 3, encoding="utf-8")
    made = command("induce", "bank.mrg", "-o", "split.npz", "--cycles", "2", "--set", "split_merge.em_split=4")
    assert made.code == 0
    (here / "two.txt").write_text("the dog sees a cat\nthe cat walks in the park\n", encoding="utf-8")
    for flags, search in (((), "pruned"), (("--exact",), "exact")):
        folder = f"trees-{search}"
        assert command("parse", "split.npz", "two.txt", "-o", folder, "--method", "max-rule", *flags).code == 0
        assert {row["search"] for row in rows(here / folder)} == {search}
    assert command("parse", "split.npz", "two.txt", "-o", "trees-pruned", "--method", "max-rule", "--exact").code == 2
    trees = [
        [str(tree) for _, tree in ParsedCorpus.load(here / f"trees-{kind}").trees()] for kind in ("pruned", "exact")
    ]
    assert trees[0] == trees[1]


@pytest.mark.long
def test_scores_are_log_probabilities_of_derivations(here: Path, command: Command) -> None:
    assert command("parse", "toy.txt", "hostile.txt", "-o", "trees").code == 0
    first, *_ = rows(here / "trees")
    pcfg = PCFG.load(here / "toy.txt")
    assert first["logprob"] == first["score"] == pytest.approx(pcfg.log_prob(LINES[0].split()), rel=1e-11)
    assert command("parse", "toy.txt", "hostile.txt", "-o", "risk", "--method", "max-rule").code == 0
    assert all(row["logprob"] is None for row in rows(here / "risk"))
    assert rows(here / "risk")[0]["score"] == pytest.approx(0.0, abs=1e-9)  # the one derivation


def test_a_chart_that_is_too_large_has_a_row(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "long.txt").write_text("man walks\n" + "man " * 90 + "\n", encoding="utf-8")
    monkeypatch.setattr("truesource.grammar.inference.batch.memory", lambda: 10_000)
    code, _, err = command("parse", "toy.txt", "long.txt", "-o", "trees")
    assert code == 0 and "1 of 2 sentences need larger charts" in err
    assert [row["outcome"] for row in rows(here / "trees")] == ["parsed", "too_long"]


@pytest.mark.long
def test_a_folder_is_a_treebank_and_can_keep_the_line_numbers(here: Path, command: Command) -> None:
    assert command("parse", "toy.txt", "hostile.txt", "-o", "dense", *SHARDS).code == 0
    assert command("parse", "toy.txt", "hostile.txt", "-o", "lines", "--keep-missing", *SHARDS).code == 0
    assert command("parse", "toy.txt", "hostile.txt", "-o", "trees.mrg.gz").code == 0
    lines = gzip.decompress((here / "trees.mrg.gz").read_bytes()).decode().splitlines()
    assert [line == "()" for line in lines] == [code != "parsed" for code in CODES]
    parts = {name: sorted((here / name / "data").glob("*.mrg.gz")) for name in ("dense", "lines")}
    written = {
        name: [line for file in files for line in gzip.decompress(file.read_bytes()).decode().splitlines()]
        for name, files in parts.items()
    }
    assert written == {"lines": lines, "dense": [line for line in lines if line != "()"]}
    assert Treebank.read(here / "dense").digest == Treebank.read(here / "lines").digest
    for name in ("dense", "lines"):
        found = list(ParsedCorpus.load(here / name).trees())
        assert [row.outcome for row, _ in found] == list(CODES)
        assert ["()" if tree is None else str(tree) for _, tree in found] == lines
    for source in ("dense", "trees.mrg.gz"):
        assert command("induce", source, "-o", f"{source}.npz", "--method", "relative-frequency").code == 0
    assert PCFG.load(here / "dense.npz") == PCFG.load(here / "trees.mrg.gz.npz")


@pytest.mark.long
def test_bytes_do_not_depend_on_who_parses(here: Path, command: Command) -> None:
    call = ("parse", "toy.txt", "text.txt", *SHARDS, "-o")
    assert command(*call, "alone").code == 0
    assert command(*call, "two", "--workers", 2).code == 0
    last = command(*call, "jobs", "--shard", "1/2")
    assert last.out.startswith("Wrote this job's shards of jobs") and not (here / "jobs").exists()
    assert command(*call, "jobs", "--shard", "0/2", "--json", "jobs.json").out.startswith("Wrote jobs and jobs.json: ")
    assert command(*call, "jobs", "--shard", "1/2").code == 0  # finished: the same again
    assert len(digests(here / "alone")) == 2 * 6 + 1
    assert digests(here / "two") == digests(here / "jobs") == digests(here / "alone")
    (here / "packed.txt.gz").write_bytes(gzip.compress((here / "text.txt").read_bytes()))
    assert command("parse", "toy.txt", "packed.txt.gz", *SHARDS, "-o", "packed").code == 0
    assert digests(here / "packed") == digests(here / "alone")
    for name, options in (("one.mrg", ()), ("other.mrg", ("--workers", 2))):
        assert command("parse", "toy.txt", "text.txt", "-o", name, *options).code == 0
    assert digest_file(here / "one.mrg") == digest_file(here / "other.mrg")
    assert not list(here.glob(".*"))


@pytest.mark.long
@pytest.mark.parametrize("output", [pytest.param("trees", marks=pytest.mark.slow), "trees.mrg"])
def test_a_killed_call_goes_on(output: str, here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.studies.parsing.build.FILE_SHARD", 7)
    (here / "text.txt").write_text("the dog walks in the park with a cat\n\nman walks\n" * 700, encoding="utf-8")
    script = "import truesource.studies.parsing.build as b, truesource.cli.main as m; b.FILE_SHARD = 7; m.main()"
    call = ["parse", "toy.txt", "text.txt", "-o", output, *(map(str, SHARDS) if output == "trees" else ())]
    notes = here / f".{output}.partial" / ".work"
    done = 0
    for _ in range(2 if output == "trees" else 1):
        with subprocess.Popen([sys.executable, "-c", script, *call], stderr=subprocess.PIPE) as process:
            wanted = done + random.Random(done).randrange(20, 60)
            while process.poll() is None and len(list(notes.glob("rows-*.json"))) < wanted:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
        assert process.returncode == -9 and not (here / output).exists()
        found = len(list(notes.glob("rows-*.json")))
        assert found >= wanted > done
        done = found
    before = {file.name: file.stat().st_mtime_ns for file in notes.glob("rows-*.json")}
    kept: dict[str, int] = {}

    def look(parsing: object) -> None:
        kept.update({file.name: file.stat().st_mtime_ns for file in notes.glob("rows-*.json")})

    monkeypatch.setattr("truesource.studies.parsing.build.Parsing.require_unchanged", look)
    assert command(*call).code == 0
    assert {name: kept[name] for name in before} == before  # not parsed again
    monkeypatch.undo()
    monkeypatch.chdir(here)
    monkeypatch.setattr("truesource.studies.parsing.build.FILE_SHARD", 7)
    whole = f"whole{Path(output).suffix}"
    assert command(*call[:3], "-o", whole, *call[5:]).code == 0
    if output == "trees":
        assert digests(here / output) == digests(here / whole)
    else:
        assert digest_file(here / output) == digest_file(here / whole)
    assert not list(here.glob(".*"))


def stopped(call: tuple[object, ...], command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call, stopped by Ctrl-C after two shards."""
    from truesource.studies.parsing.shard_parser import ShardParser

    write, written = ShardParser.write, []

    def some(self: ShardParser, shard: object) -> object:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(shard)
        return write(self, shard)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(ShardParser, "write", some)
        assert command(*call).code == 130


@pytest.mark.long
def test_the_record_of_a_call_that_goes_on_differs_in_times_only(
    here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ("parse", "toy.txt", "text.txt", *SHARDS, "--json")
    assert command(*call, "whole.json", "-o", "whole").code == 0
    stopped((*call, "stopped.json", "-o", "stopped"), command, monkeypatch)
    assert not (here / "stopped.json").exists()
    assert command(*call, "stopped.json", "-o", "stopped").code == 0
    assert command(*call, "again.json", "-o", "whole").code == 0  # as after a kill between the folder and the record
    whole, *others = (json.loads((here / f"{name}.json").read_text("utf-8")) for name in ("whole", "stopped", "again"))
    assert set(whole.pop("time")) == {"seconds", "worker_seconds", "sentences_per_second"}
    for other in others:
        assert other.pop("time").keys() == {"seconds", "worker_seconds", "sentences_per_second"}
        assert json.dumps(other) == json.dumps(whole)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (("--longest", 4), "settings"),
        (("--method", "max-rule"), "settings"),
        (("hostile.txt",), "input"),
        (("other.txt",), "grammar"),
    ],
)
def test_trees_of_another_call_are_refused(
    change: tuple[object, ...], differs: str, here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "other.txt").write_text(TOY.replace("dog 0.4 | cat 0.3", "dog 0.3 | cat 0.4"), encoding="utf-8")
    grammar = change[0] if differs == "grammar" else "toy.txt"
    text = change[0] if differs == "input" else "text.txt"
    other = ("parse", grammar, text, *SHARDS, "-o", "trees", *(change if differs == "settings" else ()))
    call = ("parse", "toy.txt", "text.txt", *SHARDS, "-o", "trees")
    stopped(call, command, monkeypatch)
    begun = digests(here / ".trees.partial")
    for more in ((), ("--shard", "0/2")):
        code, _, err = command(*other, *more)
        assert (code, err.count("\n")) == (2, 1)
        assert f"holds parts of another folder of trees ({differs} differ)" in err
        assert digests(here / ".trees.partial") == begun
    assert command(*call).code == 0
    made = digests(here / "trees")
    code, _, err = command(*other)
    assert (code, err.count("\n")) == (2, 1)
    assert f"holds trees of another call ({differs} differ)" in err
    assert digests(here / "trees") == made
    assert command(*other, "--force").code == 0
    assert digests(here / "trees") != made


def test_a_finished_folder_is_read_and_not_made_again(here: Path, command: Command) -> None:
    call = ("parse", "toy.txt", "text.txt", "-o", "trees", "--json")
    assert command(*call, "first.json").code == 0
    before = {file: file.stat().st_mtime_ns for file in (here / "trees").rglob("*")}
    assert command(*call, "again.json").code == 0
    assert {file: file.stat().st_mtime_ns for file in (here / "trees").rglob("*")} == before
    first, again = (json.loads((here / name).read_text(encoding="utf-8")) for name in ("first.json", "again.json"))
    assert again["time"]["worker_seconds"] == 0.0 and again["time"]["sentences_per_second"] is None
    assert {**first, "time": None} == {**again, "time": None}


def test_what_is_no_folder_of_trees_stays(here: Path, command: Command) -> None:
    (here / "trees").mkdir()
    (here / "trees" / "note").write_text("precious", encoding="utf-8")
    call = ("parse", "toy.txt", "text.txt", "-o", "trees")
    assert command(*call).err == "truesource: will not overwrite trees without --force\n"
    assert "not a folder of trees, so it will not be replaced" in command(*call, "--force").err
    assert (here / "trees" / "note").read_text(encoding="utf-8") == "precious"


def test_a_full_disk_keeps_the_old_file_and_what_is_finished(
    here: Path, command: Command, full_disk: Callable[[int], None]
) -> None:
    (here / "old.mrg").write_text("precious", encoding="utf-8")
    call = ("parse", "toy.txt", "text.txt", "-o", "old.mrg", "--force")
    full_disk(40)
    code, _, err = command(*call)
    full_disk(1 << 30)
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot write" in err and "File too large" in err
    assert (here / "old.mrg").read_text(encoding="utf-8") == "precious"
    assert command(*call).code == 0
    assert len((here / "old.mrg").read_text(encoding="utf-8").splitlines()) == 41
    assert not list(here.glob(".*"))


@pytest.fixture
def full_disk() -> Iterator[Callable[[int], None]]:
    """Lets files grow to so many bytes and no further."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_sentences_that_change_meanwhile_are_noticed(
    here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truesource.studies.parsing.shard_parser import ShardParser

    write = ShardParser.write

    def meddling(self: ShardParser, shard: object) -> object:
        (here / "text.txt").write_text("the cat walks\n" * 41, encoding="utf-8")
        return write(self, shard)  # type: ignore[arg-type]

    monkeypatch.setattr(ShardParser, "write", meddling)
    code, _, err = command("parse", "toy.txt", "text.txt", "-o", "trees")
    assert code == 2 and "the sentences changed while they were parsed" in err
    assert not (here / "trees").exists()


def test_a_damaged_folder_is_refused(here: Path, command: Command) -> None:
    assert command("parse", "toy.txt", "text.txt", "-o", "trees").code == 0
    file = next((here / "trees" / "data").glob("*.mrg.gz"))
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match="this file has changed"):
        ParsedCorpus.load(here / "trees").verify()
    file.write_bytes(content[:-1])
    assert "this file of the trees is missing or damaged" in command("parse", "toy.txt", "text.txt", "-o", "trees").err


def test_a_corpus_folder_is_parsed_split_by_split(here: Path, command: Command) -> None:
    assert command("sample", "toy.txt", "-n", 60, "-o", "corpus", "--shares", "train=.5,eval=.5").code == 0
    assert command("parse", "toy.txt", "corpus", "-o", "trees", "--split", "train", *SHARDS).code == 0
    parsed = ParsedCorpus.load(here / "trees")
    corpus = Corpus.load(here / "corpus")
    trees = [tree for _, tree in parsed.trees()]
    assert [tree.leaves() for tree in trees if tree is not None] == corpus.sentences("train")
    found = np.array([row["logprob"] for row in rows(here / "trees")])
    assert (found >= corpus.log_probs("train") - 1e-9).all()  # the best derivation
    assert "has no split" in command("parse", "toy.txt", "corpus", "-o", "more", "--split", "dev").err


def test_gold_trees_are_compared_by_number(here: Path, command: Command) -> None:
    (here / "gold.mrg").write_text(BANK, encoding="utf-8")
    (here / "three.txt").write_text("the dog sees a cat\nman walks\nthe cat walks in the park\n", encoding="utf-8")
    call = ("parse", "toy.txt", "three.txt", "--gold", "gold.mrg", "--shard-size", 1, "--longest", 5, "-o", "trees")
    code, out, err = command(*call, "--json", "scores.json")
    assert (code, err) == (
        0,
        "1 of 3 sentences have more than 5 words (--longest), they have no tree: line 3\n",
    )
    assert out.startswith("labelled F1 100.00%") and "Labelled brackets, by sentence length" in out
    found = json.loads((here / "scores.json").read_text(encoding="utf-8"))
    assert [row["number"] for row in found["sentences"]] == [1, 2]
    f1 = next(record for record in found["summary"] if record["name"] == "labelled_f1")
    assert f1["value"] == 1.0 and f1["signature"]
    assert found["counts"]["outcomes"][ParseOutcome.SKIPPED] == 1


def test_text_that_is_no_text_is_refused_with_its_line(here: Path, command: Command) -> None:
    (here / "bad.txt").write_bytes(b"man walks\nman \xff\n")
    code, _, err = command("parse", "toy.txt", "bad.txt", "-o", "trees")
    assert (code, err.count("\n")) == (2, 1) and "(" in err and err.rstrip().endswith("bad.txt:2)")
    (here / "mark.txt").write_bytes(b"\xef\xbb\xbfman walks\n")
    assert command("parse", "toy.txt", "mark.txt", "-o", "mark.mrg").code == 0
    assert (here / "mark.mrg").read_text(encoding="utf-8") == "(S (NP (N man)) (VP (V walks)))\n"


def test_runs_of_sentences_are_read_forward_and_back(here: Path, command: Command) -> None:
    reader = ForwardReader(TextSource(here / "text.txt"))
    every = list(TextSource(here / "text.txt").sentences())
    for first, count in ((0, 3), (3, 4), (20, 5), (25, 1), (2, 6), (0, 41), (0, 1)):
        assert reader.take(first, count) == every[first : first + count]
    with pytest.raises(InputError, match="changed"):
        reader.take(40, 2)
    assert command("sample", "toy.txt", "-n", 30, "-o", "corpus", "--shares", "eval=1", "--shard-size", 8).code == 0
    of_corpus = ForwardReader(CorpusSource(here / "corpus", "eval"))
    assert [each.words for each in of_corpus.take(6, 20)] == Corpus.load(here / "corpus").sentences("eval")[6:26]


RAW = "The dog sees a cat. Man walks!\n\n(the  man)\ta \u201cpark\u201d\r\n"


@pytest.mark.long
def test_raw_text_keeps_the_place_of_every_word(here: Path, command: Command) -> None:
    grammar = TOY.replace("S -> NP VP 1.0", "S -> NP VP 0.5 | NP VP F 0.3 | L NP R 0.2")
    (here / "raw.txt").write_text(f"{grammar}F -> . 0.5 | ! 0.5\nL -> -LRB- 1.0\nR -> -RRB- 1.0\n", encoding="utf-8")
    (here / "news.txt").write_bytes(RAW.encode())
    call = ("parse", "raw.txt", "news.txt", "--raw", "--splitting", "lines", "-o")
    code, out, err = command(*call, "trees", "--workers", 2, "--shard-size", 1)
    assert code == 0 and out.startswith("raw text, split into sentences by lines\n")
    assert err.startswith("2 of 2 sentences cannot be made by the grammar, they have no tree: sentences 1, 2 (")
    table = rows(here / "trees")
    assert [row["line"] for row in table] == [1, 3]
    cut = [
        [RAW[start:end] for start, end in zip(row["starts"], row["ends"], strict=True)]  # type: ignore[call-overload]
        for row in table
    ]
    assert cut[1] == ["(", "the", "man", ")", "a", "\u201c", "park", "\u201d"]
    assert [len(words) for words in cut] == [row["words"] for row in table]
    record = json.loads((here / "trees" / "record.json").read_text(encoding="utf-8"))
    assert record["settings"]["splitting"] == "lines"
    (here / "news.txt").write_text("the dog walks!\n\n(a dog)\n", encoding="utf-8")
    assert command(*call, "trees.mrg").code == 0
    assert (here / "trees.mrg").read_text(encoding="utf-8").splitlines() == [
        "(S (NP (D the) (N dog)) (VP (V walks)) (F !))",
        "(S (L -LRB-) (NP (D a) (N dog)) (R -RRB-))",
    ]


def test_raw_text_is_a_file(here: Path, command: Command) -> None:
    assert "--raw is for a text file" in command("parse", "toy.txt", here, "--raw", "-o", "trees").err
    assert "--splitting needs --raw" in command("parse", "toy.txt", "text.txt", "--splitting", "lines", "-o", "t").err


@pytest.mark.long
@pytest.mark.parametrize("options", [("--best", 3), ("--best", 2, "--method", "max-rule"), ("--samples", 4)])
def test_several_trees_of_a_sentence(options: tuple[object, ...], here: Path, command: Command) -> None:
    (here / "s.txt").write_text("S -> S S 0.4 | x 0.6\n", encoding="utf-8")
    (here / "x.txt").write_text("x x x x\n\nx\ny\nx x x\n", encoding="utf-8")
    call = ("parse", "s.txt", "x.txt", *options, "-o")
    assert command(*call, "trees").code == 0
    kind, n = str(options[0]).removeprefix("--"), int(str(options[1]))
    (file,) = (here / "trees" / "data").glob(f"{kind}-*.jsonl.gz")
    found = [json.loads(line) for line in gzip.decompress(file.read_bytes()).decode().splitlines()]
    assert [row["number"] for row in found] == [1, 3, 5]
    ways = {1: 5, 3: 1, 5: 2}
    for row, words in zip(found, (4, 1, 3), strict=True):
        assert len(row["trees"]) == (n if kind == "samples" else min(n, ways[row["number"]]))
        for tree in row["trees"]:
            assert tree["log_p"] == pytest.approx((words - 1) * np.log(0.4) + words * np.log(0.6))
    if kind == "samples":
        assert found[0]["trees"][0]["score"] == pytest.approx(-np.log(5))
        assert command(*call, "other", "--seed", 2).code == 0
        assert digests(here / "other") != digests(here / "trees")
    assert command(*call, "again", "--workers", 2, "--shard-size", 1).code == 0
    again = sorted((here / "again" / "data").glob(f"{kind}-*.jsonl.gz"))
    lines = [line for file in again for line in gzip.decompress(file.read_bytes()).decode().splitlines()]
    assert [json.loads(line) for line in lines] == found
    assert "is for folders" in command(*call, "one.mrg").err
    ParsedCorpus.load(here / "trees").verify()
