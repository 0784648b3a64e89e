"""Answers of the kit: the exact engine, independent sums, distinctness, and the diagnosis of numbers."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

import truesource as ts
from truesource.evaluation.known_answers.answers import answers_of
from truesource.evaluation.known_answers.kit import kit_texts, known_answers, read_answers
from truesource.evaluation.known_answers.languages import ABSENT, CausalLanguage, MaskedLanguage
from truesource.evaluation.known_answers.records import KitAnswers
from truesource.evaluation.known_answers.scoring import KitText, bpe, summed_log_prob

TEXTS = {text.name: text for text in kit_texts()}


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("known") / "kit"
    known_answers(path)
    return path


@pytest.fixture(scope="module")
def record(kit: Path) -> KitAnswers:
    return read_answers(kit)


def names_of(text: KitText) -> list[list[str]]:
    return [[text.language.tokens.names[token] for token in sentence] for sentence in text.sentences]


def values_of(record: KitAnswers, name: str) -> dict[str, float]:
    return {each: answer.value for answer in record.texts[name].answers for each in answer.name.split(" = ")}


@pytest.mark.parametrize("name", TEXTS)
def test_log_probs_are_those_of_the_exact_engine(name: str) -> None:
    text = TEXTS[name]
    is_masked = isinstance(text.language, MaskedLanguage)
    exact = ts.Oracle(text.language.grammar, "masked" if is_masked else "causal").score(names_of(text)).log_prob
    scored = text.score({})
    assert scored is not None
    values = np.array([*itertools.chain(*scored.parts)])
    assert values == pytest.approx(exact[: len(values)], abs=1e-12)
    assert len(exact) - len(values) == (1 if text.kind == "window" else 0)


@pytest.mark.parametrize("name", TEXTS)
def test_probabilities_of_possible_tokens_are_moderate(name: str) -> None:
    language = TEXTS[name].language
    tokens = language.tokens
    if isinstance(language, CausalLanguage):
        rows = language.log_probs[:, [tokens.begin, *tokens.words]]
        possible = language.logits[:, [tokens.begin, *tokens.words]] > ABSENT
        probabilities = np.exp(rows[possible])
    else:
        probabilities = language.transitions[language.transitions > 0.0]
    assert probabilities.min() > 1e-4 and probabilities.max() < 0.9


@pytest.mark.parametrize("name", TEXTS)
def test_conventions_and_mistakes_of_a_text_are_distinct(name: str) -> None:
    answers = answers_of(TEXTS[name], combinations=False)
    values = sorted(answer.value for answer in answers)
    assert len(values) >= 15 and min(b / a for a, b in itertools.pairwise(values)) > 1.01


@pytest.mark.long
def test_the_kit_has_the_same_bytes_twice_and_is_small(kit: Path, tmp_path: Path) -> None:
    known_answers(tmp_path / "again")
    files = {path.relative_to(kit): path.read_bytes() for path in kit.rglob("*") if path.is_file()}
    again = tmp_path / "again"
    assert files == {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()}
    assert sum(map(len, files.values())) < 1_000_000
    assert len([path for path in files if path.suffix == ".safetensors"]) == 7


@pytest.mark.long
def test_texts_and_grammars_of_a_kit_give_its_log_probs(kit: Path, record: KitAnswers) -> None:
    for name, text in record.texts.items():
        lines = (kit / text.file).read_text("utf-8").splitlines()
        assert lines == TEXTS[name].lines and len(lines) == text.sizes["sentences"]
        assert len("".join(lines).encode()) == text.sizes["bytes"]
        assert len("".join(lines)) == text.sizes["characters"]
        if text.objective == "causal" and name != "long":
            grammar = ts.PCFG.load(kit / text.grammar)
            for sentence in text.sentences:
                exact = grammar.log_prob(sentence.tokens[:-1])
                assert sentence.log_prob == pytest.approx(exact, abs=1e-10)
                assert sentence.log_prob == pytest.approx(math.fsum(sentence.log_probs), abs=1e-12)


@pytest.mark.long
def test_conventions_by_hand(record: KitAnswers) -> None:
    text, values = record.texts["words-1"], values_of(record, "words-1")
    parts = [sentence.log_probs for sentence in text.sentences]
    total, n, sentences = -sum(map(sum, parts)), sum(map(len, parts)), len(parts)
    ends, firsts = -sum(part[-1] for part in parts), -sum(part[0] for part in parts)
    size = text.sizes
    expected = {
        "perplexity per token": math.exp(total / n),
        "perplexity per token; end not scored": math.exp((total - ends) / (n - sentences)),
        "perplexity per token; first token not scored": math.exp((total - firsts) / (n - sentences)),
        "perplexity per word": math.exp(total / size["words"]),
        "perplexity per byte": math.exp(total / size["bytes"]),
        "bits per byte": total / size["bytes"] / math.log(2.0),
        "bits per character": total / size["characters"] / math.log(2.0),
        "bits per byte, line ends counted": total / (size["bytes"] + sentences) / math.log(2.0),
        "bits per byte, spaces not counted": total / (size["bytes"] - (n - 2 * sentences)) / math.log(2.0),
        "nats per token": total / n,
        "perplexity per token; bits raised to e": math.exp(total / n / math.log(2.0)),
        "perplexity per token; nats raised to 2": 2.0 ** (total / n),
        "perplexity per token; base-10 loss raised to e": math.exp(total / n / math.log(10.0)),
        "perplexity per token; mean of sentence means": math.exp(np.mean([-np.mean(part) for part in parts])),
        "perplexity per token; mean of sentence perplexities": np.mean([math.exp(-np.mean(part)) for part in parts]),
        "perplexity per token; padding counted": math.exp(total / (sentences * max(map(len, parts)))),
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-12)


def test_summed_segmentations_are_those_of_enumeration() -> None:
    text = TEXTS["pieces"]
    language, names = text.language, text.language.tokens.names
    assert isinstance(language, CausalLanguage)

    def cuts(rest: str) -> list[list[int]]:
        whole = [[]] if not rest else []
        return whole + [
            [piece, *cut]
            for piece in language.tokens.words.tolist()
            if rest.startswith(names[piece])
            for cut in cuts(rest.removeprefix(names[piece]))
        ]

    several = 0
    for sentence in text.sentences:
        string = "".join(names[token] for token in sentence)
        if len(string) > 12:
            continue
        found = [[language.tokens.begin, *cut, language.tokens.end] for cut in cuts(string)]
        several += len(found) > 1
        total = sum(math.exp(sum(language.log_probs[0, a, b] for a, b in itertools.pairwise(cut))) for cut in found)
        assert math.log(total) == pytest.approx(summed_log_prob(language, string), abs=1e-12)
        assert bpe(string) == [names[token] for token in sentence]
    assert several >= 5


@pytest.mark.long
@pytest.mark.parametrize("name", TEXTS)
def test_every_answer_is_recognised(name: str, record: KitAnswers) -> None:
    text = record.texts[name]
    assert len(text.combinations) > len(text.answers)
    names = {answer.name: answer.value for answer in text.answers} | text.combinations
    for each, value in names.items():
        diagnosis = ts.diagnose(f"{value:.10g}", text).detail
        assert diagnosis.matches and diagnosis.matches[0].digits == diagnosis.digits
        equal = [match.name for match in diagnosis.matches if match.digits == diagnosis.digits]
        assert each == equal[0] if each not in text.combinations else each in equal


@pytest.mark.long
def test_numbers_at_random_match_nothing(record: KitAnswers) -> None:
    rng = np.random.default_rng(1)
    for text in record.texts.values():
        values = np.exp(rng.uniform(np.log(1.5), np.log(40.0), 100))
        matches = [ts.diagnose(float(value), text).detail.matches for value in values]
        assert sum(map(bool, matches)) <= 4


@pytest.mark.long
def test_a_verdict_says_what_and_how_well(record: KitAnswers) -> None:
    text, value = record.texts["words-1"], values_of(record, "words-1")["perplexity per token; not shifted"]
    assert ts.diagnose(f"{value:.4f}", text).detail.verdict.startswith(
        "12.2462 matches the mistake perplexity per token; not shifted (12.246"
    )
    near = ts.diagnose(value * 1.0002, text).detail
    assert near.matches[0].digits == 3 and near.matches[0].kind == "mistake"
    assert ts.diagnose(8.5, text).detail.digits == 15 and not ts.diagnose(8.5, text).detail.matches
    nothing = ts.diagnose(value * 1.008, "words-1")
    assert not nothing.detail.matches and "matches no convention" in str(nothing)
    assert "perplexity per token; not shifted" in str(nothing)


@pytest.mark.long
def test_a_combination_has_the_meaning_of_its_parts() -> None:
    (match,) = ts.diagnose("10.25943", "words-1").detail.matches
    assert match.name == "perplexity per token; end not scored; first token not scored; mean of sentence means"
    assert match.meaning == (
        "the end of a sentence is not scored; nothing precedes the first token, so it is not scored;"
        " exponential of the unweighted mean of the mean losses of sentences"
    )
    assert "10.2594 matches the combination perplexity per token; end" in str(ts.diagnose("10.25943", "words-1"))


@pytest.mark.long
def test_every_combination_has_a_meaning(record: KitAnswers) -> None:
    for text in record.texts.values():
        for name, value in text.combinations.items():
            for match in ts.diagnose(value, text).detail.matches:
                parts = [part for part in match.name.split("; ") if part != "perplexity per token"]
                assert match.kind != "combination" or match.meaning.count(";") >= len(parts) - 1, name


@pytest.mark.parametrize(
    ("value", "message"),
    [("many", "is not a number"), ("9.2", "too few digits"), (-9.123, "not a positive number"), ("inf", "positive")],
)
def test_values_that_are_refused(value: str | float, message: str) -> None:
    with pytest.raises(ts.InputError, match=message):
        ts.diagnose(value, "words-1")


def test_arguments_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ts.InputError, match="did you mean words-1"):
        ts.diagnose("9.1806", "wrds-1")
    with pytest.raises(ts.InputError, match="the answers for a text"):
        ts.diagnose("9.1806", {"texts": {}})  # type: ignore[arg-type]
    with pytest.raises(ts.InputError, match="there is no kit"):
        read_answers(tmp_path)
    (tmp_path / "answers.json").write_text('{"format": "other"}', "utf-8")
    with pytest.raises(ts.InputError, match="make the kit again"):
        read_answers(tmp_path)
    other = {"format": "truesource known answers", "version": 0, "license": "CC0-1.0", "texts": {}}
    (tmp_path / "answers.json").write_text(json.dumps(other), "utf-8")
    with pytest.raises(ts.InputError, match="of a kit of version 1"):
        read_answers(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    for force, message in ((False, "will not overwrite"), (True, "this is not a kit")):
        with pytest.raises(ts.InputError, match=message):
            known_answers(tmp_path / "mine", force=force)
    assert [*(tmp_path / "mine").iterdir()] == [tmp_path / "mine" / "file"]
