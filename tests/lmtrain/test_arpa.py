"""Backoff models in ARPA files, against the definition of backing off, word by word."""

from __future__ import annotations

import gzip
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.lmtrain.architectures.ngram.arpa import load_arpa
from truesource.lmtrain.architectures.ngram.as_grammar import as_grammar
from truesource.lmtrain.decoding.sample_builder import reference_digest
from truesource.lmtrain.models import load_model
from truesource.lmtrain.references import model_reference

Table = dict[tuple[str, ...], tuple[float, float | None]]
ENDS = ("</s>", "<unk>")


@st.composite
def backoff_models(draw: st.DrawFn) -> list[Table]:
    """Normalised backoff models of order 1 to 3, probabilities and weights in linear space."""
    words = ["a", "b", "c"][: draw(st.integers(1, 3))]
    followers = [*words, *ENDS[: draw(st.integers(1, 2))]]
    order = draw(st.integers(1, 3))
    weight = st.integers(1, 9)
    raw = [draw(weight) for _ in followers]
    tables: list[Table] = [{(w,): (x / sum(raw), None) for w, x in zip(followers, raw, strict=True)}]
    tables[0]["<s>",] = (0.0, None)
    for _ in range(2, order + 1):
        table: Table = {}
        for context in [c for c in tables[-1] if c[-1] not in ENDS and "<s>" not in c[1:]]:
            explicit = draw(st.lists(st.sampled_from(followers), max_size=3, unique=True))
            if not explicit or len(explicit) == len(followers):
                continue
            lower = sum(probability(tables, context[1:], w) for w in explicit)
            shares = [draw(weight) for _ in explicit]
            mass = draw(st.floats(0.1, 0.9))
            for w, share in zip(explicit, shares, strict=True):
                table[*context, w] = (mass * share / sum(shares), None)
            tables[-1][context] = (tables[-1][context][0], (1.0 - mass) / (1.0 - lower))
        if not table:
            break
        tables.append(table)
    return tables


def probability(tables: list[Table], context: tuple[str, ...], word: str) -> float:
    """P(word | context) by the definition of backing off."""
    context = context[max(len(context) - len(tables) + 1, 0) :]
    ngram = (*context, word)
    if len(ngram) <= len(tables) and ngram in tables[len(ngram) - 1]:
        return tables[len(ngram) - 1][ngram][0]
    if not context:
        return 0.0
    entry = tables[len(context) - 1].get(context)
    backoff = 1.0 if entry is None or entry[1] is None else entry[1]
    return backoff * probability(tables, context[1:], word)


def sentence_probability(tables: list[Table], sentence: list[str]) -> float:
    known = {w for (w,) in tables[0]}
    words = [w if w in known else "<unk>" for w in sentence]
    history, result = ("<s>",), 1.0
    for word in [*words, "</s>"]:
        result *= probability(tables, history, word)
        history = (*history, word)
    return result


def written(tables: list[Table], digits: int = 17) -> str:
    def log10(p: float) -> str:
        return "-99" if p == 0.0 else f"{math.log10(p):.{digits}f}"

    lines = ["\\data\\", *(f"ngram {n}={len(t)}" for n, t in enumerate(tables, 1)), ""]
    for n, table in enumerate(tables, 1):
        lines.append(f"\\{n}-grams:")
        for ngram, (p, backoff) in table.items():
            lines.append(f"{log10(p)}\t{' '.join(ngram)}" + ("" if backoff is None else f"\t{log10(backoff)}"))
        lines.append("")
    return "\n".join([*lines, "\\end\\", ""])


@pytest.mark.long
@given(tables=backoff_models())
def test_sentences_have_the_probabilities_of_the_definition(tables: list[Table], tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("arpa") / "lm.arpa"
    path.write_text(written(tables))
    model = load_arpa(path)
    sentences = [list(s) for n in range(1, 4) for s in product(["a", "b", "x"], repeat=n)]
    scores = model.score(sentences, ScoringFrame())
    totals = np.exp(np.bincount(scores.sentence, scores.log_prob, len(sentences)))
    for i, sentence in enumerate(sentences):
        assert (0.0 if i in set(scores.impossible) else totals[i]) == pytest.approx(
            sentence_probability(tables, sentence), rel=1e-10, abs=1e-300
        )


@pytest.mark.long
@given(tables=backoff_models())
def test_the_grammar_of_a_file_has_its_probabilities(tables: list[Table], tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("arpa") / "lm.arpa.gz"
    path.write_bytes(gzip.compress(written(tables).encode()))
    model = load_arpa(path)
    assert model.name == "lm"
    grammar = PCFG.of(as_grammar(model))
    empty = probability(tables, ("<s>",), "</s>")
    assert grammar.meta["empty"]["mass"] == pytest.approx(empty, rel=1e-10)
    for sentence in (list(s) for n in range(1, 4) for s in product([w for (w,) in tables[0] if w in "abc"], repeat=n)):
        wanted = sentence_probability(tables, sentence) / (1.0 - empty)
        assert math.exp(grammar.log_prob(sentence)) == pytest.approx(wanted, rel=1e-10, abs=1e-300)


BIGRAM = written(
    [
        {("<s>",): (0.0, 0.5), ("a",): (0.5, 0.4), ("b",): (0.3, None), ("</s>",): (0.2, None)},
        {("<s>", "a"): (0.75, None), ("a", "b"): (0.6, None), ("a", "</s>"): (0.2, None)},
    ],
    digits=6,
)


@pytest.mark.long
def test_rounded_files_are_normalised(tmp_path: Path) -> None:
    (tmp_path / "lm.arpa").write_text(BIGRAM)
    model = load_model(str(tmp_path / "lm.arpa"))
    total = model.next_token(["a"])  # type: ignore[attr-defined]
    assert total.words.sum() + total.unk + total.eos == pytest.approx(1.0, abs=1e-14)
    assert total.eos == pytest.approx(0.2, rel=1e-5)
    assert model.score([["q"]], ScoringFrame()).impossible.tolist() == [0]  # type: ignore[union-attr]


def test_context_that_the_file_leaves_out_is_backed_off(tmp_path: Path) -> None:
    """A trigram whose last two words are no bigram of the file, as pruned models have them."""
    tables: list[Table] = [
        {("<s>",): (0.0, 1.0), ("a",): (0.5, 1.0), ("b",): (0.25, 1.0), ("</s>",): (0.25, None)},
        {("a", "b"): (0.25, 0.5)},
        {("a", "b", "a"): (0.75, None)},
    ]
    (tmp_path / "lm.arpa").write_text(written(tables))
    model = load_arpa(tmp_path / "lm.arpa")
    assert np.exp(model.score([["a", "b", "a"]], ScoringFrame()).log_prob).tolist() == pytest.approx(
        [0.5, 0.25, 0.75, 0.25], rel=1e-12
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("\\end\\", ""), "this ARPA file is incomplete"),
        (lambda t: t.replace("ngram 2=3", "ngram 2=4"), "this ARPA file is incomplete"),
        (lambda t: t.replace("\ta b", "\ta"), r"expecting a log10 probability, 2 words.*lm\.arpa:\d+\)"),
        (lambda t: t.replace("\ta b", "\ta q"), "the word 'q' is in longer n-grams"),
        (lambda t: t.replace("\ta </s>", "\ta b"), "the n-gram 'a b' appears twice"),
        (
            lambda t: t.replace("-0.301030\ta", "-0.1\ta"),
            r"of single words sum to 1\.\d+, but must sum to 1 .*make it anew",
        ),
        (
            lambda t: t.replace("-0.221849\ta b", "-0.9\ta b"),
            r"after 'a' sum to 0\.\d+, but must sum to 1",
        ),
        (lambda t: t.replace("-0.301030\ta", "0.2\ta"), "is no log10 probability"),
        (lambda t: t.replace("</s>", "z"), "has no </s>"),
        (lambda t: t.replace("\\2-grams:", "\\3-grams:"), "was not announced"),
        (lambda t: "hello", "this ARPA file is incomplete"),
    ],
)
def test_damaged_files_are_refused(change, message: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "lm.arpa").write_text(change(BIGRAM))
    with pytest.raises(InputError, match=message):
        load_arpa(tmp_path / "lm.arpa")


def test_the_library_scores_and_converts_it(tmp_path: Path) -> None:
    (tmp_path / "lm.arpa").write_text(BIGRAM)
    assert reference_digest(model_reference(str(tmp_path / "lm.arpa"))) == digest_file(tmp_path / "lm.arpa")
    assert model_reference(tmp_path / "lm.arpa").title == "lm"
