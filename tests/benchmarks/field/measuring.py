"""Run a command and write what it took: a launcher that takes the standard library alone.

``python measuring.py USAGE LIMIT COMMAND…`` passes stdin and stdout on to the command and writes a JSON object to the
file USAGE: its status, CPU seconds (user and system, of all processes that it waited for), wall seconds and peak memory
in MiB. LIMIT is in CPU seconds; a command that hangs without computing is ended after three times as many by the clock.

It is a process of its own because a new process starts with the peak memory of the one that started it: under a runner
that has pandas and scikit-learn loaded, a small program would seem to take as much as the runner.
"""

import json
import os
import resource
import signal
import sys
import time


def main(usage, limit, command):
    """Run the command; return its exit status."""
    seconds = int(limit)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.execvp(command[0], command)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(3 * seconds)
    _, status, taken = os.wait4(child, 0)
    signal.alarm(0)
    wall = time.monotonic() - began
    code = os.waitstatus_to_exitcode(status)
    stopped = code == -signal.SIGXCPU or taken.ru_utime + taken.ru_stime >= seconds or wall >= 3 * seconds
    with open(usage, "w") as file:
        json.dump(
            {
                "code": code,
                "stopped": stopped,
                "cpu": taken.ru_utime + taken.ru_stime,
                "wall": wall,
                "memory": taken.ru_maxrss / 1024,
            },
            file,
        )
    return 0 if code == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
