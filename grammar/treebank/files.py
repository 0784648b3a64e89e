"""Files of a treebank: which files of a folder are read, and which are skipped."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from truesource.grammar.conventions import without_headers
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_text_lines
from truesource.grammar.support.printable import counted

#: suffixes of files of trees, in any case, each also with ``.gz``
SUFFIXES = (".mrg", ".ptb", ".parse", ".psd", ".bracket", ".brackets", ".tree", ".trees", ".penn", ".bkt")
TEXT = ".txt"  #: suffix of files that are read if they begin like trees
PACKED = (".gz", ".bz2", ".xz", ".zip", ".zst")  #: suffixes of compressed files, of which only .gz is read
HIDDEN = "hidden"  #: kind of files whose name, or the name of a folder above them, starts with a dot
SHOWN = 5  #: most suffixes, and names of files, in a summary


def is_tree_name(path: Path) -> bool:
    """Return True if a file has the name of a file of trees, plain or gzipped."""
    return path.name.lower().removesuffix(".gz").endswith((*SUFFIXES, TEXT))


@dataclass(frozen=True)
class FileSelection:
    """Files of a source: files to read, and skipped files of its folders."""

    files: tuple[Path, ...]  #: files to read, in order
    skipped: Mapping[str, int] = field(default_factory=dict)  #: numbers of skipped files, by `ending`
    unread: tuple[Path, ...] = ()  #: skipped files that begin like trees, but have another suffix

    def __add__(self, other: FileSelection) -> FileSelection:
        return FileSelection(
            self.files + other.files, Counter(self.skipped) + Counter(other.skipped), self.unread + other.unread
        )

    def __str__(self) -> str:
        """Return the numbers of files of each suffix, read and skipped."""
        begin = "begins" if len(self.unread) == 1 else "begin"
        unread = f"; {len(self.unread):,} of these {begin} like trees" if self.unread else ""
        skipped = f"; skipped {_by_ending(self.skipped)}{unread}" if self.skipped else ""
        return f"read {_by_ending(Counter(map(ending, self.files)))}{skipped}"

    @property
    def warning(self) -> str | None:
        """Warning of skipped files that begin like trees; None if there are none."""
        if not self.unread:
            return None
        names = ", ".join(path.name for path in self.unread[:SHOWN]) + ", ..." * (len(self.unread) > SHOWN)
        kind = ending(self.unread[0])
        pattern = self.unread[0].parent / kind if kind.startswith("*") else self.unread[0]
        what = "file that begins" if len(self.unread) == 1 else "files that begin"
        return (
            f"skipped {len(self.unread):,} {what} like trees, with unknown suffixes ({names}); rename trees to .mrg,"
            f" or read them with a pattern such as '{pattern}'"
        )

    def as_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        read = dict(Counter(map(ending, self.files)).most_common())
        return {"read": read, "skipped": dict(self.skipped), "unread": list(map(str, self.unread))}


def ending(path: Path) -> str:
    """Return the pattern under which a file is counted: its suffix, such as ``*.mrg.gz``."""
    parts = path.suffixes[-2 if path.suffix in PACKED else -1 :]
    return f"*{''.join(parts)}" if parts else "no ending"


def _by_ending(counts: Mapping[str, int]) -> str:
    kinds = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    listed = ", ".join(f"{name} {n:,}" for name, n in kinds[:SHOWN]) + ", ..." * (len(kinds) > SHOWN)
    return f"{counted(sum(counts.values()), 'file')} ({listed})"


def select_files(source: str | Path | Sequence[str | Path]) -> FileSelection:
    """Return the files of a source, and the skipped files of its folders.

    Args:
        source: a file; a folder; a glob pattern (sorted, ``**`` is recursive); or a sequence of these. From a folder,
            sorted, all files below it with a suffix of `SUFFIXES`, and ``.txt`` files that begin with a bracket; if
            there are none, all files that begin with a bracket. Hidden files and folders (``.x``) are skipped.

    Raises:
        InputError: there is no such file (code ``missing``), or the folder has none to read.
    """
    if not isinstance(source, (str, Path)):
        return sum(map(select_files, source), FileSelection(()))
    path = Path(source)
    if path.is_dir():
        return _files_of(path)
    if path.exists():
        return FileSelection((path,))
    if glob.has_magic(str(source)):
        matches = glob.glob(str(source), recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
        files = tuple(sorted(file for file in map(Path, matches) if file.is_file()))
        if not files:
            raise InputError("no file matches the pattern", path, code="missing")
        return FileSelection(files)
    raise InputError("there is no such file", path, code="missing")


def find_files(source: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the files of a source, in the order of reading; arguments and errors as in `select_files`."""
    return list(select_files(source).files)


def _files_of(folder: Path) -> FileSelection:
    below = sorted(p for p in folder.rglob("*") if p.is_file())
    visible = [p for p in below if not any(part.startswith(".") for part in p.relative_to(folder).parts)]
    by_name = {p for p in visible if p.name.lower().removesuffix(".gz").endswith(SUFFIXES)}
    like_trees = [p for p in visible if p not in by_name and begins_like_trees(p)]
    files = sorted([*by_name, *filter(is_tree_name, like_trees)]) or like_trees
    others, hidden = set(below) - set(files), set(below) - set(visible)
    skipped = Counter(HIDDEN if p in hidden else ending(p) for p in others)
    if not files:
        endings = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        there = f"; it has {_by_ending(skipped)}" if skipped else ""
        raise InputError(
            f"no treebank file in the folder: neither {endings} nor a file that begins with ({there}", folder
        )
    ordered = dict(sorted(skipped.items(), key=lambda each: (-each[1], each[0])))
    return FileSelection(tuple(files), ordered, tuple(p for p in like_trees if p in others))


def begins_like_trees(path: str | Path) -> bool:
    """Return True if the first character of a file, without white space and headers, is an opening bracket."""
    try:
        lines = list(islice(read_text_lines(Path(path)), 200))
    except InputError:
        return False
    return without_headers("\n".join(lines)).startswith("(")
