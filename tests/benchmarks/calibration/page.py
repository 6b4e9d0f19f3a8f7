"""Put the measures of wrong models into the guide: ``python -m tests.benchmarks.calibration.page``.

The tables of `calibration.md` and its pictures are made from `wrong_models.csv`, and those of other programs from the
measures of the field; the text around them is written there.
"""

from pathlib import Path

import pandas as pd

from tests.benchmarks.calibration import other_programs
from tests.benchmarks.calibration.pictures import draw_apart, draw_together
from tests.benchmarks.calibration.wrong_models import FAMILIES, PRIOR, RESULTS
from tests.benchmarks.field import page as field
from tests.benchmarks.field.measures import as_table

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide"
PAGE, PICTURE, PICTURE_OF_PROGRAMS = (GUIDE / name for name in ("calibration.md", "wrong_models.png", "programs.png"))
TITLES = {
    PRIOR: "the GP score's own prior, standardised",
    "linear": "linear",
    "fourier": "sums of Fourier series",
    "mlp": "neural networks",
    "gp": "functions of a Gaussian process",
    "heavy-tails": "… with heavy-tailed noise",
    "uneven-noise": "… with uneven noise",
    "outliers": "… with outliers",
    "hidden-causes": "… with hidden causes",
}
SHOWN = {"BGe": "`bge`", "GP": "`gp`", "GP, Student noise": '`GP(noise="student")`'}
TRIED = {
    "GP": "`gp`",
    "GP, light-tailed noise prior": "lighter-tailed noise prior",
    "GP, amplitudes": "any amplitude",
    "linear or curved": '`equations="linear or curved"`',
}
# What a reader may compare: name, columns of the score and of the base rate, decimals, whether less is better.
MEASURES = {"log": ("log_score", "log_score_base", 2, False), "brier": ("brier", "brier_base", 3, True)}


def table(results: pd.DataFrame, measure: str, columns: dict[str, str]) -> str:
    """Return a measure of several scores by families of networks, in Markdown, the best of each family in bold."""
    column, base, decimals, less = MEASURES[measure]
    columns = {score: title for score, title in columns.items() if (results["score"] == score).any()}
    lines = [f"| | base rate | {' | '.join(columns.values())} |", "|---" * (len(columns) + 2) + "|"]
    for family in FAMILIES:
        own = results[results["family"] == family].set_index("score")
        values = own[column].reindex(list(columns))
        best = values.min() if less else values.max()
        cells = ["–" if pd.isna(v) else f"**{v:.{decimals}f}**" if v == best else f"{v:.{decimals}f}" for v in values]
        lines.append(f"| {TITLES[family]} | {own[base].iloc[0]:.{decimals}f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def tables(results: pd.DataFrame, units: pd.DataFrame) -> dict[str, str]:
    """Return all tables of the page, by the names that its comments give them."""
    return {
        "log scores": table(results, "log", SHOWN),
        "Brier scores": table(results, "brier", SHOWN),
        "what was tried": table(results, "log", TRIED),
        "other programs": other_programs.brier_scores(units),
    }


def with_tables(text: str, results: pd.DataFrame, units: pd.DataFrame) -> str:
    """Return the text of the page with its tables made anew from the measures of wrong models and of the field."""
    for name, own in tables(results, units).items():
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, after = rest.partition("<!-- end -->\n")
        text = f"{before}<!-- {name} -->\n{own}\n<!-- end -->\n{after}"
    return text


def main() -> None:
    """Write tables and picture."""
    results, units = pd.read_csv(RESULTS), field.load([field.RESULTS])
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), results, units), encoding="utf-8")
    diagrams = {
        title: {
            SHOWN[row["score"]].strip("`"): as_table(row["reliability"])
            for _, row in results[results["family"] == family].iterrows()
            if row["score"] in SHOWN
        }
        for family, title in TITLES.items()
    }
    draw_together(diagrams, PICTURE)
    draw_apart(other_programs.diagrams(units), PICTURE_OF_PROGRAMS)


if __name__ == "__main__":
    main()
