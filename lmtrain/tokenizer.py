"""Tokenisers of whole words: they split at white space, are built from the train split and saved with the model."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Regex, Tokenizer, decoders
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from truesource.generator.columns import CodedSentences
from truesource.generator.objectives import Objective
from truesource.grammar.support.errors import InputError

PAD, UNK, BOS, EOS, MASK = SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>", "<mask>")


def count_words(sentences: Iterable[Sequence[str]]) -> Counter[str]:
    """Count the words.

    Raises:
        InputError: there are no words, or a word contains white space or the text of a special token.
    """
    coded = CodedSentences.of(sentences)
    counts = Counter(dict(zip(coded.words, coded.counts().tolist(), strict=True)))
    if not counts:
        raise InputError("the train split has no words; there is nothing to train on")
    for word in counts:
        if word.split() != [word]:
            raise InputError(f"the word {word!r} is empty or contains white space; a tokeniser cannot keep it")
        if any(special in word for special in SPECIALS):
            raise InputError(f"the word {word!r} contains a special token of the tokeniser; rename it in the corpus")
    return counts


def with_specials(backend: Tokenizer, objective: Objective) -> PreTrainedTokenizerFast:
    """Return a tokeniser for `transformers` with special tokens 0 to 4 and the marks of its objective."""
    backend.post_processor = TemplateProcessing(
        single=f"{BOS} $A" if objective == "causal" else f"{BOS} $A {EOS}",
        special_tokens=[(BOS, SPECIALS.index(BOS)), (EOS, SPECIALS.index(EOS))],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        unk_token=UNK,
        bos_token=BOS,
        eos_token=EOS,
        mask_token=MASK,
        padding_side="right",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )


def build_tokenizer(
    sentences: Iterable[Sequence[str]], *, min_count: int = 1, objective: Objective = "causal"
) -> PreTrainedTokenizerFast:
    """Make the tokeniser of a train split.

    Numbers 0 to 4 are ``<pad> <unk> <bos> <eos> <mask>``; words follow, frequent ones first, ties in
    code point order. Calling the tokeniser puts ``<bos>`` before a text, and ``<eos>`` after it for a
    masked model. What it decodes has a space before every word, so that it can follow a prompt.

    Args:
        sentences: the tokens of each sentence.
        min_count: rarer words become ``<unk>``.
        objective: of the model it is for.

    Raises:
        InputError: there are no words, a word contains white space or the text of a special token, or
            ``min_count`` leaves none.
    """
    counts = count_words(sentences)
    words = sorted((w for w, count in counts.items() if count >= min_count), key=lambda w: (-counts[w], w))
    if not words:
        raise InputError(f"no word occurs {min_count} times in the train split; lower min_count")
    ids = {word: i for i, word in enumerate((*SPECIALS, *words))}
    backend = Tokenizer(WordLevel(ids, unk_token=UNK))
    backend.pre_tokenizer = WhitespaceSplit()
    # a space before every word, the first one too: what is generated follows its prompt without a gap
    backend.decoder = decoders.Sequence([decoders.Replace(Regex(f"^(?!{BOS}$)"), " "), decoders.Fuse()])
    return with_specials(backend, objective)


def digest_tokenizer(tokenizer: PreTrainedTokenizerFast) -> str:
    """Return the SHA-256 of all that it does with text, hexadecimal."""
    return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()
