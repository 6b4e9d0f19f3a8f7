"""The HTML report of a posterior: one file that works offline, with all assets inside.

Examples
--------
>>> import tempfile
>>> from pathlib import Path
>>> import gpn_bayes as gpn
>>> data = gpn.simulate.linear([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 100, random_seed=1)
>>> post = gpn.sample(data, score="bge", draws=50, random_seed=1, progressbar=False)
>>> with tempfile.TemporaryDirectory() as folder:
...     path = post.report(Path(folder) / "report.html")
...     path.name, path.read_text(encoding="utf-8")[:15]
('report.html', '<!doctype html>')
"""

from gpn_bayes.report.one_graph import FittedGraph, write_estimate_report
from gpn_bayes.report.resamples import write_bootstrap_report
from gpn_bayes.report.writing import Explorer, explore, write_report

__all__ = ["Explorer", "FittedGraph", "explore", "write_bootstrap_report", "write_estimate_report", "write_report"]
