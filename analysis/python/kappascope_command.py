"""The command `kappascope` of an installed package: it becomes the program, without importing the package."""

import os
import shutil
import sys


def main() -> int:
    # A wheel has the programs. Else they are in the PATH, where `kappascope` may be this command.
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(here, "kappascope", "bin", "kappascope-analyze")
    found = path if os.path.exists(path) else shutil.which("kappascope-analyze")
    if not found:
        print("kappascope: this package has no programs, and there are none in the PATH", file=sys.stderr)
        return 2
    folder = os.path.dirname(found)
    if sys.argv[1:2] == ["import"]:  # in this Python, which has NumPy and h5py
        from kappascope_import import start

        os.environ["KAPPASCOPE_PROGRAMS"] = folder
        del sys.argv[1]
        return start()
    program = os.path.join(folder, "kappascope")
    os.execv(program, [program, *sys.argv[1:]])
