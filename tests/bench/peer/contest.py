"""Contestants: programs that stay alive and run one method a line of standard input, timed.

A contestant prints "ready" and a JSON object about itself. A line "METHOD" runs that method and is
answered by its seconds; "METHOD PATH" also saves the result, a flat float64 array, as PATH (.npy).
So several of them can be measured in turns, and a noisy minute meets them all."""

import json
import os
import subprocess
import sys
import time

import numpy as np

IDLE = 0.05  # seconds: thread pools of the one that just ran stop spinning


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
    """A running one. environment: variables to set; None: to take away."""

    def __init__(self, command, environment):
        variables = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
        self.command = command
        self.process = subprocess.Popen(command, env=variables, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        answer = self.read()
        if not answer.startswith("ready "):
            sys.exit(f"{command[0]}: expected its first line, found {answer!r}")
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
        """More than once is fine."""
        self.process.stdin.close()
        self.process.wait()


class Contestants(dict):
    """{key: Contestant}, each started when it is first asked for. every: {key: (command,
    environment)}."""

    def __init__(self, every):
        self.every = every

    def __missing__(self, key):
        self[key] = Contestant(*self.every[key])
        return self[key]

    def close(self):
        for contestant in self.values():
            contestant.close()


def distance(found, expected):
    """Relative; infinite where not the same ones are NaN."""
    there = ~np.isnan(expected)
    if (np.isnan(found) == there).any():
        return np.inf
    return float(np.linalg.norm((found - expected)[there]) / np.linalg.norm(expected[there]))


def measure(runs, rounds):
    """runs: {key: (contestant, method)}. Seconds {key: [rounds]}, each round running all in turns,
    after one that is not counted."""
    seconds = {key: [] for key in runs}
    for i in range(rounds + 1):
        for key, (contestant, method) in runs.items():
            time.sleep(IDLE)
            taken = contestant.run(method)
            if i > 0:
                seconds[key].append(taken)
    return seconds
