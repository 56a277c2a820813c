"""The program `kappascope import`: its options, its messages, signals, and the exit status."""

from __future__ import annotations

import errno
import getopt
import os
import re
import signal
import sys
from typing import NoReturn

import numpy as np

from kappascope import __version__
from kappascope.importing import AXES, MOST_INDEX, NO_PROCESS, STOPPING, Import, import_files
from kappascope.refusal import NotPrinted, Refused, fail, printable, say

HELP = """\
NAME
  kappascope-import - writes a critic from another framework's files as a checkpoint

SYNOPSIS
Usage: kappascope import --arch A.arch --map M.map --batch B.npz WEIGHTS... -o C.h5
  -q, --quiet                  print no progress
  -h, --help                   print this text
      --version                print the versions of the program and its
                               libraries

Options:
      --arch=A.arch            the critic's description, with its loss
      --map=M.map              which array of WEIGHTS is which of the critic's
      --batch=B.npz            the minibatches: arrays input and target, and
                               optionally weight, output, loss and
                               gradient_norm
  -o, --output=C.h5            the checkpoint to write; without it only the
                               listing is printed
      --ensemble-axis=AXIS     each index of this axis of every array is
                               another critic; axes count from 0
      --slice=AXIS:INDEX       take one index of an axis of every array, such
                               as one of several seeds

DESCRIPTION
  WEIGHTS is a file of NumPy (.npz) or HDF5 (.h5); where Python has the package
  safetensors, also .safetensors, where it has msgpack, Flax's .msgpack, and
  where it has PyTorch, .pt, .pth, and the .zip of Stable-Baselines3. Several
  files are several critics. The map has a line 'layout = torch' or
  'layout = flax' and a line for each array:

    layout = torch
    00_dense/kernel = critic.0.weight
    00_dense/bias   = critic.0.bias
    ignore actor.**

  In names, * stands for any characters except '.' and '/', ** for any
  characters, and ? for one character except '.' and '/'. Several matches are
  several critics; so are several names on a line, in their order
  ('00_dense/kernel = l1.weight l4.weight' for two). Adam's moments, for the
  operator preconditioned, have lines of their own:

    adam                 = 0.9 0.999 1e-8
    adam/step            = optimizer.state.0.step
    adam/m/00_dense/bias = optimizer.state.1.exp_avg
    adam/v/00_dense/bias = optimizer.state.1.exp_avg_sq

  The first line has beta1, beta2 and epsilon; the second may have the number
  of steps itself; the others are needed for all trained arrays. Every array of WEIGHTS must
  be taken or ignored. If one is unused, missing or ambiguous, the listing says
  so and nothing is written. If B.npz has what the other program computed
  (output [N,B,E,K], loss [N], gradient_norm [N]), this is compared before
  anything is written.

EXAMPLES
  kappascope import --arch a.arch --map m.map --batch b.npz critic.npz -o c.h5
  kappascope import --arch a.arch --map m.map --batch b.npz --slice 0:3 \\
      --ensemble-axis 1 seeds.npz -o seed3.h5

EXIT STATUS
  0 success; 1 failure at run time; 2 invalid options, missing or malformed files.
"""


_VALUES = "arch", "map", "batch", "output", "ensemble-axis", "slice"
_SWITCHES = "quiet", "help", "version"
_SHORT = {"-o": "--output", "-q": "--quiet", "-h": "--help"}


def _read_options(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """The values of the options, "" for switches, and the other arguments. As in all programs of KappaScope,
    options stand anywhere, and the word behind --output is its value, whatever it is."""
    try:
        given, files = getopt.gnu_getopt(arguments, "o:qh", [*(f"{name}=" for name in _VALUES), *_SWITCHES])
    except getopt.GetoptError as error:
        fail(f"{error.msg} (see --help)")
    return {
        _SHORT.get(name, name): value.removeprefix("=" * (name in _SHORT)) for name, value in given
    }, files


def _integer(text: str, most: int) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,10}", text) and int(text) <= most else None


def _parse(arguments: list[str]) -> Import | None:
    """None if only the help or the version was asked for, which it prints."""
    given, weights = _read_options(arguments)
    if "--help" in given:
        say(HELP.removesuffix("\n"))
        return None
    if "--version" in given:
        import h5py

        say(f"kappascope-import {__version__}\nPython {sys.version.split()[0]}\nNumPy {np.__version__}")
        say(f"h5py {h5py.__version__}\nHDF5 {h5py.version.hdf5_version}")
        return None
    for option in ("--arch A.arch", "--map M.map", "--batch B.npz"):
        if option.split()[0] not in given:
            fail(f"expected {option} (see --help)")
    if not weights:
        fail("expected a file of weights, found none (see --help)")
    axis, part = _integer(given.get("--ensemble-axis", ""), AXES), None
    if "--ensemble-axis" in given and axis is None:
        fail(f"--ensemble-axis: expected an integer from 0 to {AXES}, found '{given['--ensemble-axis']}'")
    if "--slice" in given:
        first, _, second = given["--slice"].partition(":")
        of, index = _integer(first, AXES), _integer(second, MOST_INDEX)
        if of is None or index is None:
            fail(f"--slice: expected AXIS:INDEX, such as 0:3, found '{given['--slice']}'")
        part = of, index
    if part and part[0] == axis:
        fail(f"--slice and --ensemble-axis: expected two axes, both are {axis}")
    arch, map, batch = given["--arch"], given["--map"], given["--batch"]
    return Import(arch, map, batch, weights, given.get("--output"), axis, part, "--quiet" in given)


def _stop(number: int, _: object) -> NoReturn:
    raise KeyboardInterrupt(number)


def _run(arguments: list[str]) -> tuple[int, str]:
    """The exit status, and the message of a failure."""
    try:
        job = _parse(arguments)
        if job:
            import_files(job)
        return 0, ""
    except Refused as error:
        return 2, str(error)
    except MemoryError:
        return 1, "out of memory"
    except NotPrinted as error:
        return 1, f"cannot write to standard output: {error}"
    except BlockingIOError:
        return 1, NO_PROCESS
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
        where = "a file" if error.filename is None else error.filename
        return 1 if full else 2, f"{where}: {error.strerror or error}"


def main(arguments: list[str] | None = None) -> int:
    """Signals end it as they end other programs, but what is half written is removed before."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    kept = {
        number: signal.signal(number, _stop)
        for number in STOPPING
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        status, message = _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt as stopped:
        signal.signal(stopped.args[0], signal.SIG_DFL)
        os.kill(os.getpid(), stopped.args[0])
        raise
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    if status != 0:
        print(f"kappascope-import: {printable(message)}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
