"""First runs: another process compiles a part of the sampler, which the run then finds on disk."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes.mcmc.exact_draws import draw_exact
from gpn_bayes.sampling import rehearsal
from tests.running import ROOT, STRICT_PYTHON

# Lists what this process compiles itself, by name.
RUN = """
import numpy as np
from numba.core import event

class Listener(event.Listener):
    def on_start(self, event):
        pass
    def on_end(self, event):
        print(event.data["dispatcher"].py_func.__name__)

event.register("numba:compile", Listener())
import gpn_bayes as gpn
data = np.random.default_rng(1).normal(size=(40, 3))
gpn.sample(data, "bge", sampler="SAMPLER", draws=20, tune=5, cores=2, random_seed=1, progressbar=False)
"""
KINDS = [
    gpn.samplers.Exact(), gpn.samplers.Order(), gpn.samplers.Partition(), gpn.samplers.Partition(temperatures=4)
]  # fmt: skip


def compiled_by_a_first_run(sampler, folder):
    """Return the names of what the main process of a run compiles if nothing has been compiled before."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [*STRICT_PYTHON, "-W", "ignore::UserWarning", "-c", RUN.replace("SAMPLER", sampler)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.more("compiles anew in processes")
def test_a_first_run_leaves_the_sampler_to_another_process(tmp_path):
    names = compiled_by_a_first_run("exact", tmp_path)
    assert "bge_table" in names and "_pull_sources" in names and "cpdags" in names
    assert "draw_exact" not in names and "_add_blocks" not in names
    assert list(tmp_path.rglob("exact_draws.draw_exact-*.nbi"))


@pytest.mark.slow
def test_a_first_run_of_mcmc_leaves_most_of_it_to_another_process(tmp_path):
    names = compiled_by_a_first_run("partition", tmp_path)
    assert "propose_dag" in names
    assert "run_partition" not in names and "anneal" not in names and "steps_over_partitions" not in names


@pytest.mark.parametrize("sampler", KINDS, ids=repr)
def test_every_part_of_a_sampler_can_be_rehearsed(sampler):
    """By its name alone, as in another process; a part that calls a compiled function as it no longer is raises."""
    entrance, parts = sampler.compiled
    for part in parts:
        gpn.samplers.by_name(sampler.name).rehearse(part)
    assert hasattr(entrance, "stats") and rehearsal._is_compiled(entrance)


def test_what_is_compiled_is_told_by_the_cache(tmp_path, monkeypatch):
    gpn.samplers.Exact().rehearse("draws")
    assert rehearsal._is_compiled(draw_exact)
    assert rehearsal._is_compiled(draw_exact.py_func), "numba is switched off"
    source = tmp_path / "exact_draws.py"
    source.write_text("")
    renamed = draw_exact.py_func.__code__.replace(co_filename=str(source))
    with monkeypatch.context() as patch:
        patch.setattr(draw_exact.py_func, "__code__", renamed)
        os.utime(source, (0, 0))
        assert rehearsal._is_compiled(draw_exact)
        os.utime(source, (2**40, 2**40))
        assert not rehearsal._is_compiled(draw_exact), "the source has changed since"


@pytest.mark.more("compiles anew in processes")
@pytest.mark.parametrize("executable", [sys.executable, "/no/such/python", ""])
def test_a_run_needs_no_other_process(executable, monkeypatch):
    data = np.random.default_rng(1).normal(size=(40, 3))
    expected = gpn.sample(data, "bge", draws=20, random_seed=1, progressbar=False)
    monkeypatch.setattr(rehearsal, "_is_compiled", lambda entrance: False)
    monkeypatch.setattr(sys, "executable", executable)
    post = gpn.sample(data, "bge", draws=20, cores=2, random_seed=1, progressbar=False)
    np.testing.assert_array_equal(post.parents, expected.parents)
