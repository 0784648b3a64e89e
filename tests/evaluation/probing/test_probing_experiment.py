"""Whole experiments on vectors whose content is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from truesource.evaluation.measures.bootstrap import ci_part
from truesource.evaluation.probing import ProbeSettings
from truesource.evaluation.probing.experiment import Experiment, WordValues, one_hot, random_labels
from truesource.evaluation.probing.results import (
    Probing,
    best_layer,
    confusion_of,
    measure_parts,
    record_fields,
    task_parts,
)
from truesource.evaluation.probing.targets import Targets
from truesource.lmtrain.linear_probe import fit_linear

N, TYPES, LABELS = 4000, 400, 4


def make(seed: int = 0, certain: bool = False, n: int = N) -> tuple[Targets, np.ndarray]:
    """Items of equally frequent types with a posterior each, and vectors that are its logarithm, rotated."""
    rng = np.random.default_rng(seed)
    words = rng.integers(TYPES, size=n)
    posterior = rng.dirichlet(np.full(LABELS, 0.5), size=n)
    if certain:
        posterior = one_hot(posterior.argmax(axis=1), LABELS)
    posterior = np.maximum(posterior, 1e-3 * (not certain))
    posterior /= posterior.sum(axis=1, keepdims=True)
    turned, _ = np.linalg.qr(rng.normal(size=(LABELS, LABELS)))
    x = (posterior if certain else np.log(posterior)) @ turned
    place = np.arange(n)
    types = tuple(f"w{i}" for i in words)
    targets = Targets(
        kind="tag",
        given="sentence",
        right="argmax",
        labels=tuple("abcd"),
        posterior=posterior,
        truth=posterior.argmax(axis=1),
        sentence=place // 10,
        first=place % 10,
        last=place % 10,
        first_word=types,
        last_word=types,
        excluded=(),
    )
    return targets, x


def test_what_is_coded_linearly_is_found_whole() -> None:
    targets, x = make(certain=True)
    found = Experiment(targets, fit_linear, ProbeSettings(mdl=False)).probe(x, 1)
    assert found.measures["accuracy"].value == found.measures["mcc"].value == 1.0
    assert found.measures["cross_entropy"].value < 0.01
    assert found.measures["selectivity"].value > 0.5


@pytest.mark.long
def test_a_soft_probe_comes_as_near_as_the_posteriors_own_entropy() -> None:
    targets, x = make()
    soft, hard = (
        Experiment(targets, fit_linear, ProbeSettings(soft=soft, mdl=False, control="none")).probe(x, 0)
        for soft in (True, False)
    )
    floor = soft.measures["entropy"].value
    assert floor > 0.3
    assert floor <= soft.measures["cross_entropy"].value < floor + 0.005
    assert soft.measures["accuracy"].value > 0.97
    assert hard.measures["kl"].value > 5 * soft.measures["kl"].value  # hard labels make it too sure
    assert set(soft.measures) == {
        "accuracy",
        "expected_accuracy",
        "cross_entropy",
        "entropy",
        "kl",
        "group_accuracy",
        "mcc",
    }


def test_random_labels_are_at_chance() -> None:
    targets, x = make(3)
    experiment = Experiment(targets, fit_linear, ProbeSettings())
    found = experiment.chance(x)
    n = len(experiment.split.test)
    right = round(found["random_accuracy"].value * n)
    assert stats.binomtest(right, n, found["random_chance"].value).pvalue > 0.01
    share = np.bincount(random_labels(targets.truth, 1)) / N
    assert share.min() - 0.05 < found["random_chance"].value < share.max() + 0.05


@pytest.mark.long
def test_the_control_task_is_learnt_by_heart_from_vectors_that_name_the_type() -> None:
    targets, _ = make(1, certain=True)
    numbers = np.array([int(key[1:]) for key in targets.key])
    x = one_hot(numbers, TYPES)
    by_tokens = Experiment(targets, fit_linear, ProbeSettings(mdl=False)).probe(x, 0).measures
    assert by_tokens["control_accuracy"].value > 0.95
    assert by_tokens["selectivity"].value < 0.0  # the labels of the task have nothing to do with the types
    by_types = Experiment(targets, fit_linear, ProbeSettings(mdl=False, control="split")).probe(x, 0).measures
    assert by_types["control_accuracy"].value < 0.5  # at chance by construction
    assert by_types["task_accuracy"] == by_types["accuracy"]


@pytest.mark.long
def test_an_experiment_repeats_and_its_records_are_signed() -> None:
    targets, x = make(2, n=1500)
    values = WordValues(np.linspace(-9, -1, 1500), np.linspace(-9, -2, 1500))
    values.truth[::7] = np.nan
    runs = []
    for _ in range(2):
        experiment = Experiment(targets, fit_linear, ProbeSettings())
        noise = np.random.default_rng(0).normal(size=x.shape)
        layers = [experiment.probe(x + 2 * noise, 0, 8, full=False), experiment.probe(x + 2 * noise, 0, 9)]
        layers.append(experiment.probe(x, 1, 9, values=values))
        best = best_layer(layers[1:])
        runs.append(
            Probing(
                model="m",
                objective="causal",
                layers=layers,
                baselines=experiment.baselines(),
                chance=experiment.chance(x),
                labels=targets.labels,
                confusion=confusion_of(experiment, best),
                parts=task_parts(experiment),
                overrides=measure_parts(experiment),
                fields=record_fields(experiment),
            )
        )
    first, again = (run.records() for run in runs)
    assert first == again
    assert runs[0].best.layer == 1
    assert runs[0].steps == [8, 9]
    assert [found.step for found in runs[0].final] == [9, 9]
    names = {r["name"] for r in first if r["layer"] == 1}
    assert {"mdl", "compression", "selectivity", "rho_truth", "rho_difference", "confusion"} <= names
    assert {r["name"] for r in first if r["step"] == 8} & {"mdl", "selectivity"} == set()
    confused = [r for r in first if r["name"] == "confusion"]
    assert sum(r["value"] for r in confused) == len(Experiment(targets, fit_linear, ProbeSettings()).split.test)
    mdl = next(r for r in first if r["name"] == "mdl" and r["layer"] == 1)
    assert "target:tag|posterior-given:sentence|right:argmax|trained:soft|probe:linear-l2" in mdl["signature"]
    assert "layer:1" in mdl["signature"]
    assert mdl["signature"].count("unit:bits/label") == 1
    ratio = next(r for r in first if r["name"] == "compression" and r["layer"] == 1)
    assert ratio["low"] <= ratio["value"] <= ratio["high"]
    assert ratio["value"] == pytest.approx(2.0 / mdl["value"])


def test_baselines_and_limits() -> None:
    targets, _ = make(4)
    experiment = Experiment(targets, fit_linear, ProbeSettings(split_by="position"))
    found = experiment.baselines()
    test = experiment.split.test
    common = np.bincount(targets.truth[experiment.split.train]).argmax()
    assert found["majority_accuracy"].value == pytest.approx((targets.truth[test] == common).mean())
    assert found["unseen_labels"].value == 0.0
    assert found["expected_accuracy_limit"].value == pytest.approx(targets.posterior[test].max(axis=1).mean())
    by_type = Experiment(targets, fit_linear, ProbeSettings()).baselines()
    assert by_type["identity_accuracy"] == by_type["majority_accuracy"]  # all types of the test part are new


def test_spans_are_the_vectors_of_both_ends() -> None:
    targets, _ = make()
    words = np.arange(24.0).reshape(12, 2)
    names = tuple(map(str, range(12)))
    spans = Targets(
        kind="span",
        given="sentence",
        right="argmax",
        labels=("x", "y"),
        posterior=one_hot(np.arange(12) % 2, 2),
        truth=np.arange(12) % 2,
        sentence=np.repeat([0, 1, 3], 4),
        first=np.zeros(12, int),
        last=np.arange(12) % 2 + 1,
        first_word=names,
        last_word=names,
        excluded=(2,),
    )
    experiment = Experiment(spans, fit_linear, ProbeSettings(split_by="position"))
    starts = np.array([0, 3, 6, 9])
    needed = experiment.words(starts)
    assert needed.tolist() == [0, 1, 2, 3, 4, 5, 9, 10, 11]  # none of sentence 2
    rows = experiment.vectors(words[needed], starts)
    assert rows[5].tolist() == [6.0, 7.0, 10.0, 11.0]  # sentence 1 starts at word 3; its words 0 and 2
    single = Experiment(targets, fit_linear, ProbeSettings())
    assert np.array_equal(single.words(np.arange(0, N, 10)), np.arange(N))
    assert single.vectors(np.arange(N), np.arange(0, N, 10))[13] == 13


def spans_of(seed: int = 0, n: int = 3000) -> Targets:
    """Spans with random ends of a few hundred types, labels that the first type decides, five a sentence."""
    rng = np.random.default_rng(seed)
    first, last = rng.integers(300, size=(2, n))
    label = first % LABELS
    begin, end = (tuple(f"w{i}" for i in types) for types in (first, last))
    return Targets(
        kind="span",
        given="sentence",
        right="argmax",
        labels=tuple("abcd"),
        posterior=one_hot(label, LABELS),
        truth=label,
        sentence=np.arange(n) // 5,
        first=np.arange(n) % 5,
        last=np.arange(n) % 5 + 1,
        first_word=begin,
        last_word=end,
        excluded=(),
    )


@pytest.mark.long
def test_selectivity_is_that_of_probes_trained_for_its_split() -> None:
    """Whatever weight decay suits the split by type: with no type in common, vectors of types tell it nothing."""
    plain, _ = make(1, n=1500)
    numbers = np.array([int(key[1:]) % 150 for key in plain.key])
    types = tuple(map(str, numbers))
    targets = replace(
        plain, posterior=one_hot(numbers % LABELS, LABELS), truth=numbers % LABELS, first_word=types, last_word=types
    )
    x = one_hot(numbers, 150)
    by_type, by_text = (Experiment(targets, fit_linear, ProbeSettings(split_by=by)) for by in ("type", "position"))
    found, alone = by_type.probe(x, 0), by_text.probe(x, 0)
    assert alone.measures["task_accuracy"] == alone.measures["accuracy"]
    for name in ("task_accuracy", "control_accuracy", "selectivity", "mdl", "compression"):
        assert found.measures[name] == alone.measures[name]
    assert found.probe.weight_decay != alone.probe.weight_decay
    assert found.decays["task_accuracy"] == f"{alone.probe.weight_decay:g}"
    assert found.decays["selectivity"].startswith(f"{alone.probe.weight_decay:g}/")
    assert found.decays["mdl"] == "by-block"


@pytest.mark.long
def test_the_control_task_of_spans_is_one_of_first_words_which_recur() -> None:
    """Vectors that name both ends: a table of first words is learnt by heart, one of pairs could not be."""
    targets = spans_of()
    numbers = np.array([[int(a[1:]), int(b[1:])] for a, b in zip(targets.first_word, targets.last_word, strict=True)])
    x = np.concatenate([one_hot(column, 300) for column in numbers.T], axis=1)
    found = Experiment(targets, fit_linear, ProbeSettings(mdl=False)).probe(x, 0).measures
    assert found["control_accuracy"].value > 0.9


@pytest.mark.parametrize("span", [False, True])
@pytest.mark.parametrize("by", ["type", "position"])
@pytest.mark.parametrize("control", ["tokens", "split", "none"])
def test_signatures_say_what_each_measure_is_measured_on(span: bool, by: str, control: str) -> None:
    targets = spans_of() if span else make()[0]
    experiment = Experiment(targets, fit_linear, ProbeSettings(split_by=by, control=control))
    common, own = task_parts(experiment), measure_parts(experiment)
    sizes = {len(parts.test): parts for parts in (experiment.split, experiment.text_split)}
    groups = {"type": "end-type" if span else "type", "position": "sentence"}

    def measured_on(name: str) -> str:
        said = {**common, **own.get(name, {})}
        kind, numbers = str(said["split"]).split("/")
        parts = sizes[int(numbers.rsplit("-", 1)[1])]
        assert numbers == f"{len(parts.train)}-{len(parts.dev)}-{len(parts.test)}"
        if name != "group_accuracy":
            method = "percentile" if name == "mcc" else "jackknife" if name == "rho_truth" else "t"
            assert said["ci"] == ci_part(99, 1, groups[kind], method=method)
        return kind

    assert "control" not in common
    assert measured_on("accuracy") == measured_on("mcc") == measured_on("kl") == measured_on("rho_truth") == by
    assert measured_on("mdl") == measured_on("compression") == measured_on("position_identity_accuracy") == "position"
    if control == "none":
        assert "selectivity" not in own
    else:
        for name in ("task_accuracy", "control_accuracy", "selectivity"):
            assert measured_on(name) == (by if control == "split" else "position")
            assert own[name]["control"] == f"{control}/{'first-word' if span else 'word'}-type"
    assert own["group_accuracy"]["grouped-by"] == ("pair" if span else "type")
    said = str({**common, **own["group_accuracy"]}["ci"])
    assert said.split("-bootstrap")[0] == (groups["type"] if by == "type" else "pair" if span else "type")
    fields = record_fields(experiment)
    for name in ("accuracy", "group_accuracy", "mdl", "compression", "position_identity_accuracy", "selectivity"):
        if name in own or name != "selectivity":
            said, field = {**common, **own.get(name, {})}, fields.get(name, fields[""])
            assert str(said["split"]).split("/")[0] == field["split"]
            assert str(said["ci"]).split("-bootstrap")[0] == field["resampled"]


@pytest.mark.parametrize("by", ["type", "position"])
def test_group_accuracy_is_the_mean_over_word_types_on_either_split(by: str) -> None:
    for targets, x in (make(5), (spans_of(2), np.random.default_rng(0).normal(size=(3000, 4)))):
        experiment = Experiment(targets, fit_linear, ProbeSettings(split_by=by, mdl=False, control="none"))
        found = experiment.probe(x + np.random.default_rng(1).normal(size=x.shape), 0)
        test = experiment.split.test
        shares: dict[str, list[bool]] = {}
        for i, guess in zip(test, found.guess, strict=True):
            shares.setdefault(targets.key[i], []).append(guess == targets.truth[i])
        wanted = np.mean([np.mean(one) for one in shares.values()])
        assert found.measures["group_accuracy"].value == pytest.approx(wanted, abs=1e-12)
