"""Minimal pairs as tasks of the lm-evaluation-harness: the files, and what the harness itself makes of them."""

from __future__ import annotations

import json
import math
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from agreement_grammar import agreement_grammar

import truesource.studies.benchmark.lm_eval as exporter
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.pairs.edits import MARGIN
from truesource.evaluation.pairs.evaluate import evaluate_pairs
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.odds import model_log_odds, with_truth
from truesource.evaluation.pairs.pair import END, read_pairs
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.studies.benchmark.lm_eval import HarnessExport, export_lm_eval, language_pairs
from truesource.studies.benchmark.suite import Suite, SuiteLanguage

PAIRS = 24
LANGUAGES = {"brackets": ("dyck:k=2,depth=3", "2..16"), "counting": ("anbn", "2..20"), "parity": ("regular", "1..16")}


def made_suite(languages: dict[str, tuple[str, str]] | None = None) -> Suite:
    return Suite.model_validate(
        {
            "name": "mini",
            "version": 3,
            "title": "small",
            "seed": 1,
            "languages": {
                name: {"language": reference, "kind": "small", "tests": "something", "lengths": lengths}
                for name, (reference, lengths) in (languages or LANGUAGES).items()
            },
            "training": {"tokens": 10000, "batch_tokens": 1000, "points": 4, "parameters": 1000000, "seeds": [1]},
            "sizes": {"dev": 20, "test": 20, "longer": 20, "blocks": 10},
        }
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> HarnessExport:
    return export_lm_eval(made_suite(), tmp_path_factory.mktemp("tasks"), pairs=PAIRS)


def folder_of(exported: HarnessExport) -> Path:
    return exported.files[0].parent


def lines(exported: HarnessExport, language: str) -> list[dict[str, Any]]:
    path = folder_of(exported) / f"{exported.tasks[language]}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def settings(path: Path) -> dict[str, Any]:
    """A YAML file of the harness, functions as their names."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))
    found = yaml.load(path.read_text(), Loader=Loader)
    assert isinstance(found, dict)
    return found


def reader(exported: HarnessExport) -> Any:
    """The module that the harness reads pairs with."""
    spec = spec_from_file_location("reader_of_pairs", folder_of(exported) / f"{exported.group}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_tasks_include_the_template_and_the_group_has_them_all(exported: HarnessExport) -> None:
    folder = folder_of(exported)
    assert sorted(folder.iterdir()) == sorted(exported.files)
    group = settings(folder / "truesource-mini-v3.yaml")
    assert group["group"] == exported.group == "truesource-mini-v3"
    assert group["task"] == list(exported.tasks.values()) == [f"truesource-mini-v3-{name}" for name in LANGUAGES]
    assert group["aggregate_metric_list"] == [{"metric": "acc", "aggregation": "mean", "weight_by_size": False}]
    for task in exported.tasks.values():
        own = settings(folder / f"{task}.yaml")
        assert own["task"] == task and (folder / own["dataset_kwargs"]["file"]).is_file()
        template = settings(folder / own["include"])
        assert template["custom_dataset"] == f"{exported.group}.load"
        assert (template["output_type"], template["doc_to_text"]) == ("multiple_choice", "")
        assert template["metadata"]["version"] == 3 and template["metadata"]["end"] == END
    assert f"--include_path {folder}" in exported.next_command


@pytest.mark.long
@pytest.mark.parametrize("language", list(LANGUAGES))
def test_good_strings_are_possible_and_bad_ones_less_probable(exported: HarnessExport, language: str) -> None:
    pcfg, low_high = PCFG.load(LANGUAGES[language][0]), made_suite().languages[language].range
    records = lines(exported, language)
    assert 15 <= len(records) <= PAIRS
    for record in records:
        good, bad = (tuple(record[key].split()) for key in ("sentence_good", "sentence_bad"))
        assert len(good) in low_high and len(bad) in low_high
        log_good, log_bad = pcfg.log_prob(good), pcfg.log_prob(bad)
        assert record["log_p_good"] == pytest.approx(log_good, abs=1e-9)
        assert record["impossible"] is (log_bad == -math.inf)
        if record["impossible"]:
            assert record["log_odds"] is None
        else:
            assert record["log_odds"] == pytest.approx(log_good - log_bad, abs=1e-9) and record["log_odds"] >= MARGIN
        assert record["kind"] in ("swap", "replace", "delete", "insert")


@pytest.mark.long
def test_the_truth_gets_every_pair_right_as_evaluate_reads_the_file(exported: HarnessExport) -> None:
    for language, (reference, _) in LANGUAGES.items():
        pcfg = PCFG.load(reference)
        path = folder_of(exported) / f"{exported.tasks[language]}.jsonl"
        pairs = with_truth(read_pairs(path, pcfg.vocabulary), Lexicon(pcfg, None))
        found = evaluate_pairs(Oracle(pcfg), pairs, pcfg)
        assert (found.odds > 0.0).all() and len(found.pairs) == len(lines(exported, language))


@pytest.mark.long
def test_the_reader_ends_strings_and_turns_the_choices(exported: HarnessExport) -> None:
    records = lines(exported, "brackets")
    docs = list(reader(exported).load(f"{exported.tasks['brackets']}.jsonl", end="</s>", version=3)["test"])
    assert [doc["target"] for doc in docs] == [number % 2 for number in range(len(records))]
    for doc, record in zip(docs, records, strict=True):
        assert doc["choices"][doc["target"]] == record["sentence_good"] + "</s>"
        assert doc["choices"][1 - doc["target"]] == record["sentence_bad"] + "</s>"


@pytest.mark.long
def test_without_an_end_the_reader_keeps_what_is_decided_before_it(exported: HarnessExport) -> None:
    decided = [record["strata"]["decided"] for record in lines(exported, "brackets")]
    assert set(decided) == {"beginning", "end"}
    docs = reader(exported).load(f"{exported.tasks['brackets']}.jsonl", end="")["test"]
    assert len(docs) == decided.count("beginning")
    pcfg, lengths = PCFG.load(LANGUAGES["brackets"][0]), made_suite().languages["brackets"].range
    for doc in docs:
        good, bad = doc["choices"][doc["target"]].split(), doc["choices"][1 - doc["target"]].split()
        assert pcfg.prefix_log_prob(good, lengths) - pcfg.prefix_log_prob(bad, lengths) >= MARGIN


def test_the_end_is_that_of_our_tokenisers() -> None:
    from truesource.lmtrain.subwords import build_subword_tokenizer
    from truesource.lmtrain.tokenizer import EOS, build_tokenizer

    assert END == EOS
    words = ["(1", "1)", "(2", "2)"]
    tokenizer = build_tokenizer([words])
    ids = tokenizer.encode(f"(1 1){END}", add_special_tokens=False)
    assert tokenizer.convert_ids_to_tokens(ids) == ["(1", "1)", EOS]
    subwords = build_subword_tokenizer([words], "bpe", 16)
    assert subwords.encode(f"(1 1){END}", add_special_tokens=False) == [
        *subwords.encode("(1 1)", add_special_tokens=False),
        subwords.eos_token_id,
    ]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}  # no folder of bytecode


@pytest.mark.long
def test_one_seed_writes_the_same_bytes(exported: HarnessExport, tmp_path: Path) -> None:
    again = export_lm_eval(made_suite(), tmp_path / "again", pairs=PAIRS)
    assert contents(folder_of(again)) == contents(folder_of(exported))
    one = export_lm_eval(made_suite(), tmp_path / "one", pairs=PAIRS, languages=["counting"])
    task = f"{one.tasks['counting']}.jsonl"
    assert list(one.tasks) == ["counting"]
    assert (tmp_path / "one" / task).read_bytes() == (folder_of(exported) / task).read_bytes()
    other = export_lm_eval(made_suite(), tmp_path / "other", pairs=PAIRS, seed=2, languages=["counting"])
    assert lines(other, "counting") != lines(one, "counting")


@pytest.mark.long
def test_files_that_exist_are_refused_without_force(tmp_path: Path) -> None:
    suite = made_suite()
    first = export_lm_eval(suite, tmp_path, pairs=4, languages=["counting"])
    mine = tmp_path / "mine.txt"
    mine.write_text("kept")
    before = contents(tmp_path)
    with pytest.raises(InputError) as refused:
        export_lm_eval(suite, tmp_path, pairs=5, languages=["counting"])
    assert refused.value.code == "exists" and contents(tmp_path) == before
    export_lm_eval(suite, tmp_path, pairs=5, languages=["counting"], force=True)
    assert len(lines(first, "counting")) == 5 and mine.read_text() == "kept"


def test_files_appear_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, written = made_suite(), exporter.write_text

    def fails(target: Path, text: str) -> None:
        if target.name.endswith("mini-v3.yaml"):
            raise InputError("the disk is full", target, code="unwritable")
        written(target, text)

    monkeypatch.setattr(exporter, "write_text", fails)
    with pytest.raises(InputError):
        export_lm_eval(suite, tmp_path, pairs=4, languages=["counting"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_languages_that_the_suite_lacks_and_those_without_pairs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        export_lm_eval(made_suite(), tmp_path, languages=["klingon"])
    assert refused.value.code == "unknown-language"
    single = tmp_path / "single.pcfg"
    single.write_text("S -> a 1\n")
    with pytest.raises(NothingToMeasureError) as without:
        export_lm_eval(made_suite({"single": (str(single), "1..1")}), tmp_path / "tasks", pairs=4)
    assert without.value.code == "no-pairs" and not (tmp_path / "tasks").exists()


@pytest.mark.long
def test_grammars_with_english_tags_have_english_phenomena_too(tmp_path: Path) -> None:
    path = tmp_path / "toy.npz"
    agreement_grammar().save(path)
    toy = SuiteLanguage(language=str(path), kind="English", tests="agreement", lengths="3..9")
    pairs = language_pairs(toy, 40, 1)
    kinds = [pair.phenomenon for pair in pairs]
    assert {"subject-verb", "replace"} <= set(kinds) and len(pairs) == 40
    assert sum(kind in exporter.GRAMMATICAL for kind in kinds) <= 20
    assert all(pair.log_odds is None or pair.log_odds >= MARGIN - 1e-9 for pair in pairs)
    assert all("decided" in pair.strata for pair in pairs)


@pytest.mark.long
def test_words_that_models_may_not_know_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "toy.npz"
    agreement_grammar().save(path)
    suite = made_suite({"toy": (str(path), "3..9")})
    scarce = suite.model_copy(update={"training": suite.training.model_copy(update={"tokens": 1000, "min_count": 3})})
    lexicon = Lexicon(PCFG.load(path), suite.languages["toy"].range)
    share = dict(zip(lexicon.pcfg.vocabulary, np.exp(lexicon.unigram).tolist(), strict=True))
    for number, (each, rarest) in enumerate([(suite, 0.001), (scarce, 0.03)]):
        found = export_lm_eval(each, tmp_path / str(number), pairs=40).pairs["toy"]
        words = {word for pair in found for word in (*pair.a, *pair.b)}
        assert {word for word in words if share[word] < rarest} == set()
        assert ({word for word in words if share[word] < 0.03} == set()) is (each is scarce)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("one_thread")
def test_the_harness_scores_a_trained_model_as_we_do(exported: HarnessExport, tmp_path: Path) -> None:
    harness = pytest.importorskip("lm_eval", reason="the lm-evaluation-harness is not installed")
    from lm_eval.tasks import TaskManager

    from truesource.generator.corpus import Corpus
    from truesource.lmtrain.config import TrainConfig
    from truesource.lmtrain.model_registry import model_settings
    from truesource.lmtrain.models import load_model
    from truesource.lmtrain.training import train

    pcfg, lengths = PCFG.load(LANGUAGES["brackets"][0]), made_suite().languages["brackets"].range
    corpus = Corpus.sample(pcfg, {"train": 2000}, path=tmp_path / "corpus", lengths=lengths, seed=1)
    tiny = model_settings(architecture="gpt2", layers=1, dim=32, heads=2, max_positions=32)
    train(corpus, tiny, TrainConfig(max_steps=60, batch_tokens=512), tmp_path / "model", seed=1)
    task = exported.tasks["brackets"]
    for end in (END, ""):
        found = harness.simple_evaluate(
            model="hf",
            model_args={"pretrained": str(tmp_path / "model"), "dtype": "float32"},
            tasks=[exported.group],
            task_manager=TaskManager(
                include_path=str(folder_of(exported)), include_defaults=False, metadata={"end": end}
            ),
            device="cpu",
            batch_size=8,
            bootstrap_iters=0,
            log_samples=True,
        )
        if end:
            pairs = read_pairs(folder_of(exported) / f"{task}.jsonl", pcfg.vocabulary)
            odds = model_log_odds(load_model(tmp_path / "model"), pairs)
            assert np.abs(odds).min() > 1e-4  # no ties, which the harness gives to the first choice
            assert harness_odds(found["samples"][task]) == pytest.approx(odds, abs=1e-3)
            assert found["results"][task]["acc,none"] == pytest.approx(float(np.mean(odds > 0.0)))
            assert found["results"][task]["acc,none"] > 0.5
            unknown = found["results"][exported.tasks["parity"]]["acc,none"]  # all words are <unk>: ties
            assert unknown == pytest.approx(0.5, abs=0.5 / len(lines(exported, "parity")))
        else:
            kept = [each["strata"]["decided"] == "beginning" for each in lines(exported, "brackets")]
            assert len(found["samples"][task]) == sum(kept)


def harness_odds(samples: list[dict[str, Any]]) -> Any:
    """Log probability of the good choice less that of the bad one, of each pair."""
    odds = []
    for sample in sorted(samples, key=lambda each: int(each["doc_id"])):
        values = [float(response[0]) for response in sample["filtered_resps"]]
        good = sample["doc"]["target"]
        odds.append(values[good] - values[1 - good])
    return np.array(odds)
