"""The tables and figures of published papers, run again: rows of ``data/reproductions``, their results and pages."""
