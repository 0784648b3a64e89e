"""A probabilistic context-free grammar: its rules, its files, and exact inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from truesource.grammar.rules import GrammarRules
from truesource.grammar.sentences import takes_sentence, takes_sentences
from truesource.grammar.support.arrays import FloatArray

if TYPE_CHECKING:
    import nltk

    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.inference.beliefs import Belief, Beliefs
    from truesource.grammar.inference.exact import Exact
    from truesource.grammar.inference.next_token import NextToken
    from truesource.grammar.inference.next_words import NextWords
    from truesource.grammar.tree import Tree


@dataclass(frozen=True, eq=False, repr=False)
class PCFG(GrammarRules):
    """A grammar: the rules, and exact inference. Fields and errors are as in `GrammarRules`."""

    @classmethod
    def of(cls, rules: GrammarRules) -> Self:
        """Return the grammar of checked rules."""
        if isinstance(rules, cls):
            return rules
        result = object.__new__(cls)
        result.__dict__.update({part.name: getattr(rules, part.name) for part in fields(rules)})
        return result

    @classmethod
    def from_text(
        cls, text: str, *, start: str | None = None, normalise: bool = False, cut_words: bool = False
    ) -> Self:
        """Read rules such as ``S -> NP VP 0.9 | 'go' 0.1``; see `truesource.grammar.formats.text`.

        Arguments are as in `truesource.grammar.read_options.ReadOptions`.
        """
        from truesource.grammar.formats.text import parse_text
        from truesource.grammar.read_options import ReadOptions

        return cls.of(parse_text(text, ReadOptions(start=start, normalise=normalise, cut_words=cut_words)))

    def to_text(self) -> str:
        """Return the grammar as text; `from_text` reads the same rules back, each probability within one rounding."""
        from truesource.grammar.formats.text import format_text

        return format_text(self)

    @classmethod
    def from_nltk(cls, grammar: nltk.PCFG, *, normalise: bool = False, cut_words: bool = False) -> Self:
        """Return the grammar of an `nltk.PCFG`; arguments and errors as in `truesource.grammar.formats.nltk.from_nltk`.

        >>> import nltk
        >>> PCFG.from_nltk(nltk.PCFG.fromstring("S -> S S [0.3] | 'a' [0.7]"))
        PCFG(1 symbols, 1 words, 1 binary, 0 unary, 1 lexical rules)
        """
        from truesource.grammar.formats.nltk import from_nltk

        return cls.of(from_nltk(grammar, normalise=normalise, cut_words=cut_words))

    def to_nltk(self) -> nltk.PCFG:
        """Return the grammar as an `nltk.PCFG`; `from_nltk` reads the same rules back, each symbol its own label."""
        from truesource.grammar.formats.nltk import to_nltk

        return to_nltk(self)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        normalise: bool = False,
        format: str | None = None,  # noqa: A002
        start: str | None = None,
        lenient: bool = False,
        cut_words: bool = False,
    ) -> Self:
        """Read a grammar; the content of the file decides the format, unless a format is given.

        In place of a file, ``path`` may name a language such as ``dyck:k=2,depth=4``. Arguments and errors are as in
        `truesource.grammar.formats.load_rules` and of `language`; a language has a start symbol and no format.
        """
        from truesource.grammar.formats import load_rules, require_source
        from truesource.grammar.languages import is_reference, load_language
        from truesource.grammar.read_options import ReadOptions
        from truesource.grammar.support.call_arguments import as_path
        from truesource.grammar.support.errors import InputError

        as_path(path, "a grammar")
        if is_reference(path):
            if format is not None or start is not None:
                raise InputError(f"{path} is a language; format and start symbol apply only to files; remove them")
            return cls.of(load_language(str(path)))
        if format is None:
            require_source(path)
        return cls.of(load_rules(path, ReadOptions(start, normalise, lenient, cut_words), format=format))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write ``.npz`` (no pickle), atomically; refuses to overwrite unless ``force``."""
        from truesource.grammar.formats import save_grammar

        save_grammar(self, path, force=force, format="npz")

    # -- exact inference ----------------------------------------------------------------------------

    @cached_property
    def exact(self) -> Exact:
        """Exact inference of this grammar: see `truesource.grammar.inference.exact.Exact`."""
        from truesource.grammar.inference.exact import Exact

        return Exact(self)

    @takes_sentence
    def log_prob(self, sentence: Sequence[str]) -> float:
        """Return the log probability of one sentence, nats; -inf if it is impossible, as with an unknown word.

        Args:
            sentence: its words, or text, which is split at white space. For many sentences, use `Oracle.score`.

        Raises:
            InputError: it is neither, or is empty.

        >>> grammar = PCFG.from_text("S -> S S 0.3 | a 0.7")
        >>> round(grammar.log_prob(["a", "a"]), 4)
        -1.9173
        """
        return float(self.exact.string_log_probs([sentence])[0])

    @takes_sentence
    def prefix_log_prob(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> float:
        """Return the log probability that a sentence starts with ``prefix``, nats; -inf if none does."""
        return self.exact.prefix_log_prob(prefix, lengths)

    @takes_sentence
    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Return the distribution of the next word and the end after ``prefix``.

        Raises:
            InputError: no sentence (in the range) starts with ``prefix``.
        """
        return self.exact.next_token(prefix, lengths)

    @takes_sentences
    def beliefs(
        self, sentences: Sequence[Sequence[str]], kind: Belief = "preterminal", lengths: LengthRange | None = None
    ) -> Beliefs:
        """Return an ideal predictor's knowledge of the hidden structure after each word, see `inference.beliefs`.

        Raises:
            InputError: as `truesource.grammar.inference.beliefs.beliefs`.
        """
        from truesource.grammar.inference.beliefs import beliefs

        return beliefs(self.exact, sentences, kind, lengths)

    def next_words(self, sentences: Any, lengths: LengthRange | None = None) -> NextWords:
        """Return the distribution of the next word at every position of some sentences, as one array.

        Arguments and errors are as in `truesource.grammar.inference.next_words.next_words`.
        """
        from truesource.grammar.inference.next_words import next_words

        return next_words(self, sentences, lengths)

    @takes_sentence
    def masked(self, sentence: Sequence[str], position: int) -> FloatArray:
        """Return P(word at ``position`` | all other words, and the length), (V,) probabilities.

        Raises:
            InputError: no word fits there.
        """
        return self.exact.masked(sentence, position)

    @takes_sentence
    def viterbi(self, sentence: Sequence[str], *, coarse: bool = False) -> tuple[Tree, float]:
        """Return the most probable derivation and its log probability, nats.

        Args:
            sentence: its words.
            coarse: return the derivation as a tree of the rules as written, with treebank labels, instead of
                the grammar's symbols and the ``@`` nodes of long rules.

        Raises:
            InputError: the sentence has probability 0.

        >>> grammar = PCFG.from_text("S -> 'a' 'b' 'c' 1.0")
        >>> print(grammar.viterbi(["a", "b", "c"], coarse=True)[0])
        (S ('a' a) ('b' b) ('c' c))
        """
        from truesource.grammar.treebank.binarise import surface

        tree, log_prob = self.exact.viterbi(sentence)
        return (surface(tree, self) if coarse else tree), log_prob


def language(name: str, **settings: Any) -> PCFG:
    """Return the exact grammar of a language of the gallery.

    Args:
        name: name of the language, or a reference such as ``dyck:k=2``.
        settings: its settings, which override settings in the reference; values may be strings.

    Raises:
        InputError: there is no such language or setting, a value is outside its range, or the grammar is too large.

    >>> language("dyck", k=2, depth=4)
    PCFG(15 symbols, 4 words, 15 binary, 1 unary, 10 lexical rules)
    """
    from truesource.grammar.languages import load_language

    return PCFG.of(load_language(name, settings))
