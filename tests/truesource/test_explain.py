"""`truesource explain`: levers pulled, kept and shared out; the ladder; a run with the stage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import yaml
from command_line import Command

from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.explain.report import lever_table, sentence
from truesource.evaluation.explain.targets import TargetText, read_expected
from truesource.evaluation.explain.where import PLACES
from truesource.evaluation.tokenisation.sums import table_of_sums
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.models import load_model
from truesource.lmtrain.pieces.segmentation import PieceCutter
from truesource.lmtrain.subwords import SubwordKind, build_subword_tokenizer
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.training_record import TIMES
from truesource.lmtrain.word_vocabulary import WordVocabulary

if TYPE_CHECKING:
    from truesource.generator.piece_model import TokenisedModel

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]
TOY = "S -> A S 0.4 | A 0.6\nA -> 'a' 0.5 | 'b' 0.3 | 'c' 0.2\n"
SET = ("model.dim=8", "model.layers=1", "training.max_steps=6", "training.batch_tokens=100", "training.eval_every=3")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """A folder with a grammar, a corpus and a model that saw it many times."""
    monkeypatch.chdir(tmp_path)
    Path("toy.txt").write_text(TOY, "utf-8")
    assert command("sample", "toy.txt", "-n", 200, "--shares", "train=.2,dev=.1,eval=.7", "-o", "corpus").code == 0
    options = [part for each in (*SET, "model.dropout=0") for part in ("--set", each)]
    assert command("train", "corpus", "-o", "model", "--model", "lstm", *options).code == 0
    return tmp_path


def call(*more: object) -> tuple[object, ...]:
    return ("explain", "model", "corpus", "--oracle", "toy.txt", "-o", "why", *more)


def test_a_plan_trains_nothing(place: Path, command: Command) -> None:
    done = command(*call("--plan", "--table", "plan.csv"))
    assert done.code == 0, done.err
    assert not Path("why").exists()
    rows = Path("plan.csv").read_text("utf-8")
    assert "more steps,6 steps → 24 steps" in rows and "nothing limits the words that the model sees" in rows
    done = command(*call("--plan", "--budget", 0, "--levers", "steps,width", "--table", "none.csv"))
    assert done.code == 0 and Path("none.csv").read_text("utf-8").count("excluded") == 2


def test_levers_are_pulled_once_and_said_in_one_page(
    place: Path, command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "truesource")
    done = command(*call("--json", "why.json", "--lines", 2, "--starts", 1))
    assert done.code == 0, done.err
    record = json.loads(Path("why/explain.json").read_text("utf-8"))
    assert {row["lever"] for row in record["levers"]} == {"data", "targets", "steps", "width", "layers"}
    assert record["left_out"] == {"context": "whole-sentence", "tokenizer": "few-words"}
    assert [row["change"]["value"] for row in record["levers"]] == pytest.approx(
        [row["kl"]["value"] - record["kl"]["value"] for row in record["levers"]], abs=1e-12
    )
    assert [row["change"]["value"] for row in record["levers"]] == sorted(
        r["change"]["value"] for r in record["levers"]
    )
    assert [(row["rung"], row.get("seen")) for row in record["ladder"]] == [
        ("window", 0),
        ("window", 1),
        ("ngram", 1),
        ("ngram", 2),
        ("ngram", 4),
        ("em", None),
        ("floor", None),
    ]
    page = Path("why/report.html").read_text("utf-8")
    assert sentence(record) in page and "<svg" in page and "p is adjusted for all levers (Holm)" in page
    numbers = json.loads(Path("why.json").read_text("utf-8"))
    of_parts = record["ladder"] + record["where"] + record["memory"]
    assert len(numbers) == 1 + 2 * 5 + len(of_parts) and all("signature" in each for each in numbers)
    for by in PLACES:
        groups = [each for each in record["where"] if each["by"] == by]
        assert sum(each["share"] for each in groups) == pytest.approx(1.0, abs=1e-9)
    assert "Where model is off" in page and "distinguishes training from fresh sentences" in page
    assert {each["name"] for each in record["memory"]} >= {"auroc", "gap"}
    assert any("lever:steps" in each["signature"] and "adjusted:holm/5" in each["signature"] for each in numbers)
    weights = {path: path.read_bytes() for path in Path("why/cells").rglob("model.safetensors")}
    assert len(weights) == 5
    removed = next(Path("why/scores").glob("steps*.json"))
    removed.unlink()
    again = command(*call("--lines", 2, "--starts", 1))
    assert again.code == 0 and "finished already: 4 of 5 cells" in caplog.text
    assert json.loads(Path("why/explain.json").read_text("utf-8")) == record
    assert {path: path.read_bytes() for path in Path("why/cells").rglob("model.safetensors")} == weights


def test_what_kills_have_left_is_removed_and_old_results_stay_until_then(place: Path, command: Command) -> None:
    few = ("--budget", 1, "--levers", "width")
    assert command(*call(*few)).code == 0
    whole = sorted(map(str, Path("why").rglob("*")))
    cell = next(path for path in Path("why/cells").iterdir())
    scores = Path("why/scores", f"{cell.name}.npz")
    used_up = cell.with_name(f"{cell.name}.partial")
    used_up.mkdir()
    shutil.copy(cell / "training.json", used_up / "request.json")
    for path in (cell, scores, scores.with_suffix(".json"), *map(Path, ("why/explain.json", "why/report.html"))):
        path.with_name(f".{path.name}.123-0123abcd.partial").write_text("half")
    scores.with_suffix(".json").unlink()
    before = Path("why/report.html").stat().st_ino, Path("why/explain.json").stat().st_ino
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("truesource.run.stages.explain.page.render", stop)
        assert command(*call(*few, "--force")).code == 130
    assert before == (Path("why/report.html").stat().st_ino, Path("why/explain.json").stat().st_ino)
    assert command(*call(*few, "--force")).code == 0
    assert sorted(map(str, Path("why").rglob("*"))) == whole


def stop(*_: object, **__: object) -> str:
    raise KeyboardInterrupt


def test_shards_share_the_trainings_and_the_last_one_writes(place: Path, command: Command) -> None:
    some = ("--levers", "steps,width", "--trainings", 2)
    first = command(*call(*some, "--shard", "0/2"))
    assert first.code == 0 and "2 are missing" in first.out and not Path("why/explain.json").exists(), first.err
    last = command(*call(*some, "--shard", "1/2"))
    assert last.code == 0, last.err
    record = json.loads(Path("why/explain.json").read_text("utf-8"))
    assert record["seeds"] == 2 and "Means over 2 seeds" in lever_table(record).note
    assert len(list(Path("why/cells").glob("model-seed2-*"))) == 1


def test_the_soft_targets_are_the_true_distributions(tmp_path: Path) -> None:
    """Of every prefix, by the grammar itself; words that the model lacks are one token."""
    pcfg, lengths = PCFG.from_text(TOY), LengthRange(1, 5)
    text = [["a"], ["b", "a"], ["c", "a", "b"], ["a"]]
    tokenizer = build_tokenizer([["a", "b"]])
    oracle = Oracle(pcfg, "causal", lengths=lengths, vocabulary=("a", "b"))
    TargetText.of(oracle, text, tokenizer).write(tmp_path / "x.npy")
    table = read_expected(tmp_path / "x.npy", {}).table
    vocabulary = WordVocabulary(tokenizer)
    assert table.shape == (sum(len(each) + 1 for each in text), len(vocabulary))
    at = 0
    for row in text:
        for n in range(len(row) + 1):
            found = oracle.next_token(["<unk>" if word == "c" else word for word in row[:n]])
            known = {vocabulary.ids["a"]: "a", vocabulary.ids["b"]: "b", vocabulary.unk: "<unk>"}
            wanted = np.zeros(len(vocabulary))
            for number, word in known.items():
                wanted[number] = dict(zip(found.words, found.probability, strict=True)).get(word, 0.0)
            wanted[vocabulary.eos] = found.stop
            np.testing.assert_allclose(table[at], wanted, atol=1e-7)
            at += 1
    assert TargetText.of(oracle, text, tokenizer).seconds_needed() > 0.0
    with pytest.raises(InputError, match="cannot make sentence 2"):
        TargetText.of(oracle, [["a"], ["a"] * 6], tokenizer).write(tmp_path / "y.npy")
    assert not (tmp_path / "y.npy").exists()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_soft_targets_of_pieces_are_their_true_distributions(kind: str, tmp_path: Path) -> None:
    """The probabilities of the pieces of a word multiply to the probability of the word; rows sum to 1."""
    pcfg, lengths = PCFG.from_text("S -> A S 0.4 | A 0.6\nA -> abab 0.5 | ba 0.3 | aab 0.2"), LengthRange(1, 5)
    text = [["abab"], ["ba", "aab"], ["aab", "abab", "ba"]]
    tokenizer = build_subword_tokenizer(text, cast("SubwordKind", kind), 11, objective="causal")
    TargetText.of(Oracle(pcfg, lengths=lengths), text, tokenizer).write(tmp_path / "x.npy")
    table = read_expected(tmp_path / "x.npy", {}).table
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-6)
    rows = [[*row, tokenizer.eos_token_id] for row in PieceCutter(tokenizer).aligner.align(text).rows()]
    assert len(table) == sum(map(len, rows))
    at = 0
    for words, row in zip(text, rows, strict=True):
        log_prob = np.log([table[at + place, piece] for place, piece in enumerate(row)]).sum()
        assert log_prob == pytest.approx(pcfg.exact.string_log_probs([words], lengths)[0], rel=1e-5)
        at += len(row)


def test_a_model_of_pieces_is_trained_on_true_probabilities(place: Path, command: Command) -> None:
    Path("spelt.txt").write_text("S -> A S 0.4 | A 0.6\nA -> abab 0.5 | ba 0.3 | aab 0.2\n", "utf-8")
    assert command("sample", "spelt.txt", "-n", 200, "--shares", "train=.2,dev=.1,eval=.7", "-o", "spelt").code == 0
    options = (*SET, "model.tokenizer=bpe", "model.vocab_size=12", "model.dropout=0")
    more = [part for each in options for part in ("--set", each)]
    assert command("train", "spelt", "-o", "pieces", "--model", "lstm", *more).code == 0
    done = command("explain", "pieces", "spelt", "--oracle", "spelt.txt", "-o", "w", "--levers", "targets")
    assert done.code == 0, done.err
    record = json.loads(Path("w/explain.json").read_text("utf-8"))
    (lever,) = record["levers"]
    assert (lever["lever"], lever["before"]) == ("targets", "the pieces that occurred")
    assert {row["by"] for row in record["where"]} == {"phrase", "ambiguity", "distance"}
    shares = [row["share"] for row in record["where"] if row["by"] == "distance"]
    assert sum(shares) == pytest.approx(1.0)


def test_sentences_that_a_model_cannot_spell_are_in_no_number_but_in_the_signature(
    place: Path, command: Command
) -> None:
    Path("spelt.txt").write_text("S -> A S 0.4 | A 0.6\nA -> abab 0.5 | ba 0.3 | aab 0.2\n", "utf-8")
    Path("more.txt").write_text("S -> A S 0.4 | A 0.6\nA -> abab 0.5 | ba 0.3 | zaab 0.2\n", "utf-8")
    for name in ("spelt", "more"):
        assert command("sample", f"{name}.txt", "-n", 60, "--shares", "train=.5,eval=.5", "-o", name).code == 0
    shape = ("--model", "ngram", "--set", "model.tokenizer=bpe", "--set", "model.vocab_size=12")
    assert command("train", "spelt", "-o", "pieces", *shape).code == 0
    done = command("explain", "pieces", "more", "--oracle", "more.txt", "-o", "w")
    assert done.code == 0, done.err
    record, text = json.loads(Path("w/explain.json").read_text("utf-8")), Corpus.load("more").sentences("eval")
    spelt = sum("zaab" not in words for words in text)
    assert record["sentences"] == spelt < len(text)
    for row in (record["kl"], *(row for row in record["ladder"] if row["rung"] == "window")):
        parts = parts_of(row["signature"])
        assert (parts["sentences"], parts["excluded"]) == (str(spelt), str(len(text) - spelt))
    assert f"in the first {len(text)} sentences" in " ".join(done.out.split())


def test_an_untrained_model_stands_below_all_references(place: Path, command: Command) -> None:
    """Without a budget nothing is trained, and the ladder is there all the same."""
    assert command("sample", "dyck:k=1", "-n", 400, "--lengths", "2..12", "-o", "pairs").code == 0
    step = ("--set", "training.max_steps=1", "--set", "training.learning_rate=1e-9", "--set", "model.dim=8")
    assert command("train", "pairs", "-o", "raw", "--model", "gpt2", *step, "--set", "model.heads=2").code == 0
    done = command("explain", "raw", "pairs", "--oracle", "dyck:k=1", "-o", "w", "--budget", 0)
    assert done.code == 0, done.err
    record = json.loads(Path("w/explain.json").read_text("utf-8"))
    assert record["levers"] == [] and "over-budget" in record["left_out"].values()
    assert record["kl"]["value"] > max(row["value"] for row in record["ladder"]) > 0.0


def test_pieces_are_also_scored_by_the_sum_over_their_segmentations(place: Path, command: Command) -> None:
    """Enumerated: every way to divide the spelling of a sentence into pieces, each with its own probability."""
    Path("spelt.txt").write_text("S -> A S 0.4 | A 0.6\nA -> abab 0.5 | ba 0.3 | aab 0.2\n", "utf-8")
    assert command("sample", "spelt.txt", "-n", 60, "--shares", "train=.5,eval=.5", "-o", "spelt").code == 0
    shape = ("--model", "ngram", "--set", "model.tokenizer=bpe", "--set", "model.vocab_size=12")
    assert command("train", "spelt", "-o", "pieces", *shape).code == 0
    done = command(
        "explain", "pieces", "spelt", "--oracle", "spelt.txt", "-o", "w", "--levers", "context", "--lines", 0
    )
    assert done.code == 0, done.err
    record = json.loads(Path("w/explain.json").read_text("utf-8"))
    assert record["levers"][0]["before"] == "2 pieces seen"
    model, text = cast("TokenisedModel", load_model("pieces")), Corpus.load("spelt").sentences("eval")
    read = model.pieces
    ids = dict(zip(read.inventory.pieces, read.inventory.ids.tolist(), strict=True))

    def divided(spelling: str) -> Iterator[list[int]]:
        if not spelling:
            yield []
        for end in range(1, len(spelling) + 1):
            if spelling[:end] in ids:
                yield from ([ids[spelling[:end]], *rest] for rest in divided(spelling[end:]))

    true = Oracle(PCFG.from_text(Path("spelt.txt").read_text("utf-8"))).score(text, ScoringFrame()).log_prob.sum()
    ways = [[np.array(way) for way in divided(read.read(" ".join(words)).spelling)] for words in text]
    assert max(map(len, ways)) > 20
    summed = np.array([np.logaddexp.reduce(model.log_probs(each)) for each in ways])
    rung = next(row for row in record["ladder"] if row["rung"] == "marginal")
    assert rung["value"] == pytest.approx((true - summed.sum()) / sum(len(words) + 1 for words in text), abs=1e-10)
    assert rung["value"] < record["kl"]["value"]
    setting = Setting(PCFG.from_text(Path("spelt.txt").read_text("utf-8")), text)
    own = score_both(model, setting).paired.table()
    some, exact = table_of_sums(model, setting, own, 10), table_of_sums(model, setting, own)
    assert some is not None and exact is not None
    gained = (own[0] - exact[0])[:10].sum() / own[2, :10].sum()
    assert (own[0] - some[0]).sum() / own[2].sum() == pytest.approx(gained, abs=1e-12)


@pytest.mark.parametrize(
    ("part", "value"), [("model", {"architecture": "ngram", "order": 0}), ("training", {"epochs": -1}), ("model", 3)]
)
def test_a_record_with_settings_that_cannot_be_is_damaged(
    part: str, value: object, place: Path, command: Command
) -> None:
    path = Path("model/training.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), part: value}))
    done = command(*call("--plan"))
    assert done.code == 2 and "the record of the training is damaged" in done.err and done.err.count("\n") == 1


def test_bad_calls_get_one_sentence(place: Path, command: Command) -> None:
    Path("why").mkdir()
    Path("why/mine.txt").write_text("x", "utf-8")
    foreign = command(*call())
    assert foreign.code == 2 and "is not an explanation" in foreign.err
    text = command("explain", "model", "toy.txt", "--oracle", "toy.txt", "-o", "w")
    assert text.code == 2 and "name the corpus folder" in text.err
    twice = command("explain", "model", "corpus", "--oracle", "toy.txt", "-o", "w", "--levers", "steps,steps")
    assert twice.code == 2 and "name each lever once" in twice.err


def test_a_model_of_another_text_has_a_ladder_and_no_levers(place: Path, command: Command) -> None:
    assert command("sample", "toy.txt", "-n", 100, "--seed", 2, "--shares", "train=.5,eval=.5", "-o", "other").code == 0
    done = command("explain", "model", "other", "--oracle", "toy.txt", "-o", "w", "--lines", 2)
    assert done.code == 0 and "trained on another text" in done.err
    record = json.loads(Path("w/explain.json").read_text("utf-8"))
    assert record["levers"] == [] and set(record["left_out"].values()) == {"other-text"}
    assert [row["rung"] for row in record["ladder"]] == ["window", "window"]
    assert "was not tested" in Path("w/report.html").read_text("utf-8")


def test_a_run_explains_its_models_and_says_so_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    shape = {"layers": 1, "dim": 8, "dropout": 0.0}
    training = {"max_steps": 4, "batch_tokens": 60, "eval_every": 4, "warmup_steps": 1}
    config: dict[str, Any] = {
        "name": "why",
        "grammar": {"language": "hmm", "states": 3, "vocabulary": 6},
        "corpus": {"splits": {"train": 40, "dev": 10, "eval": 60}, "lengths": "2..8"},
        "models": [
            {"name": "net", "model": {"architecture": "lstm", **shape}, "training": training},
            {
                "name": "filler",
                "model": {"architecture": "bert", **shape, "heads": 2, "max_positions": 12},
                "training": training,
            },
            {"name": "counts", "model": {"architecture": "ngram", "order": 2}},
        ],
        "evaluation": {"explain": {"levers": ["data", "steps", "context"], "lines": 2}},
    }
    Path("run.yaml").write_text(yaml.safe_dump(config), "utf-8")
    done = command("run", "run.yaml")
    assert done.code == 0, done.err
    records = {
        name: json.loads(Path(f"runs/why/explain/{name}.json").read_text("utf-8"))
        for name in ("net", "filler", "counts")
    }
    assert {row["lever"] for row in records["counts"]["levers"]} == {"data", "context"}
    assert [row["rung"] for row in records["filler"]["ladder"]] == []
    page = Path("runs/why/report.html").read_text("utf-8")
    opening = page.partition("</header>")[0]
    for record in records.values():
        assert sentence(record) in opening
    assert "Why the models are off" in page
    stages = json.loads(Path("runs/why/stages.json").read_text("utf-8"))
    assert "explain:net" in json.dumps(stages)
    again = command("run", "run.yaml")
    assert again.code == 0 and "explain:net: done" not in again.err


def test_a_model_that_started_from_another_has_a_ladder_and_no_levers(place: Path, command: Command) -> None:
    """With random weights its levers would differ in two things."""
    record = json.loads(Path("model/training.json").read_text("utf-8"))
    Path("model/training.json").write_text(json.dumps({**record, "weights_digest": "0" * 64}), "utf-8")
    done = command("explain", "model", "corpus", "--oracle", "toy.txt", "-o", "w", "--lines", 2)
    assert done.code == 0
    found = json.loads(Path("w/explain.json").read_text("utf-8"))
    assert found["levers"] == [] and set(found["left_out"].values()) == {"other-weights"}


MINE = """
import numpy as np
from truesource import FunctionModel
row = np.log([0.25, 0.2, 0.1, 0.05, 0.4])
def distributions(sentences):
    return [np.tile(row, (len(sentence) + 1, 1)) for sentence in sentences]
model = FunctionModel(vocabulary=["a", "b", "c"], distributions=distributions, name="mine")
"""


def test_a_model_trained_elsewhere_has_all_that_needs_no_training(place: Path, command: Command) -> None:
    Path("mine.py").write_text(MINE, "utf-8")
    here = ("explain", "mine.py:model", "corpus", "--oracle", "toy.txt", "-o", "w")
    planned = command(*here, "--plan", "--table", "plan.csv")
    assert planned.code == 0, planned.err
    assert Path("plan.csv").read_text("utf-8").count("truesource did not train the model") == 7
    done = command(*here, "--lines", 2)
    assert done.code == 0, done.err
    record = json.loads(Path("w/explain.json").read_text("utf-8"))
    assert record["levers"] == [] and set(record["left_out"].values()) == {"not-trained-here"}
    assert {row["rung"] for row in record["ladder"]} == {"window", "ngram", "floor"}
    assert record["where"] and record["memory"]
    assert "truesource did not train the model" in sentence(record)


def test_the_plan_measures_the_speed_of_this_machine(place: Path, command: Command) -> None:
    """Times that the training wrote are of another machine, or of a busy one."""
    rows = [json.loads(line) for line in Path("model", TIMES).read_text("utf-8").splitlines()]
    slow = [{**row, "seconds": 1e6 * (i + 1)} for i, row in enumerate(rows)]
    Path("model", TIMES).write_text("".join(f"{json.dumps(row)}\n" for row in slow), "utf-8")
    done = command(*call("--plan", "--levers", "steps,width", "--json", "plan.json"))
    assert done.code == 0, done.err
    (plan,) = json.loads(Path("plan.json").read_text("utf-8"))
    assert set(plan["levers"]) == {"steps", "width"}
    assert 0.0 < plan["seconds_of_training"] < 60.0
    assert plan["levers"]["steps"]["seconds"] == pytest.approx(4 * plan["seconds_of_training"], rel=0.5)


def lever(name: str, change: float, helps: bool) -> dict[str, Any]:
    """What is recorded of one lever."""
    number = {"value": change, "low": change - 0.01, "high": change + 0.01}
    return {"lever": name, "before": "x", "after": "y", "change": number, "kl": {"value": 0.3}, "helps": helps}


@pytest.mark.parametrize(
    ("levers", "first", "said"),
    [
        ([lever("targets", -0.4, True), lever("data", -0.3, True)], "data", "Exact targets help more (0.400 nats)"),
        ([lever("steps", -0.4, False), lever("data", -0.3, True)], "data", "more steps may be chance"),
        ([lever("targets", -0.4, True), lever("data", -0.3, False)], "targets", ""),
        ([lever("data", -0.3, True), lever("targets", -0.2, True)], "data", ""),
    ],
)
def test_the_sentence_says_why_a_larger_change_is_no_advice(levers: list[Any], first: str, said: str) -> None:
    record = {"model": "m", "kl": {"value": 0.5}, "levers": levers, "left_out": {}, "first": first}
    text = sentence(record)
    assert said in text if said else "help more" not in text and "chance" not in text
