"""`sample` and `bound` on a Dask cluster whose worker is killed, and as a job array: the bytes of one process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dask_cluster import PATIENT, dask_cluster

from truesource.cli.main import main
from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.files import digest_file

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
TRUESOURCE = [sys.executable, "-m", "truesource"]
SAMPLE = ["sample", "toy.npz", "-n", "3000", "--lengths", "2..9", "--shares", "train=.8,test=.2", "--seed", "4"]
BOUND = ["bound", "toy.npz", "text.txt", "--lengths", "none"]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parallel")
    PCFG.from_text("S -> S S 0.4 | 'a' 0.3 | 'b' 0.2 | 'c' 0.1\n").save(folder / "toy.npz")
    (folder / "text.txt").write_text("a\na b\nb\nb c a\nc c c c a a b\n" * 4000, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as file:
        yield file


def run(folder: Path, *call: str) -> str:
    done = subprocess.run([*TRUESOURCE, *call], cwd=folder, env=os.environ | PATIENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_here(folder: Path, *call: str) -> None:
    """The same in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["truesource", *call])
        with pytest.raises(SystemExit) as stop:
            main()
    assert not stop.value.code


def digests(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): digest_file(file) for file in folder.rglob("*") if file.is_file()}


@pytest.mark.slow  # `bound` below loses its worker in the same way
def test_sample_on_a_cluster_that_loses_a_worker(here: Path, scheduler: Path) -> None:
    run_here(here, *SAMPLE, "--overlap", "disjoint", "--shard-size", "50", "-o", "alone-disjoint")
    die = scheduler.with_name("die")
    die.touch()
    run(here, *SAMPLE, "--overlap", "disjoint", "--shard-size", "50", "-o", "lost", "--scheduler", str(scheduler))
    assert not die.exists()  # a worker was killed with its shard unfinished
    assert Corpus.load(here / "lost").digest == Corpus.load(here / "alone-disjoint").digest


def test_bound_on_a_cluster_that_loses_a_worker(here: Path, scheduler: Path) -> None:
    run_here(here, *BOUND, "-o", "alone-scores")
    die = scheduler.with_name("die")
    die.touch()
    run(here, *BOUND, "--scheduler", str(scheduler), "-o", "lost-scores")
    assert not die.exists()
    assert digests(here / "lost-scores") == digests(here / "alone-scores")


@pytest.mark.slow  # as `sample`
def test_parse_on_a_cluster_that_loses_a_worker(here: Path, scheduler: Path) -> None:
    (here / "short.txt").write_text("a\na b\n\nb c a\nd\n" * 60, encoding="utf-8")
    call = ["parse", "toy.npz", "short.txt", "--shard-size", "20"]
    run_here(here, *call, "-o", "alone-trees")
    die = scheduler.with_name("die")
    die.touch()
    run(here, *call, "-o", "lost-trees", "--scheduler", str(scheduler))
    assert not die.exists()
    files = {name: digest for name, digest in digests(here / "lost-trees").items() if name != "README.md"}
    assert files == {name: digest for name, digest in digests(here / "alone-trees").items() if name != "README.md"}


@pytest.mark.slow  # tests/grammar/test_parallel.py runs the same script with `bound`
def test_sample_as_a_job_array(here: Path) -> None:
    run_here(here, *SAMPLE, "--overlap", "iid", "--shard-size", "50", "-o", "alone-iid")
    call = ["bash", str(ROOT / "docs" / "howto" / "slurm_array.sh"), *SAMPLE, "--shard-size", "50", "-o", "jobs"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outputs = []
    for task in (2, 0, 1):
        slurm = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_CPUS_PER_TASK": "1"}
        environment = {**os.environ, "PATH": path, **slurm}
        done = subprocess.run(call, cwd=here, env=environment, capture_output=True, text=True, check=True)
        outputs.append(done.stdout)
    assert [text.startswith("Wrote this job's shards") for text in outputs] == [True, True, False]
    assert Corpus.load(here / "jobs").digest == Corpus.load(here / "alone-iid").digest


def test_a_full_disk(here: Path, tmp_path: Path) -> None:
    """A file system with room for the grammar, not for the corpus: one sentence, and the folder is not there."""
    small = tmp_path / "small"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size=64k tmpfs {small} && cd {here} && "
        f"{sys.executable} -m truesource {' '.join(SAMPLE)} -o {small}/corpus; code=$?; ls {small}; exit $code"
    )
    call = [*(["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "--map-root-user"]), "bash", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*call, f"mount -t tmpfs tmpfs {small}"]).returncode:
        pytest.skip("this machine lets no test mount a small file system")
    done = subprocess.run([*call, script], capture_output=True, text=True)
    assert done.returncode == 2
    assert "No space left" in done.stderr and "Traceback" not in done.stderr
    assert "corpus" not in done.stdout.split()
