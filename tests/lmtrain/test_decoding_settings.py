"""The settings object, and the sets of tokens beside those of transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
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

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.decoding import sampling as truncation
from truesource.lmtrain.decoding.sampling import next_distribution, smallest_set
from truesource.lmtrain.decoding.settings import BEAMS, SAMPLING, Decoding

SCHEMES = [
    (Decoding(scheme="nucleus", top_p=0.35), TopPLogitsWarper(0.35)),
    (Decoding(scheme="nucleus", top_p=0.9), TopPLogitsWarper(0.9)),
    (Decoding(scheme="nucleus", top_p=1.0), TopPLogitsWarper(1.0)),
    (Decoding(scheme="top_k", top_k=1), TopKLogitsWarper(1)),
    (Decoding(scheme="top_k", top_k=7), TopKLogitsWarper(7)),
    (Decoding(scheme="top_k", top_k=10**6), TopKLogitsWarper(10**6)),
    (Decoding(scheme="typical", typical_p=0.2), TypicalLogitsWarper(0.2)),
    (Decoding(scheme="typical", typical_p=0.95), TypicalLogitsWarper(0.95)),
    (Decoding(scheme="eta", eta=0.02), EtaLogitsWarper(0.02)),
    (Decoding(scheme="eta", eta=0.9), EtaLogitsWarper(0.9)),
    (Decoding(scheme="epsilon", epsilon=0.02), EpsilonLogitsWarper(0.02)),
    (Decoding(scheme="epsilon", epsilon=0.9), EpsilonLogitsWarper(0.9)),
]


@pytest.mark.long
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
        law = next_distribution(torch.log_softmax(logits, dim=1), Decoding.from_record(fields))
        theirs = warper(torch.zeros((60, 0)), TemperatureLogitsWarper(temperature)(torch.zeros((60, 0)), logits))
        expected = torch.softmax(theirs, dim=1)
        assert torch.equal(law > 0, expected > 0)
        torch.testing.assert_close(law / law.sum(dim=1, keepdim=True), expected, rtol=1e-10, atol=1e-300)


def kept(decoding: Decoding, p: list[float]) -> list[int]:
    return next_distribution(torch.tensor([p], dtype=torch.float64).log(), decoding)[0].nonzero()[:, 0].tolist()


@pytest.mark.parametrize(
    ("top_p", "expected"), [(0.5, [1]), (0.501, [1, 2]), (0.75, [1, 2]), (0.875, [0, 1, 2]), (1.0, [0, 1, 2, 3])]
)
def test_the_nucleus_reaches_its_mass_exactly(top_p: float, expected: list[int]) -> None:
    """Probabilities without rounding; where two tokens tie, the lower number first; otherwise as transformers."""
    p = [0.125, 0.5, 0.25, 0.125]
    assert kept(Decoding(scheme="nucleus", top_p=top_p), p) == expected
    theirs = TopPLogitsWarper(top_p)(torch.zeros((1, 0)), torch.tensor([p]).log())
    if top_p <= 0.75:
        assert theirs.isfinite()[0].nonzero()[:, 0].tolist() == expected
    assert theirs.isfinite().sum() == len(expected)


def test_ties_go_to_the_lower_number() -> None:
    p = [0.1, 0.2, 0.2, 0.2, 0.2, 0.1]
    assert kept(Decoding(scheme="nucleus", top_p=0.35), p) == [1, 2]
    assert kept(Decoding(scheme="top_k", top_k=3), p) == [1, 2, 3]
    assert kept(Decoding(scheme="typical", typical_p=0.5), [0.25] * 4) == [0, 1]


@pytest.mark.long
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
    ("settings", "where", "kind"),
    [
        ({"scheme": "greedy"}, "scheme", "literal_error"),
        ({"scheme": "nucleus"}, "top_p", "value_error"),
        ({"scheme": "eta"}, "eta", "value_error"),
        ({"scheme": "nucleus", "top_p": 0.0}, "top_p", "greater_than"),
        ({"scheme": "nucleus", "top_p": 1.1}, "top_p", "less_than_equal"),
        ({"scheme": "nucleus", "top_p": float("nan")}, "top_p", "finite_number"),
        ({"scheme": "nucleus", "top_p": 0.9, "top_k": 5}, "top_k", "value_error"),
        ({"scheme": "top_k", "top_k": 0}, "top_k", "greater_than_equal"),
        ({"scheme": "top_k", "top_k": 2.5}, "top_k", "int_type"),
        ({"scheme": "typical", "typical_p": -1.0}, "typical_p", "greater_than"),
        ({"scheme": "eta", "eta": 1.0}, "eta", "less_than"),
        ({"temperature": 0.0}, "temperature", "greater_than"),
        ({"temperature": float("inf")}, "temperature", "finite_number"),
        ({"beams": 5}, "beams", "value_error"),
        ({"dedupe": False}, "dedupe", "value_error"),
        ({"scheme": "beam_sampling", "temperature": 0.7}, "temperature", "value_error"),
        ({"scheme": "beam_sampling", "beams": 0}, "beams", "greater_than_equal"),
        ({"scheme": "beam_sampling_hf", "dedupe": True}, "dedupe", "value_error"),
        ({"scheme": "beam_sampling", "length_penalty": -1.0}, "length_penalty", "greater_than_equal"),
        ({"scheme": "beam", "keep": "some"}, "keep", "literal_error"),
        ({"max_tokens": 0}, "max_tokens", "greater_than_equal"),
        ({"max_tokens": True}, "max_tokens", "int_type"),
        ({"beam": 5}, "beam", "extra_forbidden"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], where: str, kind: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Decoding(**settings)
    (error,) = refused.value.errors()
    assert error["type"] == kind
    assert error["loc"] == (() if kind == "value_error" else (where,))
    with pytest.raises(InputError, match=where):
        Decoding.from_record(settings)


@pytest.mark.parametrize("scheme", [*SAMPLING, *BEAMS])
def test_a_decoding_survives_its_record(scheme: str) -> None:
    needed = {"nucleus": "top_p", "top_k": "top_k", "typical": "typical_p", "eta": "eta", "epsilon": "epsilon"}
    value = {needed[scheme]: 3 if scheme == "top_k" else 0.5} if scheme in needed else {}
    decoding = Decoding(scheme=scheme, **value)
    assert Decoding.from_record(decoding.as_record()) == decoding
    assert hash(decoding) == hash(Decoding.from_record(decoding.as_record()))
    fitted = decoding.within(None)
    assert (fitted.max_tokens, decoding.within(9).max_tokens, fitted.within(200)) == (200, 9, fitted)
    with pytest.raises(InputError, match="max_tokens is 200, but the model takes 1 to 9 words"):
        fitted.within(9)
    with pytest.raises(ValueError, match="no max_tokens yet"):
        _ = decoding.most
    with pytest.raises(ValidationError):
        decoding.top_p = 0.5  # type: ignore[misc]


def test_the_signature_says_everything() -> None:
    assert str(Decoding(scheme="nucleus", top_p=0.9).within(127)) == "nucleus|temperature:1|top_p:0.9|max_tokens:127"
    assert (
        str(Decoding(scheme="beam_sampling", dedupe=False, max_tokens=50))
        == "beam_sampling|beams:5|length_penalty:1|keep:best|dedupe:false|max_tokens:50"
    )
