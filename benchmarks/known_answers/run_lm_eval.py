"""lm-evaluation-harness: loglikelihood and loglikelihood_rolling, with the sums of its tasks of perplexity.

python benchmarks/known_answers/run_lm_eval.py
"""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval.api.instance import Instance
from lm_eval.api.metrics import bits_per_byte, weighted_perplexity
from lm_eval.api.task import PerplexityTask
from lm_eval.models.huggingface import HFLM
from measured import Kit, Measured, main

CASES = (
    ("gpt2", "words-1"),
    ("llama", "words-1"),
    ("gpt2-window", "long"),
    ("gpt2-pairs", "pairs"),
    ("gpt2-pieces", "pieces"),
)


def measure(kit: Kit) -> Iterator[Measured]:
    for twin, text in CASES:
        model = HFLM(pretrained=kit.twin(twin), batch_size=4, device="cpu", dtype="float32")
        lines = kit.lines(text)
        words, size = map(PerplexityTask.count_words, lines), map(PerplexityTask.count_bytes, lines)
        requests = [Instance("loglikelihood_rolling", {}, (line,), i) for i, line in enumerate(lines)]
        rolling = model.loglikelihood_rolling(requests, disable_tqdm=True)
        of_words, of_bytes = [*zip(rolling, words, strict=True)], [*zip(rolling, size, strict=True)]
        yield Measured("loglikelihood_rolling, word_perplexity", twin, text, weighted_perplexity(of_words))
        yield Measured("loglikelihood_rolling, byte_perplexity", twin, text, weighted_perplexity(of_bytes))
        yield Measured("loglikelihood_rolling, bits_per_byte", twin, text, bits_per_byte(of_bytes))
        if text == "long":
            continue
        requests = [Instance("loglikelihood", {}, ("", line), i) for i, line in enumerate(lines)]
        sums = [total for total, _ in model.loglikelihood(requests, disable_tqdm=True)]
        whole = weighted_perplexity([*zip(sums, map(PerplexityTask.count_words, lines), strict=True)])
        yield Measured("loglikelihood with an empty context, per word", twin, text, whole)


if __name__ == "__main__":
    main("lm_eval transformers", measure)
