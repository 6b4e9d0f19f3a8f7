"""What ADMM gives away: two attacks that succeed on linear clients, carried out, and one setting where they don't."""

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import least_squares

from gpn_bayes import simulate
from gpn_bayes.data import read_part
from gpn_bayes.federated import FederatedNOTEARS
from gpn_bayes.federated.channel import MemoryChannel
from gpn_bayes.federated.notears import building
from gpn_bayes.federated.notears.consensus import consensus_rounds
from gpn_bayes.federated.notears.settings import Settings
from tests.federated import PlainChannel, WatchedChannel

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")

D = 4
SIZES = (40, 50, 60)


@pytest.fixture(scope="module")
def tables():
    dag = simulate.random_dag(D, edges_per_node=1, random_seed=3)
    rows = simulate.linear(dag, sum(SIZES), random_seed=3).to_numpy()
    return np.split(rows, np.cumsum(SIZES)[:-1])


@pytest.fixture(scope="module")
def secrets(tables):
    """Return S_k = x_k'x_k / n, which no client wants to tell."""
    return np.array([np.cov(table.T, ddof=0) * len(table) / sum(SIZES) for table in tables])


def run(channel_of, tables):
    settings = Settings()
    parts = [read_part(table) for table in tables]
    channel = channel_of([building.participant(part, settings) for part in parts])
    model = building.shared_model(parts[0].names, settings)
    for _ in consensus_rounds(channel, model, building.schedule(settings)):
        pass
    return channel


def of_rounds(channel):
    return [k for k, (task, _) in enumerate(channel.asked) if task == "round"]


def covariance(answer, asked, multipliers):
    """Return what S_k must be, from one client's answer and what went before."""
    weights = answer["target"] - multipliers / asked["rho"]
    sentence = asked["rho"] * (asked["shared"] - weights) - multipliers
    return sentence @ np.linalg.inv(weights - np.eye(D)), weights


@pytest.fixture(scope="module")
def plain(tables):
    return run(PlainChannel, tables)


def test_one_plain_message_gives_the_covariance_away(plain, secrets):
    first = of_rounds(plain)[0]
    for client, secret in enumerate(secrets):
        found, _ = covariance(plain.answers[first][client], plain.asked[first][1], np.zeros((D, D)))
        assert found == pytest.approx(secret, abs=1e-9)


def test_later_plain_messages_do_so_too(plain, secrets):
    """The coordinator follows beta_k from round to round."""
    multipliers, weights = np.zeros((D, D)), None
    for k in of_rounds(plain)[:30]:
        asked = plain.asked[k][1]
        if weights is not None:
            multipliers = multipliers + asked["last_rho"] * (weights - asked["shared"])
        found, weights = covariance(plain.answers[k][1], asked, multipliers)
    assert found == pytest.approx(secrets[1], abs=1e-9)


class Attack:
    """Looks for the covariances whose clients would have answered with the sums that were seen."""

    def __init__(self, channel, rounds):
        chosen = of_rounds(channel)[:rounds]
        self.asked = [channel.asked[k][1] for k in chosen]
        self.seen = np.array([channel.sums[k]["target"] for k in chosen])
        self.lower = np.tril_indices(D)

    def covariances(self, x):
        factors = np.zeros((len(SIZES), D, D), x.dtype)
        factors[:, *self.lower] = x.reshape(len(SIZES), -1)
        return factors @ factors.swapaxes(1, 2)

    def errors(self, x):
        secrets, weights = self.covariances(x), None
        multipliers = np.zeros(secrets.shape, x.dtype)
        sums = []
        for asked in self.asked:
            if weights is not None:
                multipliers = multipliers + asked["last_rho"] * (weights - asked["shared"])
            right = asked["rho"] * asked["shared"] - multipliers + secrets
            weights = np.linalg.solve(secrets + asked["rho"] * np.eye(D), right)
            sums.append((weights + multipliers / asked["rho"]).sum(axis=0))
        return (np.array(sums) - self.seen).ravel()

    def best_of(self, seeds):
        """Return the covariances with the least squares, from several random starts."""
        found = []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            scales = rng.uniform(0.3, 1.2, (len(SIZES), D, 1)) * np.eye(D)
            start = (scales + 0.1 * rng.normal(size=scales.shape))[:, *self.lower].ravel()
            limits = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15)
            found.append(least_squares(self.errors, start, jac="cs", max_nfev=150, **limits))
            if found[-1].cost < 1e-20:
                break
        return self.covariances(min(found, key=lambda one: one.cost).x)


def distance(found, secrets):
    """Return how far covariances are off, whichever belongs to whom."""
    orders = permutations(range(len(secrets)))
    return min(np.abs(found[list(order)] - secrets).max() for order in orders)


@pytest.fixture(scope="module")
def masked(tables):
    return run(lambda participants: WatchedChannel(MemoryChannel(participants, secure=True)), tables)


def test_masked_sums_of_many_rounds_give_the_covariances_away(masked, secrets):
    """Every message is masked, and yet: the sums of 45 rounds determine each client's covariance."""
    assert distance(Attack(masked, 45).best_of((2, 3, 4)), secrets) < 1e-10


def test_the_sum_of_one_round_does_not(masked, secrets):
    """Negative control: with one sum, other covariances explain it as well."""
    attack = Attack(masked, 1)
    found = attack.best_of((2,))
    factors = np.linalg.cholesky(found)[:, *attack.lower].ravel()
    assert np.abs(attack.errors(factors)).max() < 1e-9
    assert distance(found, secrets) > 0.1


def test_users_are_told():
    text = FederatedNOTEARS.__doc__
    for sentence in (
        "hides rows; it doesn't hide covariances",
        "secure_statistics",
        "least squares",
        "nothing is proved",
    ):
        assert sentence in " ".join(text.split())
