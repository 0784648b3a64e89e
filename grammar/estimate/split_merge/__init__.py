"""Split-merge training: substates of treebank labels, found by EM on observed trees (Petrov et al. 2006).

All its constants are in one frozen object.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from truesource.grammar.support.printable import line_of_settings
from truesource.grammar.support.records import check_fields


@dataclass(frozen=True, slots=True)
class SplitMerge:
    """Settings of training a split-merge grammar.

    The defaults are the values of Petrov et al. (2006) except ``noise`` (1% there) and ``smoothing`` (``fixed`` there),
    which were chosen for held-out likelihood and F1 on small treebanks. A Dirichlet prior gives the siblings' mean the
    weight ``prior / (uses + prior)``, so that rare substates move most towards it. With little noise EM is still
    leaving the symmetric point when its iterations end. With ``relaxation`` 1.8, about half of the iterations reach the
    same likelihood (over-relaxed EM, Salakhutdinov and Roweis 2003). Classes of rare words: `word_classes` and
    `lexicon`.

    Raises:
        InputError: a value has the wrong type or is out of range.
    """

    advanced: ClassVar = frozenset(
        {
            "em_split",
            "em_merge",
            "em_smooth",
            "relaxation",
            "noise",
            "prior_rules",
            "prior_lexicon",
            "smooth_rules",
            "smooth_lexicon",
            "filter",
            "precision",
            "rare",
            "class_types",
            "class_prior",
            "tag_prior",
        }
    )
    cycles: Annotated[
        int, Field(ge=0, description="Rounds of split, merge and smooth; 0 leaves the relative-frequency grammar.")
    ] = 5
    em_split: Annotated[int, Field(ge=0, description="EM iterations after each split.")] = 50
    em_merge: Annotated[int, Field(ge=0, description="EM iterations after each merge.")] = 20
    em_smooth: Annotated[int, Field(ge=0, description="EM iterations with smoothing, at the end of each cycle.")] = 10
    relaxation: Annotated[
        float | None,
        Field(
            gt=1.0,
            lt=2.0,
            description="Over-relaxation factor of EM after a split or merge; none: ordinary EM.",
        ),
    ] = None
    merge_fraction: Annotated[
        float, Field(ge=0.0, le=1.0, description="Share of the sibling pairs of a split that are merged again.")
    ] = 0.5
    noise: Annotated[
        float, Field(ge=0.0, lt=1.0, description="Largest relative change of a score when a split copies it.")
    ] = 0.2
    smoothing: Annotated[
        Literal["dirichlet", "fixed"],
        Field(description="Weight of the siblings' mean: larger for rare substates (dirichlet), or constant (fixed)."),
    ] = "dirichlet"
    prior_rules: Annotated[
        float,
        Field(
            gt=0.0,
            allow_inf_nan=False,
            description="Smoothing dirichlet: prior pseudo-count of the mean in binary and unary rules.",
        ),
    ] = 20.0
    prior_lexicon: Annotated[
        float,
        Field(
            gt=0.0,
            allow_inf_nan=False,
            description="Smoothing dirichlet: prior pseudo-count of the mean in lexical rules.",
        ),
    ] = 50.0
    smooth_rules: Annotated[
        float, Field(ge=0.0, lt=1.0, description="Smoothing fixed: weight of the mean in phrasal rules.")
    ] = 0.01
    smooth_lexicon: Annotated[
        float, Field(ge=0.0, lt=1.0, description="Smoothing fixed: weight of the mean in lexical rules.")
    ] = 0.1
    filter: Annotated[float, Field(ge=0.0, lt=0.01, description="Drop rules of the result below this probability.")] = (
        1e-8
    )
    precision: Annotated[
        Literal["float32", "float64"],
        Field(description="Floating-point type of the passes over trees in EM; sums and likelihoods are float64."),
    ] = "float32"
    lexicon: Annotated[
        Literal["generate", "parse"],
        Field(
            description="Words: of the trees only (generate), or also unknown ones, by classes of rare words (parse)."
        ),
    ] = "generate"
    rare: Annotated[
        int, Field(ge=1, description="Lexicon parse: words that occur at most this often train a class.")
    ] = 20
    class_types: Annotated[int, Field(ge=1, description="Lexicon parse: least number of rare types in a class.")] = 8
    class_prior: Annotated[
        float,
        Field(
            gt=0.0,
            allow_inf_nan=False,
            description="Lexicon parse: pseudo-count of its class in the estimates of a rare word.",
        ),
    ] = 10.0
    tag_prior: Annotated[
        float,
        Field(
            ge=0.0,
            allow_inf_nan=False,
            description="Lexicon parse: pseudo-count of the class's tags for a rare word; 0: no unseen tags.",
        ),
    ] = 0.5

    def __repr__(self) -> str:
        defaults = {field.name: field.default for field in fields(self)}
        return line_of_settings(type(self).__name__, {name: getattr(self, name) for name in defaults}, defaults)

    def __post_init__(self) -> None:
        check_fields(self, "split-merge")

    @property
    def iterations(self) -> int:
        """Number of EM iterations of a whole run."""
        return self.cycles * (self.em_split + self.em_merge + self.em_smooth)
