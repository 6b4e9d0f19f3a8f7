"""Private K2 between two threads with a weak key, and what it must find: plain K2, on whole numbers and on floats."""

import numpy as np
from scipy.special import gammaln, xlogy

from gpn_bayes import simulate
from gpn_bayes.private.counts import should_hold_key
from gpn_bayes.private.protocol import learn
from gpn_bayes.private.scoring import error_bound, plain_terms
from gpn_bayes.private.settings import Settings
from gpn_bayes.private.tables import read_table
from gpn_bayes.secure.randomisers import RandomiserPool
from tests.parties import run_pair, weak_key

KEY = weak_key()


def settings(order, **others):
    return Settings(tuple(order), **{"key_bits": KEY.bits} | others)


def party(table, known, first, **further):
    """Return what one party does with its end of a link."""

    def run(end):
        mine = len(table.columns)
        holds = should_hold_key(mine, len(known.order) - mine, first)
        pool = RandomiserPool(KEY) if holds else None
        try:
            return learn(end, table, known, pool, first=first, **further)
        finally:
            if pool is not None:
                pool.close()

    return run


def learn_pair(first, second, known, others=None, key=None, **wraps):
    """Run both parties on their tables; the second may have other settings. Return what both find, or their errors."""
    tables = [read_table(table, key) for table in (first, second)]
    return run_pair(party(tables[0], known, True), party(tables[1], others or known, False), **wraps)


def check_pair(first, second, known, key=None):
    """Run both parties, and return the network that both find."""
    mine, theirs = learn_pair(first, second, known, key=key)
    for found in (mine, theirs):
        if isinstance(found, Exception):
            raise found
    assert mine.variables == theirs.variables
    np.testing.assert_array_equal(mine.adjacency, theirs.adjacency)
    return mine


def random_table(seed, n=8, rows=None):
    """Return zeros and ones from a random binary network, in which every column varies, and a random order."""
    rng = np.random.default_rng(seed)
    rows = rows or int(rng.integers(100, 1001))
    while True:
        table = simulate.discrete(
            simulate.random_dag(n, edges_per_node=min(1.5, (n - 1) / 2), random_seed=rng), rows, random_seed=rng
        )
        codes = table.apply(lambda column: column.cat.codes).astype(int)
        if (codes.nunique() == 2).all():
            return codes, rng.permutation(codes.columns).tolist()


def counts_of(codes, node, parents):
    """Return the rows of each level of a node, under each configuration of the parents."""
    places = codes[[*parents, node]].to_numpy() @ (2 ** np.arange(len(parents) + 1)[::-1])
    return np.bincount(places, minlength=2 ** (len(parents) + 1)).reshape(-1, 2)


def whole_number_score(rows, score):
    """Return the score of counts in whole numbers, as the parties' shares open to."""
    terms = plain_terms(rows, score)
    return lambda counts: int(terms.cells[counts].sum() + terms.margins[counts.sum(axis=1)].sum())


def exact_float(counts):
    return float((gammaln(counts + 1).sum(axis=1) - gammaln(counts.sum(axis=1) + 2)).sum())


def papers_g(counts):
    """Return the function g of Wright & Yang (2004), with 0 for logarithms of 0."""
    t = counts.sum(axis=1) + 1.0
    logs = [np.log(np.maximum(x, 1.0)) for x in (counts, t)]
    halves = 0.5 * (logs[0].sum() - logs[1].sum())
    return float(halves + xlogy(counts, np.maximum(counts, 1)).sum() - (t * logs[1]).sum())


FLOATS = {"exact": exact_float, "paper": papers_g}


def plain_k2(codes, order, most, score_of):
    """State K2 with loops: return the parents of each node, and the least difference that decided."""
    columns, found, least = list(codes.columns), {}, np.inf
    for place, node in enumerate(order):
        parents = []
        while len(parents) < most and len(parents) < place:
            others = [name for name in columns if name in order[:place] and name not in parents]
            values = [score_of(counts_of(codes, node, [*parents, *more])) for more in [[], *([o] for o in others)]]
            best = int(np.argmax(values))
            least = min(least, values[best] - max(value for i, value in enumerate(values) if i != best))
            if best == 0:
                break
            parents.append(others[best - 1])
        found[node] = sorted(parents)
    return found, least


def parents_of(found):
    """Return the parents of each node that a private run found."""
    names = found.variables
    return {name: sorted(names[i] for i in np.flatnonzero(found.adjacency[:, j])) for j, name in enumerate(names)}


def check_against_plain(codes, order, cut, score, most=3):
    """Compare a private run with plain K2 on whole numbers and, where rounding can't matter, on floats.

    Returns whether rounding couldn't matter.
    """
    found = check_pair(codes.iloc[:, :cut], codes.iloc[:, cut:], settings(order, score=score, max_parents=most))
    plain, _ = plain_k2(codes, order, most, whole_number_score(len(codes), score))
    assert parents_of(found) == plain
    floats, least = plain_k2(codes, order, most, FLOATS[score])
    decided = least > 2 * error_bound(len(codes), score, 2**most) + 1e-9
    if decided:
        assert plain == floats
    return decided
