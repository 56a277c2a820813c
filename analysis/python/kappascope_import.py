"""What `kappascope import` starts: the program of the package, in a Python with NumPy and h5py, this one or
Debian's. A Python that is too old for the package can still read this file."""

import os
import sys

DEBIAN = "/usr/bin/python3"
OLDEST = (3, 9)


def start() -> int:
    here = os.path.dirname(os.path.realpath(__file__))
    if sys.path[:1] != [here]:  # with PYTHONSAFEPATH
        sys.path.insert(0, here)
    found = "Python " + ".".join(map(str, sys.version_info[:2]))
    if sys.version_info >= OLDEST:
        # OpenBLAS starts its threads when NumPy is imported, and here they have no work.
        kept = dict(os.environ)
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        try:
            from kappascope.import_program import main

            os.environ.clear()
            os.environ.update(kept)
            return main()
        except ImportError as error:
            if (error.name or "").split(".")[0] not in ("numpy", "h5py"):
                raise
            found = str(error).strip().split("\n")[0]
    if not sys.executable.startswith(DEBIAN) and os.access(DEBIAN, os.X_OK):
        os.execv(DEBIAN, [DEBIAN, os.path.realpath(__file__)] + sys.argv[1:])  # noqa: RUF005
    print(
        "kappascope-import: expected Python {}.{} or newer with NumPy and h5py, found none: {}: install "
        "python3-numpy and python3-h5py, or: python3 -m pip install numpy h5py".format(*OLDEST, found),
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(start())
