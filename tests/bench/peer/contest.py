"""Contestants: programs that stay alive and run and time one method per line of standard input.

A contestant prints "ready" and a JSON object about itself. For a line "METHOD" it runs that method and
prints the seconds it took; "METHOD PATH" also saves the result, a flat float64 array, as PATH (.npy).
So several contestants can be measured in turn, and other load on the machine affects all of them."""

import json
import os
import subprocess
import sys
import time

import numpy as np

IDLE = 0.05  # seconds, for the previous contestant's thread pools to stop spinning


def serve(about, methods, flat):
    """A contestant's main loop. methods: {name: function that computes and waits for the result};
    flat(result): the result as a flat array."""
    print("ready", json.dumps(about), flush=True)
    for line in sys.stdin:
        name, *path = line.split()
        start = time.perf_counter()
        result = methods[name]()
        seconds = time.perf_counter() - start
        if path:
            np.save(path[0], np.asarray(flat(result), dtype="f8"))
        print(f"{seconds:.9f}", flush=True)


class Contestant:
    """A running contestant. environment: variables to set, or to unset where None."""

    def __init__(self, command, environment):
        variables = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
        self.command = command
        self.process = subprocess.Popen(command, env=variables, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        answer = self.read()
        if not answer.startswith("ready "):
            sys.exit(f"{command[0]}: expected a line 'ready ...', found {answer!r}")
        self.about = json.loads(answer[len("ready "):])

    def read(self):
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{' '.join(self.command)}: ended with status {self.process.wait()}")
        return answer

    def run(self, method, path=""):
        self.process.stdin.write(f"{method} {path}\n")
        self.process.stdin.flush()
        return float(self.read())

    def close(self):
        """May be called more than once."""
        self.process.stdin.close()
        self.process.wait()


class Contestants(dict):
    """{key: Contestant}, each started at its first use. every: {key: (command, environment)}."""

    def __init__(self, every):
        self.every = every

    def __missing__(self, key):
        self[key] = Contestant(*self.every[key])
        return self[key]

    def close(self):
        for contestant in self.values():
            contestant.close()


def distance(found, expected):
    """The relative distance; infinite unless the same entries are NaN."""
    there = ~np.isnan(expected)
    if (np.isnan(found) == there).any():
        return np.inf
    return float(np.linalg.norm((found - expected)[there]) / np.linalg.norm(expected[there]))


def measure(runs, rounds):
    """runs: {key: (contestant, method)}. Returns seconds {key: [rounds]}. Every round runs all in turn;
    the first round is not counted."""
    seconds = {key: [] for key in runs}
    for i in range(rounds + 1):
        for key, (contestant, method) in runs.items():
            time.sleep(IDLE)
            taken = contestant.run(method)
            if i > 0:
                seconds[key].append(taken)
    return seconds
