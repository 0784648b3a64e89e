"""The ladder: references between word frequencies and the truth, each scored on the same sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.windows import BestWithin
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.generator.abilities import offers
from truesource.generator.language_model import LanguageModel
from truesource.grammar.diagnostics import has_endings
from truesource.grammar.estimate.data_floor import data_floor
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.lmtrain.architectures.settings import NgramSettings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from truesource.lmtrain.training import SentenceSource

Kind = Literal["window", "ngram", "floor", "truth"]
ORDERS = (2, 3, 5)  #: of the n-gram models that count the same text


@dataclass(frozen=True, eq=False)
class Rung:
    """One reference."""

    kind: Kind
    #: words that are seen: k of the best predictor, n-1 of an n-gram model; None: all
    seen: int | None
    table: FloatArray | None  #: (3, N) as `truesource.evaluation.measures.paired.Paired.table`; None: only a mean
    value: float | None = None  #: KL in nats a token, where there is no table


def window_rungs(model: LanguageModel, setting: Setting, most: int) -> Iterator[Rung]:
    """The best predictors that see 0 to ``most`` words of the model's own vocabulary, best possible and exact.

    None of a masked model, of a transformed text, and of a truth without rules.
    """
    usual = model.objective == "causal" and setting.transform is None
    if not usual or not offers_windows(setting):
        return
    first = BestWithin(setting.grammar, 0, lengths=setting.lengths, vocabulary=model.vocabulary)
    for seen in range(most + 1):
        yield Rung("window", seen, score_both(first.with_words(seen), setting).paired.table())


def offers_windows(setting: Setting) -> bool:
    """Whether the truth has the best predictors that see k words."""
    return offers(setting.known, "windows")


def ngram_rungs(
    text: SentenceSource,
    setting: Setting,
    tokenizer: PreTrainedTokenizerFast,
    orders: Sequence[int] = ORDERS,
) -> Iterator[Rung]:
    """N-gram models (modified Kneser-Ney) that count the train split of the model, in its words.

    Args:
        text: whose split train the model was trained on.
        setting: text and truth to compare on.
        tokenizer: of words, the model's own.
        orders: n of each.
    """
    from truesource.lmtrain.training import train

    for order in orders:
        settings = NgramSettings(architecture="ngram", order=order)
        with TemporaryDirectory(prefix="truesource-ladder-") as place:
            counted = train(text, settings, None, Path(place) / "model", seed=0, tokenizer=tokenizer)
            try:
                both = score_both(counted, setting)
            except NothingToCompareError:
                continue
        yield Rung("ngram", order - 1, both.paired.table())


def floor_rung(setting: Setting, sentences: int, tokens: float) -> Rung | None:
    """The floor of the data: a learner that knows the rules, and counts them in the trees of the train split.

    In closed form, see `truesource.grammar.estimate.data_floor.data_floor`: a bound of the expected divergence of such
    a learner, to leading order where there is a condition on length. None of a truth without rules, or where
    derivations may not end.

    Args:
        setting: the truth.
        sentences: N, trees of the train split.
        tokens: of a sentence on average, its end included.
    """
    pcfg = setting.known
    if not isinstance(pcfg, PCFG) or (setting.lengths is None and not has_endings(pcfg)):
        return None
    return Rung("floor", None, None, data_floor(pcfg, sentences, lengths=setting.lengths) / tokens)
