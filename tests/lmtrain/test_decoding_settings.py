"""The settings object, and the sets of tokens beside those of transformers."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import (
    EpsilonLogitsWarper,
    EtaLogitsWarper,
    LogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from truesource.grammar.errors import InputError
from truesource.lmtrain.decoding import truncation
from truesource.lmtrain.decoding.settings import BEAMS, SAMPLING, Decoding
from truesource.lmtrain.decoding.truncation import next_law, smallest_set

SCHEMES = [
    (Decoding("nucleus", top_p=0.35), TopPLogitsWarper(0.35)),
    (Decoding("nucleus", top_p=0.9), TopPLogitsWarper(0.9)),
    (Decoding("nucleus", top_p=1.0), TopPLogitsWarper(1.0)),
    (Decoding("top_k", top_k=1), TopKLogitsWarper(1)),
    (Decoding("top_k", top_k=7), TopKLogitsWarper(7)),
    (Decoding("top_k", top_k=10**6), TopKLogitsWarper(10**6)),
    (Decoding("typical", typical_p=0.2), TypicalLogitsWarper(0.2)),
    (Decoding("typical", typical_p=0.95), TypicalLogitsWarper(0.95)),
    (Decoding("eta", eta=0.02), EtaLogitsWarper(0.02)),
    (Decoding("eta", eta=0.9), EtaLogitsWarper(0.9)),
    (Decoding("epsilon", epsilon=0.02), EpsilonLogitsWarper(0.02)),
    (Decoding("epsilon", epsilon=0.9), EpsilonLogitsWarper(0.9)),
]


@pytest.mark.parametrize("vocabulary", [12, 3000])
@pytest.mark.parametrize(("decoding", "warper"), SCHEMES, ids=[str(d) for d, _ in SCHEMES])
def test_sets_are_those_of_transformers(decoding: Decoding, warper: LogitsProcessor, vocabulary: int) -> None:
    """Random logits of all degrees of sharpness, with some tokens impossible; temperature before truncation in both."""
    generator = torch.Generator().manual_seed(0)
    sharpness = torch.logspace(-2, 1, 60)[:, None]
    logits = torch.randn((60, vocabulary), generator=generator, dtype=torch.float64) * sharpness
    logits[::3, 2:5] = -torch.inf
    for temperature in (1.0, 0.7, 1.8):
        fields = {**decoding.as_record(), "temperature": temperature}
        law = next_law(torch.log_softmax(logits, dim=1), Decoding.from_record(fields))
        theirs = warper(torch.zeros((60, 0)), TemperatureLogitsWarper(temperature)(torch.zeros((60, 0)), logits))
        expected = torch.softmax(theirs, dim=1)
        assert torch.equal(law > 0, expected > 0)
        torch.testing.assert_close(law / law.sum(dim=1, keepdim=True), expected, rtol=1e-10, atol=1e-300)


def kept(decoding: Decoding, p: list[float]) -> list[int]:
    return next_law(torch.tensor([p], dtype=torch.float64).log(), decoding)[0].nonzero()[:, 0].tolist()


@pytest.mark.parametrize(
    ("top_p", "expected"), [(0.5, [1]), (0.501, [1, 2]), (0.75, [1, 2]), (0.875, [0, 1, 2]), (1.0, [0, 1, 2, 3])]
)
def test_the_nucleus_reaches_its_mass_exactly(top_p: float, expected: list[int]) -> None:
    """Probabilities without rounding; where two tokens tie, the lower number first; otherwise as transformers."""
    p = [0.125, 0.5, 0.25, 0.125]
    assert kept(Decoding("nucleus", top_p=top_p), p) == expected
    theirs = TopPLogitsWarper(top_p)(torch.zeros((1, 0)), torch.tensor([p]).log())
    if top_p <= 0.75:
        assert theirs.isfinite()[0].nonzero()[:, 0].tolist() == expected
    assert theirs.isfinite().sum() == len(expected)


def test_ties_go_to_the_lower_number() -> None:
    p = [0.1, 0.2, 0.2, 0.2, 0.2, 0.1]
    assert kept(Decoding("nucleus", top_p=0.35), p) == [1, 2]
    assert kept(Decoding("top_k", top_k=3), p) == [1, 2, 3]
    assert kept(Decoding("typical", typical_p=0.5), [0.25] * 4) == [0, 1]


@given(
    key=st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5]), min_size=1, max_size=30),
    wanted=st.sampled_from([0.01, 0.4, 0.5, 0.9, 1.0, 2.0]),
    part=st.integers(1, 12),
)
def test_sorting_a_part_first_changes_nothing(key: list[float], wanted: float, part: int) -> None:
    """Many ties, and every size of the part, against a plain loop."""
    mass = [((7 * i) % 5) / 64 + 1 / 128 for i in range(len(key))]
    expected, total = set(), 0.0
    for i in sorted(range(len(key)), key=lambda i: (key[i], i)):
        if total >= wanted:
            break
        expected.add(i)
        total += mass[i]
    rows = [torch.tensor([x, x], dtype=torch.float64) for x in (key, mass)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(truncation, "PART", part)
        found: Tensor = smallest_set(rows[0], rows[1], wanted)
    assert [set(row.nonzero()[:, 0].tolist()) for row in found] == [expected, expected]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheme": "greedy"}, "unknown decoding 'greedy'; there are ancestral"),
        ({"scheme": "nucleus"}, "nucleus decoding needs top_p, such as 0.9"),
        ({"scheme": "eta"}, "eta decoding needs eta"),
        ({"scheme": "nucleus", "top_p": 0.0}, "top_p is above 0 and at most 1, got 0.0"),
        ({"scheme": "nucleus", "top_p": 1.1}, "top_p is above 0 and at most 1"),
        ({"scheme": "nucleus", "top_p": float("nan")}, "top_p is above 0"),
        ({"scheme": "nucleus", "top_p": 0.9, "top_k": 5}, "top_k is no setting of nucleus decoding; leave it out"),
        ({"scheme": "top_k", "top_k": 0}, "top_k is a whole number from 1 on"),
        ({"scheme": "top_k", "top_k": 2.5}, "top_k is a whole number"),
        ({"scheme": "typical", "typical_p": -1.0}, "typical_p is above 0"),
        ({"scheme": "eta", "eta": 1.0}, "eta is above 0 and below 1"),
        ({"temperature": 0.0}, "temperature is above 0"),
        ({"temperature": float("inf")}, "temperature is above 0"),
        ({"beams": 5}, "beams is no setting of ancestral"),
        ({"dedupe": False}, "dedupe is no setting of ancestral"),
        ({"scheme": "beam_sampling", "temperature": 0.7}, "temperature is no setting of beam_sampling"),
        ({"scheme": "beam_sampling", "beams": 0}, "beams is a whole number from 1 on"),
        ({"scheme": "beam_sampling_hf", "dedupe": True}, "dedupe is no setting of beam_sampling_hf"),
        ({"scheme": "beam_sampling", "length_penalty": -1.0}, "length_penalty is 0 or more"),
        ({"scheme": "beam", "keep": "some"}, "keep is best or all"),
        ({"max_tokens": 0}, "max_tokens is a whole number from 1 on"),
        ({"max_tokens": True}, "max_tokens is a whole number from 1 on"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Decoding(**settings)


@pytest.mark.parametrize("scheme", [*SAMPLING, *BEAMS])
def test_a_decoding_survives_its_record(scheme: str) -> None:
    needed = {"nucleus": "top_p", "top_k": "top_k", "typical": "typical_p", "eta": "eta", "epsilon": "epsilon"}
    value = {needed[scheme]: 3 if scheme == "top_k" else 0.5} if scheme in needed else {}
    decoding = Decoding(scheme, **value)
    assert Decoding.from_record(decoding.as_record()) == decoding
    assert hash(decoding) == hash(Decoding.from_record(decoding.as_record()))
    fitted = decoding.within(None)
    assert (fitted.max_tokens, decoding.within(9).max_tokens, fitted.within(200)) == (200, 9, fitted)
    with pytest.raises(InputError, match="max_tokens is 200, but the model takes 1 to 9 words"):
        fitted.within(9)
    with pytest.raises(InputError, match="a decoding has no beam"):
        Decoding.from_record({"beam": 5})
    with pytest.raises(ValueError, match="no max_tokens yet"):
        _ = decoding.most
    with pytest.raises(FrozenInstanceError):
        decoding.top_p = 0.5  # type: ignore[misc]


def test_the_signature_says_everything() -> None:
    assert str(Decoding("nucleus", top_p=0.9).within(127)) == "nucleus|temperature:1|top_p:0.9|max_tokens:127"
    assert (
        str(Decoding("beam_sampling", dedupe=False, max_tokens=50))
        == "beam_sampling|beams:5|length_penalty:1|keep:best|dedupe:false|max_tokens:50"
    )
