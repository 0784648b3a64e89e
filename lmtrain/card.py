"""Card and versions of a model folder, of a network or of counted n-grams."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.hub_card import model_card
from truesource.grammar.support.printable import markdown, one_line
from truesource.lmtrain.tokenizer import BOS, EOS, MASK, UNK
from truesource.lmtrain.training_record import code_travels

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

_ESTIMATES = {
    "mle": "relative frequencies, nothing smoothed: what never followed a context has probability zero",
    "kneser_ney": "interpolated modified Kneser-Ney (Chen & Goodman 1999); the discounts are in `config.json`",
}


def versions() -> dict[str, str]:
    """Return the versions of the packages that a training run uses."""
    result = {"python": platform.python_version()}
    for package in ("truesource", "torch", "transformers", "accelerate", "tokenizers", "numpy"):
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            result[package] = "not installed"
    return result


def folder_card(record: dict[str, Any], results: Sequence[EvalResult] = ()) -> str:
    """Return the README of a model folder.

    Args:
        record: content of ``training.json``.
        results: measured of the model.

    Raises:
        KeyError: the record lacks something.
    """
    if record["model"]["architecture"] == "ngram":
        text, tags, library, task = _ngram_text(record), ["n-gram"], "truesource", None
    else:
        travels = code_travels(record)
        alone = "code_digest" in record["model"] and not travels  # only truesource opens it
        text, tags = _network_text(record), ["custom_code"] if travels else []
        library = "truesource" if alone else "transformers"
        task = "text-generation" if record["objective"] == "causal" else "fill-mask"
        task = None if alone else task
    return model_card(
        record["name"],
        text,
        license=record.get("license"),
        tags=["synthetic", *tags],
        library=library,
        task=task,
        language=record.get("language"),
        results=results,
    )


def _network_text(record: dict[str, Any]) -> str:
    causal = record["objective"] == "causal"
    final, model, training = record["final"], record["model"], record["training"]
    marks = f"`{BOS}` before it" if causal else f"`{BOS}` before and `{EOS}` after it"
    masks = (
        ""
        if causal
        else (
            f"- **Masks**: a share of {training['mask_probability']} of the words, each replaced by `{MASK}`;"
            " score one masked word at a time.\n"
        )
    )
    words = f"{record['vocabulary']:,} words, all others `{UNK}`"
    if model["tokenizer"] != "word":
        words = f"cut into {record['vocabulary']:,} {model['tokenizer']} pieces, of which those with `▁` begin a word"
    dev = f", dev loss {final['dev_loss']:.4f} nats (perplexity {final['dev_ppl']:.2f})" if final["dev_loss"] else ""
    course = (
        f"{record['steps']:,} steps, {final['epoch']:.2f} epochs, {final['tokens']:,} tokens, seed {record['seed']}"
    )
    size = training["batch_sentences"]
    held = f"about {training['batch_tokens']:,} tokens" if size is None else f"{size:,} sentences"
    parts = training["accumulation"] * record["processes"]
    batch = f"; a step is {'a batch' if parts == 1 else f'{parts} batches'} of {held}, {training['precision']}"
    loading = _loading(record)
    notes = "" if training["snapshots"] == "none" else "\n  The model at earlier steps is in `snapshots/`."
    if (start := record.get("weights_digest")) is not None:
        notes = f"\n  It started from the weights of another model, digest `{start[:16]}`.{notes}"
    return f"""# {markdown(record["name"])}

A {record["objective"]} language model ({model["architecture"]}, {record["parameters"]:,} parameters) trained on an
artificial language whose exact probabilities are known.

- **Text**: one sentence an input, words separated by single spaces, {marks};
  {words}.
- **Training**: {course}{dev}{batch}.{notes}
{masks}- **Corpus**: digest `{record["corpus_digest"][:16]}`. All settings and versions are in `training.json`,
  the course of training in `metrics.jsonl`.

```python
{loading}
```

The words come from a grammar, not from people; the model knows nothing else and is of no use outside measurements.
"""


def _loading(record: dict[str, Any]) -> str:
    """Return the lines of code that read the folder."""
    travels, model = code_travels(record), record["model"]
    with_transformers = _with_transformers(record["objective"] == "causal", travels)
    if "code_digest" not in model:
        return with_transformers
    with_code = _with_code(model["architecture"], model["code_digest"], record.get("code_stays"))
    if not travels:
        return with_code
    return f"""{with_transformers}

# with truesource, which runs code only where you name it:
{with_code}"""


def _with_transformers(causal: bool, travels: bool) -> str:
    """Return the lines by which `transformers` reads the folder; ``travels``: the code of the network lies in it."""
    auto = "AutoModelForCausalLM" if causal else "AutoModelForMaskedLM"
    code = ", trust_remote_code=True" if travels else ""
    return f"""from transformers import {auto}, AutoTokenizer

model = {auto}.from_pretrained("path/to/this/folder"{code})
tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder"{code})"""


def _with_code(name: str, digest: str, stays: str | None) -> str:
    """Return the lines by which truesource reads a folder of a custom architecture, with its code named."""
    why = "" if stays is None else f"# the code is not in this folder: its file {one_line(stays)}\n"
    return f"""{why}# needs the code {one_line(name)}, whose file has the SHA-256 {digest}
from truesource.lmtrain.models import load_model

model = load_model({name + "@path/to/this/folder"!r})"""


def _ngram_text(record: dict[str, Any]) -> str:
    final, model = record["final"], record["model"]
    dev = ""
    if final["dev_loss"] is not None:
        covered = final["dev_sentences_covered"]
        reach = ""
        if model["smoothing"] == "mle" or covered < 1.0:
            reach = f" on the {covered:.1%} of it that the model gives a probability"
        dev = f", dev loss {final['dev_loss']:.4f} nats (perplexity {final['dev_ppl']:.2f}){reach}"
    words = f"{record['vocabulary']:,} words, all others `{UNK}`. The contexts of the first words are shorter"
    unit = "word or end"
    if model["tokenizer"] != "word":
        words = (
            f"cut into {record['vocabulary']:,} {model['tokenizer']} pieces, of which those with `▁` begin a word. The"
            "\n  contexts of the first pieces are shorter"
        )
        unit = "piece or end"
    return f"""# {markdown(record["name"])}

A {model["order"]}-gram language model ({record["parameters"]:,} n-grams) of an artificial language whose exact
probabilities are known.

- **Text**: one sentence an input, words separated by single spaces, one `{BOS}` before it, `{EOS}` after it is
  predicted; {words}.
- **Estimate**: {_ESTIMATES[model["smoothing"]]}.
- **Training**: {final["tokens"]:,} tokens, loss {final["loss"]:.4f} nats a {unit}{dev}.
- **Corpus**: digest `{record["corpus_digest"][:16]}`. All settings and versions are in `training.json`.

```python
from truesource.lmtrain.models import load_model

model = load_model("path/to/this/folder")
```

`ngram.npz` holds the counts as a trie in flat arrays (`truesource.lmtrain.architectures.ngram.trie.Trie`); the
tokeniser is a fast tokeniser of `transformers`. The words come from a grammar, not from people.
"""
