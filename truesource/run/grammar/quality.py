"""Stage: parsing quality of the induced grammar on held-out trees, compared with the plain grammar.

The plain grammar has the relative frequencies of rules in the training trees, without split nonterminals.
"""

from __future__ import annotations

import logging
from itertools import compress
from typing import TYPE_CHECKING, Any

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluation.parsing import score_parses
from truesource.grammar.parsing import ParseMethod
from truesource.grammar.parsing.parser import Parse, Parser
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.printable import meter
from truesource.grammar.support.records import STRICT
from truesource.grammar.treebank import Treebank
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.tree import Tree
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder

QUALITY = "grammar/parsing.json"  #: in a run folder
TREES = 200  #: maximum number of held-out trees to parse
LONGEST = 40  #: maximum number of words of a parsed tree
INDUCED, PLAIN = "induced grammar", "plain grammar"
ALL, PARSED = "all", "parsed by all grammars"  #: choice of trees that count
BLOCK = 20  #: sentences between two steps of the progress bar

log = logging.getLogger("truesource")


@with_config(STRICT)
class ParserRecord(ScoreRecord):
    """The record of a measure of one parser on held-out trees."""

    parser: str
    trees: str  #: `ALL` or `PARSED`


@with_config(STRICT)
class QualityRecord(TypedDict):
    """``grammar/parsing.json``."""

    records: list[ParserRecord]


def stages(config: RunConfig) -> list[Stage]:
    """Return the stage, if a grammar is induced from real trees and some are held out."""
    bank, grammar = config.treebank, config.grammar
    if bank is None or bank.embedded is not None or grammar.variant is not None or grammar.tilt is not None:
        return []
    if bank.held_out_files is None and not bank.held_out:
        return []
    return [Stage("parsing", (QUALITY,), inputs, make, optional=True)]


def inputs(run: RunFolder) -> Any:
    """Return the inputs: treebank, grammar, binarisation, sizes, and the seed of intervals."""
    return {
        "treebank": run.outputs["treebank"],
        "grammar": run.outputs["grammar"],
        "binarise": run.config.grammar.model_dump(mode="json")["binarise"],
        "sizes": [TREES, LONGEST],
        "seed": run.config.seed,
    }


def make(run: RunFolder) -> str:
    """Write ``grammar/parsing.json``.

    Raises:
        NothingToMeasureError: no held-out tree is short enough (code ``too-few-sentences``).
    """
    from truesource.grammar.estimate.relative_frequency import relative_frequency

    folder = run.folder / "treebank"
    held_out = Treebank.read(folder / "held_out.mrg.gz", None)
    gold = [tree for tree, words in zip(held_out.trees, held_out.sentences(), strict=True) if len(words) <= LONGEST]
    if not gold:
        raise NothingToMeasureError(f"no held-out tree has at most {LONGEST} words", "too-few-sentences")
    grammars = {INDUCED: run.pcfg}
    if run.config.grammar.method == "split_merge":
        bank = Treebank.read(folder / "treebank.mrg.gz", None)
        grammars[PLAIN] = relative_frequency(bank.binarise(run.config.grammar.binarise))
    gold = gold[:TREES]
    parses = {name: parsed(pcfg, gold, name) for name, pcfg in grammars.items()}
    both = [all(trees) for trees in zip(*parses.values(), strict=True)]
    records = []
    for trees, selected in ((ALL, [True] * len(gold)), (PARSED, both)):
        for name, pcfg in grammars.items() if any(selected) else ():
            scores = score_parses(
                list(compress(gold, selected)),
                list(compress(parses[name], selected)),
                parser=name,
                grammar=pcfg.identity,
                seed=run.config.seed,
            )
            whole = (score for score in scores.as_scores() if score.get("by") is None)
            records += [score.at(trees=trees).as_record() for score in whole]
    write_json(run.folder / QUALITY, {"records": records})
    return digest_json(records)


def parsed(pcfg: PCFG, gold: Sequence[Tree], name: str) -> list[Tree | None]:
    """Compute max-rule parses of the words of trees; None for sentences without a parse."""
    parser = Parser(pcfg, ParseMethod.MAX_RULE)
    sentences = [[str(word) for word in tree.leaves()] for tree in gold]
    trees: list[Tree | None] = []
    with meter(f"parses of held-out trees, {name}", len(sentences)) as progress:
        for at in range(0, len(sentences), BLOCK):
            some = parser.parse_all(sentences[at : at + BLOCK])
            trees += [parse.tree if isinstance(parse, Parse) else None for parse in some]
            progress.advance(len(some))
    return trees
