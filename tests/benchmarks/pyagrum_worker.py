"""Learn a network with pyagrum, as a JSON-in, JSON-out worker process.

Run it with the interpreter that has pyagrum 3 installed: it imports only pyagrum, pandas and the standard library. The
request on stdin: ``data`` (path of a comma-separated table of 0-based codes with a header row), ``cardinalities``
(levels of every column), ``max_parents``, and ``decreases``, the numbers of steps in a row that its tabu search may go
down: a search is made for each. The reply is one JSON object on stdout: for each search the parents by name, and the
seconds of a first and of a second call of ``learnDAG`` on one learner. pyagrum scores while it searches, so neither
is the time of the search alone; the second finds what pyagrum remembers.
"""

import json
import sys
import time

import pandas as pd
import pyagrum as gum


def template(cardinalities):
    """Return a network without edges that has every level, observed or not."""
    network = gum.BayesNet()
    for name, levels in cardinalities.items():
        network.add(gum.LabelizedVariable(name, name, [str(level) for level in range(levels)]))
    return network


def learn(request, decreases):
    """Return what one tabu search finds, and how long it took."""
    table = pd.read_csv(request["data"]).astype(str)
    learner = gum.BNLearner(table, template(request["cardinalities"]))
    learner.setNumberOfThreads(1)
    learner.useNoPrior().useScoreBIC().setMaxIndegree(request["max_parents"]).useLocalSearchWithTabuList(100, decreases)
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        dag = learner.learnDAG()
        seconds.append(time.perf_counter() - began)
    names = {node: learner.nameFromId(node) for node in dag.nodes()}
    parents = {name: sorted(names[parent] for parent in dag.parents(node)) for node, name in names.items()}
    return {"parents": parents, "first_seconds": seconds[0], "second_seconds": seconds[1]}


def main():
    """Read the request from stdin and write the reply to stdout."""
    request = json.load(sys.stdin)
    found = {str(decreases): learn(request, decreases) for decreases in request["decreases"]}
    json.dump({"version": gum.__version__, "found": found}, sys.stdout)


if __name__ == "__main__":
    main()
