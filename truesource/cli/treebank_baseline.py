"""`truesource evaluate treebank_baseline`: models trained on real and on sampled text, on both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.evaluation.treebank_baseline.evaluator import TreebankBaselineSettings
from truesource.grammar.conditioning import length_condition
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Condition, Force, FrameName, Json, Seed, SplitName
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.evaluation.treebank_baseline.measure import Kind
    from truesource.grammar.pcfg import PCFG
    from truesource.run.stages.treebank_baseline import TextToMeasure


@with_options(TreebankBaselineSettings)
def command(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Models of one vocabulary; NAME=MODEL names one.")
    ],
    held_out: Annotated[Path, typer.Option(help="Real text with one tokenised sentence per line.")],
    settings: TreebankBaselineSettings,
    corpus: Annotated[Path | None, typer.Option(help="Corpus folder: also score sampled text.")] = None,
    oracle: Annotated[
        Path | None, typer.Option("--oracle", help="Grammar of the corpus: its bound there, a reference on real text.")
    ] = None,
    split: SplitName = "eval",
    sentences: Annotated[int | None, typer.Option(min=1, help="Number of sampled sentences, from the first.")] = None,
    lengths: Condition = None,
    frame: FrameName = "default",
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    force: Force = False,
) -> None:
    """Compare models trained on a treebank with models trained on sampled text, on real and on sampled text.

    Make the real text with `truesource split`, and train with --tokenizer so that the models share a vocabulary. The
    true distribution of real text is not known: there the grammar's perplexity is a reference, not a bound.

    Example: truesource evaluate treebank_baseline real/ model/ --held-out text/held_out.txt --oracle grammar.npz
    """
    from truesource.evaluation.treebank_baseline.report import baseline_table, coverage_line
    from truesource.grammar.pcfg import PCFG
    from truesource.run.stages.treebank_baseline import measure, records_of
    from truesource.terminal.output import OutputFiles, json_of, show

    named = _named(models)
    files = OutputFiles(json=json, force=force)
    pcfg = None if oracle is None else PCFG.load(oracle)
    texts = _texts(held_out, corpus, split, sentences, lengths, pcfg)
    from truesource.lmtrain.models import load_model

    loaded = {name: load_model(reference) for name, reference in named.items()}
    found = measure(loaded, pcfg, texts, frame=frame, seed=seed)
    records = records_of(found)
    show(baseline_table({"": records}), 150)
    for kind, scores in found.items():
        echo(f"{kind} text: {coverage_line(scores.counts())}")
    files.finish("truesource cite", json=json_of(records))


def _named(given: list[str]) -> dict[str, str]:
    """Models by name.

    Raises:
        InputError: two have one name.
    """
    from truesource.grammar.support.errors import InputError

    found: dict[str, str] = {}
    for text in given:
        title, separator, reference = text.partition("=")
        name, reference = (title, reference) if separator else (Path(text).name or text, text)
        if name in found:
            raise InputError(f"two models are called {name!r}; name them, NAME={reference}")
        found[name] = reference
    return found


def _texts(
    held_out: Path, corpus: Path | None, split: str, most: int | None, lengths: str | None, pcfg: PCFG | None
) -> dict[Kind, TextToMeasure]:
    """Real text, and sampled text where there is a corpus."""
    from truesource.generator.text_files import read_sentences as read_text
    from truesource.run.stages.treebank_baseline import TextToMeasure
    from truesource.run.treebank.text import text_of_file
    from truesource.terminal.inputs import read_setting

    about = text_of_file(held_out)
    of_text = None if about is None else length_condition(about.about["lengths"])
    real = read_text(held_out)
    if corpus is None:
        return {"real": TextToMeasure(real, length_condition(lengths, of_text))}
    sampled = read_setting(corpus, split, pcfg, lengths, first=most)
    return {
        "real": TextToMeasure(real, sampled.lengths),
        "sampled": TextToMeasure(sampled.sentences, sampled.lengths, sampled.excluded),
    }
