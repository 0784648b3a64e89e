"""The card of the kit."""

from __future__ import annotations

CARD = """\
# Known answers

These models have a known perplexity. Run your evaluation on a twin and a text, and compare its number with
`answers.json`: the number says which convention your code follows, or which mistake it makes.

| folder | content |
| --- | --- |
| `twins/` | models that `transformers` opens (`AutoModelForCausalLM`, `AutoModelForMaskedLM`, `AutoTokenizer`) |
| `texts/` | texts, one sentence a line |
| `grammars/` | the same languages as probabilistic grammars |
| `answers.json` | log probability of every token and sentence (nats), and the numbers of conventions and mistakes |

| twin | language | texts |
| --- | --- | --- |
| `gpt2`, `llama` | first-order chain over 12 words | `words-1`, `words-2` |
| `gpt2-window` | the same, with a window of 32 tokens | `words-1`, `words-2`, `long` |
| `gpt2-pairs` | second-order chain over 4 words | `pairs` |
| `gpt2-pieces` | first-order chain over 11 pieces; many words have several segmentations | `pieces` |
| `bert-words` | a word given its two neighbours in a first-order chain over 10 words | `masked-words` |
| `bert-pieces` | a piece given its two neighbours in a first-order chain over 10 pieces | `masked-pieces` |

In `answers.json`, `answers` has two kinds: a *convention* is a defensible way to report, and a *mistake* changes one
thing in the perplexity per token with everything scored. `combinations` has mistakes with a convention or with another
mistake. No two conventions or mistakes of a text are within 1 % of each other.

The beginning token (`<s>`, `<|endoftext|>`, `[CLS]`) precedes every sentence. The tokeniser of `llama` adds it; the
tokenisers of the masked twins add it and `[SEP]`; the tokenisers of the GPT-2 twins add nothing. The text `long` has no
end.

Which convention is a number? `truesource known-answers check 8.5754 --text words-1`.

Weights are float32, and logits are multiples of 1/16, so that float64, float32, bfloat16 and float16 give almost the
same numbers. The epsilon of a normalisation is unusual on purpose: it makes the normalisation exact. Read it from
`config.json`.

## Licence

CC0 1.0: weights, texts, grammars and answers are dedicated to the public domain.

## How to cite

Cite truesource (`truesource cite`) and the version of the kit, which is in `answers.json`.
"""
