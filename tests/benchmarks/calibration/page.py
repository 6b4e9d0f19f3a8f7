"""Put what was measured into the guide: ``python -m tests.benchmarks.calibration.page``.

The tables of `calibration.md` and its pictures are made from what `what_held` and `wrong_models` keep, and those of
other programs from the measures of the field; the text around them is written there.
"""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from tests.benchmarks.calibration import other_programs
from tests.benchmarks.calibration.pictures import draw_apart, draw_together
from tests.benchmarks.calibration.variants import VARIANTS
from tests.benchmarks.calibration.what_held import WhatHeld
from tests.benchmarks.calibration.wrong_models import FAMILIES, PRIOR, RESULTS
from tests.benchmarks.field import page as field
from tests.benchmarks.field.measures import as_table

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide"
PAGE, PICTURE, PICTURE_OF_PROGRAMS = (GUIDE / name for name in ("calibration.md", "wrong_models.png", "programs.png"))
VARIANT_TITLES = {
    "BGe, exact, n = 4": "BGe, exact sampler, 4 variables",
    "BGe, exact, n = 5": "BGe, exact sampler, 5 variables",
    "BGe, exact, n = 6": "BGe, exact sampler, 6 variables",
    "BGe, exact, fair prior, n = 4": 'BGe, exact sampler, `prior="fair"`, 4 variables',
    "BGe, partition, n = 5": "BGe, partition sampler, 5 variables",
    "BGe, order, corrected, n = 5": 'BGe, order sampler, `Order(bias="correct")`, 5 variables',
    "BGe, perfect interventions, n = 4": "BGe, perfect interventions, 4 variables",
    "BGe, soft interventions, n = 4": "BGe, soft interventions",
    "BGe, unknown targets, n = 4": "BGe, unknown targets",
    "BGe, imputed, n = 4": "BGe, 15% of values missing, imputed",
    "BDeu, exact, n = 4": "BDeu, exact sampler, 4 variables",
    "BDeu, exact, n = 5": "BDeu, exact sampler, 5 variables",
    "BDeu, partition, n = 5": "BDeu, partition sampler, 5 variables",
    "BDeu, soft interventions, n = 4": "BDeu, soft interventions, 4 variables",
    "BDeu, imputed, n = 4": "BDeu, 15% of values missing, imputed",
    "K2, exact, n = 4": "K2, exact sampler, 4 variables",
    "GP, reweighted, n = 4": "GP, reweighted (the default), 4 variables",
    "GP, importance alone, n = 4": "GP, importance sampling alone (`reweight=None`)",
    "GP, bridge alone, n = 4": "GP, bridge sampling alone",
    "GP, Laplace alone, n = 4": "GP, Laplace's approximation alone",
    "GP, linear or curved, n = 4": "GP, equations linear or curved",
    "BGe with a wrong constant, n = 4": "BGe with half a nat too many for each parent",
    "BGe with a wrong prior, n = 4": "BGe, `alpha_w` larger by 4 than that of the networks",
    "BDeu with a wrong sample size, n = 4": "BDeu, `ess=16` instead of 4",
    "GP with a wrong prior, n = 4": "GP, length scales expected to be four times as long",
    "GP, curved though half are linear, n = 4": "GP, where half of the equations are linear",
}
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
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# What a reader may compare: name, columns of the score and of the base rate, decimals, whether less is better.
MEASURES = {"log": ("log_score", "log_score_base", 2, False), "brier": ("brier", "brier_base", 3, True)}


class Measured(NamedTuple):
    """All that the page shows: what held in right models, wrong models, and answers of programs of the field."""

    held: WhatHeld
    wrong_models: pd.DataFrame
    field: pd.DataFrame

    @classmethod
    def read(cls) -> "Measured":
        """Return what is kept beside the benchmarks."""
        return cls(WhatHeld.read(), pd.read_csv(RESULTS), field.load([field.RESULTS]))


def variants_table(held: WhatHeld, wrong: bool) -> str:
    """Return networks, smallest p-value and nats that edges lack, of right variants or of those wrong on purpose."""
    p_values = held.p_values.groupby("variant")["p_value"]
    lines = ["| | networks | smallest of the p-values | nats that edges lack |", "|---|---|---|---|"]
    for row in held.variants.itertuples():
        if VARIANTS[row.variant].wrong == wrong:
            own = p_values.get_group(row.variant)
            smallest = _power_of_ten(own.min()) if wrong else f"{own.min():.3f} of {len(own)}"
            title = VARIANT_TITLES[row.variant]
            # Rounding may leave a zero with a sign.
            lack = f"{row.nats:.2f}".replace("-0.00", "0.00")
            lines.append(f"| {title} | {row.networks} | {smallest} | {lack} ± {row.error:.2f} |")
    return "\n".join(lines)


def _power_of_ten(value: float) -> str:
    digit, exponent = f"{value:.0e}".split("e")
    return f"{digit} · 10{str(int(exponent)).translate(_RAISED)}"


def edges_table(edges: pd.DataFrame) -> str:
    """Return a reliability diagram as a table, from left to right."""
    rows = {"stated": edges["stated"], "true": edges["held"], "standard error": edges["error"]}
    lines = [f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |" for name, values in rows.items()]
    return "\n".join([lines[0], "|---" * (len(edges) + 1) + "|", *lines[1:]])


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


def tables(measured: Measured) -> dict[str, str]:
    """Return all tables of the page, by the names that its comments give them."""
    return {
        "right models": variants_table(measured.held, wrong=False),
        "wrong on purpose": variants_table(measured.held, wrong=True),
        "edges of right models": edges_table(measured.held.edges),
        "log scores": table(measured.wrong_models, "log", SHOWN),
        "Brier scores": table(measured.wrong_models, "brier", SHOWN),
        "what was tried": table(measured.wrong_models, "log", TRIED),
        "other programs": other_programs.brier_scores(measured.field),
    }


def with_tables(text: str, measured: Measured) -> str:
    """Return the text of the page with its tables made anew."""
    for name, own in tables(measured).items():
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, after = rest.partition("<!-- end -->\n")
        text = f"{before}<!-- {name} -->\n{own}\n<!-- end -->\n{after}"
    return text


def main() -> None:
    """Write tables and picture."""
    measured = Measured.read()
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), measured), encoding="utf-8")
    diagrams = {
        title: {
            SHOWN[row["score"]].strip("`"): as_table(row["reliability"])
            for _, row in measured.wrong_models[measured.wrong_models["family"] == family].iterrows()
            if row["score"] in SHOWN
        }
        for family, title in TITLES.items()
    }
    draw_together(diagrams, PICTURE)
    draw_apart(other_programs.diagrams(measured.field), PICTURE_OF_PROGRAMS)


if __name__ == "__main__":
    main()
