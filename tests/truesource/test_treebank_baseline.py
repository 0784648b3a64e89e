"""Models trained on the treebank beside models trained on sampled text, in a run."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tiny_run import RunCopies, prepare, run

from truesource.evaluation.core.token_table import read_token_record
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank import Treebank
from truesource.lmtrain.config import TrainConfig
from truesource.report.finished_run import ScoresRecord
from truesource.run.experiment import load_config, plan
from truesource.run.stages.treebank_baseline import TextInMemory, best_state, budget, equal_part
from truesource.run.treebank.text import TreebankText

pytestmark = pytest.mark.long

CONFIG = """\
name: toy
treebank: {embedded: english, sentences: 160, held_out: 0.3}
grammar: {method: relative_frequency}
corpus: {lengths: 3..9, splits: {train: 400, eval: 30}}
models:
  - {name: unigram, model: {architecture: ngram, order: 1, min_count: 2}}
  - {name: gpt2, model: {dim: 8, heads: 2, layers: 1, min_count: 2}, training: {max_steps: 6, eval_every: 2}}
evaluation: {treebank_baseline: {max_epochs: 2}}
"""


@pytest.fixture(scope="module")
def finished(finished_run: RunCopies) -> Path:
    """A folder with a finished run; not to be changed."""
    return finished_run("baseline", lambda folder: run(prepare(folder, CONFIG, "")))


def record(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (folder / "runs" / "toy" / "treebank_baseline" / f"{name}.json").read_text(encoding="utf-8")
    )
    return found


def values(found: dict[str, Any], **wanted: str) -> dict[tuple[str, str], float]:
    """By model and measure."""
    chosen = {"sentences": "common", "words": "all", **wanted}
    return {(r["model"], r["name"]): r["value"] for r in found["records"] if all(r[k] == v for k, v in chosen.items())}


def test_no_model_is_trained_on_a_sentence_of_a_held_out_tree(finished: Path) -> None:
    place = finished / "runs" / "toy"
    text = TreebankText.load(place / "treebank_baseline" / "text")
    bank, held = (Treebank.read(place / "treebank" / f"{name}.mrg.gz", None) for name in ("treebank", "held_out"))
    fitting = [s for s in bank.sentences() if 3 <= len(s) <= 9]
    trained = text.sentences("train") + text.sentences("dev")
    assert Counter(map(tuple, trained)) == Counter(map(tuple, fitting))
    assert text.sentences("held_out") == [s for s in held.sentences() if 3 <= len(s) <= 9]
    splits = text.about["splits"]
    assert splits["train"]["trees"] + splits["dev"]["trees"] == len(bank) and splits["held_out"]["trees"] == len(held)
    assert splits["train"]["outside"] + splits["dev"]["outside"] == len(bank) - len(fitting)


def test_a_unigram_model_has_the_perplexity_that_counting_gives(finished: Path) -> None:
    """Kneser-Ney of order 1: absolute discounting, and what is saved shared out evenly; here the model's own table."""
    from truesource.lmtrain.models import load_model

    place = finished / "runs" / "toy"
    text = TreebankText.load(place / "treebank_baseline" / "text")
    sampled = load_model(place / "models" / "unigram")
    known = set(sampled.vocabulary or ())
    twin = load_model(place / "treebank_baseline" / "models" / "unigram" / "treebank")
    assert twin.vocabulary == sampled.vocabulary
    pcfg = PCFG.load(place / "grammar" / "grammar.npz").collapse(sorted(known), "<unk>")
    held = [[w if w in known else "<unk>" for w in s] for s in text.sentences("held_out")]
    kept = [s for s in held if math.isfinite(pcfg.log_prob(s))]
    read = [[w if w in known else "<unk>" for w in s] + ["</s>"] for s in text.sentences("train")]
    counts = Counter(token for s in read for token in s)
    frequent = counts.most_common(1)[0][0]
    found = values(record(finished, "unigram"), text="real")
    assert record(finished, "unigram")["texts"]["real"]["common"] == len(kept) < len(held)
    tokens = [token for s in kept for token in [*s, "</s>"]]
    probability = kneser_ney_unigram(counts, len(known) + 2)
    assert probability[frequent] == max(probability.values())
    expected = math.exp(-sum(math.log(probability[token]) for token in tokens) / len(tokens))
    assert found["treebank", "ppl"] == pytest.approx(expected, rel=1e-9)


def kneser_ney_unigram(counts: Counter[str], types: int) -> dict[str, float]:
    """Discounts of Chen and Goodman by counts of counts; what is saved goes to all types evenly."""
    n = Counter(counts.values())
    y = n[1] / (n[1] + 2 * n[2])
    discount = [0.0] + [min(max(i - (i + 1) * y * n[i + 1] / n[i], 0.0), float(i)) for i in (1, 2, 3)]
    total = counts.total()
    saved = sum(discount[min(c, 3)] for c in counts.values())
    even = saved / total / types

    class Table(dict[str, float]):
        def __missing__(self, token: str) -> float:
            return even

    return Table({token: (c - discount[min(c, 3)]) / total + even for token, c in counts.items()})


def test_numbers_of_sampled_text_are_those_of_the_scores(finished: Path) -> None:
    for name in ("unigram", "gpt2"):
        scores = read_token_record(finished / "runs" / "toy" / "scores" / f"{name}.parquet", ScoresRecord)["record"]
        found = values(record(finished, name), text="sampled")
        assert found["sampled", "ppl"] == pytest.approx(scores["ppl"], rel=1e-12)
        assert found["grammar", "bound"] == pytest.approx(scores["bound"], rel=1e-12)
        assert found["sampled", "relative_ppl"] == pytest.approx(scores["relative_ppl"], rel=1e-12)


def test_ratios_are_those_of_the_perplexities(finished: Path) -> None:
    for name in ("unigram", "gpt2"):
        found = values(record(finished, name), text="real")
        for model in ("sampled", "sampled-equal"):
            expected = found[model, "ppl"] / found["treebank", "ppl"]
            assert found[model, "ratio"] == pytest.approx(expected, rel=1e-10)
        expected = found["treebank", "ppl"] / found["grammar", "reference_ppl"]
        assert found["treebank", "ratio_to_reference"] == pytest.approx(expected, rel=1e-10)
        assert ("grammar", "bound") not in found


def test_the_budget_of_the_twin(finished: Path) -> None:
    trained = record(finished, "gpt2")["trained"]
    real, equal = trained["treebank"], trained["sampled-equal"]
    assert real["epochs"] <= 2.0 and real["steps"] <= 6
    ends = real["words"] + real["sentences"]
    assert ends <= equal["words"] + equal["sentences"] < ends + 10
    losses = [
        (row["dev_loss"], row["step"])
        for line in (finished / "runs/toy/treebank_baseline/models/gpt2/treebank/metrics.jsonl")
        .read_text("utf-8")
        .splitlines()
        if (row := json.loads(line))["dev_loss"] is not None
    ]
    assert real["scored_step"] == min(losses)[1] and real["folder"].endswith(f"step-{real['scored_step']:06d}")
    kept = (finished / "runs/toy/treebank_baseline/models/gpt2/treebank/snapshots").iterdir()
    assert [path.name for path in kept] == [Path(real["folder"]).name]


def test_the_report_says_what_is_a_bound_and_what_is_not(finished: Path) -> None:
    page = (finished / "runs" / "toy" / "report.html").read_text(encoding="utf-8")
    section = page.partition('<section id="treebank_baseline">')[2].partition("</section>")[0]
    assert "Trained on the treebank" in section and "no bound" in section and "the grammar can make" in section
    assert section.count("as much sampled text") >= 3


@pytest.mark.usefixtures("quick_report")
def test_a_finished_run_is_skipped_and_a_broken_one_goes_on(tmp_path: Path) -> None:
    lines = CONFIG.replace("sentences: 160", "sentences: 60").splitlines()
    small = "\n".join(line for line in lines if "gpt2" not in line) + "\n"
    folder = prepare(tmp_path, small, "")
    before = set(run(folder, "evaluation={}"))
    state = json.loads((tmp_path / "runs/toy/stages.json").read_text("utf-8"))["stages"]
    assert not any(name.startswith("treebank_") for name in before)
    added = {"treebank_baseline", "treebank_train:unigram", "treebank_baseline:unigram", "report"}
    assert set(run(folder)) == added
    later = json.loads((tmp_path / "runs/toy/stages.json").read_text("utf-8"))["stages"]
    assert all(later[name]["inputs"] == state[name]["inputs"] for name in state if name != "report")
    assert run(folder) == []
    files = {p: p.read_bytes() for p in (tmp_path / "runs/toy/treebank_baseline").rglob("*.json")}
    (tmp_path / "runs/toy/treebank_baseline/unigram.json").unlink()
    assert run(folder) == ["treebank_baseline:unigram"]
    (tmp_path / "runs/toy/treebank_baseline/models/unigram/trained.json").unlink()
    assert run(folder) == ["treebank_train:unigram"]
    for path, content in files.items():
        if path.name not in ("training.json",):
            assert path.read_bytes() == content, path
    assert set(run(folder, "evaluation.treebank_baseline.dev=0.2")) == added


def test_without_sentences_of_these_lengths_there_is_a_note(tmp_path: Path) -> None:
    lines = CONFIG.replace("sentences: 160", "sentences: 20").splitlines()
    small = "\n".join(line for line in lines if "gpt2" not in line) + "\n"
    folder = prepare(tmp_path, small.replace("3..9", "60..70"), "")
    run(folder)
    page = (tmp_path / "runs" / "toy" / "report.html").read_text(encoding="utf-8")
    assert "no sentence is left for train" in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("treebank: {embedded: english, sentences: 160, held_out: 0.3}", ""), "needs a treebank"),
        (("held_out: 0.3", "held_out: 0.0"), "held_out"),
        (("lengths: 3..9", "lengths: 3..9, transform: reversal"), "corpus.transform"),
        (("max_epochs: 2", "max_epochs: 0"), "max_epochs"),
    ],
)
def test_what_cannot_be_compared_is_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    text = CONFIG.replace(*change)
    if "treebank: {" not in text:
        text = text.replace("{method: relative_frequency}", "{language: dyck}")
    prepare(tmp_path, text, "")
    with pytest.raises(InputError, match=message) as refused:
        load_config(tmp_path / "toy.yaml")
    assert not isinstance(refused.value, ValidationError) and "\n" not in str(refused.value)


def test_the_key_makes_its_stages_and_no_others(tmp_path: Path) -> None:
    prepare(tmp_path, CONFIG, "")
    asked, plain = load_config(tmp_path / "toy.yaml"), load_config(tmp_path / "toy.yaml", ["evaluation={}"])
    more = [stage.name for stage in plan(asked) if stage.name not in {stage.name for stage in plan(plain)}]
    kinds = ("treebank_train", "treebank_baseline")
    assert more == ["treebank_baseline", *(f"{kind}:{name}" for kind in kinds for name in ("unigram", "gpt2"))]


def test_steps_are_kept_up_to_a_number_of_passes() -> None:
    given = TrainConfig(epochs=1.0, learning_rate=0.1, eval_every=7)
    kept = budget(given, steps=100, tokens=1000, available=100, max_epochs=10.0, snapshots=False)
    assert (kept.max_steps, kept.epochs, kept.snapshots) == (100, None, "none")
    cut = budget(given, steps=100, tokens=1001, available=100, max_epochs=10.0, snapshots=True)
    assert (cut.max_steps, cut.epochs, cut.snapshots, cut.snapshot_every) == (None, 10.0, "linear", 7)
    assert cut.learning_rate == 0.1


def test_as_much_sampled_text() -> None:
    real = TextInMemory([["a"], ["b", "c"]], [["d"]])
    sampled = [["x", "x"], ["y"], ["z"], ["u"]]
    part = equal_part(sampled, real)
    assert part == TextInMemory(sampled[:2], sampled[2:3])
    assert part is not None and part.splits == ("train", "dev")
    assert equal_part(sampled[:2], real) is None
    assert TextInMemory([["a"]], []).splits == ("train",)


def test_without_snapshots_the_last_state_is_scored(tmp_path: Path) -> None:
    assert best_state(tmp_path, [{"step": 3, "dev_loss": 1.0}, {"step": 5, "dev_loss": 2.0}]) == (5, tmp_path)
