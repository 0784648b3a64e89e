"""An evaluator: something that a run, or a verb, can measure.

Most measure a model on a text, and are declared: see `Evaluator`. From the declaration come the verb
(`truesource.cli.evaluate`), the stages of a run (`truesource.run.stages.declared`), records, tables and the section of
the report (`truesource.evaluation.show.declared`). Those that measure pairs, samples or treebanks have a verb in
``truesource/cli/`` and stages in ``truesource/run/stages/`` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from truesource.generator.abilities import Name, OfTruth, offers, require
from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import ModelRequest, RunRequest
    from truesource.evaluation.core.score import NoScore, Score
    from truesource.evaluation.core.setting import Setting

OF_PIECES = (
    "The tokens here are the pieces of {}: positions, lengths and nats per token are of pieces, unless a"
    " table says words."
    " The truth of each piece is exact."
)
OF_MASKED_PIECES = (
    "The tokens here are the pieces of {}: positions, lengths and nats per token are of pieces."
    " Each piece is given all other pieces of the sentence and their number, and its truth is exact."
    " Divergences of masked pieces do not add up to divergences of words, so no number is per word."
)


@dataclass(frozen=True)
class Measure:
    """One number of an evaluator, as terminal, report and comparisons show it."""

    name: str  #: in records
    label: str
    format: str = ".4f"
    meaning: str = ""


@dataclass(frozen=True, kw_only=True)
class EvaluatorOutput:
    """The measurement of one model."""

    scores: Sequence[Score | NoScore]  #: with ``model`` and ``objective`` among their keys
    entries: Mapping[str, Any] = field(default_factory=dict)  #: JSON values that a run saves with the scores
    impossible: tuple[Collection[int], Collection[int]] = ((), ())  #: sentences impossible for the model, the truth
    notes: Sequence[str] = ()  #: sentences about it
    title: str = ""  #: of what the verb prints; empty: model and objective
    line: str = ""  #: what the verb prints last, such as the signature of the main number


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """One evaluator.

    Its functions are in the module ``code``, which is imported when it is needed:

    ============================================ ==================================================================
    ``measure(model, setting, settings)``        an `EvaluatorOutput`: the model on the text of a `Setting`
    ``tables(record, title)``                    tables for the terminal; without it, one of ``measures``
    ``figure(record, salt)``                     an ``<svg>``, or None if there is nothing to draw
    ``section(run)``                             content of the template; without it, ``measures`` and figures. None or
                                                 empty if nothing was measured; sentences under ``opening`` are at
                                                 the head of the report
    ============================================ ==================================================================

    The template is ``section.html.j2`` in the folder of ``code``; it finds the content as ``section``. Without that
    file, a template shows ``measures``.

    A record is what a run saves as ``<name>/<model>.json``: ``model``, ``objective``, entries and records of a result.
    The module of the settings may also have ``check(config)``, which refuses a configuration; ``check_call(settings,
    model, frame, figure)``, which refuses options of the verb; ``needed(settings)``, abilities that such
    options need of a model, with the names of the options; ``needs_truth(settings)``, if the evaluator can do without a
    truth, True if options need it; and ``uncorrected(settings, frame)``, the numbers whose
    truth does not exclude what the text excludes.
    """

    name: str  #: of the verb, the key under ``evaluation``, the first or only kind of stage, and the section
    title: str  #: of the section
    summary: str  #: one line for the help of `truesource evaluate`
    settings: type[Settings]  #: keys of the configuration, and options of the verb
    kinds: tuple[str, ...] = ()  #: kinds of its stages; empty: the name
    verb: str = ""  #: verb that measures it; empty: `truesource evaluate` with its name
    declared: bool = True  #: verb and stages come from this declaration
    of_corpus: bool = True  #: it measures on the corpus of the run, not on texts of other sources

    code: str = ""  #: module of the functions; empty: the module of the settings
    help: str = ""  #: of the verb, with an example; empty: the summary
    prose: str = ""  #: a paragraph at the head of the section
    measures: tuple[Measure, ...] = ()  #: in the order of tables
    needs: tuple[Name, ...] = ()  #: abilities of a model, see `truesource.generator.abilities`
    of_truth: tuple[OfTruth, ...] = ()  #: abilities of the truth, see there
    oracle: bool = True  #: it needs the grammar of the text
    frame: bool = False  #: it scores tokens in as many sentences as the scores; a frame may exclude some
    in_words: bool = False  #: it compares models of pieces in words, though it needs distributions
    compares: bool = False  #: its numbers depend on the vocabulary that models are compared in
    corrected: bool = True  #: its truth excludes what the text excludes (disjoint splits)
    draws: bool = False  #: it has figures
    whole_models: bool = True  #: it measures a model, not the reference that snapshots are found by
    applies: Callable[[ModelRequest], bool] = lambda _: True  #: which models of a run it measures
    then: str = ""  #: next verb, with {model}, {corpus}, {grammar}, and {oracle} for the option --oracle
    width: int = 120  #: characters of its tables without a terminal

    def check(self, config: RunRequest) -> None:
        """Refuse a configuration that cannot be measured, by the ``check(config)`` of the settings' module.

        Raises:
            InputError: what is missing, and what to do.
        """
        check = self.beside_settings("check")
        if check is not None:
            check(config)

    def needs_truth(self, settings: Settings) -> bool:
        """Return True if it cannot measure on a text with an unknown truth."""
        needs = self.beside_settings("needs_truth")
        return self.oracle or (needs is not None and bool(needs(settings)))

    def measure(self, model: Any, setting: Setting, settings: Settings) -> EvaluatorOutput:
        """Measure a model, or the snapshots of a reference, on the first sentences of a text.

        Args:
            model: to measure.
            setting: text and truth; only the first ``settings.sentences`` if the settings have that field.
            settings: of the evaluator.

        Raises:
            InputError: the model cannot be measured, or lacks an ability.
            NothingToMeasureError: there is nothing to measure.
        """
        notes: list[str] = []
        if "distributions" in self.needs and not self.in_words:
            words, (model, setting) = setting, setting.with_distributions(model)
            if setting is not words:
                notes = [(OF_MASKED_PIECES if model.objective == "masked" else OF_PIECES).format(model.name)]
        for of_truth in self.of_truth:
            require(setting.known, of_truth, f"evaluate {self.name}")
        for ability in self.needs:
            if not (ability == "distributions" and self.in_words and offers(model, "tokens")):
                require(model, ability, f"evaluate {self.name}")
        some = setting.first(getattr(settings, "sentences", None))
        output: EvaluatorOutput = self.module.measure(model, some, settings)
        return replace(output, notes=(*notes, *output.notes)) if notes else output

    def extent(self, settings: Settings, number: int) -> str:
        """Return the part of a text that it uses: ``the first 300 of 1,000 sentences``; empty if it uses all.

        Args:
            settings: of the evaluator.
            number: number of sentences (or documents) in the text.
        """
        used = getattr(settings, "sentences", None)
        if used is None or used >= number:
            return ""
        described = self.settings.model_fields["sentences"].description or ""
        return f"the first {used:,} of {number:,} {'documents' if 'documents' in described else 'sentences'}"

    def beside_settings(self, name: str) -> Callable[..., Any] | None:
        """Return a function of the settings' module; None if it has no such function."""
        return getattr(import_module(self.settings.__module__), name, None)

    def function(self, name: str) -> Callable[..., Any] | None:
        """Return a function of the declared evaluator; None if it has no such function."""
        return getattr(self.module, name, None)

    @property
    def module(self) -> ModuleType:
        """Module of the functions."""
        return import_module(self.code or self.settings.__module__)
