"""The command line, with a program of many rounds that only tests know."""

from gpn_bayes.cli import main
from gpn_bayes.federated.programs import PROGRAMS
from tests.federation import DESCENT

if __name__ == "__main__":
    PROGRAMS["descent"] = DESCENT
    main()
