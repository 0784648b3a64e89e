"""Twins of the kit: exact probabilities in each precision, tokenisers, and mistakes made with the network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

import truesource as ts
from truesource.evaluation.known_answers.kit import kit_texts, known_answers
from truesource.evaluation.known_answers.languages import CausalLanguage, MaskedLanguage
from truesource.evaluation.known_answers.scoring import KitText, summed_log_prob

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]

TEXTS = {text.name: text for text in kit_texts()}
TEXT_OF = {twin: text for text in TEXTS.values() for twin in text.twins if text.kind != "window"}
#: largest errors of a probability computed in float64 from logits of each type
PRECISION = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 1e-6, torch.float16: 1e-6}


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("twins") / "kit"
    known_answers(path)
    return path


@pytest.fixture(scope="module")
def load(kit: Path) -> Callable[..., Any]:
    @cache
    def opened(name: str, dtype: torch.dtype = torch.float64) -> Any:
        masked = name.startswith("bert")
        kind = AutoModelForMaskedLM if masked else AutoModelForCausalLM
        model, info = kind.from_pretrained(kit / "twins" / name, dtype=dtype, output_loading_info=True)
        assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
        return model.eval()

    return opened


def log_probs(model: Any, rows: Sequence[Sequence[int]], mask: Sequence[Sequence[int]] | None = None) -> np.ndarray:
    """Log probabilities of a batch, (B, T, V); without a mask, every position is attended."""
    ids = torch.tensor(rows)
    attention = torch.ones_like(ids) if mask is None else torch.tensor(mask)
    with torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=attention).logits
    return torch.log_softmax(logits.double(), dim=-1).numpy()


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("name", TEXT_OF)
def test_probabilities_in_every_context(name: str, dtype: torch.dtype, load: Callable[..., Any]) -> None:
    language, model = TEXT_OF[name].language, load(name, dtype)
    tokens = language.tokens
    if isinstance(language, CausalLanguage):
        rows = [[a, b] for a in range(len(tokens)) for b in range(len(tokens))]
        exact = np.array([[language.log_probs[a, a], language.log_probs[a, b]] for a, b in rows])
        probabilities = np.exp(log_probs(model, rows))
    else:
        assert tokens.mask is not None
        inner = [*tokens.words.tolist(), tokens.mask]
        rows = [[tokens.begin, a, b, c, tokens.end] for a in inner for b in inner for c in inner]
        exact = np.array([[language.log_probs(*row[i - 1 : i + 2]) for i in (1, 2, 3)] for row in rows])
        probabilities = np.exp(log_probs(model, rows))[:, 1:4]
    assert np.abs(probabilities - np.exp(exact)).max() < PRECISION[dtype]


@pytest.mark.parametrize("name", TEXT_OF)
def test_a_batch_with_padding_on_either_side_changes_nothing(name: str, load: Callable[..., Any]) -> None:
    text, model = TEXT_OF[name], load(name)
    tokens = text.language.tokens
    end = [tokens.end] if isinstance(text.language, MaskedLanguage) else []
    rows = [[tokens.begin, *sentence, *end] for sentence in text.sentences]
    longest = max(map(len, rows))
    for left in (False, True):
        padding = [[tokens.pad] * (longest - len(row)) for row in rows]
        padded = [pad + row if left else row + pad for row, pad in zip(rows, padding, strict=True)]
        mask = [
            [int(i >= len(pad)) if left else int(i < len(row)) for i in range(longest)]
            for row, pad in zip(rows, padding, strict=True)
        ]
        together = log_probs(model, padded, mask)
        for row, pad, values in zip(rows, padding, together, strict=True):
            alone = log_probs(model, [row])[0]
            start = len(pad) if left else 0
            assert np.abs(np.exp(alone) - np.exp(values[start : start + len(row)])).max() < 1e-12


@pytest.mark.parametrize("name", TEXT_OF)
def test_the_tokeniser_reads_the_text(name: str, kit: Path) -> None:
    text, tokenizer = TEXT_OF[name], AutoTokenizer.from_pretrained(kit / "twins" / name)
    tokens = text.language.tokens
    before = [tokens.begin] if name == "llama" or name.startswith("bert") else []
    after = [tokens.end] if name.startswith("bert") else []
    assert tokenizer.is_fast and len(tokenizer) == len(tokens)
    for line, sentence in zip(text.lines, text.sentences, strict=True):
        assert tokenizer(line)["input_ids"] == [*before, *sentence, *after]
        assert tokenizer.decode(sentence) == line
    batch = tokenizer(text.lines, padding=True, return_tensors="pt")
    assert ("token_type_ids" in batch) == name.startswith("bert")
    assert int(batch["attention_mask"].sum()) == sum(len(each) + len(before) + len(after) for each in text.sentences)


def loss_of(
    model: Any, text: KitText, row: Callable[[list[int]], list[int]], shift: int = 1, skip: int = 0
) -> list[np.ndarray]:
    """Losses of the tokens of each sentence, in nats, with logits that are ``shift`` positions older."""
    losses = []
    for sentence in text.sentences:
        ids = row(sentence)
        values = log_probs(model, [ids])[0]
        losses.append(-np.array([values[i - shift, ids[i]] for i in range(max(shift, 1) + skip, len(ids))]))
    return losses


def loss_without(model: Any, text: KitText, excluded: int) -> list[np.ndarray]:
    """Losses of the words of each sentence if the logit of a token is minus infinity."""
    losses = []
    for sentence in text.sentences:
        ids = torch.tensor([[text.language.tokens.begin, *sentence]])
        with torch.no_grad():
            logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.clone()
        logits[:, :, excluded] = -torch.inf
        values = torch.log_softmax(logits, dim=-1)[0, :-1].gather(1, ids[0, 1:, None])
        losses.append(-values[:, 0].numpy())
    return losses


def number(losses: Sequence[np.ndarray]) -> float:
    return math.exp(np.concatenate(losses).mean())


def answer(name: str, change: str) -> float:
    from truesource.evaluation.known_answers.answers import answers_of

    names = {each: one.value for one in answers_of(TEXTS[name]) for each in one.name.split(" = ")}
    return names[f"perplexity per token; {change}" if change else "perplexity per token"]


@pytest.mark.parametrize(
    ("twin", "name"), [("gpt2", "words-1"), ("llama", "words-2"), ("gpt2-pairs", "pairs"), ("gpt2-pieces", "pieces")]
)
def test_mistakes_that_a_network_makes(twin: str, name: str, load: Callable[..., Any]) -> None:
    text, model = TEXTS[name], load(twin)
    tokens = text.language.tokens

    def whole(sentence: list[int]) -> list[int]:
        return [tokens.begin, *sentence, tokens.end]

    numbers = {
        "": number(loss_of(model, text, whole)),
        "not shifted": number(loss_of(model, text, whole, shift=0)),
        "shifted twice": number(loss_of(model, text, whole, shift=2)),
        "end not scored": number(loss_of(model, text, lambda sentence: [tokens.begin, *sentence])),
        "first token not scored": number(loss_of(model, text, lambda sentence: [*sentence, tokens.end])),
        "end excluded": number(loss_without(model, text, tokens.end)),
    }
    if name.startswith("words"):
        numbers["beginning scored"] = number(loss_of(model, text, lambda sentence: [tokens.begin, *whole(sentence)]))
        numbers["first token from padding"] = number(loss_of(model, text, lambda each: [tokens.pad, *each, tokens.end]))
    longest = max(map(len, text.sentences))
    padded = loss_of(model, text, lambda each: whole(each) + [tokens.pad] * (longest - len(each)))
    numbers["padding scored"] = number(padded)
    if name == "pairs":
        numbers["padding attended"] = number(
            [
                loss[longest - len(sentence) :]
                for sentence, loss in zip(
                    text.sentences,
                    loss_of(model, text, lambda each: [tokens.pad] * (longest - len(each)) + whole(each)),
                    strict=True,
                )
            ]
        )
        rows = [whole(sentence) for sentence in text.sentences]
        single = {token: log_probs(model, [[token]])[0, 0] for token in range(len(tokens))}
        numbers["context of one token"] = number(
            [-np.array([single[row[i - 1]][row[i]] for i in range(1, len(row))]) for row in rows]
        )
    for change, value in numbers.items():
        assert value == pytest.approx(answer(name, change), rel=1e-9), change


def test_windows_lose_a_known_amount(load: Callable[..., Any]) -> None:
    text, model = TEXTS["long"], load("gpt2-window")
    words, begin = text.sentences[0], text.language.tokens.begin
    assert model.config.n_positions == 32

    def losses(row: list[int], scored: int) -> list[float]:
        """Losses of the last tokens of a window."""
        values = log_probs(model, [row])[0]
        return [-float(values[i - 1, row[i]]) for i in range(len(row) - scored, len(row))]

    rolling = losses([begin, *words[:31]], 31)
    for start in range(15, len(words) - 16, 16):
        rolling += losses(words[start : start + 32], min(32, len(words) - start) - 16)
    assert len(rolling) == len(words)
    assert math.exp(np.mean(rolling)) == pytest.approx(answer("long", ""), rel=1e-9)
    begun = [
        loss for i in range(0, len(words), 31) for loss in losses([begin, *words[i : i + 31]], len(words[i : i + 31]))
    ]
    assert math.exp(np.mean(begun)) == pytest.approx(answer("long", "windows cut, beginning before each"), rel=1e-9)
    first = losses([begin, words[0]], 1)
    cut = [loss for i in range(0, len(words), 32) for loss in losses(words[i : i + 32], len(words[i : i + 32]) - 1)]
    scored = [*first, *cut]
    assert math.exp(np.mean(scored)) == pytest.approx(answer("long", "windows cut, first tokens not scored"), rel=1e-9)
    counted = math.exp(np.sum(scored) / len(words))
    assert counted == pytest.approx(answer("long", "windows cut, first tokens counted"), rel=1e-9)


@pytest.mark.parametrize(("twin", "name"), [("bert-words", "masked-words"), ("bert-pieces", "masked-pieces")])
def test_masks_that_a_network_reads(twin: str, name: str, load: Callable[..., Any]) -> None:
    text, model = TEXTS[name], load(twin)
    tokens = text.language.tokens
    assert tokens.mask is not None

    def loss(full: list[int], place: int, masks: set[int]) -> float:
        row = [tokens.mask if i in masks else token for i, token in enumerate(full)]
        return -float(log_probs(model, [row])[0, place, full[place]])  # type: ignore[list-item]

    def word(full: list[int], place: int) -> range:
        start, end = place, place + 1
        while tokens.names[full[start]].startswith("##"):
            start -= 1
        while tokens.names[full[end]].startswith("##"):
            end += 1
        return range(start, end)

    full = [[tokens.begin, *sentence, tokens.end] for sentence in text.sentences]
    inner = [(row, place) for row in full for place in range(1, len(row) - 1)]
    numbers = {
        "": [loss(row, place, {place}) for row, place in inner],
        "no mask": [loss(row, place, set()) for row, place in inner],
        "all masked at once": [loss(row, place, set(range(1, len(row) - 1))) for row, place in inner],
        "special tokens scored": [loss(row, place, {place}) for row in full for place in range(len(row))],
    }
    if name == "masked-pieces":
        numbers["later pieces masked"] = [
            loss(row, place, {each for each in word(row, place) if each >= place}) for row, place in inner
        ]
        numbers["whole word masked"] = [loss(row, place, set(word(row, place))) for row, place in inner]
        numbers["first piece of each word"] = [
            loss(row, place, {place}) for row, place in inner if word(row, place).start == place
        ]
    for change, losses in numbers.items():
        assert math.exp(np.mean(losses)) == pytest.approx(answer(name, change), rel=1e-9), change


@pytest.mark.parametrize("name", ["gpt2", "llama", "gpt2-window", "gpt2-pairs", "bert-words", "gpt2-pieces"])
def test_truesource_finds_its_twins_perfect(name: str, kit: Path) -> None:
    text, model = TEXT_OF[name], ts.load_model(kit / "twins" / name)
    sentences = [[text.language.tokens.names[token] for token in sentence] for sentence in text.sentences]
    measured = model.as_tokens() if name == "gpt2-pieces" else model  # type: ignore[attr-defined]
    result = ts.compare(measured, sentences, text.language.grammar)
    assert result["relative_ppl"].value == pytest.approx(1.0, abs=1e-6)
    assert result["kl"].value == pytest.approx(0.0, abs=1e-6)
    assert ts.diagnose(result["ppl"].value, text.name).detail.matches[0].name.startswith("perplexity per token")
    assert ts.diagnose(result["ppl"].value, text.name).detail.matches[0].digits >= 6


def test_truesource_scores_words_of_pieces(kit: Path) -> None:
    for name, change in (("gpt2-pieces", ""), ("bert-pieces", "later pieces masked")):
        text, model = TEXT_OF[name], ts.load_model(kit / "twins" / name)
        scores = model.score([line.split() for line in text.lines]).log_prob
        value = math.exp(-scores.sum() / text.sizes()["words"])
        best = ts.diagnose(value, text.name).detail.matches[0]
        assert best.name == "; ".join(filter(None, ("perplexity per word", change))) and best.digits >= 6


def test_truesource_refuses_a_text_longer_than_the_window(kit: Path) -> None:
    text, model = TEXTS["long"], ts.load_model(kit / "twins" / "gpt2-window")
    words = [text.language.tokens.names[token] for token in text.sentences[0]]
    with pytest.raises(ts.InputError, match="100 words, but the model takes at most 31"):
        model.score([words])
    assert isinstance(text.language, CausalLanguage)
    exact = ts.Oracle(text.language.grammar).score([words[:31]]).log_prob
    assert model.score([words[:31]]).log_prob == pytest.approx(exact, abs=1e-5)


def test_truesource_sums_segmentations(kit: Path) -> None:
    text = TEXTS["pieces"]
    assert isinstance(text.language, CausalLanguage)
    short = [k for k, line in enumerate(text.lines) if len(line) < 10]
    lines, names = [text.lines[k] for k in short], text.language.tokens.names
    strings = ["".join(names[token] for token in text.sentences[k]) for k in short]
    result = ts.evaluate("tokenisation", kit / "twins" / "gpt2-pieces", lines, False, estimators=["exact"])
    values = [score.value for score in result.scores if score.name == "log_p" and score.get("run") == "exact"]
    exact = sum(summed_log_prob(text.language, string) for string in strings)
    assert len(lines) == 5 and values == pytest.approx([exact], abs=1e-5)
