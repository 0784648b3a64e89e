"""`truesource evaluate probing`: what the layers of a network know of the derivation of a sentence."""

from __future__ import annotations

from truesource.chain.lengths import length_condition
from truesource.cli.console import echo
from truesource.cli.options import Condition, Figure, Force, Json, Model, OracleGrammar, Seed, SplitName, TextOrCorpus
from truesource.cli.settings import with_options
from truesource.evaluators.probing import ProbingSettings
from truesource.grammar.support.settings import DEFAULT_SEED


@with_options(ProbingSettings)
def command(
    model: Model,
    corpus: TextOrCorpus,
    oracle: OracleGrammar,
    settings: ProbingSettings,
    split: SplitName = "eval",
    lengths: Condition = None,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Train linear probes on the hidden states of a network, and measure what they find of the grammar.

    Probes learn the exact posterior of each label, and are measured against it.

    Example: truesource evaluate probing model/ corpus/ --oracle grammar.npz --targets tag,span
    """
    from truesource.cli.inputs import grammar_of_text, read_sentences, warn_of_other_grammar
    from truesource.cli.output import OutputFiles, figure_of, json_of, show
    from truesource.evaluation.core.transformed import require_order
    from truesource.evaluators.probing.section import best_table, layers_table, probing_figure, steps_of, steps_table
    from truesource.evaluators.probing.stage import measure

    files = OutputFiles(json=json, figure=figure, force=force)
    text, drawn = read_sentences(corpus, split)
    pcfg, transform = grammar_of_text(corpus, oracle)
    require_order(transform, "evaluate probing")
    warn_of_other_grammar(corpus, pcfg)
    condition = length_condition(lengths, drawn)
    found, missing = measure(model, pcfg, text, settings, lengths=condition, seed=seed)
    for target, error in missing.items():
        echo(f"Note: nothing to measure for {target}: {error.reason}", err=True)
    records = {target: probing.records() for target, probing in found.items()}
    for target, probing in found.items():
        if excluded := probing.parts["excluded"]:
            echo(f"{excluded} of {len(text[: settings.sentences])} sentences are impossible and left out", err=True)
        for note in probing.notes:
            echo(f"Note: {note}", err=True)
        show(layers_table(records[target]), width=130)
        if len(steps_of(records[target])) > 1:
            show(steps_table(records[target]))
        show(best_table(records[target]))
    files.finish(
        f"truesource evaluate dynamics {model} {corpus} --oracle {oracle}",
        json=json_of([record for of_target in records.values() for record in of_target]),
        figure=figure_of(lambda: probing_figure(records)),
    )
