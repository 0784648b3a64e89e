"""What a model folder says about itself: card, versions, generation settings."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from transformers import GenerationConfig

from lmtrain.config import ModelConfig
from lmtrain.tokenizer import Vocabulary


def versions() -> dict[str, str]:
    """Versions of what took part in a training run."""
    found = {"python": platform.python_version()}
    for package in ("truesource", "torch", "transformers", "accelerate", "tokenizers", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def generation_config(config: ModelConfig, vocabulary: Vocabulary) -> GenerationConfig:
    """Ancestral sampling until ``<eos>``, nothing cut off, none of the library's defaults."""
    return GenerationConfig(
        do_sample=True,
        num_beams=1,
        top_k=0,
        top_p=1.0,
        temperature=1.0,
        max_new_tokens=config.max_positions - 1,
        bos_token_id=vocabulary.bos,
        eos_token_id=vocabulary.eos,
        pad_token_id=vocabulary.pad,
    )


def model_card(record: dict[str, Any]) -> str:
    """README of a model folder, with the metadata header that model hubs read.

    Args:
        record: content of ``training.json``.
    """
    causal = record["objective"] == "causal"
    final, model, training = record["final"], record["model"], record["training"]
    auto = "AutoModelForCausalLM" if causal else "AutoModelForMaskedLM"
    dev = f", dev loss {final['dev_loss']:.4f} nats (perplexity {final['dev_ppl']:.2f})" if final["dev_loss"] else ""
    return f"""---
library_name: transformers
pipeline_tag: {"text-generation" if causal else "fill-mask"}
tags:
- truesource
- synthetic
---

# {record["name"]}

A {record["objective"]} language model ({model["architecture"]}, {record["parameters"]:,} parameters) trained on an
artificial language whose exact probabilities are known.

- **Text**: one sentence an input, words separated by single spaces, {"`<bos>` before it" if causal else "`<bos>` before and `<eos>` after it"};
  {record["vocabulary"]:,} words, all others `<unk>`.
- **Training**: {record["steps"]:,} steps, {final["epoch"]:.2f} epochs, {final["tokens"]:,} tokens, seed {record["seed"]}{dev}.
{"" if causal else "- **Masks**: every chosen word becomes `<mask>`; score one masked word at a time." + chr(10)}\
- **Corpus**: digest `{record["corpus_digest"][:16]}`. All settings and versions are in `training.json`, the course of training in
  `metrics.jsonl` (mask probability {training["mask_probability"]} where masks are used).

```python
from transformers import {auto}, AutoTokenizer

model = {auto}.from_pretrained("path/to/this/folder")
tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
```

The words are those of a grammar, not of people; the model knows nothing else and is of no use outside measurements.
"""
