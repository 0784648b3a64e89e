"""Inputs of verbs: corpora, samples and texts, and warnings about them."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.chain.lengths import condition_text, length_condition
from truesource.cli.console import echo
from truesource.cli.output import opened
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.evaluation.core.setting import Setting
    from truesource.generator.plan import Transform
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.conventions import Name
    from truesource.grammar.treebank import Normalisation, Treebank
    from truesource.grammar.truth import Truth


def read_sentences(path: Path, split: str) -> tuple[list[list[str]], LengthRange | None]:
    """Sentences of a corpus folder's split (and its condition), or of a text file, one tokenised sentence a line.

    A folder of samples is all one split, whatever ``split`` says; sentences that were cut or have no words are left
    out, with a word about it on stderr.
    """
    if _is_sample_folder(path):
        return _read_samples(path), None
    if path.is_dir():
        corpus = opened(path)
        return corpus.sentences(split), corpus.lengths
    from truesource.generator.text import read_sentences as read

    return read(path), None


def is_treebank(source: Path) -> bool:
    """Whether a file, or most of a folder that is no corpus, run or model, holds trees."""
    from truesource.grammar.support.settings import kind_of
    from truesource.grammar.treebank.reader import begins_like_trees, find_files

    if source.is_file():
        return begins_like_trees(source)
    if not source.is_dir() or kind_of(source) not in (None, "trees"):
        return False
    try:
        return any(map(begins_like_trees, find_files(source)))
    except InputError:
        return False


def normalisation(convention: Name, overrides: list[str] | None) -> Normalisation:
    """What is done to the trees of a treebank.

    Args:
        convention: of the treebank.
        overrides: further settings as KEY=VALUE.

    Raises:
        InputError: a setting does not exist, or has another value.
    """
    from pydantic import TypeAdapter, ValidationError

    from truesource.grammar.support.records import explain
    from truesource.grammar.treebank import Normalisation
    from truesource.run.reading import override

    values: dict[str, object] = {"convention": convention}
    for text in overrides or []:
        override(values, text)
    try:
        return TypeAdapter(Normalisation).validate_python(values)
    except ValidationError as error:
        raise InputError(f"--normalisation: {explain(error)}") from error


def show_reading(bank: Treebank) -> None:
    """Say what reading a treebank removed and refused, and warn of what looks like another convention."""
    for line in bank.reading.lines():
        echo(line)
    warn_of_signs(bank)


def warn_of_signs(bank: Treebank) -> None:
    """Warn of what looks as if a treebank has another convention."""
    for sign in bank.reading.signs:
        options = " ".join(
            f"--convention {value}" if name == "convention" else f"--normalisation {name}={shlex.quote(value)}"
            for name, value in sign.remedy.items()
        )
        echo(f"Warning: {sign}; read the treebank with {options}, or leave them if they are words", err=True)


def read_documents(path: Path, split: str) -> tuple[list[str], LengthRange | None]:
    """Documents as text: the sentences of a corpus folder's split (and its condition), or each line of a text file.

    Folders are read as by `read_sentences`; a line of a text file is taken as it stands, white space and all.
    """
    if path.is_dir():
        sentences, lengths = read_sentences(path, split)
        return [" ".join(sentence) for sentence in sentences], lengths
    from truesource.generator.text import read_documents as read

    return read(path), None


def _is_sample_folder(path: Path) -> bool:
    from truesource.lmtrain.decoding.folder import is_sample_folder

    return is_sample_folder(path)


def _read_samples(path: Path) -> list[list[str]]:
    from truesource.lmtrain.decoding.folder import SampleFolder

    samples = SampleFolder.load(path)
    sentences = samples.sentences(cut=False)
    kept = [sentence for sentence in sentences if sentence]
    left_out = {
        "were truncated at max_tokens": samples.n_sentences - len(sentences),
        "have no words": len(sentences) - len(kept),
    }
    for what, number in left_out.items():
        if number:
            echo(f"{number:,} of {samples.n_sentences:,} sentences of {path} {what} and are left out", err=True)
    return kept


def read_setting(
    corpus: Path,
    split: str,
    oracle: Path | None,
    lengths: str | None,
    *,
    frame: str = "default",
    seed: int = DEFAULT_SEED,
    first: int | None = None,
    longest: int | None = None,
    drawn: LengthRange | None = None,
    scores: bool = True,
    uncorrected: str = "",
) -> Setting:
    """The text that models are measured on, and its truth; says on stderr in what the two differ, see `explain_truth`.

    Args:
        corpus: corpus folder, or text with one tokenised sentence a line.
        split: of a corpus folder.
        oracle: the grammar that the text was sampled from; None: nobody knows the truth.
        lengths: the condition of the truth, such as ``6..25``; None: that of the corpus.
        frame: name of the preset of positions that count.
        seed: of all that is random.
        first: number of sentences; None: all.
        longest: most words of a sentence; None: any number.
        drawn: the condition that a text without a record of it was drawn under.
        scores: as for `excluded_from`, and
        uncorrected: as there.

    Raises:
        InputError: text or grammar cannot be read, or all sentences are too long.
    """
    from truesource.evaluation.core.setting import Setting

    text, recorded = read_sentences(corpus, split)
    drawn = recorded if drawn is None else drawn
    condition = length_condition(lengths, drawn)
    truth = excluded = transform = None
    if oracle is not None:
        truth, transform = truth_about(corpus, oracle)
        excluded = excluded_from(corpus, split, truth, drawn, condition, scores=scores, uncorrected=uncorrected)
    kept, longer = at_most(text[:first], longest)
    return Setting(truth, kept, condition, frame, seed, excluded, longer, transform, (corpus, split))


def truth_about(corpus: Path, oracle: Path) -> tuple[Truth, Transform | None]:
    """The grammar or process of the oracle, and the order of the words of the text; see `evaluation.core.transformed`.

    Of a corpus folder with a transform, it is the grammar of the text where there is one.
    """
    from truesource.evaluation.core.transformed import text_grammar
    from truesource.grammar.truth import load_truth

    truth = load_truth(oracle)
    if not corpus.is_dir() or _is_sample_folder(corpus):
        return truth, None
    return text_grammar(truth, opened(corpus).transform)


def is_sampled_from(corpus: Path, truth: Truth) -> bool:
    """Tell whether a text is a corpus folder that was sampled from this grammar; of a file of text, nobody knows."""
    if not corpus.is_dir() or _is_sample_folder(corpus):
        return False
    from truesource.evaluation.core.transformed import original_digest

    return opened(corpus).grammar_digest == original_digest(truth)


def warn_of_other_grammar(corpus: Path, truth: Truth) -> None:
    """Say on stderr when a corpus folder was not drawn from this very grammar."""
    if not corpus.is_dir() or _is_sample_folder(corpus):
        return
    from truesource.evaluation.core.transformed import original_digest

    drawn_from, given = opened(corpus).grammar_digest, original_digest(truth)
    if drawn_from != given:
        echo(
            f"Warning: {corpus} was sampled from another grammar ({drawn_from[:8]}, not {given[:8]}), so these"
            " numbers are not bounds, unless the two differ by rounding only.",
            err=True,
        )


def excluded_from(
    corpus: Path,
    split: str,
    truth: Truth,
    drawn: LengthRange | None,
    condition: LengthRange | None,
    *,
    scores: bool = True,
    uncorrected: str = "",
) -> Exclusion | None:
    """The sentences that the split of a corpus folder leaves out because its splits are disjoint; None of other texts.

    Says on stderr in what the corpus and the oracle differ, see `explain_truth`.

    Args:
        corpus: the text.
        split: of a corpus folder.
        truth: the grammar or process of the oracle.
        drawn: the length range that the corpus was drawn under.
        condition: the one of the oracle.
        scores: whether the oracle scores tokens, which it can without the sentences left out; full distributions are
            always those of the grammar.
        uncorrected: names numbers of full distributions that stand beside such scores.
    """
    if not corpus.is_dir() or _is_sample_folder(corpus):
        return None
    from truesource.evaluation.core.exclusion import Exclusion

    found = Exclusion.of(opened(corpus), split, truth, condition, scored=scores)
    explain_truth(corpus, split, truth, drawn, condition, found, uncorrected=uncorrected)
    return found


def explain_truth(
    corpus: Path,
    split: str,
    truth: Truth,
    drawn: LengthRange | None,
    condition: LengthRange | None,
    excluded: Exclusion | None,
    *,
    uncorrected: str = "",
) -> None:
    """Say on stderr in what a corpus and the oracle differ: grammar, transform, disjoint splits, conditions, lengths.

    The arguments are those of `excluded_from`, and what that found.
    """
    warn_of_other_grammar(corpus, truth)
    transform = opened(corpus).transform
    if transform is not None and not transform.has_grammar:
        echo(
            f"{corpus} is transformed by {transform}: the probabilities of sentences and of masked tokens are exact,"
            " those of tokens given the words before them are not known.",
            err=True,
        )
    exact = excluded is not None and excluded.exact
    if excluded is not None and exact:
        but = f" But {uncorrected} are those of the grammar itself (disjoint:uncorrected)." if uncorrected else ""
        echo(
            f"{split} of {corpus} excludes the {len(excluded.sentences):,} sentences of earlier splits"
            f" ({excluded.probability:.6g} of the probability); the oracle excludes them exactly.{but}",
            err=True,
        )
    warn_of_conditions(corpus, split, corrected=exact)
    warn_of_other_lengths(corpus, drawn, condition)


def disjoint_exactly(corpus: Path, split: str) -> bool:
    """True if a corpus folder records exactly what its disjoint splits keep out of this one."""
    excluded = opened(corpus).record["splits"].get(split, {}).get("excluded")
    return excluded is not None and bool(excluded["exact"])


def warn_of_conditions(corpus: Path, split: str, *, corrected: bool = False) -> None:
    """Say on stderr what a corpus folder was drawn under besides a length range: the oracle knows nothing of it.

    With ``corrected``, it knows which sentences disjoint splits leave out.
    """
    if not corpus.is_dir() or _is_sample_folder(corpus):
        return
    record = opened(corpus).record
    cap, excluded = record["height_cap"], record["splits"].get(split, {}).get("excluded")
    if cap is not None:
        echo(
            f"Warning: {corpus} has no trees higher than {cap['max_height']}, but the oracle has: it"
            f" gives each sentence up to {-cap['log_probability']:.3g} nats too little.",
            err=True,
        )
    if excluded is not None and not corrected:
        echo(
            f"Warning: {split} of {corpus} excludes the sentences of earlier splits, but the oracle does not: add"
            f" {excluded['log_correction']:.6g} nats to the log probability of each sentence"
            " (disjoint:uncorrected).",
            err=True,
        )
    if record["call"]["overlap"] == "unique":
        echo(
            f"Warning: no sentence occurs twice in {corpus}, so frequent sentences are too rare, and the"
            " oracle's perplexity is not a bound.",
            err=True,
        )


def warn_of_other_lengths(corpus: Path, drawn: LengthRange | None, condition: LengthRange | None) -> None:
    """Say on stderr when a corpus folder was drawn under another length range than the oracle is conditioned on."""
    if not corpus.is_dir() or _is_sample_folder(corpus) or drawn == condition:
        return
    echo(
        f"Warning: {corpus} was sampled with {condition_text(drawn)}, but the oracle has {condition_text(condition)},"
        " so its numbers are not bounds for this corpus.",
        err=True,
    )


def warn_of_other_corpus(model: str | Path, corpus: Path) -> None:
    """Say on stderr when a model was trained on another corpus than the corpus folder that it is scored on.

    Models from elsewhere and models that are code do not record their corpus, and text files have no digest: nothing is
    said of either.

    Raises:
        InputError: there is no such model, or its ``training.json`` cannot be read.
    """
    if not corpus.is_dir() or _is_sample_folder(corpus):
        return
    from truesource.lmtrain.references import model_reference

    folder = model_reference(model).folder
    trained, here = None if folder is None else _trained_on(folder), opened(corpus).digest
    if trained is not None and trained != here:
        echo(
            f"Warning: {model} was trained on another corpus ({trained[:8]}, not {here[:8]}). Unless both have the same"
            " grammar and length range, relative perplexity also measures the difference between the two languages.",
            err=True,
        )


def _trained_on(model: Path) -> str | None:
    """Digest of the corpus that a model was trained on, None where that is not recorded."""
    from truesource.lmtrain.training_record import FILE, read_training

    trained = model.parent.parent if model.parent.name == "snapshots" else model
    return read_training(trained).corpus_digest if (trained / FILE).is_file() else None


def say_left_out(setting: Setting, impossible_model: Collection[int], impossible_oracle: Collection[int]) -> None:
    """Say on stderr how many sentences a comparison leaves out, which side cannot make them, and words that it lacks.

    Args:
        setting: text and truth.
        impossible_model: numbers of the sentences that the model gives probability 0.
        impossible_oracle: numbers of those that the oracle gives probability 0.
    """
    from truesource.evaluation.measures.paired import unknown_words, words_missing
    from truesource.report.words import impossible

    left_out, sentences = {*impossible_model, *impossible_oracle}, setting.sentences
    if not left_out:
        return
    unknown = (
        [] if setting.language is None else unknown_words(setting.language, (sentences[i] for i in impossible_oracle))
    )
    why = f"; {words_missing(unknown)}" if unknown else ""
    sides = impossible({"impossible_oracle": len(impossible_oracle), "impossible_model": len(impossible_model)})
    echo(f"{len(left_out)} of {len(sentences)} sentences are impossible and left out: {sides}{why}", err=True)


def parse_splits(text: str, total: int) -> dict[str, int]:
    """``train=.98,dev=.01,test=.01`` as whole numbers of sentences that add up to ``total``."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, separator, share = part.partition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            separator = ""
        if not separator or not name.strip() or not shares[name.strip()] > 0.0:
            raise InputError(f"write splits as train=.98,dev=.01,test=.01, not as {text!r}")
    if len(shares) < text.count(",") + 1:
        raise InputError(f"a split is given twice in {text!r}; remove one")
    if abs(sum(shares.values()) - 1.0) > 1e-9:
        raise InputError(f"the shares of the splits sum to {sum(shares.values()):g}; change them to sum to 1")
    sizes = {name: int(share * total) for name, share in shares.items()}
    sizes[max(shares, key=lambda name: shares[name])] += total - sum(sizes.values())
    if min(sizes.values()) < 1:
        raise InputError(f"{total} sentences are too few for the splits {text!r}; sample more, or use --shares train=1")
    return sizes


PATIENCE = 20.0  #: seconds that long sentences may take before they are announced


def at_most(sentences: list[list[str]], longest: int | None) -> tuple[list[list[str]], dict[str, int]]:
    """The sentences of at most ``longest`` words, and what the signature says of the others.

    Raises:
        InputError: all sentences are longer.
    """
    if longest is None:
        return sentences, {}
    kept = [sentence for sentence in sentences if len(sentence) <= longest]
    longer = len(sentences) - len(kept)
    if not kept:
        raise InputError(f"all {longer} sentences have more than {longest} words; increase --longest")
    if longer:
        echo(f"{longer} of {len(sentences)} sentences have more than {longest} words and are left out", err=True)
    return kept, {"longest": longest, "longer": longer}


def announce_long(setting: Setting, *, masked: bool, dtype: DTypeLike = "float64") -> None:
    """Say on stderr how long the exact scores of long sentences will take, where that tries anybody's patience."""
    from truesource.evaluation.core.oracle import LONG, long_sentences

    cost = long_sentences(setting.known, setting.sentences, setting.lengths, masked=masked, dtype=dtype)
    if cost is not None and cost.seconds > PATIENCE:
        echo(f"{cost}; --longest {LONG} leaves them out", err=True)


PLACES = ("grammar.npz", "grammar/grammar.npz")  #: in a corpus, and in a run


def grammar_inside(folder: Path) -> Path | None:
    """Its file; None for a folder without one."""
    return next((folder / place for place in PLACES if (folder / place).is_file()), None)


def oracle_option(folder: Path) -> str:
    """`--oracle` with that grammar, for the command that a message names; with a word in capitals if there is none."""
    inside = grammar_inside(folder)
    return f"--oracle {'GRAMMAR' if inside is None else shlex.quote(str(inside))}"
