"""What is kept of the claims of all variants: ``python -m tests.benchmarks.calibration.what_held FOLDER``.

`FOLDER` is where ``CALIBRATION=FOLDER pytest -m slow tests/benchmarks/test_calibration.py`` kept claims. Kept are the
p-value of each test, how many nats the edges of each variant lack, and a reliability diagram of the edges of all right
models together. `calibration.page` puts them into the guide.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from tests.benchmarks.calibration.running import kept_claims
from tests.benchmarks.calibration.uniformity import nats_per_edge, p_values, reliability
from tests.benchmarks.calibration.variants import VARIANTS

HERE = Path(__file__).parent


class WhatHeld(NamedTuple):
    """The files that are kept, as tables."""

    # A row for each test of a variant: its p-value.
    p_values: pd.DataFrame
    # A row for each variant: number of networks, nats that edges lack, and the standard error of these.
    variants: pd.DataFrame
    # The reliability diagram of edges.
    edges: pd.DataFrame

    @classmethod
    def of(cls, claims: dict[str, pd.DataFrame]) -> "WhatHeld":
        """Return what the claims of variants show; `claims` has the tables by the names of the variants."""
        tests = pd.concat({name: p_values(own) for name, own in claims.items()}, names=["variant", None])
        lack = [(name, own["network"].nunique(), *nats_per_edge(own)) for name, own in claims.items()]
        # Claims of several variants about the same network go astray together, so that they count as one network's.
        right = [
            own.assign(network=f"{VARIANTS[name].source} " + own["network"].astype(str))
            for name, own in claims.items()
            if not VARIANTS[name].wrong
        ]
        return cls(
            tests.reset_index("variant").reset_index(drop=True),
            pd.DataFrame(lack, columns=["variant", "networks", "nats", "error"]),
            reliability(pd.concat(right, ignore_index=True), "edge"),
        )

    @classmethod
    def read(cls, folder: Path = HERE) -> "WhatHeld":
        """Return what is kept in a folder."""
        return cls(*(pd.read_csv(folder / f"{name}.csv") for name in cls._fields))

    def write(self, folder: Path = HERE) -> None:
        """Write a file for each table."""
        for name, table in self._asdict().items():
            table.to_csv(folder / f"{name}.csv", index=False, float_format="%.4g")


def main() -> None:
    """Read claims and keep what they show."""
    parser = argparse.ArgumentParser(description="Keep what the claims of a run of the benchmark of calibration show.")
    parser.add_argument("folder", type=Path, help="where the claims are, a file for each variant")
    folder = parser.parse_args().folder
    claims = {name: kept_claims(name, variant, folder) for name, variant in VARIANTS.items()}
    lacking = [
        f"{name}: {count} of {VARIANTS[name].networks}"
        for name, own in claims.items()
        if (count := own["network"].nunique()) < VARIANTS[name].networks
    ]
    if lacking:
        parser.error(f"the folder must have the claims of all networks, but has of {'; of '.join(lacking)}")
    WhatHeld.of(claims).write()


if __name__ == "__main__":
    main()
