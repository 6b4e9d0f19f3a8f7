"""What all workers share: one JSON request on stdin, one JSON reply on stdout.

Workers run in interpreters that have another program and not ours, so this takes the standard library alone, and is
imported by its bare name, from the folder that they stand in.
"""

import json
import sys
from contextlib import redirect_stdout


def serve(answer):
    """Read the request, and write what `answer` makes of it."""
    request = json.load(sys.stdin)
    # Programs report trouble with print; stdout must hold the reply and nothing else.
    with redirect_stdout(sys.stderr):
        reply = answer(request)
    json.dump(reply, sys.stdout)
