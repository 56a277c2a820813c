"""What `kappascope import` starts: kappascope.importing, in a Python with NumPy and h5py (this or "
"Debian's)."""

import os
import sys

DEBIAN = "/usr/bin/python3"


def start() -> int:
    try:
        from kappascope.importing import main
    except ImportError as error:
        if error.name not in ("numpy", "h5py"):
            raise
        if not sys.executable.startswith(DEBIAN) and os.access(DEBIAN, os.X_OK):
            os.execv(DEBIAN, [DEBIAN, *sys.argv])
        print(
            f"kappascope-import: expected Python with NumPy and h5py, found none: {error}: install "
            "python3-numpy and python3-h5py, or: python3 -m pip install numpy h5py",
            file=sys.stderr,
        )
        return 2
    return main()


if __name__ == "__main__":
    sys.exit(start())
