"""How reliable the benchmark's ranking of models is, and which models each language separates.

python benchmarks/ranking.py                       # of the baselines of suite tiny
python benchmarks/ranking.py results.json          # of a file of results, its suite by --suite
"""

from __future__ import annotations

import argparse
from pathlib import Path

from reliability import reliability, reliability_table, separation, separation_table

from truesource.studies.benchmark.baselines import baselines_file, read_for
from truesource.studies.benchmark.results import REFERENCES
from truesource.studies.benchmark.suite import load_suite
from truesource.terminal.tables import show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="results (default: the baselines of the suite)")
    parser.add_argument("--suite", default="tiny")
    given = parser.parse_args()
    suite = load_suite(given.suite)
    results = read_for(suite, given.file or baselines_file(suite))
    results = {**results, "models": [model for model in results["models"] if model["name"] not in REFERENCES]}
    languages = list(suite.languages)
    for objective in dict.fromkeys(model["objective"] for model in results["models"]):
        show(reliability_table(reliability(results, languages, objective)), width=160)
        show(separation_table(separation(results, languages, objective), objective), width=160)


if __name__ == "__main__":
    main()
