"""All readers that are fuzzed, by their names."""

from collections.abc import Callable
from pathlib import Path

from tests.fuzz_files import bif, bif_gz, checkpoints, csv, excel, feather, inputs, parquet, posterior, statistics
from tests.fuzz_messages import answers, certificates, frames, instructions, plans, private, stores, toml
from tests.fuzzing import Target

TARGETS: dict[str, Callable[[Path], Target]] = {
    "statistics": statistics,
    "csv": csv,
    "parquet": parquet,
    "feather": feather,
    "excel": excel,
    "bif": bif,
    "bif_gz": bif_gz,
    "inputs": inputs,
    "posterior": posterior,
    "checkpoints": checkpoints,
    "plans": plans,
    "toml": toml,
    "certificates": certificates,
    "instructions": instructions,
    "answers": answers,
    "stores": stores,
    "frames": frames,
    "private": private,
}


def make_target(name: str, folder: Path) -> Target:
    """Return a target by its name."""
    return TARGETS[name](folder)
