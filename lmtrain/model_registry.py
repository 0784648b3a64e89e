"""The models that can be trained, and which settings each takes. Quick to import, for the help of the command."""

from __future__ import annotations

_NETWORK = {"layers", "dim", "dropout", "init_std"}
_TRANSFORMER = _NETWORK | {"heads", "ffn_dim", "max_positions"}

#: every model that can be trained, and which settings it takes of those that not all models take
TAKES: dict[str, frozenset[str]] = {
    name: frozenset(settings)
    for name, settings in {
        "gpt2": _TRANSFORMER,
        "opt": _TRANSFORMER | {"tie_words"},
        "llama": _TRANSFORMER | {"kv_heads", "tie_words"},
        "adaptive": _TRANSFORMER | {"cutoffs"},
        "lstm": _NETWORK | {"tie_words"},
        "gated_cnn": _NETWORK | {"kernel_size", "tie_words"},
        "bert": _TRANSFORMER | {"local_start"},
        "roberta": _TRANSFORMER | {"local_start"},
        "deberta": _TRANSFORMER | {"variant", "local_start"},
        "ngram": {"order", "smoothing"},
    }.items()
}
OURS = frozenset(
    {"adaptive", "lstm", "gated_cnn"}
)  #: networks that `truesource.lmtrain.architectures` adds to `transformers`
MASKED = frozenset({"bert", "roberta", "deberta"})  #: those that predict a word from both sides; all others are causal
