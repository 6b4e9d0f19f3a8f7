"""Pictures of effects show what the effects say."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

import gpn_bayes as gpn
from tests.test_effects import NAMES, QUIET, categories, chain, curved, linear_table

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_a_point_mass_is_a_line_of_its_own():
    post = gpn.sample(linear_table(), score="bge", draws=500, **QUIET)
    effect = post.effect("a", "c")
    ax = effect.plot()
    heights = sum(bar.get_height() for bar in ax.patches)
    assert heights == pytest.approx(effect.probability)
    assert [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata())] == [0.0]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[1].startswith("no effect: probability ")
    certain = gpn.sample(linear_table(), score="bge", required=[("a", "c")], draws=100, **QUIET).effect("a", "c")
    assert not [line for line in certain.plot().lines if len(line.get_xdata())]


def test_curves_have_two_bands_and_tables_a_point_for_each_level():
    curves = gpn.sample(curved(60), score="gp", draws=40, **chain(["x", "y"]), **QUIET)
    ax = curves.plot_effect("x", "y", points=7, progressbar=False)
    assert len(ax.collections) == 2
    assert len(ax.lines[0].get_xdata()) == 7
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x, set to", "y")
    tables = gpn.sample(categories(), score="bdeu", draws=100, **QUIET)
    ax = tables.plot_effect("a", "c")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["low", "middle", "tall"]
    ax = tables.plot_effect("a", "c", to="tall", versus="low")
    assert ax.get_ylabel() == "change of probability"


def test_the_matrix_is_that_of_mean_effects_in_standard_deviations():
    table = linear_table()
    post = gpn.sample(table, score="bge", draws=500, **QUIET)
    ax = post.plot_effects()
    shown = ax.images[0].get_array()
    means = post.effects().pivot_table(index="cause", columns="outcome", values="mean").loc[NAMES, NAMES].to_numpy()
    sd = table.std().to_numpy()
    expected = means * sd[:, None] / sd
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(shown[off], expected[off])
    assert ax.images[0].get_clim() == pytest.approx((-np.nanmax(np.abs(expected)), np.nanmax(np.abs(expected))))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("outcome", "cause")
