"""Scores against a plain loop over the bare network, one sentence and one mask at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.generator.language_model import LanguageModel, ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain import scoring
from truesource.lmtrain.model_registry import model_settings, network_architecture
from truesource.lmtrain.models import as_loaded, load_model
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.word_models import CausalModel, MaskedModel
from truesource.lmtrain.word_vocabulary import WordVocabulary

WORDS = [f"w{i}" for i in range(7)]


def random_model(architecture: str) -> CausalModel | MaskedModel:
    """Untrained, with large weights, so that every position has a distribution of its own."""
    objective = network_architecture(architecture).objective
    tokenizer = build_tokenizer([WORDS], objective=objective)
    config = model_settings(architecture=architecture, layers=2, heads=2, dim=16, max_positions=10)
    torch.manual_seed(0)
    network = network_architecture(architecture).build(config, WordVocabulary(tokenizer))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return (CausalModel if objective == "causal" else MaskedModel)(network, tokenizer, "random")


GPT2 = random_model("gpt2")
BERT = random_model("bert")
SENTENCES = st.lists(st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=8), max_size=6)
FRAME = st.builds(ScoringFrame, eos=st.booleans(), first=st.booleans(), unk=st.sampled_from(["token", "skip"]))


def one_by_one(
    model: CausalModel | MaskedModel, sentences: list[list[str]], frame: ScoringFrame
) -> list[tuple[int, int, float]]:
    """(sentence, position, log probability), each from a forward pass of its own."""
    v = WordVocabulary(model.tokenizer)
    rows = []
    for s, sentence in enumerate(sentences):
        ids = [v.ids.get(word, v.unk) for word in sentence]
        for i in range(len(ids) + (1 if model.objective == "causal" else 0)):
            target = ids[i] if i < len(ids) else v.eos
            if model.objective == "causal":
                text, place = [v.bos, *ids[:i]], -1
            else:
                text, place = [v.bos, *ids[:i], v.mask, *ids[i + 1 :], v.eos], i + 1
            with torch.no_grad():
                logits = model.model(input_ids=torch.tensor([text])).logits[0, place].double()
            if (
                (i == 0 and not frame.first)
                or (i == len(ids) and not frame.eos)
                or (target == v.unk and frame.unk == "skip")
            ):
                continue
            rows.append((s, i, float(torch.log_softmax(logits, -1)[target])))
    return rows


@pytest.mark.long
@settings(max_examples=15)
@pytest.mark.parametrize("model", [GPT2, BERT], ids=["causal", "masked"])
@given(sentences=SENTENCES, frame=FRAME)
def test_scores_are_those_of_a_plain_loop(
    model: CausalModel | MaskedModel, sentences: list[list[str]], frame: ScoringFrame
) -> None:
    scores = model.score(sentences, frame)
    expected = one_by_one(model, sentences, frame)
    assert list(zip(scores.sentence.tolist(), scores.position.tolist(), strict=True)) == [row[:2] for row in expected]
    assert scores.log_prob == pytest.approx([row[2] for row in expected], abs=1e-5)
    assert (scores.n_sentences, scores.frame, scores.impossible.tolist()) == (len(sentences), frame, [])
    assert scores.log_prob.dtype == np.float64


@pytest.mark.long
@pytest.mark.parametrize("model", [GPT2, BERT], ids=["causal", "masked"])
@pytest.mark.parametrize("tokens", [1, 37, 10_000])
def test_scores_do_not_depend_on_the_batches(
    model: CausalModel | MaskedModel, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    sentences = [[WORDS[i] for i in rng.integers(7, size=rng.integers(1, 9))] for _ in range(40)]
    usual = model.score(sentences, ScoringFrame())
    monkeypatch.setattr(scoring, "batch_budget", lambda size: tokens)
    other = model.score(sentences, ScoringFrame())
    assert other.log_prob == pytest.approx(usual.log_prob, abs=1e-5)
    assert np.array_equal(other.position, usual.position)


@pytest.mark.parametrize("prefix", [[], ["w0"], ["w1", "unknown", "w3"]])
def test_next_token_probabilities_sum_to_one_and_agree_with_scores(prefix: list[str]) -> None:
    after = GPT2.next_token(prefix)
    assert after.words.sum() + after.unk + after.eos + after.special == pytest.approx(1.0, abs=1e-12)
    assert after.words.shape == (7,)
    last = [GPT2.score([[*prefix, word]], ScoringFrame(eos=False)).log_prob[-1] for word in GPT2.vocabulary]
    assert np.log(after.words) == pytest.approx(last, abs=1e-5)
    assert np.log(after.unk) == pytest.approx(
        GPT2.score([[*prefix, "??"]], ScoringFrame(eos=False)).log_prob[-1], abs=1e-5
    )
    assert np.log(after.eos) == pytest.approx(GPT2.score([prefix], ScoringFrame()).log_prob[-1], abs=1e-5)


@pytest.mark.long
def test_samples_follow_the_next_token_probabilities() -> None:
    """First words, ends included, and second words after the most frequent first one: within 4.5 standard errors."""
    n = 6000
    drawn = GPT2.sample(n, seed=1)
    assert len(drawn.sentences) == len(drawn.finished) == n
    for prefix in ([], [max(WORDS, key=lambda w: GPT2.next_token([]).words[GPT2.vocabulary.index(w)])]):
        after, k = GPT2.next_token(prefix), len(prefix)
        reached = [s for s in drawn.sentences if s[:k] == prefix]
        kept = 1.0 - after.special
        for outcome, p in [*zip(GPT2.vocabulary, after.words, strict=True), ("<unk>", after.unk), (None, after.eos)]:
            count = sum((s[k] if len(s) > k else None) == outcome for s in reached)
            q = p / kept
            assert abs(count - len(reached) * q) <= 4.5 * np.sqrt(len(reached) * q * (1 - q)) + 1


def test_samples_are_repeatable_and_cut_ones_are_flagged() -> None:
    one, two = (GPT2.sample(50, seed=7, max_tokens=2) for _ in range(2))
    assert one.sentences == two.sentences
    assert one.sentences != GPT2.sample(50, seed=8, max_tokens=2).sentences
    assert 0 < one.finished.sum() < 50
    assert max(map(len, one.sentences)) == 2
    for sentence, finished in zip(one.sentences, one.finished, strict=True):
        assert finished or len(sentence) == 2
    whole = GPT2.sample(50, seed=7)
    assert max(map(len, whole.sentences)) <= GPT2.longest == 9


def test_sampling_refuses_what_the_model_cannot_hold() -> None:
    with pytest.raises(InputError, match="1 to 9"):
        GPT2.sample(1, seed=0, max_tokens=10)
    assert GPT2.sample(0, seed=0).sentences == []


@pytest.mark.parametrize(("model", "most"), [(GPT2, 9), (BERT, 8)], ids=["causal", "masked"])
def test_a_sentence_longer_than_the_positions_is_named(model: CausalModel | MaskedModel, most: int) -> None:
    model.score([["w0"] * most], ScoringFrame())
    with pytest.raises(InputError, match=f"sentence 2 has {most + 1} words, but the model takes at most {most}"):
        model.score([["w0"], ["w0"] * (most + 1)], ScoringFrame())


def test_empty_sentences_and_no_sentences() -> None:
    assert GPT2.score([[]], ScoringFrame()).position.tolist() == [0]
    assert GPT2.score([[]], ScoringFrame(first=False)).position.tolist() == []  # nothing stands before the end
    assert BERT.score([[]], ScoringFrame()).log_prob.shape == (0,)
    for model in (GPT2, BERT):
        assert model.score([], ScoringFrame()).n_sentences == 0


def test_weights_that_are_not_numbers_are_reported() -> None:
    broken = random_model("gpt2")
    with torch.no_grad():
        next(broken.model.parameters()).fill_(torch.nan)
    with pytest.raises(InputError, match="not finite"):
        broken.score([["w0"]], ScoringFrame())


@pytest.mark.parametrize("model", [GPT2, BERT], ids=["causal", "masked"])
def test_saved_and_loaded_scores_are_equal(model: CausalModel | MaskedModel, tmp_path: Path) -> None:
    model.model.save_pretrained(tmp_path / "m")
    model.tokenizer.save_pretrained(tmp_path / "m")
    again: LanguageModel = load_model(tmp_path / "m", device="cpu")
    assert (again.name, again.objective, again.vocabulary) == ("m", model.objective, tuple(WORDS))
    assert (getattr(again, "folder", None), model.folder) == (tmp_path / "m", None)  # there explain finds its training
    text = [["w3", "w1"], ["w0"]]
    assert np.array_equal(again.score(text, ScoringFrame()).log_prob, model.score(text, ScoringFrame()).log_prob)


def test_folders_without_a_usable_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no trained model"):
        load_model(tmp_path)
    BERT.model.save_pretrained(tmp_path / "m")
    BERT.tokenizer.save_pretrained(tmp_path / "m")
    with pytest.raises(InputError, match="not a causal"):
        CausalModel.load(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"rubbish")
    with pytest.raises(InputError, match="cannot be loaded"):
        load_model(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("architecture", ["bert", "roberta", "deberta"])
def test_local_start_looks_at_the_neighbours(architecture: str) -> None:
    """Each first-layer head of a fresh model attends most, of other places, to the word at its own offset."""
    vocabulary = WordVocabulary(build_tokenizer([WORDS], objective="masked"))
    config = model_settings(
        architecture=architecture, layers=2, heads=4, dim=128, max_positions=32, dropout=0.0, local_start=True
    )
    torch.manual_seed(0)
    network = network_architecture(architecture).build(config, vocabulary).eval()
    network.set_attn_implementation("eager")
    ids = torch.randint(5, 12, (8, 20))
    ids[:, 10] = vocabulary.mask
    with torch.no_grad():
        attention = network(input_ids=ids, output_attentions=True).attentions[0][:, :, 10].mean(dim=0)
    assert attention.argmax(dim=1).tolist() == [9, 11, 8, 12]


def test_a_model_stays_the_object_that_it_is() -> None:
    """It has a network and a tokeniser, as a pipeline of transformers has, and a name that these have not."""
    model = random_model("gpt2")
    assert as_loaded(model) is model
