"""Checks whose pieces other processes evaluate: the verdict and the count are those of one."""

import functools
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest

import transformist as tf
from command_line import answer, run
from transformist.arithmetic import number_system
from transformist.errors import InvalidValue
from transformist.user_files import load_function
from transformist.verify import Workers, check_recipes, search_formats
from transformist.verify.runs import pieces, processes
from transformist.verify.runs.execution import Subject

MODEL = tf.recipe("dyck-1").build(max_length=12)
FLOAT64 = number_system("float64")


@functools.cache
def _installed(x):
    return x


def is_dyck(x):
    depth = 0
    for symbol in x:
        depth += 1 if symbol == "(" else -1
        if depth < 0:
            return False
    return depth == 0


@pytest.fixture
def small(monkeypatch):
    """Pieces of 64 strings of the longest length; more for longer strings than these."""
    monkeypatch.setattr(pieces, "STRINGS", 64)
    monkeypatch.setattr(pieces, "FEWEST_STRINGS", 64)


def same_as_in_one_process(**given):
    """Checks of a right and of a wrong model, whose wrong strings stand in several pieces."""
    wrong = {"))))((((((", "))))))))))", "()()(()))("}

    def balanced(x):  # of no module, which a worker might not have
        while "()" in x:
            x = x.replace("()", "")
        return x == ""

    for reference in (balanced, lambda x: balanced(x) or x in wrong):
        one = tf.check(MODEL, reference, 10, drawn=100)
        assert tf.check(MODEL, reference, 10, drawn=100, **given) == one
    assert one.counterexample.input == "()()(()))("


@pytest.mark.slow
def test_two_processes_of_this_machine(small):
    same_as_in_one_process(jobs=2)


@pytest.mark.slow
def test_ctrl_c_ends_the_processes_and_the_journal_goes_on(tmp_path, capsys):
    flag, source, file = tmp_path / "flag", tmp_path / "mine.py", tmp_path / "journal"
    source.write_text(
        "import os, signal\n"
        "def balanced(x):\n"
        f"    if len(x) == 15 and x > '))' and os.path.exists({str(flag)!r}):\n"
        f"        os.unlink({str(flag)!r})\n"
        "        os.kill(int(os.environ['CALLED']), signal.SIGINT)\n"
        "    while '()' in x:\n"
        "        x = x.replace('()', '')\n"
        "    return x == ''\n"
    )
    flag.touch()
    command = ["check", "dyck-1", "--against", f"{source}:balanced", "--max-length", "15"]
    command += ["--journal", str(file)]
    code = (
        "import os, sys; os.environ['CALLED'] = str(os.getpid())\n"
        "from transformist.cli import main; sys.exit(main())"
    )
    given = [sys.executable, "-c", code, *command, "--jobs", "2"]
    done = subprocess.run(given, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.endswith("error: interrupted\n") and "Traceback" not in done.stderr
    code, out, err = run(capsys, *command, "--json")
    assert code == 0 and '"cases": 65535' in out, err


def test_a_subject_is_unpickled_once_and_by_value():
    """A lambda, a rational alphabet, and a number system that is compared by identity."""
    subject = Subject(MODEL, lambda x: x == "", number_system("exact"))
    packed = processes.Packed.of(subject)
    found = packed.unpacked()
    assert found.model == MODEL and found.reference("") and found.arithmetic is subject.arithmetic
    assert processes.Packed.of(subject).unpacked() is found
    other = processes.Packed.of(replace(subject, reference=lambda x: x == "a"))
    assert not other.unpacked().reference("")


CACHED = """
import functools
@functools.lru_cache(maxsize=7)
def depth(x):
    return 0 if not x else depth(x[:-1]) + (1 if x[-1] == "(" else -1)
class Of:
    @functools.cache
    def deepest(self, x):
        return max(depth(x[:k]) for k in range(len(x) + 1))
deepest = Of().deepest
"""


def test_cached_functions_of_a_file_are_sent_with_their_code():
    values = {"__name__": "transformist_reference"}
    exec(CACHED, values)
    values["depth"]("((((")
    for reference, right in ((values["depth"], -1), (values["deepest"], 1)):
        packed = processes.Packed.of(Subject(MODEL, reference, number_system("exact")))
        sent = packed.unpacked().reference
        assert sent is not reference and sent("())") == right
    cached = processes.Packed.of(Subject(MODEL, values["depth"], number_system("exact")))
    sent = cached.unpacked().reference
    assert sent.cache_parameters()["maxsize"] == 7 and sent.cache_info().currsize == 0
    assert sent("(()") == 1 and sent.cache_info().currsize == 4  # it calls itself, not another
    assert (
        processes.Packed.of(Subject(MODEL, _installed, FLOAT64)).unpacked().reference is _installed
    )


def test_a_process_of_another_version_refuses(monkeypatch):
    packed = processes.Packed.of(Subject(MODEL, is_dyck, number_system("float64")))
    monkeypatch.setattr(processes, "VERSION", "transformist 9, Python 3.14")
    with pytest.raises(InvalidValue, match=r"every worker .* received transformist 9, Python 3.14"):
        packed.unpacked()


def same_recipes_and_formats(workers):
    """Verdicts of recipes, and results of searches, in the order of those of one process."""
    names = ["min", "max", "clip"]
    assert [*check_recipes(names, workers=workers)] == [*check_recipes(names, workers=Workers(1))]
    recipe, arithmetics = tf.recipe("quadratic-lookup"), ["bfloat16", "float32", "float16"]
    one, other = (
        [*search_formats(recipe, arithmetics, {}, 24, 2**12, each)]
        for each in (Workers(1), workers)
    )
    assert one == other and [each.arithmetic for each in one] == arithmetics


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, "loky"])
def test_recipes_and_formats_in_two_processes(backend):
    same_recipes_and_formats(Workers(2, backend))


@pytest.mark.slow
def test_precision_in_two_processes_prints_what_one_prints(capsys, tmp_path):
    source = tmp_path / "mine.py"
    source.write_text(
        "import transformist as tf\n"
        "@tf.program(alphabet='ab')\n"
        "def last(x): return (x == 'a').any().accept(empty=False)\n"
    )
    for given in (
        ("precision", "quadratic-lookup", "--work", "5000"),
        ("precision", f"{source}:last", "--max-length", "8"),
    ):
        one = answer(capsys, *given)
        assert len(one["results"]) > 3
        assert answer(capsys, *given, "--jobs", "2") == one
    code, _, err = run(capsys, "precision", "quadratic-lookup", "--address", "tcp://a:1")
    assert code == 2 and "an address must come with a backend" in err


@pytest.mark.slow
def test_a_worker_that_ends_is_told(small):
    def reference(x):
        if x == "()()(())":
            os.kill(os.getpid(), signal.SIGKILL)
        return is_dyck(x)

    with pytest.raises(InvalidValue, match="backend loky, which ended with TerminatedWorkerError"):
        tf.check(MODEL, reference, 9, jobs=2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"jobs": 0}, "at least 1; received 0"),
        ({"jobs": 2, "address": "tcp://a:1"}, "an address must come with a backend"),
        ({"backend": "nothing"}, "backend nothing, which ended with ValueError"),
    ],
)
def test_requests_that_are_refused(given, words):
    with pytest.raises(InvalidValue, match=words):
        tf.check(MODEL, is_dyck, 3, **given)


def test_options_that_are_refused(capsys):
    for given, words in (
        (["--jobs", "2"], "--jobs must come with --against"),
        (["--against", "programs/dyck-1", "--backend", "daks"], "did you mean dask?"),
        (["--against", "programs/dyck-1", "--jobs", "x"], "--jobs must be a whole number"),
        (["--backend", "loky"], "--backend must come with --against"),
        (["--against", "programs/dyck-1", "--backend", "dask"], "dask must come with the address"),
    ):
        code, out, err = run(capsys, "check", "dyck-1", *given)
        assert (code, out) == (2, "") and words in err and err.count("\n") == 1


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
    ) as cluster:
        yield cluster


@pytest.mark.hosts
class TestDask:
    def test_two_workers(self, small, cluster):
        same_as_in_one_process(backend="dask", address=cluster.scheduler_address)

    def test_a_worker_is_killed_half_way(self, small, cluster):
        """Its pieces are evaluated by the other, or by the one that takes its place."""
        ids = {worker.pid for worker in cluster.workers.values()}
        finished = []

        def kill_once(progress):
            finished.append(progress.finished)
            if len(finished) == 10:
                os.kill(ids.pop(), signal.SIGKILL)

        given = {"backend": "dask", "address": cluster.scheduler_address}
        verdict = tf.check(MODEL, is_dyck, 12, progress=kill_once, **given)
        assert len(ids) == 1 and verdict.held and verdict.cases == 2**13 - 1
        assert finished == [*range(verdict.coverage[0].pieces + 1)] and len(finished) > 60

    def test_recipes_and_formats_in_order(self, cluster):
        same_recipes_and_formats(Workers(None, "dask", cluster.scheduler_address))

    @pytest.mark.slow
    def test_a_scheduler_is_killed_half_way(self, small, tmp_path):
        """The check ends with the address and exit code 2; the journal has what was finished."""
        distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
        source, file = tmp_path / "mine.py", tmp_path / "journal"
        source.write_text(
            "def f(x):\n    while '()' in x: x = x.replace('()', '')\n    return not x"
        )
        dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        workers = [*worker, address, "--no-nanny", "--nthreads", "1"]
        begun = [subprocess.Popen(each, **quiet) for each in ([*dask, "--host", address], workers)]
        begun.append(subprocess.Popen(workers, **quiet))
        # joblib would evaluate in the process that was called if there were a single worker.
        with distributed.Client(address, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
        code = (
            "import os, signal, sys\n"
            "from transformist.cli import check, main\n"
            "from transformist.verify.runs import journal, pieces\n"
            "pieces.STRINGS = pieces.FEWEST_STRINGS = 64\n"
            "record, done = journal.Journal.record, []\n"
            "def counted(*given):\n"
            "    record(*given)\n"
            "    done.append(1)\n"
            f"    if len(done) == 30: os.kill({begun[0].pid}, signal.SIGKILL)\n"
            "journal.Journal.record = counted\n"
            "sys.exit(main())"
        )
        command = ["check", "dyck-1", "--against", f"{source}:f", "--max-length", "14"]
        command += ["--journal", str(file), "--backend", "dask", "--address", address]
        try:
            given = [sys.executable, "-c", code, *command]
            done = subprocess.run(given, capture_output=True, text=True, timeout=600)
        finally:
            for each in begun:
                each.kill()
                each.wait()
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        (line,) = [each for each in done.stderr.splitlines() if each.startswith("error: ")]
        assert f"backend dask at {address}, which ended with" in line and "--journal FILE" in line
        (finished,) = sqlite3.connect(file).execute("SELECT count(*) FROM piece").fetchone()
        assert finished >= 30
        found = tf.check(
            tf.recipe("dyck-1").build(max_length=14), load_function(f"{source}:f"), 14, journal=file
        )
        assert found.held and found.cases == 2**15 - 1
        assert found.coverage[0].from_journal == finished

    def test_no_scheduler_is_refused_with_its_address(self, monkeypatch):
        pytest.importorskip("distributed", reason="the extra dask is not installed")
        monkeypatch.setattr(processes, "CONNECT", 0.5)
        with pytest.raises(InvalidValue, match="Dask must answer.*tcp://127.0.0.1:9, where none"):
            tf.check(MODEL, is_dyck, 3, backend="dask", address="tcp://127.0.0.1:9")


@pytest.mark.hosts
@pytest.mark.slow
def test_ray(small):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    same_as_in_one_process(backend="ray", jobs=2)


@pytest.mark.hosts
@pytest.mark.parametrize("place", ["address", "file", "environment"])
def test_a_head_of_ray_that_is_not_there_is_refused(place, monkeypatch, tmp_path):
    """At once: `ray.init` would wait for minutes."""
    pytest.importorskip("ray", reason="the extra ray is not installed")
    dead = "127.0.0.1:9"
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    if place == "file":  # a head that was killed leaves its address there
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray" / "ray_current_cluster").write_text(dead)
    if place == "environment":
        monkeypatch.setenv("RAY_ADDRESS", dead)
    for address in [dead] if place == "address" else [None, "auto"]:
        with pytest.raises(InvalidValue, match=rf"Ray must answer.*{dead}, where none.*ray stop"):
            tf.check(MODEL, is_dyck, 3, backend="ray", address=address)


def test_the_end_by_a_signal_is_what_it_was_before_a_cluster_is_connected():
    before = signal.getsignal(signal.SIGTERM)
    with processes._same_end_by_sigterm():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(15))  # as ray.init does
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_number_system_goes_by_its_name_where_that_is_its_own():
    for name in ("exact", "float32", "interval", "interval:80"):
        sent = processes.Packed.of(Subject(MODEL, is_dyck, number_system(name)))
        assert sent.unpacked().arithmetic == number_system(name)
