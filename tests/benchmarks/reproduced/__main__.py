"""Measure what is still missing, and write the guide's page: ``python -m tests.benchmarks.reproduced``."""

import sys

from tests.benchmarks.reproduced import page, run

if __name__ == "__main__":
    status = run.main()
    # A run that was stopped has figures too.
    page.main([])
    sys.exit(status)
