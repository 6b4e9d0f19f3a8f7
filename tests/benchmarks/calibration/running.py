"""Runs of variants, network by network, which are kept as they come."""

from pathlib import Path

import pandas as pd

from tests.benchmarks.calibration.claims import COLUMNS
from tests.benchmarks.calibration.variants import Variant


def claims_of_variant(name: str, variant: Variant, folder: Path | None = None) -> pd.DataFrame:
    """Return the claims about all networks of a variant.

    Parameters
    ----------
    name : str
        What the variant is called.
    variant : Variant
        What is run.
    folder : path, optional
        Where claims are appended to a file as they come; networks that are there aren't run again.
    """
    if folder is None:
        return pd.concat([variant.claims(seed) for seed in range(variant.networks)], ignore_index=True)
    scores = folder / "scores"
    scores.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.csv"
    if not file.exists():
        file.write_text(",".join(COLUMNS) + "\n")
    done = set(pd.read_csv(file)["network"])
    for seed in range(variant.networks):
        if seed not in done:
            # In one piece, so that a network is there as a whole or not at all.
            text = variant.claims(seed, scores).to_csv(index=False, header=False)
            with file.open("a") as kept:
                kept.write(text)
    return kept_claims(name, variant, folder)


def kept_claims(name: str, variant: Variant, folder: Path) -> pd.DataFrame:
    """Return the claims that a folder has about networks of a variant, or an empty table where it has none."""
    file = folder / f"{name}.csv"
    found = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=COLUMNS)
    return found[found["network"] < variant.networks]
