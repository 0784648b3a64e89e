"""Twins: folders of transformers whose weights, set by hand, make a network the exact model of a language.

A token is a vector with 2.0 at a few places and 0 elsewhere. All vectors that reach a normalisation have equally many
such places, so their mean and variance are constants. The epsilon of the normalisation is chosen so that it divides by
1, and its bias adds the mean again: a normalisation changes nothing. Attention to a neighbour has scores so far above
the others that the others underflow. Files are written without torch or transformers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from truesource.evaluation.known_answers.languages import (
    ABSENT,
    CONTINUES,
    MERGES,
    SPACE,
    CausalLanguage,
    Language,
    MaskedLanguage,
    TokenNames,
)
from truesource.evaluation.known_answers.scoring import WINDOW
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.atomic_files import write_json

HEIGHT = 2.0  #: entry of a vector at the places of its token
SHARP = 1024.0  #: scale of the queries of attention; scores of other positions underflow in float32
MASKED_POSITIONS = 25  #: positions of the masked twins
LONG = 256  #: positions of the other causal twins
_RESIDUES = (5, 7)  #: a position below 35 is known by its remainders

Tensors = dict[str, FloatArray]
Network = tuple[dict[str, object], Tensors]  #: configuration and weights


def epsilon(places: int, width: int) -> float:
    """Return the epsilon with which a layer normalisation of a vector with ``places`` entries divides by 1."""
    return 1.0 - HEIGHT**2 * places * (width - places) / width**2


def write_tensors(path: Path, tensors: Mapping[str, FloatArray]) -> None:
    """Write tensors as float32 in the format safetensors."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    parts, start = [], 0
    for name in sorted(tensors):
        part = np.ascontiguousarray(tensors[name], dtype="<f4")
        header[name] = {"dtype": "F32", "shape": list(part.shape), "data_offsets": [start, start + part.nbytes]}
        parts.append(part.tobytes())
        start += part.nbytes
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(parts))


def _write_twin(folder: Path, network: Network, tokenizer: Mapping[str, object], tokens: TokenNames) -> None:
    """Write the folder of a twin: configuration, weights and fast tokeniser."""
    config, tensors = network
    folder.mkdir(parents=True)
    write_json(folder / "config.json", config)
    write_tensors(folder / "model.safetensors", tensors)
    write_json(folder / "tokenizer.json", tokenizer)
    names = {"pad_token": tokens.pad, "unk_token": tokens.unk}
    inputs = ["input_ids", "attention_mask"]  # GPT-2 would add vectors of token types to its words
    if tokens.mask is None:
        names |= {"bos_token": tokens.begin, "eos_token": tokens.end}
        write_json(
            folder / "generation_config.json",
            {"bos_token_id": tokens.begin, "eos_token_id": tokens.end, "pad_token_id": tokens.pad},
        )
    else:
        names |= {"cls_token": tokens.begin, "sep_token": tokens.end, "mask_token": tokens.mask}
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{name: tokens.names[number] for name, number in names.items()},
            "clean_up_tokenization_spaces": False,
            "model_max_length": config["max_position_embeddings" if "max_position_embeddings" in config else "n_ctx"],
            "padding_side": "right",
            "model_input_names": inputs if tokens.mask is None else [*inputs, "token_type_ids"],
        },
    )


def _tokenizer(
    tokens: TokenNames,
    model: Mapping[str, object],
    splitter: Mapping[str, object],
    decoder: Mapping[str, object] | None,
    around: tuple[bool, bool],
) -> dict[str, object]:
    """Return the content of ``tokenizer.json``.

    Args:
        tokens: of the language.
        model: of the tokeniser.
        splitter: that runs before the model.
        decoder: None: tokens with spaces between them.
        around: if the tokeniser adds the tokens of the beginning and of the end.
    """
    text = {"Sequence": {"id": "A", "type_id": 0}}
    marks = [{"SpecialToken": {"id": tokens.names[number], "type_id": 0}} for number in (tokens.begin, tokens.end)]
    single = [*(marks[:1] if around[0] else []), text, *(marks[1:] if around[1] else [])]
    used = [number for number, is_added in zip((tokens.begin, tokens.end), around, strict=True) if is_added]
    processor = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            tokens.names[number]: {"id": tokens.names[number], "ids": [number], "tokens": [tokens.names[number]]}
            for number in used
        },
    }
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": tokens.names[number], **special} for number in range(tokens.first_word)
        ],
        "normalizer": None,
        "pre_tokenizer": splitter,
        "post_processor": processor if any(around) else None,
        "decoder": decoder,
        "model": {**model, "vocab": {name: number for number, name in enumerate(tokens.names)}},
    }


def words_tokenizer(tokens: TokenNames, *, begin: bool, end: bool) -> dict[str, object]:
    """Return a tokeniser that splits at white space."""
    model = {"type": "WordLevel", "unk_token": tokens.names[tokens.unk]}
    return _tokenizer(tokens, model, {"type": "WhitespaceSplit"}, None, (begin, end))


def wordpiece_tokenizer(tokens: TokenNames) -> dict[str, object]:
    """Return a tokeniser that takes the longest piece first, as BERT's does."""
    model = {
        "type": "WordPiece",
        "unk_token": tokens.names[tokens.unk],
        "continuing_subword_prefix": CONTINUES,
        "max_input_chars_per_word": 100,
    }
    decoder = {"type": "WordPiece", "prefix": CONTINUES, "cleanup": False}
    return _tokenizer(tokens, model, {"type": "WhitespaceSplit"}, decoder, (True, True))


def bpe_tokenizer(tokens: TokenNames) -> dict[str, object]:
    """Return a tokeniser that merges characters, with a mark for each space and before the text."""
    model: dict[str, object] = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "merges": [" ".join(pair) for pair in MERGES],
    }
    marks = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
    return _tokenizer(tokens, model, marks, marks, (False, False))


def gpt2_first_order(language: CausalLanguage, positions: int) -> Network:
    """Return configuration and weights of a GPT-2 of a first-order chain: its layer adds nothing."""
    size, width = len(language.tokens), 16
    tensors = _gpt2_layer(width, 4)
    tensors["transformer.wte.weight"] = _padded(HEIGHT * np.eye(size), width)
    tensors["transformer.wpe.weight"] = np.zeros((positions, width))
    tensors["lm_head.weight"] = _padded(language.logits[0].T / HEIGHT, width)
    tensors |= _normalisations(("transformer.h.0.ln_1", "transformer.h.0.ln_2", "transformer.ln_f"), 1, width)
    return _gpt2_config(language.tokens, width, 4, positions, epsilon(1, width)), tensors


def gpt2_second_order(language: CausalLanguage, positions: int) -> Network:
    """Return configuration and weights of a GPT-2 of a second-order chain.

    Its head attends to the position before, and copies the token there. A hidden unit for each pair of tokens writes
    the pair, which the output reads. Width: token, position, token before, pair, and two places that are cleared when
    the token before and the pair are written. A unit is 1 for its pair and clearly negative for others before it is
    rectified.
    """
    size, (short, long) = len(language.tokens), _RESIDUES
    token, place, before, clear_before, clear_pair, pair = np.cumsum([0, size, short + long, size, 1, 1])
    width = 64
    tensors = _gpt2_layer(width, size * size)
    words, at = np.zeros((size, width)), np.zeros((positions, width))
    words[:, token : token + size] = HEIGHT * np.eye(size)
    words[:, [clear_before, clear_pair]] = HEIGHT
    for position in range(positions):
        at[position, [place + position % short, place + short + position % long]] = HEIGHT
    tensors |= {"transformer.wte.weight": words, "transformer.wpe.weight": at}
    attention = np.zeros((width, 3 * width))
    for start, period in ((place, short), (place + short, long)):
        for remainder in range(period):
            attention[start + remainder, start + (remainder - 1) % period] = SHARP  # query
            attention[start + remainder, width + start + remainder] = 1.0  # key
    for number in range(size):
        attention[token + number, 2 * width + before + number] = 1.0
    attention[clear_before, 2 * width + clear_before] = -1.0
    tensors["transformer.h.0.attn.c_attn.weight"] = attention
    tensors["transformer.h.0.attn.c_proj.weight"] = np.eye(width)
    hidden, written = np.zeros((width, size * size)), np.zeros((size * size, width))
    for first in range(size):
        for second in range(size):
            unit = first * size + second
            hidden[[before + first, token + second], unit] = 1.0
            written[unit, pair + unit] = HEIGHT
            written[unit, clear_pair] = -HEIGHT
    tensors["transformer.h.0.mlp.c_fc.weight"], tensors["transformer.h.0.mlp.c_proj.weight"] = hidden, written
    tensors["transformer.h.0.mlp.c_fc.bias"] = np.full(size * size, 1.0 - 2.0 * HEIGHT)
    head = np.zeros((size, width))
    never = (language.logits <= ABSENT).all(axis=0)  # few places have large weights: each adds to the rounding error
    head[:, token : token + size] = np.where(never, ABSENT, 0.0).T / HEIGHT
    head[:, pair : pair + size**2] = np.where(never, 0.0, language.logits).reshape(size**2, size).T / HEIGHT
    tensors["lm_head.weight"] = head
    tensors |= _normalisations(("transformer.h.0.ln_1", "transformer.h.0.ln_2", "transformer.ln_f"), 5, width)
    return _gpt2_config(language.tokens, width, size * size, positions, epsilon(5, width)), tensors


def llama_first_order(language: CausalLanguage, positions: int) -> Network:
    """Return configuration and weights of a Llama of a first-order chain: its layer adds nothing."""
    tokens, size, inner = language.tokens, len(language.tokens), 4
    layer = "model.layers.0."
    tensors: Tensors = {f"{layer}self_attn.{part}_proj.weight": np.zeros((size, size)) for part in "qkvo"}
    tensors |= {f"{layer}mlp.{part}_proj.weight": np.zeros((inner, size)) for part in ("gate", "up")}
    tensors[f"{layer}mlp.down_proj.weight"] = np.zeros((size, inner))
    for norm in (f"{layer}input_layernorm", f"{layer}post_attention_layernorm", "model.norm"):
        tensors[f"{norm}.weight"] = np.ones(size)
    tensors["model.embed_tokens.weight"] = HEIGHT * np.eye(size)
    tensors["lm_head.weight"] = language.logits[0].T / HEIGHT
    config: dict[str, object] = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": size,
        "hidden_size": size,
        "intermediate_size": inner,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "hidden_act": "silu",
        "max_position_embeddings": positions,
        "rms_norm_eps": 1.0 - HEIGHT**2 / size,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        **_special(tokens),
    }
    return config, tensors


def bert_neighbours(language: MaskedLanguage) -> Network:
    """Return configuration and weights of a BERT that predicts a token from itself and its neighbours.

    One head attends to the position before, the other to the position after; at an end of the text, to the position
    itself. Width: token, token before, token after, position, and two places that are cleared when a neighbour is
    written. All special tokens but the mask share a place.
    """
    tokens, width, half = language.tokens, 64, 32
    assert tokens.mask is not None
    block = len(tokens.words) + 2
    places = np.full(len(tokens), block - 1)
    places[[tokens.mask, *tokens.words]] = np.arange(block - 1)
    token, before, after, place, clear_before, clear_after = np.cumsum([0, block, block, block, MASKED_POSITIONS, 1])
    embedded, at = np.zeros((len(tokens), width)), np.zeros((MASKED_POSITIONS, width))
    embedded[np.arange(len(tokens)), token + places] = HEIGHT
    embedded[:, [clear_before, clear_after]] = HEIGHT
    at[:, place : place + MASKED_POSITIONS] = HEIGHT * np.eye(MASKED_POSITIONS)
    layer = "bert.encoder.layer.0."
    tensors = _bert_layer(layer, width)
    tensors |= {
        "bert.embeddings.word_embeddings.weight": embedded,
        "bert.embeddings.position_embeddings.weight": at,
        "bert.embeddings.token_type_embeddings.weight": np.zeros((2, width)),
    }
    query, key, value, out = (np.zeros((width, width)) for _ in range(4))
    for start, step, target, clear in ((0, -1, before, clear_before), (half, 1, after, clear_after)):
        for position in range(MASKED_POSITIONS):
            key[start + position, place + position] = 1.0
            query[start + position, place + position] = SHARP / 2
            if 0 <= position + step < MASKED_POSITIONS:
                query[start + position + step, place + position] = SHARP
        for number in range(block):
            value[start + number, token + number] = 1.0
            out[target + number, start + number] = 1.0
            out[clear, start + number] = -1.0
    attention = f"{layer}attention."
    for name, matrix in (("self.query", query), ("self.key", key), ("self.value", value), ("output.dense", out)):
        tensors[f"{attention}{name}.weight"] = matrix
    decoder = np.zeros((len(tokens), width))
    for number in range(len(tokens)):
        decoder[:, before + places[number]] = language.left[number] / HEIGHT
        decoder[:, after + places[number]] = language.right[number] / HEIGHT
        decoder[:, token + places[number]] = language.unmasked[number] / HEIGHT
    tensors["cls.predictions.decoder.weight"] = decoder
    for name in ("decoder.bias", "bias"):
        tensors[f"cls.predictions.{name}"] = np.zeros(len(tokens))
    tensors |= _normalisations(
        (
            "bert.embeddings.LayerNorm",
            f"{attention}output.LayerNorm",
            f"{layer}output.LayerNorm",
            "cls.predictions.transform.LayerNorm",
        ),
        4,
        width,
    )
    return _bert_config(language.tokens, width), tensors


def _padded(matrix: FloatArray, width: int) -> FloatArray:
    """Add columns of zeros; a width that is a power of 2 keeps the normalisation exact."""
    return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])))


def _special(tokens: TokenNames) -> dict[str, object]:
    return {"bos_token_id": tokens.begin, "eos_token_id": tokens.end, "pad_token_id": tokens.pad}


def _gpt2_config(tokens: TokenNames, width: int, inner: int, positions: int, eps: float) -> dict[str, object]:
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": len(tokens),
        "n_positions": positions,
        "n_ctx": positions,
        "n_embd": width,
        "n_inner": inner,
        "n_layer": 1,
        "n_head": 1,
        "activation_function": "relu",
        "layer_norm_epsilon": eps,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        **_special(tokens),
    }


def _gpt2_layer(width: int, inner: int) -> Tensors:
    """Return the tensors of a layer that adds nothing."""
    layer = "transformer.h.0."
    return {
        f"{layer}attn.c_attn.weight": np.zeros((width, 3 * width)),
        f"{layer}attn.c_attn.bias": np.zeros(3 * width),
        f"{layer}attn.c_proj.weight": np.zeros((width, width)),
        f"{layer}attn.c_proj.bias": np.zeros(width),
        f"{layer}mlp.c_fc.weight": np.zeros((width, inner)),
        f"{layer}mlp.c_fc.bias": np.zeros(inner),
        f"{layer}mlp.c_proj.weight": np.zeros((inner, width)),
        f"{layer}mlp.c_proj.bias": np.zeros(width),
    }


def _bert_config(tokens: TokenNames, width: int) -> dict[str, object]:
    return {
        "architectures": ["BertForMaskedLM"],
        "model_type": "bert",
        "vocab_size": len(tokens),
        "hidden_size": width,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 4,
        "hidden_act": "relu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": MASKED_POSITIONS,
        "type_vocab_size": 2,
        "layer_norm_eps": epsilon(4, width),
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "pad_token_id": tokens.pad,
    }


def _bert_layer(layer: str, width: int) -> Tensors:
    """Return the tensors of a layer without attention, and of the identity before the output."""
    tensors = {f"{layer}attention.self.{part}.bias": np.zeros(width) for part in ("query", "key", "value")}
    return tensors | {
        f"{layer}attention.output.dense.bias": np.zeros(width),
        f"{layer}intermediate.dense.weight": np.zeros((4, width)),
        f"{layer}intermediate.dense.bias": np.zeros(4),
        f"{layer}output.dense.weight": np.zeros((width, 4)),
        f"{layer}output.dense.bias": np.zeros(width),
        "cls.predictions.transform.dense.weight": np.eye(width),
        "cls.predictions.transform.dense.bias": np.zeros(width),
    }


def _normalisations(names: Sequence[str], places: int, width: int) -> Tensors:
    """Return weights of layer normalisations that change nothing."""
    mean = HEIGHT * places / width
    return {f"{name}.weight": np.ones(width) for name in names} | {
        f"{name}.bias": np.full(width, mean) for name in names
    }


def write_twins(folder: Path, languages: Mapping[str, Language]) -> None:
    """Write all twins into a new folder.

    Args:
        folder: of the twins.
        languages: of the kit, by name.
    """
    for name in ("words", "pairs", "pieces"):
        language = languages[name]
        assert isinstance(language, CausalLanguage)
        plain = words_tokenizer(language.tokens, begin=False, end=False)
        if name == "words":
            _write_twin(folder / "gpt2", gpt2_first_order(language, LONG), plain, language.tokens)
            _write_twin(folder / "gpt2-window", gpt2_first_order(language, WINDOW), plain, language.tokens)
            marked = words_tokenizer(language.tokens, begin=True, end=False)
            _write_twin(folder / "llama", llama_first_order(language, LONG), marked, language.tokens)
        elif name == "pairs":
            _write_twin(folder / "gpt2-pairs", gpt2_second_order(language, WINDOW), plain, language.tokens)
        else:
            pieces = bpe_tokenizer(language.tokens)
            _write_twin(folder / "gpt2-pieces", gpt2_first_order(language, LONG), pieces, language.tokens)
    for name in ("masked-words", "masked-pieces"):
        masked = languages[name]
        assert isinstance(masked, MaskedLanguage)
        around = words_tokenizer(masked.tokens, begin=True, end=True)
        tokenizer = around if name == "masked-words" else wordpiece_tokenizer(masked.tokens)
        _write_twin(folder / name.replace("masked", "bert"), bert_neighbours(masked), tokenizer, masked.tokens)
