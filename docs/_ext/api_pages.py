"""The Python API: an index of names by what people want to do, pages of them, and of the modules of each package."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import truesource
from truesource.cli.app import CALLS, EVALUATE
from truesource.evaluation.evaluators import EVALUATORS

ROOT = Path(truesource.__file__).parent
#: pages of nouns
TITLES = {
    "grammars": "Make a language, or learn a grammar from trees",
    "corpora-and-models": "Sample text, train models and score with them",
    "comparison": "Compare models with the truth",
}
#: the page of each noun, in their order
NOUNS = {
    "PCFG": "grammars",
    "Tree": "grammars",
    "Treebank": "grammars",
    "Normalisation": "grammars",
    "Binarisation": "grammars",
    "SplitMerge": "grammars",
    "split_merge": "grammars",
    "language": "grammars",
    "english": "grammars",
    "LengthRange": "grammars",
    "Corpus": "corpora-and-models",
    "sample": "corpora-and-models",
    "ModelConfig": "corpora-and-models",
    "TrainConfig": "corpora-and-models",
    "model_settings": "corpora-and-models",
    "preset": "corpora-and-models",
    "train": "corpora-and-models",
    "load_model": "corpora-and-models",
    "FunctionModel": "corpora-and-models",
    "LanguageModel": "corpora-and-models",
    "ScoringFrame": "corpora-and-models",
    "TokenScores": "corpora-and-models",
    "assemble_scores": "corpora-and-models",
    "Oracle": "comparison",
    "compare": "comparison",
    "Comparison": "comparison",
    "Score": "comparison",
    "Exclusion": "comparison",
    "evaluate": "comparison",
    "bound": "comparison",
    "explain": "comparison",
    "infill": "comparison",
    "known_answers": "comparison",
    "diagnose": "comparison",
    "Result": "comparison",
    "Text": "comparison",
    "Setting": "comparison",
    "compare_parallel": "comparison",
    "ParallelText": "comparison",
    "InputError": "comparison",
}
#: public names of inner modules, by what people want to do with them
INNER = {
    "Use the truth in your own training loop": (
        "lmtrain.truth.endless",
        "lmtrain.truth.ExactTargets",
        "lmtrain.truth.kl_to_truth",
        "lmtrain.truth.TruthCallback",
        "lmtrain.word_vocabulary.WordVocabulary",
        "grammar.inference.next_words.NextWords",
    ),
    "Look into a network": (
        "grammar.inference.beliefs.Beliefs",
        "evaluation.beliefs.measure.readable",
        "lmtrain.hidden_states.hidden_states",
        "lmtrain.patching.patched_log_probs",
        "lmtrain.patching.untrained",
        "lmtrain.snapshots.checkpoints",
    ),
    "Ask the truth more": (
        "grammar.truth.load_truth",
        "grammar.truth.process",
        "grammar.process.Process",
        "grammar.inference.any_order.AnyOrder",
        "lmtrain.accelerated.Accelerated",
        "grammar.tilting.rewards.Count",
        "grammar.tilting.rewards.Pattern",
        "grammar.tilting.rewards.Words",
        "grammar.tilting.tilt.Tilting",
        "grammar.tilting.tilt.power",
        "grammar.tilting.tilt.tilt",
    ),
    "Measure more, or write a measure of your own": (
        "evaluation.explain.measure.changes",
        "evaluation.explain.measure.first_of",
        "evaluation.documents.measure.strategy",
        "evaluation.documents.measure.what_is_known",
        "evaluation.memory.measure.memory",
        "evaluation.memory.measure.repeated",
        "evaluation.dynamics.compare.learning_dynamics",
        "evaluation.dynamics.table.findings",
        "evaluation.dynamics.CurveSettings",
        "evaluation.core.evaluator.Evaluator",
        "evaluation.core.evaluator.Measure",
        "evaluation.core.evaluator.EvaluatorOutput",
        "evaluation.core.setting.Setting",
        "evaluation.core.windows.BestWithin",
        "evaluation.core.transformed.text_grammar",
        "generator.text.RawTextReader",
        "generator.text.write_offsets",
        "grammar.support.settings.Settings",
    ),
}
#: packages, by what people do with them
PACKAGES = {
    "grammar": "Treebanks, probabilistic grammars and everything exact about them",
    "generator": "Corpora that are sampled from a grammar, and the interface of what scores them",
    "lmtrain": "Language models: tokenisers, architectures, training, scoring",
    "evaluation": "The exact oracle, and every measure that compares a model with it",
}
#: inner modules that guides import from and that are in none of these packages
OTHERS = ("truesource.studies.parsing.record",)
KINDS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
MEMBERS = "   :members:\n   :inherited-members: BaseModel, ValueError, object, tuple\n"
HEAD = """\
# Python API

`from truesource import ...` offers all that the first three pages describe. [Stability](../stability.md) says what
of it stays the same between versions, and which names of inner modules are public too. All other names of inner modules
may move without notice.

"""


def _contents(title: str, text: str, heading: str, pages: Mapping[str, str]) -> str:
    """A part of the index: a table of pages with a line about each."""
    rows = "".join(f"| [{_link_text(page)}]({page}.rst) | {about} |\n" for page, about in pages.items())
    toctree = "```{toctree}\n:hidden:\n:maxdepth: 1\n\n" + "\n".join(pages) + "\n```\n\n"
    return f"## {title}\n\n{text}\n\n| {heading} |\n| --- | --- |\n{rows}\n{toctree}"


def _named(title: str, summaries: Mapping[str, str]) -> str:
    """A part of the index: names with a line about each."""
    rows = ((f"{{py:obj}}`{name.rpartition('.')[2]} <truesource.{name}>`", text) for name, text in summaries.items())
    table = "".join(f"| {link} | {text.replace('|', chr(92) + '|')} |\n" for link, text in rows)
    return f"## {title}\n\n| name | what it is |\n| --- | --- |\n{table}\n"


def _verbs() -> str:
    """A part of the index: each verb of the command beside its call."""
    rows = [f"| `truesource {verb}` | {_call(call)} |\n" for verb, (call, _) in CALLS.items()]
    names = (each.name for each in EVALUATORS if not each.verb)
    rows += [f"| `truesource evaluate {name}` | {_call(EVALUATE, repr(name))} |\n" for name in names]
    text = "The body of a verb ends in a call that a notebook can make too. `truesource new` writes files to edit."
    return f"## Verbs and calls\n\n{text}\n\n| verb | call |\n| --- | --- |\n{''.join(rows)}\n"


def _call(name: str, first: str = "") -> str:
    title, argument = name.removeprefix("truesource."), f" with `{first}`" if first else ""
    has_page = title in NOUNS or title.partition(".")[0] in PACKAGES
    return (f"{{py:obj}}`{title} <{name}>`" if has_page else f"`{name}`") + argument


def _noun_summary(noun: str) -> str:
    """The first line of the docstring of a name of `truesource`."""
    home, name = getattr(truesource, noun).__module__, getattr(truesource, noun).__name__
    return _summaries(home.removeprefix("truesource."))[name]


@cache
def _summaries(module: str) -> dict[str, str]:
    """The first line of the docstring of each public class and function of a module, by name.

    Raises:
        ValueError: one has none.
    """
    file = ROOT.joinpath(*module.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    found: dict[str, str] = {}
    for each in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(each, KINDS) and not each.name.startswith("_"):
            found[each.name] = (ast.get_docstring(each) or "").partition("\n")[0]  # of overloads the last has the text
    if missing := [name for name, text in found.items() if not text]:
        raise ValueError(f"{module} says nothing of {', '.join(missing)}")
    return found


def _link_text(page: str) -> str:
    return TITLES.get(page) or f"`truesource.{page}`"


def api_pages() -> dict[str, str]:
    """Text of each page, by its file."""
    differing = set(truesource.__all__) ^ NOUNS.keys()
    if differing:
        raise ValueError(f"NOUNS and truesource.__all__ differ in {sorted(differing)}")
    pages = {
        f"{page}.rst": _nouns(title, [noun for noun, on in NOUNS.items() if on == page])
        for page, title in TITLES.items()
    }
    index = HEAD
    for page, title in TITLES.items():
        index += _named(title, {noun: _noun_summary(noun) for noun, on in NOUNS.items() if on == page})
    for title, inside in INNER.items():
        homes = [name.rpartition(".") for name in inside]
        index += _named(title, {f"{home}.{name}": _summaries(home)[name] for home, _, name in homes})
    index += _verbs()
    nouns = {page: ", ".join(f"`{noun}`" for noun, on in NOUNS.items() if on == page) for page in TITLES}
    index += _contents("Pages", "What `from truesource import ...` offers.", "page | names", nouns)
    for package, text in PACKAGES.items():
        inner = _package_pages(package)
        pages |= inner
        names = [name.removesuffix(".rst") for name in inner]
        index += _contents(
            f"Package {package}",
            f"{text}.",
            "modules of | what they have",
            {name: _about(f"truesource.{name}") for name in names},
        )
    others = {name.removeprefix("truesource."): name for name in OTHERS}
    for page, name in others.items():
        pages[f"{page}.rst"] = _title(name) + _module(name)
    index += _contents(
        "Other modules",
        "Guides import from these too.",
        "module | what it has",
        {page: _about(name) for page, name in others.items()},
    )
    return {"index.md": index, **pages}


def _nouns(title: str, names: Iterable[str]) -> str:
    parts = [_title(title)]
    for name in names:
        kind = "class" if isinstance(getattr(truesource, name), type) else "function"
        members = (
            "   :members:\n   :inherited-members: BaseModel, ValueError, object, tuple\n" if kind == "class" else ""
        )
        parts.append(
            f"{_title(name, '-')}.. currentmodule:: truesource\n\n.. auto{kind}:: truesource.{name}\n{members}\n"
        )
    return "".join(parts)


def _package_pages(package: str) -> dict[str, str]:
    """A page for the modules of a package itself, and one for each package inside it."""
    root = ROOT / package
    pages = {}
    for folder in [
        root,
        *sorted(each for each in root.rglob("*") if each.is_dir() and _public(each.relative_to(root))),
    ]:
        files = sorted(file for file in folder.glob("*.py") if _public(file.relative_to(root)) and _has_names(file))
        if files:
            name = ".".join(("truesource", package, *folder.relative_to(root).parts))
            modules = [name if file.stem == "__init__" else f"{name}.{file.stem}" for file in files]
            pages[f"{name.removeprefix('truesource.')}.rst"] = (
                _title(name) + f"{_about(name)}\n\n" + "".join(map(_module, modules))
            )
    return pages


def _public(path: Path) -> bool:
    return not any(part.startswith("_") and part != "__init__.py" for part in path.parts)


def _has_names(file: Path) -> bool:
    """Whether a module defines something public."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return any(isinstance(each, KINDS) and not each.name.startswith("_") for each in body)


def _about(name: str) -> str:
    """The first line of the docstring of a module.

    Raises:
        ValueError: it has none.
    """
    text = (importlib.import_module(name).__doc__ or "").strip().partition("\n")[0]
    if not text:
        raise ValueError(f"{name} has no docstring")
    return text


def _module(name: str) -> str:
    """A section; what the pages of nouns have is left out, with a link."""
    module = importlib.import_module(name)
    here = [noun for noun in truesource.__all__ if getattr(vars(module).get(noun), "__module__", None) == name]
    options = f"   :exclude-members: {', '.join(here)}\n" if here else ""
    links = "".join(f":py:obj:`truesource.{noun}` has a place of its own.\n\n" for noun in here)
    title = _title(name.rpartition(".")[2], "-")
    table = (
        ".. list-table::\n   :widths: 30 70\n\n" if (summaries := _summaries(name.removeprefix("truesource."))) else ""
    )
    for each, text in summaries.items():
        target = f"truesource.{each}" if each in here else f"{name}.{each}"
        table += f"   * - :py:obj:`{each} <{target}>`\n     - {text}\n"
    title += f"{table}\n"
    return f"{title}.. automodule:: {name}\n   :members:\n   :ignore-module-all:\n{options}\n{links}"


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n\n"
