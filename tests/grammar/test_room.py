"""Room for a request: limits of the machine, numbers beyond any array, and what is refused before any work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from truesource.grammar.conditioning import LONGEST, LengthRange
from truesource.grammar.inference import nonnegative_matrices
from truesource.grammar.inference.heights import HIGHEST, capped_mean_length, height_mass
from truesource.grammar.languages import load_language, parse
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support import room
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import NoRoomError, approximate, in_bytes, require_disk, require_items
from truesource.grammar.support.settings import Settings, require_numbers

TOY = "S -> S S 0.2 | A 0.3 | b 0.5\nA -> a A 0.4 | c 0.6\n"
HUGE = 10**25


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """A machine of a million bytes."""
    monkeypatch.setattr(room, "memory", lambda: 10**6)
    return 10**6


def test_the_smallest_limit_of_machine_group_and_process_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory" / "a" / "b").mkdir(parents=True)
    (tmp_path / "memory" / "a" / "memory.limit_in_bytes").write_text("5000\n", "ascii")
    (tmp_path / "memory.max").write_text("max\n", "ascii")
    (tmp_path / "groups").write_text("4:memory:/a/b\n1:cpu:/c\n0::/d\n", "utf-8")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "memory.max").write_text("4000\n", "ascii")
    monkeypatch.setattr(room, "_GROUPS", tmp_path)
    monkeypatch.setattr(room, "_OWN_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(room, "_machine", lambda: 10**9)
    monkeypatch.setattr(room, "_of_process", lambda: 6000)
    assert sorted(room._of_groups()) == [4000, 5000]
    room.memory.cache_clear()
    try:
        assert room.memory() == 4000
    finally:
        room.memory.cache_clear()


@pytest.mark.parametrize("n", [10**6, 10**12, HUGE])
def test_what_does_not_fit_is_refused_with_its_size(small: int, n: int, tmp_path: Path) -> None:
    with pytest.raises(NoRoomError) as refused:
        require_items(n, "things", 10)
    assert (refused.value.code, refused.value.needed, refused.value.available) == ("too-large", 10 * n, small)
    require_items(10**5, "things", 10)
    with pytest.raises(NoRoomError) as refused:
        require_disk("a file", 10**20 * n, tmp_path / "no" / "folder", "write less")
    assert refused.value.code == "too-large" and refused.value.available > 0
    require_disk("a file", 1, tmp_path / "no" / "folder", "write less")


def test_sizes_are_written_as_people_write_them() -> None:
    assert [in_bytes(n) for n in (12, 1500, 25 * 10**9, HUGE)] == ["12 bytes", "1.5 KB", "25 GB", "1e+25 bytes"]
    assert [approximate(n) for n in (0, 10**12, HUGE)] == ["0", "1,000,000,000,000", "1e+25"]


class Sizes(Settings):
    n: int = 1
    several: tuple[int, ...] = ()
    named: dict[str, int] = {}
    x: float = 1.0


@pytest.mark.parametrize(
    ("values", "where"), [({"n": HUGE}, "n"), ({"several": (1, -HUGE)}, "several"), ({"named": {"a": HUGE}}, "named.a")]
)
def test_no_setting_is_a_number_beyond_all_arrays(values: dict[str, object], where: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Sizes(**values)
    assert f"{where}: expected at most" in str(refused.value)
    require_numbers({"n": room.LARGEST_NUMBER, "more": [True, "text", None, 1.5]})


@pytest.mark.parametrize("x", [float("nan"), float("inf")])
def test_no_setting_is_nan_or_infinite(x: float) -> None:
    with pytest.raises(ValidationError):
        Sizes(x=x)


@pytest.mark.parametrize("high", [LONGEST + 1, 10**12, HUGE])
def test_no_range_of_lengths_goes_beyond_all_sentences(high: int) -> None:
    with pytest.raises(InputError) as refused:
        LengthRange(1, high)
    assert refused.value.code == "too-large"


def test_a_table_of_lengths_that_is_too_large_is_refused(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoRoomError):
        PCFG.from_text(TOY).exact.length_masses(10**5)
    monkeypatch.setattr(room, "memory", lambda: None)
    with pytest.raises(InputError) as refused:
        PCFG.from_text(TOY).exact.range_mass(LengthRange(1, LONGEST))
    assert refused.value.code == "too-large"


def test_a_table_of_lengths_is_made_once() -> None:
    exact, once = PCFG.from_text(TOY).exact, PCFG.from_text(TOY).exact
    longer = exact.length_masses(30)
    assert exact.length_masses(12).base is longer.base
    assert (exact.length_masses(12) == once.length_masses(12)).all()


@pytest.mark.long
def test_pairs_of_all_symbols_that_do_not_fit_are_refused(small: int) -> None:
    with pytest.raises(NoRoomError):
        _ = PCFG.load("dyck:depth=1000").exact.unary_closure


def test_a_cap_of_heights_that_no_tree_reaches_changes_nothing() -> None:
    grammar = PCFG.from_text(TOY)
    assert height_mass(grammar, HIGHEST) == pytest.approx(1.0)
    assert capped_mean_length(grammar, HIGHEST) == pytest.approx(grammar.exact.mean_length)
    for call in (height_mass, capped_mean_length):
        with pytest.raises(InputError) as refused:
            call(grammar, 10**12)
        assert refused.value.code == "too-large"


@pytest.mark.parametrize("name", ["dyck", "dyck-free", "palindrome", "zipf-pcfg", "pool", "hmm"])
@pytest.mark.parametrize("value", [10**12, HUGE, -1])
def test_settings_of_languages_have_a_range(name: str, value: int) -> None:
    _, settings = parse(name)
    for key, number in settings.model_dump().items():
        if isinstance(number, int):
            with pytest.raises(InputError) as refused:
                load_language(name, {key: value})
            assert refused.value.code in ("bad-setting", "too-large")


def test_settings_that_do_not_go_together_are_one_error() -> None:
    from truesource.grammar.languages import load_process

    with pytest.raises(InputError) as refused:
        load_process("dirichlet-automaton", {"transitions": 100_000})
    assert refused.value.code == "bad-setting"


@pytest.mark.long
def test_a_large_grammar_without_cycles_is_solved_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = PCFG.load("dyck:depth=400").exact.expected_symbols
    monkeypatch.setattr(nonnegative_matrices, "LARGE", 10)
    monkeypatch.setattr(nonnegative_matrices, "ORDERED", 10)
    solved = []
    inner: Any = nonnegative_matrices._solved_in_order

    def in_order(*given: object) -> object:
        solved.append(inner(*given))
        return solved[-1]

    monkeypatch.setattr(nonnegative_matrices, "_solved_in_order", in_order)
    assert PCFG.load("dyck:depth=400").exact.expected_symbols == pytest.approx(expected, rel=1e-12)
    assert solved and solved[0] is not None
    assert PCFG.from_text("S -> A B 1.0\nA -> B a 0.3 | a 0.7\nB -> A b 0.3 | b 0.7").exact.mean_length > 2.0
