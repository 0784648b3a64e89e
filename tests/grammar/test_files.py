"""JSON values as they are kept in files."""

from __future__ import annotations

from grammar.files import round_floats


def test_floats_are_rounded_to_twelve_significant_digits() -> None:
    value = {"a": [0.1 + 0.2, 3], "b": ("x", None, True), "c": {"d": 123456789.0123456}, "e": 1.0e-8, "f": 2.5e-300 / 3}
    expected = {"a": [0.3, 3], "b": ["x", None, True], "c": {"d": 123456789.012}, "e": 1.0e-8, "f": 8.33333333333e-301}
    assert round_floats(value) == expected
    assert round_floats(0.5 - 1e-16) == round_floats(0.5)
