"""``python -m gpn_bayes.cli`` is the same as ``gpn-bayes``."""

from gpn_bayes.cli import main

main()
