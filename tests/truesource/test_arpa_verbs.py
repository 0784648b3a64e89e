"""Verbs that take a model or a grammar, with an ARPA file."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ARPA = """\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-99\t<s>\t-0.30103
-0.30103\ta\t-0.30103
-0.60206\tb
-0.90309\t<unk>
-0.90309\t</s>

\\2-grams:
-0.124939\t<s> a
-0.60206\ta b
-0.359022\ta </s>

\\end\\
"""


def test_score_sample_compare_convert(tmp_path: Path, monkeypatch, command) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    Path("lm.arpa").write_text(ARPA)
    Path("text.txt").write_text("a b\na\nb a\n")
    out = command("convert", "lm.arpa", "lm.npz").out
    assert "Removed the empty sentence" in out
    assert command("sample", "lm.npz", "-n", 60, "-o", "c", "--lengths", "1..5", "--shares", "eval=1").code == 0
    code, out, _ = command("score", "lm.arpa", "c", "--oracle", "lm.npz")
    assert code == 0
    assert "causal" in out
    assert command("generate", "lm.arpa", "-n", 20, "-o", "s").code == 0
    code, _, err = command("convert", "lm.arpa", "x.npz", "--normalise")
    assert code == 2
    assert "--normalise applies to grammars only" in err
