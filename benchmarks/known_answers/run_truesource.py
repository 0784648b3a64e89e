"""truesource itself: perplexity of words, of words from pieces, and summed segmentations.

python benchmarks/known_answers/run_truesource.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from measured import Kit, Measured, main

import truesource as ts

WORDS = (("gpt2", "words-1"), ("llama", "words-1"), ("gpt2-pairs", "pairs"), ("bert-words", "masked-words"))


def measure(kit: Kit) -> Iterator[Measured]:
    for twin, text in WORDS:
        grammar = ts.PCFG.load(kit.folder / kit.answers.texts[text].grammar)
        result = ts.compare(ts.load_model(kit.twin(twin)), [line.split() for line in kit.lines(text)], grammar)
        yield Measured("compare, ppl", twin, text, result["ppl"].value)
    for twin, text in (("gpt2-pieces", "pieces"), ("bert-pieces", "masked-pieces")):
        scores = ts.load_model(kit.twin(twin)).score([line.split() for line in kit.lines(text)])  # type: ignore[call-arg]
        yield Measured("score of words, per word", twin, text, math.exp(-scores.log_prob.sum() / kit.words(text)))
    result = ts.evaluate("tokenisation", kit.twin("gpt2-pieces"), kit.lines("pieces"), False, estimators=["exact"])
    (total,) = [each.value for each in result.scores if each.name == "log_p" and each.get("run") == "exact"]
    number = math.exp(-total / kit.words("pieces"))
    yield Measured("evaluate tokenisation, exact, per word", "gpt2-pieces", "pieces", number)


if __name__ == "__main__":
    main("truesource transformers", measure)
