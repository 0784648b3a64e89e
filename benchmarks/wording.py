"""Measure the English of the code: openings of docstrings, vague names, private phrases, names that are gone.

python benchmarks/wording.py [ROOT]           how many there are
python benchmarks/wording.py [ROOT] --list    each with its place
"""

from __future__ import annotations

import argparse
import ast
import builtins
import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import house

#: modules that travel in model folders, whose bytes stay the same
FROZEN = {
    *(f"lmtrain.architectures.{name}" for name in ("adaptive", "gated_cnn", "left_padding", "lstm", "states")),
    *("lmtrain.architectures.target_head", "lmtrain.own.hub_network", "lmtrain.own.shared"),
}
ELLIPTIC = re.compile(
    r"(What|Which|Whether|How|Where|Why|Who|Those|These|The same|The other|That of|Of|For|From|With|In|On|At|Beside|Say"
    r"|Tell|As `)\b|As `"
)
#: kinds of tokens that people read; f-strings have their own since Python 3.12
PROSE = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
#: names of variables that do not say what they hold
VAGUE = {
    *("found", "made", "told", "asked", "kept", "given", "drawn", "known", "wanted", "said", "own", "shown"),
}
#: phrases with a plain form: if, is, next to, resume, custom
PRIVATE = re.compile(
    r"\bwhere (?:there|it|they|that)\b|\b(?:that|those) of\b|\bis none\b|\bbesides?\b|\b(?:go|goes|going) on\b"
    r"|\bstands?\b|\bof one's own\b",
    re.IGNORECASE,
)
#: packages and names of others that docstrings may name
OTHERS = {
    *("nltk", "pathlib", "pydantic", "scipy", "torch", "huggingface_hub"),
    *("torchrun", "flock", "DataLoader", "DatasetDict", "GenerationMixin"),
}
_NAMED = re.compile(r"(?<![`\w])`([A-Za-z_][\w.]*)(\(\))?`(?!`)")


def main() -> None:
    """Print the numbers, or the places."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    every = house.code(options.root)
    places = {
        "docstrings with an elliptic opening": elliptic(every),
        "assignments to a vague name": vague(every),
        "private phrases": private(every),
        "docstrings that name what is gone": gone(every),
    }
    for title, each in places.items():
        print(f"{title}: {len(each)}")
        if options.list:
            print(*(f"  {place}" for place in each), sep="\n")


def docstrings(module: house.Module) -> Iterator[tuple[int, str]]:
    """Line and text of the docstrings of a module."""
    for node in module.nodes(ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef):
        text = ast.get_docstring(node)
        if text:
            yield node.body[0].lineno, text


def elliptic(every: list[house.Module]) -> list[str]:
    """Docstrings that open without subject or verb, such as "What a model knows" or "Of the model"."""
    return [
        f"{module.name}:{line}: {text.splitlines()[0]}"
        for module in every
        for line, text in docstrings(module)
        if ELLIPTIC.match(text) and module.name not in FROZEN
    ]


def vague(every: list[house.Module]) -> list[str]:
    """Assignments to `VAGUE` names; keys of records in files may have any name."""
    return [
        f"{module.name}:{node.lineno}: {node.id}"
        for module in every
        if module.name not in FROZEN
        for keys in [_record_keys(module)]
        for node in module.nodes(ast.Name)
        if isinstance(node.ctx, ast.Store) and node.id in VAGUE and node not in keys
    ]


def _record_keys(module: house.Module) -> set[ast.expr]:
    """Names of the keys of typed dictionaries."""
    return {
        line.target
        for node in module.nodes(ast.ClassDef)
        if "TypedDict" in map(ast.unparse, node.bases)
        for line in node.body
        if isinstance(line, ast.AnnAssign)
    }


def private(every: list[house.Module]) -> list[str]:
    """Phrases of `PRIVATE` in strings and comments."""
    return [
        f"{module.name}:{token.start[0]}: {' '.join(match[0].split())}"
        for module in every
        if module.name not in FROZEN
        for text in [module.path.read_text(encoding="utf-8")]
        if _may_be_private(module, text)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in PROSE
        for match in PRIVATE.finditer(token.string)
    ]


def _may_be_private(module: house.Module, text: str) -> bool:
    """Return False if no string and nothing after a ``#`` matches, which is cheaper to see than tokens are to make."""
    strings = (node.value for node in module.nodes(ast.Constant) if isinstance(node.value, str))
    comments = (line.partition("#")[2] for line in text.splitlines() if "#" in line)
    return any(PRIVATE.search(each) for each in (*strings, *comments))


def gone(every: list[house.Module]) -> list[str]:
    """Names between single backticks, in docstrings and comments ``#:``, that the code does not have."""
    there = names_there(every)
    return [
        f"{module.name}:{line}: {name}"
        for module in every
        for line, text in [*docstrings(module), *_comments(module)]
        for name in (match[1] for match in _NAMED.finditer(text))
        if not _is_there(name, there)
    ]


def names_there(every: list[house.Module]) -> set[str]:
    """All names that the code defines, uses or imports: of modules, functions, parameters, attributes, keys."""
    names = {*dir(builtins), *keyword.kwlist}
    for module in every:
        names |= {module.name, f"truesource.{module.name}", *module.name.split(".")}
        names.update(node.name for node in module.nodes(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        names.update(node.arg for node in module.nodes(ast.arg))
        names.update(node.id for node in module.nodes(ast.Name))
        names.update(node.attr for node in module.nodes(ast.Attribute))
        names.update(node.arg for node in module.nodes(ast.keyword) if node.arg)
        for node in module.nodes(ast.alias):
            names.update([*node.name.split("."), node.asname or ""])
        for node in module.nodes(ast.Constant):
            if isinstance(node.value, str) and len(node.value) < 60:
                names.add(node.value)
    return names


def _is_there(name: str, there: set[str]) -> bool:
    """True if the code has a name; of a dotted one that begins with a package, the module too."""
    parts = name.split(".")
    if parts[0] in OTHERS:
        return True
    if parts[0] == "truesource" and len(parts) > 2:
        module = name if name in there else name.rpartition(".")[0]
        deeper = module.rpartition(".")[0]
        return (module in there or deeper in there) and parts[-1] in there
    return all(part in there for part in parts)


def _comments(module: house.Module) -> Iterator[tuple[int, str]]:
    lines = module.path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        _, mark, text = line.partition("#:")
        if mark:
            yield number, text


if __name__ == "__main__":
    main()
