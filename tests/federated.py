"""What the tests of federated learning share: reference cases, splits into clients, channels that write down."""

import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from gpn_bayes.federated.interface import Channel

FOLDER = Path(__file__).parent / "reference" / "notears"
REFERENCES = {2: "lin_d10_K2_n256_s0", 8: "lin_d10_K8_n256_s0", 64: "lin_d10_K64_n256_s0_tol"}


def reference(clients):
    """Return the clients' rows, the true adjacency, and the weights and the graph that the original program found."""
    with np.load(FOLDER / f"{REFERENCES[clients]}.npz") as stored:
        truth, found = (stored[name] != 0 for name in ("B_true", "W_post"))
        return list(stored["Xs"]), truth.astype(np.int8), stored["W_est"], found.astype(np.int8)


def split(table, clients):
    """Return a table's rows dealt out to clients, as evenly as may be."""
    return [table.iloc[places] for places in np.array_split(np.arange(len(table)), clients)]


def asked(shared, rho, last_rho, n):
    """Return what a client is sent in a round."""
    return {"shared": shared, "rho": np.array(rho), "last_rho": np.array(last_rho), "rows": np.array(n)}


@contextmanager
def two_clients_allowed():
    """Don't mind the warning of what a sum of two reveals."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "a sum over 2 clients hides little", UserWarning)
        yield


class PlainChannel(Channel):
    """Adds up answers as they are, and writes down what was asked, what everybody said, and the sums."""

    def __init__(self, participants):
        self.clients = tuple(f"client{k + 1}" for k in range(len(participants)))
        self.participants = participants
        self.asked, self.answers, self.sums = [], [], []

    def sum(self, task, values, shapes=None):
        sent = {name: np.asarray(value) for name, value in values.items()}
        answers = [participant.answer(task, sent) for participant in self.participants]
        self.asked.append((task, sent))
        self.answers.append(answers)
        self.sums.append({name: np.sum([answer[name] for answer in answers], axis=0) for name in answers[0]})
        return self.sums[-1]


class ReplayedChannel(Channel):
    """Returns sums that were written down."""

    def __init__(self, clients, sums):
        self.clients = clients
        self.sums = iter(sums)

    def sum(self, task, values, shapes=None):
        return next(self.sums)


class WatchedChannel(Channel):
    """Writes down what the coordinator asks and sees of another channel."""

    def __init__(self, channel):
        self.clients = channel.clients
        self.channel = channel
        self.asked, self.sums = [], []

    def sum(self, task, values, shapes=None):
        self.asked.append((task, {name: np.asarray(value) for name, value in values.items()}))
        self.sums.append(self.channel.sum(task, values, shapes))
        return self.sums[-1]
