"""Networks as steppers, and the schemes beside `generate` of transformers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from scipy.stats import chi2_contingency
from torch import Tensor
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel, set_seed

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.decoding.alphabet import Alphabet
from truesource.lmtrain.decoding.decode import Decoded, draw
from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.decoding.steppers import NetworkStepper
from truesource.lmtrain.model_registry import model_settings, network_architecture, network_names, settings_class
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.word_models import CausalModel
from truesource.lmtrain.word_vocabulary import WordVocabulary

WORDS = [f"w{i}" for i in range(7)]
CAUSAL = [name for name in network_names() if settings_class(name).objective == "causal"]
EOS, TOKENS, MOST = 1, 9, 5


def random_model(architecture: str) -> CausalModel:
    tokenizer = build_tokenizer([WORDS])
    sizes = {} if architecture in ("lstm", "gated_cnn") else {"heads": 2, "max_positions": 10}
    torch.manual_seed(0)
    config = model_settings(architecture=architecture, layers=2, dim=16, **sizes)
    network = network_architecture(architecture).build(config, WordVocabulary(tokenizer))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return CausalModel(network, tokenizer, "random")


class Bare:
    """A network all of whose tokens can be drawn; text begins with token 0."""

    name = "bare"
    alphabet = Alphabet(TOKENS, EOS, (), MOST, lambda tokens: [str(token) for token in tokens])

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.network = GPT2LMHeadModel(
            GPT2Config(vocab_size=TOKENS, n_positions=16, n_embd=16, n_layer=1, n_head=2, initializer_range=0.5)
        ).eval()

    def stepper(self) -> NetworkStepper:
        return NetworkStepper(self.network, 0)

    def generate(self, n: int, beams: int, *, sampled: bool, penalty: float, keep: int = 1) -> Tensor:
        """(n * keep, at most MOST + 2), of transformers."""
        settings = GenerationConfig(
            do_sample=sampled,
            num_beams=beams,
            num_return_sequences=keep,
            length_penalty=penalty,
            early_stopping=False,
            top_k=0,
            top_p=1.0,
            temperature=1.0,
            max_new_tokens=MOST + 1,
            bos_token_id=0,
            eos_token_id=EOS,
            pad_token_id=0,
        )
        start = torch.zeros((n, 1), dtype=torch.int64)
        with torch.inference_mode():
            return self.network.generate(start, attention_mask=torch.ones_like(start), generation_config=settings)


BARE = Bare()


@pytest.mark.parametrize("architecture", CAUSAL)
def test_a_stepper_goes_on_as_the_network_reads(architecture: str) -> None:
    """Rows kept, dropped, repeated and reordered, against the network on the whole text."""
    model = random_model(architecture)
    stepper, generator = model.stepper(), torch.Generator().manual_seed(0)
    found = stepper.start(5)
    rows = torch.full((5, 1), WordVocabulary(model.tokenizer).bos)
    for parents in ([0, 1, 2, 3, 4], [4, 0, 0, 2], [0, 1, 2, 3], [3], [0, 0, 0], [2, 1]):
        with torch.inference_mode():
            whole = model.model(input_ids=rows).logits[:, -1].double().log_softmax(dim=1)
        torch.testing.assert_close(found, whole, atol=2e-5, rtol=0.0)
        assert found.dtype == torch.float64
        tokens = torch.randint(5, 12, (len(parents),), generator=generator)
        found = stepper.extend(torch.tensor(parents), tokens)
        rows = torch.cat([rows[parents], tokens[:, None]], dim=1)
    assert torch.equal(stepper.start(2), model.stepper().start(2))


@pytest.mark.long
@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(),
        Decoding(scheme="nucleus", top_p=0.8, temperature=0.8),
        *(
            Decoding(scheme=scheme, beams=3)
            for scheme in ("beam_sampling", "beam_sampling_fairseq", "beam_sampling_hf")
        ),
    ],
    ids=str,
)
def test_log_probabilities_are_the_scores_of_the_model(decoding: Decoding) -> None:
    model = random_model("gpt2")
    drawn = draw(model, 60, decoding, seed=3)
    finished = [s for s, ended in zip(drawn.sentences, drawn.finished, strict=True) if ended]
    scores = model.score(finished, ScoringFrame())
    expected = np.bincount(scores.sentence, weights=scores.log_prob, minlength=len(finished))
    assert len(finished) > 20
    assert drawn.log_prob[drawn.finished] == pytest.approx(expected, abs=1e-4)
    special = np.mean([model.next_token(s[:i]).special for s in drawn.sentences[:20] for i in range(len(s) + 1)])
    assert drawn.special / drawn.contexts == pytest.approx(special, rel=0.5)


@pytest.mark.long
def test_beams_are_wider_than_the_memory_allows_only_in_batches() -> None:
    model = random_model("gpt2")
    decoding = Decoding(scheme="beam_sampling", beams=4, max_tokens=4)
    few, many = (draw(model, 10, decoding, seed=1, rows=rows) for rows in (1, 10_000))
    assert few.contexts > 10
    assert len(few.sentences) == len(many.sentences) == 10
    with pytest.raises(InputError, match="the model takes 1 to 9 words"):
        draw(model, 1, Decoding(max_tokens=10), seed=1)


def theirs(rows: Tensor) -> list[tuple[tuple[str, ...], bool]]:
    """Generated rows as outcomes: the last token of a row that did not end was one too many."""
    outcomes = []
    for row in rows[:, 1:].tolist():
        ended = EOS in row
        outcomes.append((tuple(map(str, row[: row.index(EOS)] if ended else row[:MOST])), ended))
    return outcomes


def ours(drawn: Decoded) -> list[tuple[tuple[str, ...], bool]]:
    return list(zip(map(tuple, drawn.sentences), drawn.finished.tolist(), strict=True))


@pytest.mark.parametrize("penalty", [1.0, 0.0, 2.0])
@pytest.mark.parametrize("beams", [1, 2, 4])
def test_beam_search_is_that_of_transformers(beams: int, penalty: float) -> None:
    decoding = Decoding(scheme="beam", beams=beams, length_penalty=penalty, keep="all")
    expected = theirs(BARE.generate(1, beams, sampled=False, penalty=penalty, keep=beams))
    assert ours(draw(BARE, beams, decoding, seed=0)) == expected


@pytest.mark.long
@pytest.mark.parametrize("penalty", [1.0, 0.0])
def test_sampling_from_beams_has_the_law_of_transformers(penalty: float) -> None:
    """Two samples of the best of 3 hypotheses, chi-square of homogeneity."""
    n = 3000
    set_seed(0)
    expected = Counter(theirs(BARE.generate(n, 3, sampled=True, penalty=penalty)))
    decoding = Decoding(scheme="beam_sampling_hf", beams=3, length_penalty=penalty)
    found = Counter(ours(draw(BARE, n, decoding, seed=1)))
    common = [outcome for outcome, count in (expected + found).items() if count >= 20]
    table = np.array([[counts[outcome] for outcome in common] for counts in (expected, found)])
    table = np.column_stack([table, n - table.sum(axis=1)])
    assert len(common) > 10
    assert chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > 1e-3
