"""An n-gram model as a grammar, so that its language can be a truth."""

from __future__ import annotations

import numpy as np

from truesource.grammar.building import Automaton
from truesource.grammar.languages import LARGEST
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram.models import NgramModel, NgramPieceModel
from truesource.lmtrain.tokenizer import UNK


def as_grammar(model: NgramModel | NgramPieceModel) -> GrammarRules:
    """Return the language of an n-gram model of words, as a right-linear grammar whose symbols are contexts.

    The grammar has the next-token probabilities of the model; ``<unk>`` is a word of the language. Only the empty
    sentence is excluded: its probability is ``meta["empty"]["mass"]``, and at the beginning of a sentence the
    probabilities of words are divided by the rest.

    Raises:
        InputError: the model predicts pieces, or the grammar is too large (contexts times words, or for ``mle`` the
            number of n-grams, count).
    """
    if isinstance(model, NgramPieceModel):
        raise InputError("this n-gram model predicts pieces of words; only a model of whole words can become a grammar")
    reader, trie, vocabulary = model.reader, model.estimate.trie, model.encoder
    followers = np.append(vocabulary.word_ids, vocabulary.unk)
    begin = int(reader.begin(1).node[0])
    is_state = np.isin(trie.word[: int(trie.level[-1])], followers)
    is_state[begin] = True
    if reader.strict:
        is_state &= reader.seen
    others = np.flatnonzero(is_state)
    contexts = np.append(begin, others[others != begin])
    n_next = np.diff(trie.start)[contexts]
    moves = int(n_next.sum()) if reader.strict else len(contexts) * len(followers)
    if (rules := 2 * moves + len(followers)) > LARGEST:
        raise InputError(
            f"the grammar of this model would have up to {rules:,} rules ({len(contexts):,} contexts,"
            f" {len(followers):,} words), more than the {LARGEST:,} that fit in memory; use a model of a lower order or"
            " of fewer words",
            code="too-large",
        )
    if reader.strict:  # only what was seen can follow
        places = np.arange(moves) + np.repeat(trie.start[contexts] - (np.cumsum(n_next) - n_next), n_next)
        source, token = np.repeat(np.arange(len(contexts)), n_next), trie.word[places]
    else:
        source, token = np.repeat(np.arange(len(contexts)), len(followers)), np.tile(followers, len(contexts))
    log_prob, after = reader.look_up(contexts[source], token)
    possible = np.flatnonzero(np.isin(token, followers) & (log_prob > -np.inf))
    end = np.exp(reader.look_up(contexts, np.full(len(contexts), vocabulary.eos))[0])
    number = np.full(len(is_state), -1)
    number[contexts] = np.arange(len(contexts))
    column = np.full(trie.n_tokens, -1)
    column[followers] = np.arange(len(followers))
    automaton = Automaton(
        states=_names(model, contexts),
        words=(*model.vocabulary, UNK),
        source=source[possible],
        word=column[token[possible]],
        target=number[after[possible]],
        weight=np.exp(log_prob[possible]),
        end=end,
    )
    return automaton.grammar().with_meta(model=model.name, empty={"mass": float(end[0])})


def _names(model: NgramModel, contexts: IntArray) -> list[str]:
    """Return the name of each context, such as ``after the dog``."""
    trie, tokens = model.estimate.trie, model.encoder.tokens
    shorter = np.repeat(np.arange(len(trie.start) - 1), np.diff(trie.start)).tolist()  # of each n-gram but the first
    names: list[str] = []
    for context in contexts.tolist():
        words: list[str] = []
        while context > 0:
            words.append(tokens[int(trie.word[context])])
            context = shorter[context - 1]
        names.append(" ".join(["after", *reversed(words)]))
    return names
