"""Monitor of the package kappascope in a loop that trains critics: python3 export_monitor.py ANALYZER
FOLDER"""

import contextlib
import csv
import io
import os
import resource
import subprocess
import sys
import time

import torch
from torch.nn import functional as F

import export_critics_torch as zoo
import kappascope as kx
from kappascope.monitor import append_row
from export_common import main


def training(folder):
    """save(path, step) of two critics, and a function that trains them a step."""
    torch.manual_seed(4)
    critics = [zoo.SAC(6, 8), zoo.SAC(6, 8)]
    optimizer = torch.optim.Adam([p for q in critics for p in q.parameters()], 3e-3)
    obs, actions, y = torch.randn(2, 16, 4), torch.randn(2, 16, 2), torch.randn(2, 16)

    def save(path, step):
        kx.save(
            path,
            critics=critics,
            inputs=(obs, actions),
            targets=y,
            loss=F.mse_loss,
            optimizer=optimizer,
            step=step,
        )

    def train():
        optimizer.zero_grad()
        sum(F.mse_loss(q(obs[0], actions[0]).squeeze(-1), y[0]) for q in critics).backward()
        optimizer.step()

    return save, train


class Writer:
    def __init__(self):
        self.rows = []

    def add_scalar(self, name, value, step):
        self.rows.append((name, value, step))


class Run:
    def __init__(self):
        self.rows, self.metrics = [], []

    def define_metric(self, name, step_metric):
        self.metrics.append((name, step_metric))

    def log(self, values):
        self.rows.append(values)


def check(true, what):
    if not true:
        sys.exit(f"monitor: expected {what}")


def follows(program, folder):
    """Analyses of a run, to a CSV file, a writer and a run, the last one after the loop."""
    save, train = training(folder)
    writer, run, path = Writer(), Run(), f"{folder}/curves.csv"
    monitor = kx.Monitor(
        folder, save, every=20, log=[path, writer, run], program=program, options=["--order", "20"]
    )
    for step in range(61):
        train()
        monitor(step)
        while step % 20 == 1 and monitor.process and monitor.process.poll() is None:
            time.sleep(0.01)
    monitor.close()
    monitor.close()
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    check(
        [r["step"] for r in rows] == ["0", "20", "40", "60"],
        f"rows of four steps, found {[r['step'] for r in rows]}",
    )
    check(
        len({r["lambda_max"] for r in rows}) == 4 and all(float(r["lambda_max"]) > 0 for r in rows),
        "four values of lambda_max",
    )
    check(
        [s for n, _, s in writer.rows if n == "kappascope/lambda_max"] == [0, 20, 40, 60],
        "four scalars",
    )
    check(
        [float(r["lambda_max"]) for r in rows] == [r["kappascope/lambda_max"] for r in run.rows],
        "the same values in the run",
    )
    check(run.metrics == [("kappascope/*", "kappascope/step")], "a step of its own in wandb")
    check(
        os.path.exists(f"{folder}/step_000000060.spectrum.h5"), "a spectrum beside each checkpoint"
    )


def script(folder, name, text):
    path = f"{folder}/{name}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, 0o755)
    return path


def never_waits(folder):
    """While an analysis runs, saves are left out, and a call takes next to no time."""
    save, train = training(folder)
    saved = []
    slow = script(folder, "slow", "sleep 60")
    monitor = kx.Monitor(
        folder,
        lambda path, step: (saved.append(step), save(path, step)),
        every=10,
        log=f"{folder}/slow.csv",
        program=slow,
    )
    longest = 0
    for step in range(50):
        train()
        start = time.perf_counter()
        monitor(step)
        longest = max(longest, time.perf_counter() - start if step else 0)
    check(saved == [0], f"one save while its analysis runs, found {saved}")
    check(monitor.skipped == 4, f"four saves left out, found {monitor.skipped}")
    check(longest < 0.05, f"calls that do not wait, found {longest:.3f} s")
    child = os.fork()
    if child == 0:  # a process of the training, such as an environment's, that ends in its own way
        monitor(60)
        monitor.close()
        os._exit(monitor.process is None)
    check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "a forked process to do nothing")
    process, start, said = monitor.process, time.time(), io.StringIO()
    with contextlib.redirect_stderr(said):
        monitor.close(wait=0.1)
    check(
        process.poll() is not None and time.time() - start < 10,
        "an analysis that takes too long to be stopped at the end",
    )
    check("stopped" in said.getvalue(), "a line about it")


def never_kills(folder):
    """A failed analysis, a missing program and a refused save are reported once, and the loop goes
    on."""
    save, train = training(folder)

    def refuse(path, step):
        kx.save(
            path,
            critics=torch.nn.Dropout(0.5),
            inputs=torch.randn(4, 4),
            targets=torch.randn(4),
            loss="mse",
        )

    def full(path, step):  # the disk is full: no file may grow beyond this
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        try:
            save(path, step)
        finally:
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            )

    failing = script(folder, "failing", "echo kappascope: expected memory >&2; exit 1")
    silent = script(folder, "silent", "exit 0")
    crashing = script(folder, "crashing", "kill -SEGV $$")
    for how, program, words in (
        (save, failing, "exit status 1: kappascope: expected memory"),
        (save, f"{folder}/missing", "missing"),
        (save, silent, "no statistics and no message"),
        (save, crashing, "exit status -11"),
        (refuse, failing, "Refused"),
        (full, failing, "File too large"),
    ):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            monitor = kx.Monitor(
                f"{folder}/failed",
                how,
                every=1,
                log=f"{folder}/failed.csv",
                program=program,
                keep=False,
            )
            for step in range(4):
                train()
                monitor(step)
                while monitor.process and monitor.process.poll() is None:
                    time.sleep(0.01)
            monitor.close()
        lines = said.getvalue().splitlines()
        check(
            len([s for s in lines if s.startswith("kappascope:")]) == 1
            and words in said.getvalue(),
            f"one report with {words!r}, found {lines}",
        )
    check(not os.path.exists(f"{folder}/failed.csv"), "no row of a failed analysis")
    check(
        not os.listdir(f"{folder}/failed"),
        f"no file to stay, found {os.listdir(f'{folder}/failed')}",
    )


def whole_rows(folder):
    """A row that does not fit on the disk leaves the table as it was."""
    path, row = f"{folder}/rows.csv", {"step": 1, "kappa": 2.5}
    append_row(path, row)
    before = os.path.getsize(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before + 2, resource.RLIM_INFINITY))
    try:
        append_row(path, row)
        check(False, "a failure of a row that does not fit")
    except OSError:
        pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    check(os.path.getsize(path) == before, "a table of whole rows")
    append_row(path, {"step": 2, "kappa": None})
    with open(path, encoding="utf-8") as file:
        check(file.read() == "step,kappa\n1,2.5\n2,\n", "a row behind it")


def ends(program, folder):
    """A program that forgets close() ends cleanly, with the last row."""
    text = f"""
import sys
sys.path[:0] = {sys.path[:2] + [p for p in sys.path if p.endswith(("export", "peer"))]!r}
import export_monitor, kappascope
save, train = export_monitor.training({folder!r})
monitor = kappascope.Monitor({folder!r}, save, every=5, log={folder!r} + "/end.csv",
                                    program={program!r}, keep=False)
monitor(7)
"""
    done = subprocess.run(
        [sys.executable, "-c", text],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = [line for line in done.stderr.splitlines() if ": waiting for" not in line]
    check(
        done.returncode == 0 and not said,
        f"a clean end, found {done.returncode}: {done.stderr}",
    )
    with open(f"{folder}/end.csv", encoding="utf-8", newline="") as file:
        check([r["step"] for r in csv.DictReader(file)] == ["7"], "the last row")
    check(not os.path.exists(f"{folder}/step_000000007.h5"), "no checkpoint with keep=False")


def compare(program, folder):
    torch.set_num_threads(1)
    program = os.path.abspath(program).removesuffix("-analyze")
    folder = f"{folder}/monitor"
    os.makedirs(folder)
    follows(program, folder)
    never_waits(folder)
    never_kills(folder)
    whole_rows(folder)
    ends(program, folder)
    print(
        "Monitor follows a training, never waits for an analysis, survives every failure and ends "
        "cleanly"
    )


if __name__ == "__main__":
    main(compare)
