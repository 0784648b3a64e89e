"""Work in processes and on a Dask cluster: every item once, the state once a worker, deaths survived, errors plain."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, MagicMock

import dask
import parallel_tasks as tasks
import pytest
from dask_cluster import HERE, PATIENT, SAFETY, dask_cluster, wait_for
from distributed.utils import LoopRunner

from truesource.evaluation.core import scores_on_disk as parts
from truesource.evaluation.core.scores_on_disk import score_in_parts
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support import parallel
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.grammar.support.parallel import Share, Workers, run_each
from truesource.grammar.support.records import read_record

KINDS = ["processes", "dask"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as file:
        yield file


@pytest.fixture
def workers(request: pytest.FixtureRequest) -> Workers:
    if request.param == "processes":
        return Workers(2)
    return Workers(scheduler=str(request.getfixturevalue("scheduler")))


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """A cluster that is slow is no cluster that is dead."""
    with dask.config.set({"distributed.comm.timeouts.connect": f"{SAFETY:.0f}s"}):
        yield


def wait_for_no_tasks(scheduler: str) -> None:
    """Until the scheduler has forgotten what its clients asked for."""
    with parallel.connected(scheduler) as client:
        while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            time.sleep(0.05)


@pytest.mark.long
@pytest.mark.parametrize("workers", KINDS, indirect=True)
def test_every_item_once(workers: Workers) -> None:
    assert sorted(run_each(tasks.square, range(40), workers)) == [x * x for x in range(40)]
    assert list(run_each(tasks.square, [], workers)) == []
    assert list(run_each(tasks.square, [3], workers)) == [9]


def test_one_worker_is_this_process() -> None:
    assert list(run_each(lambda x: (x, os.getpid()), [2, 1])) == [(2, os.getpid()), (1, os.getpid())]


@pytest.mark.long
@pytest.mark.parametrize("workers", KINDS, indirect=True)
def test_the_state_reaches_each_worker_once(workers: Workers) -> None:
    found = list(run_each(tasks.Large().call, range(30), workers))
    assert sorted(value for *_, value in found) == [x + 1.0 for x in range(30)]
    assert {flags for _, _, flags, _ in found} == {(False, True)}  # as in the parent, so kernels compile once
    calls = defaultdict(list)
    for process, call, _, _ in found:
        calls[process].append(call)
    assert os.getpid() not in calls
    for numbers in calls.values():  # one copy counts on; a worker of Dask may have it from another, which has begun
        first = min(numbers) if workers.scheduler else 1
        assert sorted(numbers) == list(range(first, first + len(numbers)))


@pytest.mark.long
@pytest.mark.parametrize("workers", KINDS, indirect=True)
def test_loops_inside_stay_with_their_worker(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUESOURCE_THREADS", "1")
    for process, inside, threads in run_each(tasks.threads_of_loops, range(4), workers):
        assert (inside, threads) == ({process}, "1")


@pytest.mark.long
@pytest.mark.parametrize("workers", KINDS, indirect=True)
def test_an_input_error_travels_unchanged(workers: Workers) -> None:
    with pytest.raises(InputError, match=r"^seven is refused \(numbers.txt:7\)$") as caught:
        list(run_each(tasks.refuse_seven, range(20), workers))
    assert (caught.value.path, caught.value.line) == ("numbers.txt", 7)
    assert list(run_each(tasks.square, [1, 2], workers)) != []


@pytest.mark.long
@pytest.mark.parametrize("workers", KINDS, indirect=True)
def test_other_errors_say_where_they_were_raised(workers: Workers) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        list(run_each(tasks.divide, [1, 0], workers))
    assert "return 1 / x" in str(caught.value.__cause__)


@pytest.mark.long
@pytest.mark.parametrize("workers", KINDS, indirect=True)
def test_items_are_taken_as_they_are(workers: Workers) -> None:
    """Dask takes a tuple that begins with a function for a task, and texts for names of tasks."""
    assert sorted(run_each(tasks.first, [(str, 1), ("x", 2)], workers)) == ["<class 'str'>", "x"]


def test_an_input_error_pickles() -> None:
    copy = pickle.loads(pickle.dumps(InputError("wrong; mend it", Path("a.txt"), 3)))
    assert (str(copy), copy.path, copy.line) == ("wrong; mend it (a.txt:3)", Path("a.txt"), 3)


@pytest.mark.long
@pytest.mark.parametrize("workers", KINDS, indirect=True)
def test_taking_one_result_stops_the_rest(workers: Workers, tmp_path: Path) -> None:
    """The items that run are not waited for: they do not end before ``go`` is there."""
    with closing(run_each(tasks.Held(tmp_path).call, range(40), workers)) as results:
        assert next(results) == 0
    if workers.scheduler is not None:
        wait_for_no_tasks(workers.scheduler)
    (tmp_path / "go").touch()  # a worker of a cluster ends the item that it has begun
    assert sorted(run_each(tasks.square, range(4), workers)) == [0, 1, 4, 9]
    assert len(list(tmp_path.glob("*.begun"))) < 20
    assert not list(Path(tempfile.gettempdir()).glob(f"truesource-{os.getpid()}-*"))


@pytest.mark.long
@pytest.mark.parametrize("times", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_calls_stopped_early_leave_working_pools_behind(times: int, tmp_path: Path) -> None:
    """Often, because it is a race: pytest fails the test if a thread that manages workers dies."""
    for k in range(times):
        folder = tmp_path / str(k)
        folder.mkdir()
        with closing(run_each(tasks.Held(folder).call, range(40), Workers(2))) as results:
            next(results)
        (folder / "go").touch()
        assert sorted(run_each(tasks.square, range(6), Workers(2))) == [0, 1, 4, 9, 16, 25]


@pytest.mark.long
def test_a_killed_process_ends_in_a_sentence_and_the_next_call_works() -> None:
    with pytest.raises(InputError, match=r"a worker process was killed.*repeat the same call"):
        list(run_each(tasks.die_at_three, range(20), Workers(2)))
    assert sorted(run_each(tasks.square, range(4), Workers(2))) == [0, 1, 4, 9]


@pytest.mark.long
def test_a_killed_dask_worker_does_not_stop_the_run(scheduler: Path, tmp_path: Path) -> None:
    found = sorted(run_each(tasks.Doomed(tmp_path, 5).write, range(20), Workers(scheduler=str(scheduler))))
    assert (tmp_path / "died").exists()
    assert found == list(range(20))
    assert [(tmp_path / f"{x}.txt").read_text() for x in range(20)] == [f"{x * x}\n" for x in range(20)]


@pytest.mark.long
def test_the_only_dask_worker_may_die_and_an_item_that_always_kills_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "ATTEMPTS", 1)
    monkeypatch.setattr(parallel, "FIRST_WORKER", SAFETY)
    with dask_cluster(tmp_path, workers=1) as file:
        workers = Workers(scheduler=str(file))
        (tmp_path / "a").mkdir()
        assert sorted(run_each(tasks.Doomed(tmp_path / "a", 5).write, range(9), workers)) == list(range(9))
        with pytest.raises(InputError, match=r"Dask workers died .*; see their logs"):
            list(run_each(tasks.die_at_three, range(6), workers))


@pytest.mark.long
def test_bad_schedulers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "letter.json").write_text("{}", encoding="utf-8")
    for scheduler, message in [
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9"),
        ("nonsense://x", "no Dask scheduler answers at nonsense://x"),
        (str(tmp_path / "none.json"), "there is no such scheduler file"),
        (str(tmp_path / "letter.json"), "the file of the Dask scheduler is damaged"),
        (str(tmp_path), "there is no such scheduler file"),
    ]:
        with dask.config.set({"distributed.comm.timeouts.connect": "0.5s"}), pytest.raises(InputError, match=message):
            list(run_each(tasks.square, [1, 2], Workers(scheduler=scheduler)))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'truesource\[dask\]'"):
        list(run_each(tasks.square, [1, 2], Workers(scheduler="tcp://127.0.0.1:9")))


def test_a_scheduler_file_that_is_being_written_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text('{"address": "tcp://', encoding="utf-8")
    reads = []

    def finish_and_read(*args: Any, **options: Any) -> Any:
        reads.append(args)
        if len(reads) == 3:
            file.write_text('{"address": "tcp://127.0.0.1:9"}', encoding="utf-8")
        return read_record(*args, **options)

    monkeypatch.setattr(parallel, "read_record", finish_and_read)
    assert parallel.scheduler_address(str(file)) == "tcp://127.0.0.1:9"
    assert len(reads) == 3


@pytest.mark.long
def test_a_machine_that_stood_still_is_waited_for(scheduler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask raises an `AssertionError` where its thread does not begin within ten seconds."""
    outcomes = [AssertionError(), AssertionError(), DEFAULT]
    begin = MagicMock(side_effect=outcomes, wraps=LoopRunner._start_unlocked)
    monkeypatch.setattr(LoopRunner, "_start_unlocked", lambda runner: begin(runner))
    assert sorted(run_each(tasks.square, [1, 2], Workers(scheduler=str(scheduler)))) == [1, 4]
    assert begin.call_count == 3


@pytest.mark.long
def test_workers_of_another_version_are_refused(scheduler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "version", lambda _: "0.0.1")
    with pytest.raises(InputError, match=r"has truesource .*, here is 0.0.1; install the same"):
        list(run_each(tasks.square, [1, 2], Workers(scheduler=str(scheduler))))


@pytest.mark.long
def test_a_cluster_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "FIRST_WORKER", 0.2)
    with dask_cluster(tmp_path, workers=0) as file, pytest.raises(InputError, match="no worker for 0 seconds"):
        list(run_each(tasks.square, [1, 2], Workers(scheduler=str(file))))


@pytest.mark.parametrize(("n", "scheduler"), [(0, None), (2, "tcp://a:1")])
def test_workers_are_checked(n: int, scheduler: str | None) -> None:
    with pytest.raises(InputError, match="workers"):
        Workers(n, scheduler)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_waits_for_no_item_and_leaves_nothing(kind: str, scheduler: Path, tmp_path: Path) -> None:
    workers = "Workers(2)" if kind == "processes" else f"Workers(scheduler={str(scheduler)!r})"
    script = (
        "import parallel_tasks as tasks; from pathlib import Path\n"
        "from truesource.grammar.support.parallel import run_each, Workers\n"
        f"for _ in run_each(tasks.Held(Path.cwd()).call, range(60), {workers}): Path('begun').touch()"
    )
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, **PATIENT, "PYTHONPATH": path, "TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, start_new_session=True
    )
    wait_for(tmp_path / "begun", process)
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=SAFETY)
    finally:
        (tmp_path / "go").touch()  # for the workers of the cluster
    assert process.returncode != 0 and b"KeyboardInterrupt" in errors
    assert not list((tmp_path / "temporary").glob("truesource-*"))
    with pytest.raises(ProcessLookupError):
        while True:
            os.killpg(process.pid, 0)  # until no process of its group is left
            time.sleep(0.05)


@pytest.mark.parametrize("text", ["4/4", "1", "a/b", "-1/2", "1/0", "1/2/3"])
def test_a_share_is_written_i_of_n(text: str) -> None:
    with pytest.raises(InputError, match="expecting a shard i/n"):
        Share.parse(text)


def test_shares_cover_every_number_once() -> None:
    shares = [Share.parse(f"{i}/3") for i in range(3)]
    assert [[share.owns(k) for share in shares].count(True) for k in range(7)] == [1] * 7


@pytest.mark.long
@pytest.mark.parametrize("workers", KINDS, indirect=True)
def test_parts_have_the_bytes_of_one_process(workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = PCFG.from_text("S -> S S 0.2 | a 0.5 | b 0.3")
    sentences = [["a"], ["a", "b"], ["never-seen", "b"], ["b", "a", "a"], ["b"], ["a", "a"], ["b", "b", "a"]] * 2
    found = []
    monkeypatch.chdir(tmp_path)  # workers of a cluster stand elsewhere
    for name, hands in (("one", None), ("many", workers)):
        score_in_parts(grammar, sentences, Path(name), lengths=LengthRange(1, 3), part_size=3, workers=hands)
        found.append({file.name: digest_file(file) for file in Path(name).iterdir()})
    assert found[0] == found[1]
    assert len(found[0]) == 6


def test_what_a_worker_that_died_left_goes_with_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker has written the part, and the file that the first had begun stands beside it."""
    write = parts._write

    def written_twice(path: Path, *rest: Any) -> None:
        (path.parent / f".{path.name}.24619-0ef2e2cb.partial").touch()
        write(path, *rest)

    monkeypatch.setattr(parts, "_write", written_twice)
    grammar = PCFG.from_text("S -> S S 0.2 | a 0.5 | b 0.3")
    score_in_parts(grammar, [["a"], ["b", "a"]], tmp_path / "scores", lengths=None, part_size=1)
    names = {path.name for path in (tmp_path / "scores").iterdir()}
    assert names == {"part-00000.parquet", "part-00001.parquet", "record.json"}


@pytest.mark.long
def test_the_slurm_template_gives_what_one_machine_gives(tmp_path: Path) -> None:
    (tmp_path / "toy.txt").write_text("S -> S S 0.2 | 'a' 0.5 | 'b' 0.3\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text("a\na b\nb\nb b a\n" * 2501, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outputs = []
    for task in range(2):
        environment = {
            **os.environ,
            "PATH": path,
            "SLURM_ARRAY_TASK_ID": str(task),
            "SLURM_ARRAY_TASK_COUNT": "2",
            "SLURM_CPUS_PER_TASK": "1",
        }
        call = ["bash", str(ROOT / "docs" / "howto" / "slurm_array.sh"), "bound", "toy.txt", "text.txt", "-o", "jobs"]
        call += ["--lengths", "none"]
        done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        outputs.append(done.stdout)
    assert [text.startswith("Wrote this job's parts") for text in outputs] == [True, False]
    assert "causal_perplexity" in outputs[1] and "sentences:10004" in outputs[1]
    sentences = [line.split() for line in (tmp_path / "text.txt").read_text(encoding="utf-8").splitlines()]
    score_in_parts(PCFG.load(tmp_path / "toy.txt"), sentences, tmp_path / "one", lengths=None)
    names = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert names == sorted(file.name for file in (tmp_path / "jobs").iterdir())
    for name in names:
        assert digest_file(tmp_path / "one" / name) == digest_file(tmp_path / "jobs" / name)
