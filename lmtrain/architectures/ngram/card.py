"""What the folder of an n-gram model says about itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.hub_card import model_card
from truesource.grammar.support.printable import markdown
from truesource.lmtrain.tokenizer import BOS, EOS, UNK

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

_ESTIMATES = {
    "mle": "relative frequencies, nothing smoothed: what never followed a context has probability zero",
    "kneser_ney": "interpolated modified Kneser-Ney (Chen & Goodman 1999); the discounts are in `config.json`",
}


def ngram_card(record: dict[str, Any], results: Sequence[EvalResult] = ()) -> str:
    """README of the folder of an n-gram model.

    Args:
        record: content of ``training.json``.
        results: what was measured of the model.
    """
    return model_card(
        record["name"],
        _text(record),
        license=record.get("license"),
        tags=["synthetic", "n-gram"],
        library="truesource",
        task=None,
        language=record.get("language"),
        results=results,
    )


def _text(record: dict[str, Any]) -> str:
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
tokeniser is that of `transformers`. The words are those of a grammar, not of people.
"""
