"""lighteval: rolling log likelihoods of its model of transformers, with its metrics of perplexity.

python benchmarks/known_answers/run_lighteval.py

`loglikelihood_rolling` returns only documents of registered tasks, because it caches them; so this calls the function
inside it, with the text as the only choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from lighteval.metrics.metrics_corpus import CorpusLevelPerplexityMetric
from lighteval.metrics.sample_preparator import PerplexityPreparator
from lighteval.models.transformers.transformers_model import TransformersModel, TransformersModelConfig
from lighteval.tasks.requests import Doc, SamplingMethod
from measured import Kit, Measured, main


def measure(kit: Kit) -> Iterator[Measured]:
    for twin, text in (("gpt2", "words-1"),):  # a beginning token added by the tokeniser stops it
        settings = TransformersModelConfig(model_name=kit.twin(twin), dtype="float32", device="cpu", batch_size=4)
        model = TransformersModel(settings)
        docs = [
            Doc(
                query="",
                choices=[line],
                gold_index=0,
                id=str(i),
                original_query=line,
                sampling_methods=[SamplingMethod.PERPLEXITY],
            )
            for i, line in enumerate(kit.lines(text))
        ]
        responses = model._loglikelihood_tokens(docs, rolling=True)
        for metric, unit in (
            ("weighted_perplexity", "words"),
            ("weighted_perplexity", "bytes"),
            ("bits_per_byte", "bytes"),
        ):
            preparator = PerplexityPreparator(unit)
            items = [preparator.prepare(doc, response) for doc, response in zip(docs, responses, strict=True)]
            value = CorpusLevelPerplexityMetric(metric).compute_corpus(items)
            yield Measured(f"rolling, {metric}, {unit}", twin, text, float(value))


if __name__ == "__main__":
    main("lighteval transformers", measure)
