"""The report of a run: one self-contained HTML page."""

from truesource.report.build import build_report

__all__ = ["build_report"]
