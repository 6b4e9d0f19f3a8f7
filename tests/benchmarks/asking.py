"""Ask a worker: a program in an interpreter of its own, which reads one JSON request and writes one JSON reply."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}  # fmt: skip


def ask(python: str, worker: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return a worker's reply."""
    done = subprocess.run(
        [python, str(HERE / worker)], input=json.dumps(request), capture_output=True, text=True, check=False,
        env=os.environ | ONE_THREAD,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
