"""Text for people, during and after a call: safe printing of data, one-line results, progress.

Words and names come from untrusted files. A word may hold a terminal's escape sequence, markup, or a line break. Each
function for such data serves one target and returns text that the target displays without interpreting it. None of them
can be undone.

Progress of long work is a bar on a terminal, and lines in the log elsewhere. Lines go to the logger
``truesource.progress``: at the start of work, at every milestone (an evaluated checkpoint, a shard), once a minute, and
at the end. On a terminal, which has a bar, they are debug messages.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import pandas as pd
    from rich.progress import Progress


LONGEST_RUN = 60  #: most characters without a blank that `shortened` leaves unchanged
LONGEST_QUOTE = 400  #: most characters without a blank in a message
LONGEST_MESSAGE = 1200  #: most characters of a message
LONGEST_LINE = 190  #: most characters of the one-line form of an object

#: control characters of terminals, changes of reading direction, and characters outside XML and UTF-8;
#: line breaks and tabs are not included
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_MARKDOWN = re.compile(r"[\\`*\[\]<>&|$~]|(?<!\w)_|_(?!\w)|^(?=[#+-])")
FEWEST = 10  #: least number of independent units, such as sentences, for an interval
_FEW = f"fewer-than-{FEWEST}-"
_REASONS = {
    "no-power-law": "frequencies fall faster than a power law",
    "beta-at-bound": "beta is at its bound",
    "not-identified": "the sample does not determine the law",
    "one-seed": "this is a single seed of several",
    "last-step-only": "only the last step has one",
    "of-two-samples": "it is the difference of two estimates",
}
SHOWN = 3  #: numbers in the one-line form
ROWS = 20  #: rows of the table in a notebook
_LONGEST = 40  #: most characters of a name in the one-line form
_NAMED = ("model", "source", "sample", "objective")  #: keys that identify the numbers
LONG = 0.5  #: seconds; shorter work gets no line
EVERY = 60.0  #: seconds between lines without milestones
APART = 1.0  #: least seconds between lines of milestones
FEWEST_STEPS, FEWEST_SECONDS = 5, 5.0  #: least work before an estimate of the remaining time
_SHOWN: ContextVar[bool] = ContextVar("shown", default=False)  # whether progress is shown already


def terminal(text: str) -> str:
    r"""Return text of one or more lines without control characters: ``\x1b`` is shown, not obeyed.

    Also used for HTML and SVG, after their own escapes: the result is legal in XML and in UTF-8.

    >>> print(terminal("a" + chr(27) + "[31m"))
    a\x1b[31m
    """
    return _OBEYED.sub(_shown, text)


def one_line(text: str) -> str:
    """Return text as `terminal` does, with line breaks and tabs also escaped, so that data cannot add a line."""
    return terminal(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, most: int = LONGEST_RUN) -> str:
    """Return the text without the middle of long runs without a blank; each run has at most ``most`` characters."""
    head = most // 2
    tail = most - 1 - head
    return re.sub(rf"\S{{{most + 1},}}", lambda run: f"{run[0][:head]}\N{HORIZONTAL ELLIPSIS}{run[0][-tail:]}", text)


def brief(text: str, most: int = LONGEST_LINE) -> str:
    """Return one line of at most ``most`` characters, with an ellipsis in place of the rest."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 2]}\N{HORIZONTAL ELLIPSIS}{line[-1]}"


def line_of_settings(name: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return one line of settings that differ from their defaults.

    Args:
        name: name of the class.
        values: values of its fields.
        defaults: defaults of the fields that have one.
    """
    changed = ", ".join(
        f"{key}={value!r}" for key, value in values.items() if key not in defaults or value != defaults[key]
    )
    return brief(f"{name}({changed})")


def message(text: str) -> str:
    """Return one line for the user, whose quotes of the input are short but recognisable."""
    text = shortened(one_line(text), LONGEST_QUOTE)
    half = LONGEST_MESSAGE // 2
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def markdown(text: str) -> str:
    """Return text inside a line, a heading or a table cell of Markdown, with its syntax escaped."""
    return _MARKDOWN.sub(lambda match: f"\\{match[0]}", one_line(text))


def markdown_code(text: str) -> str:
    """Return a code span of Markdown, with a fence that does not occur in the text."""
    line = one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def counted(n: int, noun: str) -> str:
    """Return ``1 sentence`` or ``2,000 sentences``; only for nouns with a plural in s."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(names: Sequence[str]) -> str:
    """Return ``a, b and c``; empty for no names."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def list_lines(numbers: Sequence[int], most: int = 5, *, what: str = "line") -> str:
    """Return ``line 3``, or ``lines 3, 4, 5, 6, 7, ...``; ``what`` names the numbered things."""
    first = ", ".join(map(str, numbers[:most])) + (", ..." if len(numbers) > most else "")
    return f"{what}{'s' if len(numbers) > 1 else ''} {first}"


def too_few(units: int) -> bool:
    """Return True if there are too few independent units for an interval."""
    return units < FEWEST


def few_code(unit: str = "sentence") -> str:
    """Return the reason why too few units have no interval, such as ``fewer-than-10-sentences``."""
    return f"{_FEW}{unit}s"


def reason_text(code: str) -> str:
    """Return words for a code of `few_code` and others; an unknown code unchanged."""
    if code.startswith(_FEW):
        return f"fewer than {FEWEST} {code.removeprefix(_FEW).replace('-', ' ')}"
    return _REASONS.get(code, code)


def no_interval_text(codes: list[str]) -> str:
    """Return a sentence on values without an interval; empty for no codes."""
    return f"Without interval: {'; '.join(map(reason_text, dict.fromkeys(codes)))}." if codes else ""


class _Recorded(Protocol):
    """A score: see `truesource.evaluation.core.score.Score`."""

    def as_record(self) -> Mapping[str, object]:
        """Return plain values for JSON."""


class ResultRecords:
    """A result whose numbers are scores; a class that has this base is a dataclass with ``repr=False``."""

    def as_scores(self) -> Sequence[_Recorded]:
        """Return every number with its keys; in nats unless its name says otherwise."""
        raise NotImplementedError

    def records(self) -> list[dict[str, object]]:
        """Return one record a number, for JSON: its keys, ``name``, ``value``, ``low``, ``high``, ``signature``."""
        return [{**score.as_record()} for score in self.as_scores()]

    def to_pandas(self) -> pd.DataFrame:
        """Return the records as a data frame: a row a number, a column a key; missing if a record has no such key."""
        import pandas as pd

        return pd.DataFrame([dict(record) for record in self.records()])

    def __repr__(self) -> str:
        return line_of(type(self).__name__, self.records())

    def _repr_html_(self) -> str:
        frame = self.to_pandas()
        columns = [name for name in frame.columns if name != "signature" and not frame[name].isna().all()]
        number = "{:.4f}".format
        return frame[columns].to_html(max_rows=ROWS, index=False, border=0, na_rep="", float_format=number)


def line_of(kind: str, records: Sequence[Mapping[str, Any]]) -> str:
    """Return one line on a result: its kind, its first numbers with their intervals, and the count of the others."""
    head = next(iter(records), {})
    names = [_short(head[key]) for key in _NAMED if isinstance(head.get(key), str)]
    numbers = [record for record in records if isinstance(record.get("value"), int | float)]
    first = [_number(record) for record in numbers[:SHOWN]]
    more = [f"{len(records) - len(first):,} more"] if len(records) > len(first) else []
    content = ": ".join(part for part in (", ".join(names), ", ".join([*first, *more])) if part)
    return f"{kind}({content})"


def _number(record: Mapping[str, Any]) -> str:
    low, high = record.get("low"), record.get("high")
    ends = "" if low is None or high is None else f" [{low:.4g}, {high:.4g}]"
    return f"{_short(str(record.get('name', '')))} {record['value']:.4g}{ends}"


def _short(text: str) -> str:
    return shortened(one_line(text), _LONGEST)


T = TypeVar("T")


log = logging.getLogger("truesource.progress")


def _bar(*, visible: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        console=Console(stderr=True),
        disable=not visible,
    )


def seconds_left(steps: int, seconds: float, done: float, left: float) -> float | None:
    """Return an estimate of the remaining seconds of some work; None if too little is done.

    Args:
        steps: steps done since ``seconds``.
        seconds: seconds since the work began.
        done: amount of work of these steps.
        left: remaining amount of work.
    """
    enough = steps >= FEWEST_STEPS and seconds >= FEWEST_SECONDS and done > 0
    return seconds / done * left if enough else None


class Meter:
    """A running task; `advance` it, with an optional `note` for the reader."""

    def __init__(self, progress: Progress, description: str, total: float | None, level: int | None) -> None:
        self._progress, self._level = progress, level
        self._description, self._total = one_line(description), total
        self._task = progress.add_task(self._description, total=total, note="", rate="", left="")
        self._done, self._before, self._note, self._steps = 0.0, 0.0, "", 0
        self.stopped = False  #: whether the work ends regularly before it is done
        self._start = self._last = monotonic()
        self._begun = False

    def advance(self, step: float = 1, note: str | None = None) -> None:
        """Advance by ``step``; a new ``note`` marks a milestone, and is shown next to the rate from then on."""
        self._done += step
        self._steps += step > 0
        milestone = note is not None and one_line(note) != self._note
        if milestone:
            self._note = one_line(note or "")
        rate, left = self._rate_text(), self._left_text()
        self._progress.update(self._task, advance=step, note=self._note, rate=rate, left=left)
        now = monotonic()
        if now - self._last >= (APART if milestone else EVERY):
            self._line(self.state())

    def skip(self, step: float) -> None:
        """Advance by the work of an earlier call, which does not count for the rate; the work itself begins now."""
        self._before += step
        self.advance(step)
        self._start, self._steps = monotonic(), 0

    def state(self) -> str:
        """Return the progress, such as ``300 of 3,000 (10%), 41.2/s, 0:01:05 left; loss 3.2``."""
        text = _amount(self._done) if self._done or self._total else f"{_clock(monotonic() - self._start)} so far"
        if self._total:
            text += f" of {_amount(self._total)} ({self._done / self._total:.0%})"
        parts = filter(None, [text, self._rate_text(), self._left_text()])
        return ", ".join(parts) + (f"; {self._note}" if self._note else "")

    def begin(self) -> None:
        """Log that the work has begun."""
        total = "" if not self._total else f": {_amount(self._total)} to do"
        already = f", {_amount(self._before)} done before" if self._before else ""
        self._begun = True
        self._write(f"{self._description}{total}{already}")

    def beat(self) -> None:
        """Log the progress if the last line is old."""
        if monotonic() - self._last >= EVERY:
            self._line(self.state())

    def end(self, *, finished: bool) -> None:
        """Log the end of the work; short work only for debugging."""
        seconds = monotonic() - self._start
        whole = finished and not self.stopped
        what = "done" if whole else "stopped"
        of = f" of {_amount(self._total)}" if self._total and not whole else ""
        rate = self._rate_text()
        note = f"; {self._note}" if self._note else ""
        amount = f", {_amount(self._done)}{of}" if self._done or of else ""  # uncounted work has only a time
        text = f"{self._description}: {what}{amount} in {_clock(seconds)}{rate and f', {rate}'}{note}"
        self._write(text, self._level if self._begun else logging.DEBUG)

    def _line(self, text: str) -> None:
        self._last = monotonic()
        self._begun = True
        self._write(f"{self._description}: {text}")

    def _write(self, text: str, level: int | None = None) -> None:
        if self._level is not None:
            log.log(self._level if level is None else level, "%s", text)

    def _rate(self) -> float:
        return (self._done - self._before) / max(monotonic() - self._start, 1e-9)

    def _left_text(self) -> str:
        done, left = self._done - self._before, (self._total or 0.0) - self._done
        seconds = seconds_left(self._steps, monotonic() - self._start, done, left) if left > 0 else None
        return "" if seconds is None else f"{_clock(seconds)} left"

    def _rate_text(self) -> str:
        rate = self._rate()
        return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s" if rate > 0 else ""


def is_terminal(stream: IO[str] | None) -> bool:
    """Return True if a stream is a terminal; False if it is closed or missing."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


@contextmanager
def meter(description: str, total: float | None = None) -> Iterator[Meter]:
    """Show one task while the block runs; metered parts within it stay silent."""
    hidden, terminal = _SHOWN.get(), is_terminal(sys.stderr)
    level = None if hidden else logging.DEBUG if terminal else logging.INFO
    with _bar(visible=terminal and not hidden) as progress:
        outer = _SHOWN.set(True)
        task = Meter(progress, description, total, level)
        finished = False
        try:
            with _heart(task, level):
                yield task
            finished = True
        finally:
            _SHOWN.reset(outer)
            task.end(finished=finished)


@contextmanager
def silent() -> Iterator[None]:
    """Show no progress while the block runs, as in all processes but the first of a distributed training."""
    outer = _SHOWN.set(True)
    try:
        yield
    finally:
        _SHOWN.reset(outer)


def track(items: Iterable[T], description: str, total: float | None = None) -> Iterator[T]:
    """Yield from ``items`` and show the progress."""
    with meter(description, total) as task:
        for item in items:
            yield item
            task.advance()


@contextmanager
def _heart(task: Meter, level: int | None) -> Iterator[None]:
    """Log lines even if no step ends: soon after the start, and once a minute."""
    if level is None or not log.isEnabledFor(level):
        yield
        return
    over = threading.Event()

    def watch() -> None:
        if over.wait(LONG):
            return
        task.begin()
        while not over.wait(EVERY / 4):
            task.beat()

    thread = threading.Thread(target=watch, name="progress", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # no more threads can be started: the work continues, with lines at its steps only
        log.debug("cannot start the thread for progress lines: %s", error)
        yield
        return
    try:
        yield
    finally:
        over.set()
        thread.join()


def _amount(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"


def _clock(seconds: float) -> str:
    """Return ``0:01:05``; for less than ten seconds ``1.2 s``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
