"""The API reference: its builder finds all public names, and writes every one of them down."""

import pytest

import gpn_bayes
from tests.documented import load_builder


@pytest.fixture(scope="module")
def builder():
    return load_builder()


def test_public_modules_hold_all_their_names(builder):
    modules = {module.__name__: module for module in builder.public_modules()}
    assert {"gpn_bayes", "gpn_bayes.scores", "gpn_bayes.estimators", "gpn_bayes.plots"} <= modules.keys()
    assert set(gpn_bayes.__all__) <= vars(modules["gpn_bayes"]).keys()
    assert "NOTEARS" in vars(modules["gpn_bayes.estimators"])


def test_every_public_name_has_a_place(builder, tmp_path):
    pytest.importorskip("pdoc", reason='the reference needs pdoc: pip install "gpn_bayes[docs]"')
    builder.build(tmp_path)
    for module in builder.public_modules():
        page = (tmp_path / f"{module.__name__.replace('.', '/')}.html").read_text(encoding="utf-8")
        for name in getattr(module, "__all__", ()):
            if callable(getattr(module, name)):
                assert f'<section id="{name}">' in page, f"{module.__name__}.{name}"
    main = (tmp_path / "gpn_bayes.html").read_text(encoding="utf-8")
    # Inherited, and from classes without a page.
    assert 'id="GraphPosterior.edge_probability"' in main
    assert 'id="GraphPosterior.plot_network"' in main
    assert "_moments" not in main
    # The class tells of the fields of named tuples.
    assert "Alias for field" not in (tmp_path / "gpn_bayes" / "posterior.html").read_text(encoding="utf-8")
    # What `bootstrap` returns.
    assert 'id="BootstrapResult.summary"' in (tmp_path / "gpn_bayes" / "bootstrapping.html").read_text(encoding="utf-8")
    assert (tmp_path / "index.html").exists()
