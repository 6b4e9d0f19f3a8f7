"""Scores computed by workers that come, go and are killed: a real dask cluster, and pools of processes.

Run as a script it is the coordinator that the tests below kill.
"""

import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes.scores import GP, BGe
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.workers import WorkersLost
from tests.cluster_scores import Logged, computed, read_logs
from tests.command_line import call
from tests.dask_cluster import ENVIRONMENT, TIME_LIMIT, DaskCluster, wait_for

pytestmark = pytest.mark.more("starts processes and kills them")

DATA = gpn.simulate.linear(gpn.simulate.random_dag(5, edges_per_node=1, random_seed=1), 60, random_seed=1)
REQUESTS = [
    (node, parents)
    for node in range(5)
    for size in range(5)
    for parents in combinations([i for i in range(5) if i != node], size)
]  # 5 * 2**4 = 80
SCORES = [BGe(), GP(estimator="laplace")]
DRAWS = {"draws": 50, "chains": 2, "cores": 1, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def cluster():
    cluster = DaskCluster(2)
    yield cluster
    cluster.close()


@pytest.fixture
def executor(cluster):
    """Return an executor of two workers, whatever the test before did to them."""
    cluster.add_workers(2 - len(cluster.workers))
    with cluster.client() as client:
        yield client.get_executor()


def filled(scorer, executor=None, **options):
    cache = ScoreCache(scorer)
    cache.fill(REQUESTS, executor, progressbar=False, **options)
    return cache


def assert_close(one, two):
    """Check that scores agree to rounding: code just compiled may round otherwise than the same code read from disk."""
    ours, theirs = dict(one.items()), dict(two.items())
    assert ours.keys() == theirs.keys()
    for key, record in ours.items():
        np.testing.assert_allclose(record[:3], theirs[key][:3], rtol=1e-9)
        assert record.status == theirs[key].status


def assert_same(one, two):
    ours, theirs = dict(one.items()), dict(two.items())
    assert ours.keys() == theirs.keys()
    for key, record in ours.items():
        np.testing.assert_array_equal(record[:3], theirs[key][:3])  # equal to the last bit, or both nan
        assert record.status == theirs[key].status


@pytest.mark.parametrize("score", SCORES)
def test_dask_and_threads_agree(executor, score):
    assert_close(filled(score.bind(DATA), executor), filled(score.bind(DATA)))


def test_processes_and_threads_agree():
    score = SCORES[1]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert_close(filled(score.bind(DATA), pool), filled(score.bind(DATA)))


def test_a_worker_is_sent_the_scorer_once(executor, cluster, tmp_path):
    scorer = Logged(tmp_path, delay=0.01, ballast=1_500_000).bind(DATA)
    with pytest.warns(UserWarning, match="Sending large graph"):  # which `fill` must not: here warnings are errors
        executor.submit(len, scorer.ballast).result()
    cache = filled(scorer, executor, batch_size=1)
    assert_same(cache, filled(BGe().bind(DATA)))
    assert sorted(computed(tmp_path)) == sorted(REQUESTS)
    logs = read_logs(tmp_path)
    workers = {worker.pid for worker in cluster.workers}
    assert {pid for pid, log in logs.items() if len(log) > log.count("arrived")} == workers
    # Of 80 tasks; it goes out again to a worker that gave 1, 2, 4, … of them back, and may meet one that has it.
    arrived = [logs[pid].count("arrived") for pid in workers]
    assert min(arrived) >= 1 and max(arrived) <= 7, arrived
    filled(scorer, executor, batch_size=1)
    again = sum(read_logs(tmp_path)[pid].count("arrived") for pid in workers)
    assert again - sum(arrived) <= 1, "workers must remember it"


def test_a_killed_worker_changes_nothing_and_a_late_one_helps(executor, cluster, tmp_path):
    cache = ScoreCache(Logged(tmp_path, delay=0.03).bind(DATA))
    victim = cluster.workers[0]

    def disturb():
        wait_for(lambda: len(computed(tmp_path)) > 8 and victim.pid in read_logs(tmp_path))
        cluster.kill(victim)
        cluster.add_workers(1)

    trouble = threading.Thread(target=disturb)
    trouble.start()
    cache.fill(REQUESTS, executor, progressbar=False, batch_size=1)
    assert victim.poll() == -signal.SIGKILL, "the run must outlast the worker"
    trouble.join()
    assert_same(cache, filled(BGe().bind(DATA)))
    assert len(computed(tmp_path)) <= len(REQUESTS) + 5, "only what the worker was at is computed again"


def start_coordinator(mode, address, store, logs):
    command = [sys.executable, __file__, mode, str(address), str(store), str(logs)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def known(store):
    with ScoreCache(Logged(store.parent / "logs").bind(DATA), store) as cache:
        return dict(cache.items())


def test_a_killed_coordinator_goes_on_from_its_file(executor, cluster, tmp_path):
    logs, store = tmp_path / "logs", tmp_path / "run.sqlite"
    logs.mkdir()
    first = start_coordinator("sample", cluster.address, store, logs)
    wait_for(lambda: len(computed(logs)) > 20 or first.poll() is not None)
    first.kill()
    first.communicate()
    assert first.returncode == -signal.SIGKILL, "the run had already ended"
    with cluster.client() as client:  # what was under way is computed to its end, for nobody
        # The scheduler has forgotten it by then, but the workers know what their threads are at.
        wait_for(lambda: not any(client.run(lambda dask_worker: len(dask_worker.state.all_running_tasks)).values()))
    kept, before = known(store).keys(), Counter(computed(logs))
    assert 0 < len(kept) < len(REQUESTS)
    post = gpn.sample(DATA, Logged(logs, delay=0.02), cache=store, executor=executor, **DRAWS)
    assert Counter(computed(logs)) - before == Counter(REQUESTS) - Counter(kept), "only the rest is computed"
    undisturbed = gpn.sample(DATA, Logged(tmp_path), **DRAWS)
    assert (post.parents == undisturbed.parents).all()
    assert post.edge_probabilities().equals(undisturbed.edge_probabilities())


def test_without_workers_a_run_waits_and_ctrl_c_keeps_what_is_done(executor, cluster, tmp_path):
    logs, store = tmp_path / "logs", tmp_path / "run.sqlite"
    logs.mkdir()
    run = start_coordinator("sample", cluster.address, store, logs)
    wait_for(lambda: len(computed(logs)) > 20 or run.poll() is not None)
    for worker in list(cluster.workers):
        cluster.kill(worker)
    with pytest.raises(subprocess.TimeoutExpired):
        run.wait(timeout=1.5)
    run.send_signal(signal.SIGINT)
    _, messages = run.communicate(timeout=TIME_LIMIT)
    assert messages.splitlines()[-1] == "KeyboardInterrupt"
    assert 15 < len(known(store)) < len(REQUESTS)


def test_a_broken_pool_is_told_in_one_line(tmp_path):
    run = start_coordinator("deadly", "", tmp_path / "run.sqlite", tmp_path)
    output, messages = run.communicate(timeout=TIME_LIMIT)
    assert messages == ""
    assert output == (
        "a worker process died, and its pool with it; the finished scores are kept in "
        f"'{tmp_path / 'run.sqlite'}': start the run again to resume\n"
    )
    assert len(computed(tmp_path)) > 0


# The command line


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "five.csv"
    DATA.to_csv(path, index=False)
    return path


def test_a_lost_scheduler_is_told_in_one_line(table, tmp_path):
    out, cluster = tmp_path / "results", DaskCluster(1)
    options = ["run", table, "--score", "gp", "--out", out, "--dask", cluster.address, "--quiet"]
    try:
        cluster.client().close()
        run = subprocess.Popen(
            [sys.executable, "-m", "gpn_bayes.cli", *map(str, options)],
            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        wait_for((out / "run.sqlite").exists)
        cluster.close()
        shown, messages = run.communicate(timeout=TIME_LIMIT)
    finally:
        cluster.close()
    assert (run.returncode, shown) == (1, "")
    assert messages == (
        "error: the workers were shut down, or the connection to them was lost; the finished scores are kept in "
        f"'{out / 'run.sqlite'}': start the run again to resume\n"
    )


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate that is its own authority, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=gpn"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def tls_options(certificate, key):
    return ["--tls-ca", certificate, "--tls-cert", certificate, "--tls-key", key]


def test_a_run_over_tls(table, tmp_path, capsys):
    ours, theirs = (
        make_certificate(folder) for folder in (tmp_path / "ours", tmp_path / "theirs") if not folder.mkdir()
    )
    options = ["run", table, "--score", "gp", "--reweight", "none", "--max-parents", "1", "--draws", "20", "--quiet"]
    cluster = DaskCluster(1, tls=(ours[0], *ours))
    try:
        cluster.client().close()
        far, near = tmp_path / "far", tmp_path / "near"
        code, _, messages = call(capsys, *options, "--out", far, "--dask", cluster.address, *tls_options(*ours))
        assert (code, messages) == (0, "")
        assert call(capsys, *options, "--out", near)[0] == 0
        assert (far / "edges.csv").read_bytes() == (near / "edges.csv").read_bytes()
        for refused in (tls_options(*theirs), []):
            address = cluster.address if refused else cluster.address.replace("tls", "tcp")
            code, shown, messages = call(capsys, *options, "--out", tmp_path / "no", "--dask", address, *refused)
            assert code == 2 and shown == "" and messages.count("\n") == 1
            assert messages.startswith("error: --dask must be the address of a running scheduler; received ")
            assert not (tmp_path / "no").exists()
    finally:
        cluster.close()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--dask", "foo://host:1"], "--dask takes tcp://host:port or tls://host:port; received 'foo://host:1'"),
        (["--dask", "tls://host:1"], "an address tls:// needs --tls-ca, --tls-cert and --tls-key"),
        (["--tls-key", "k.pem"], "--tls-key goes with --dask ADDRESS; received no address"),
        (["--dask", "host:1", "--tls-ca", "c", "--tls-key", "k"], "go together; received no --tls-cert"),
        (["--dask", "host:1", *tls_options("c.pem", "k.pem")], "--tls-ca: the file must exist; received 'c.pem'"),
        (["--dask", "127.0.0.1:1"], "where none answered within 5 seconds"),
    ],
)
def test_bad_addresses_are_refused(table, tmp_path, capsys, options, expected):
    out = tmp_path / "results"
    code, shown, messages = call(capsys, "run", table, "--out", out, *options)
    assert code == 2 and shown == ""
    assert messages.startswith("error: ") and messages.count("\n") == 1 and expected in messages
    assert not out.exists()


def test_the_extra_is_named_where_it_is_missing(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, messages = call(capsys, "run", table, "--out", tmp_path / "out", "--dask", "host:1")
    assert code == 2
    assert messages == "error: --dask needs the package distributed; install gpn_bayes[dask]\n"


def test_nothing_loads_dask_unasked():
    code = "import sys, gpn_bayes.sampling.sample, gpn_bayes.cli; print([x for x in sys.modules if 'distributed' in x])"
    run = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def main(mode, address, store, logs):
    if mode == "deadly":
        with ScoreCache(Logged(Path(logs), deadly=True).bind(DATA), store) as cache:
            with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
                try:
                    cache.fill(REQUESTS, pool, progressbar=False, batch_size=1)
                except WorkersLost as lost:
                    print(lost)
        return
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        gpn.sample(DATA, Logged(Path(logs), delay=0.02), cache=store, executor=client.get_executor(), **DRAWS)


if __name__ == "__main__":
    main(*sys.argv[1:])
