"""Published and independently computed values; skipped where the shared data are not at hand."""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from truesource.grammar.formats.earleyx import parse_earleyx
from truesource.grammar.pcfg import PCFG
from truesource.grammar.read_options import ReadOptions

SHARED = os.environ.get("TRUESOURCE_SHARED_DATA")
pytestmark = pytest.mark.skipif(SHARED is None, reason="TRUESOURCE_SHARED_DATA is not set")
SMALL = ["ambiguous_pp", "unary_cycles_left_recursion", "right_recursive", "self_loop"]


def reference() -> Path:
    assert SHARED is not None
    return Path(SHARED) / "reference"


@cache
def small(name: str) -> tuple[PCFG, list[dict[str, Any]]]:
    entry = json.loads((reference() / "small_pcfgs.json").read_text())["grammars"][name]
    return PCFG.of(parse_earleyx(entry["grammar_text"], ReadOptions(start=entry["root"]))), entry["sentences"]


@pytest.mark.parametrize("name", SMALL)
def test_small_grammars_in_exact_rational_arithmetic(name: str) -> None:
    """Prefix, string, end-of-sentence and masked probabilities, computed as fractions."""
    pcfg, sentences = small(name)
    for entry in sentences:
        tokens = entry["tokens"]
        scores = pcfg.exact.causal_log_probs([tokens])[0]
        np.testing.assert_allclose(np.exp(np.cumsum(scores[:-1])), entry["prefix_prob"], rtol=1e-10)
        np.testing.assert_allclose(-scores[:-1], entry["surprisal_nats"], rtol=1e-10, atol=1e-12)
        assert -scores[-1] == pytest.approx(entry["eos_surprisal"], rel=1e-10, abs=1e-12)
        assert pcfg.log_prob(tokens) == pytest.approx(entry["string_logprob"], rel=1e-12)
        prefixes = [tokens[: k + 1] for k in range(len(tokens))]
        whole = np.exp(pcfg.exact.string_log_probs(prefixes))
        np.testing.assert_allclose(whole, entry["string_prob_each_prefix"], rtol=1e-10, atol=0.0)
        masked = pcfg.exact.masked_log_probs([tokens])[0]
        np.testing.assert_allclose(np.exp(masked), entry["masked_prob"], rtol=1e-10)


@pytest.mark.parametrize("name", SMALL)
def test_small_grammars_have_their_spectral_radius(name: str) -> None:
    entry = json.loads((reference() / "small_pcfgs.json").read_text())["grammars"][name]
    assert small(name)[0].exact.spectral_radius == pytest.approx(entry["spectral_radius"], rel=1e-10)


@cache
def wsj() -> tuple[PCFG, list[dict[str, Any]]]:
    content = json.loads((reference() / "wsj3c.json").read_text())
    text = gzip.decompress((reference() / "wsj3c.grammar.gz").read_bytes()).decode()
    return PCFG.of(parse_earleyx(text, ReadOptions(start=content["root"]))), content["sentences"]


@pytest.mark.long
def test_a_treebank_grammar_of_107_000_rules() -> None:
    """Against an independent dense computation; the file rounds its probabilities to 12 digits after the point."""
    pcfg, entries = wsj()
    sentences = [entry["tokens"] for entry in entries]
    causal, masked = pcfg.exact.causal_log_probs(sentences), pcfg.exact.masked_log_probs(sentences)
    for entry, scores, hidden in zip(entries, causal, masked, strict=True):
        wanted = entry["reference"]
        np.testing.assert_allclose(-scores[:-1], wanted["surprisal"], rtol=0, atol=2e-9)
        assert -scores[-1] == pytest.approx(wanted["eos_surprisal"], abs=2e-9)
        assert scores.sum() == pytest.approx(wanted["string_logprob"], abs=2e-9)
        np.testing.assert_allclose(hidden, wanted["masked_logprob"], rtol=0, atol=2e-9)


@pytest.mark.long
def test_grammar_files_are_told_apart_by_their_content() -> None:
    pcfg = PCFG.load(reference() / "wsj3c.grammar.gz")
    assert pcfg.symbols[pcfg.start] == "ROOT"
    assert pcfg.n_rules > 100_000
