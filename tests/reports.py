"""Posteriors for the tests of reports, and what a page holds."""

import json
import re
from pathlib import Path

import numpy as np

from gpn_bayes import graphs
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.scores import BGe
from gpn_bayes.scores.assumptions import EQUIVALENCE
from gpn_bayes.scores.recorded import as_setting

AWKWARD = ("<b>raf</b>", "mek & co", "erk\"'`", "</script><script>alert(1)</script>", "TNF-α -> x", "${akt}, \\u003c")


LONG = (
    "age", "sex", "body-mass index (kg/m²)", "systolic blood pressure", "diastolic blood pressure",
    "C-reactive protein (hs)", "interleukin-6", "tumour necrosis factor α", "β-catenin", "HbA1c (%)", "fasting glucose",
    "creatinine", "estimated glomerular filtration rate", "LDL cholesterol", "HDL cholesterol", "triglycerides",
    "smoking (pack-years)", "alcohol (units per week)", "physical activity", "waist circumference",
    "alanine aminotransferase", "γ-glutamyltransferase", "haemoglobin", "white_blood_cell_count", "platelets",
    "serum albumin", "vitamin D (25-hydroxy)", "left ventricular ejection fraction", "NT-proBNP",
    "carotid intima-media thickness",
)  # fmt: skip


def made_posterior(names, edges, shape=(3, 80), seed=1, **settings) -> GraphPosterior:
    """Return draws that hold each edge (parent, child, probability), parents before children in the list of names."""
    rng = np.random.default_rng(seed)
    dags = np.zeros((*shape, len(names), len(names)), dtype=np.int8)
    for parent, child, probability in edges:
        dags[..., parent, child] = rng.random(shape) < probability
    score = rng.normal(-100.0, 1.0, shape)
    settings = {"sampler": "partition", "score": as_setting(BGe())} | settings
    return GraphPosterior(tuple(names), graphs.pack(dags), score, settings=settings)


def crowded_posterior(names=LONG, tiers=None, seed=1) -> GraphPosterior:
    """Return a posterior with about 1.5 probable edges and one improbable edge a variable, and tiers if given."""
    rng = np.random.default_rng(seed)
    n = len(names)
    chances = rng.random((n, n))
    probable, possible = 3 / n, 5 / n
    edges = [
        (i, j, 0.97 if chances[i, j] < probable else 0.2)
        for i in range(n)
        for j in range(i + 1, n)
        if chances[i, j] < possible
    ]
    settings = {"prior": {"kind": "uniform", "tiers": tiers}, "assumptions": [*EQUIVALENCE]}
    return made_posterior(names, edges, shape=(2, 60), **settings)


def awkward_posterior() -> GraphPosterior:
    """Return a posterior of variables whose names would break a careless page."""
    edges = [(0, 1, 1.0), (1, 2, 0.97), (2, 3, 0.6), (3, 4, 0.5), (0, 5, 0.2)]
    return made_posterior(AWKWARD, edges)


def read_numbers(path: Path) -> dict:
    """Return the numbers inside a page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="numbers">(.*?)</script>', text, re.S)[1])
