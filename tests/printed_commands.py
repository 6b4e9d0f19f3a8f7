"""Run blocks of code, given as JSON on standard input, in order: Python in one namespace, bash in the same folder."""

import json
import subprocess
import sys

namespace: dict = {"__name__": "__main__"}
for language, text, place in json.load(sys.stdin):
    print(f"--- {place}", flush=True)
    if language == "python":
        exec(compile(text, f"<{place}>", "exec"), namespace)
    elif language == "bash":
        subprocess.run(["bash", "-euo", "pipefail", "-c", text], check=True, stdin=subprocess.DEVNULL)
    else:
        sys.exit(f"a block must be python or bash, to be run; received {language!r}")
