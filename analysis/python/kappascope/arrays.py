"""Files of other programs with named arrays: safetensors, NumPy's .npz, Flax's msgpack, HDF5, PyTorch.

Such a file may come from anywhere, and it may be damaged or made to do harm. Opening it reads only names,
types and shapes, and compares them with the bytes that the file has. Memory for values is allocated later,
array by array, and only for arrays that are asked for. Nothing in a file is executed.

To add a format, write a module with a function that adds the arrays of a file to Weights (stored.py), and
add it to FORMATS."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from kappascope.archives import open_torch, open_zip
from kappascope.flax_files import open_msgpack
from kappascope.hdf5_files import open_hdf5
from kappascope.refusal import fail
from kappascope.safetensors_files import is_safetensors, open_safetensors
from kappascope.stored import Weights, no_surprises

# (ending of the name, whether a file that starts with `head` and has `size` bytes is one, opening). The order
# matters: a safetensors file starts with the length of its header, which can look like a pickle or like a
# map of MessagePack. The signature of HDF5 looks like such a map, too.
FORMATS: tuple[tuple[tuple[str, ...], Callable[[bytes, int], bool], Callable[[Weights], None]], ...] = (
    ((".npz", ".zip", ".keras"), lambda head, _: head[:4] == b"PK\3\4", open_zip),
    ((".safetensors",), is_safetensors, open_safetensors),
    ((".h5", ".hdf5"), lambda head, _: head[:8] == b"\x89HDF\r\n\x1a\n", open_hdf5),
    (
        (".pt", ".pth"),
        lambda head, _: len(head) >= 3 and head[0] == 0x80 and 1 <= head[1] <= 5,
        lambda w: open_torch(w, w.path, w.size),
    ),
    (
        (".msgpack",),
        lambda head, _: len(head) > 1 and (0x80 < head[0] < 0x90 or head[0] in (0xDE, 0xDF)),
        open_msgpack,
    ),
)


def open_weights(path: str) -> Weights:
    """Opens a file. Its content decides which format it has, or if that does not, its name."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            fail(f"{path}: expected a file, found a folder or a device")
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError as error:
        fail(f"{path}: cannot be opened: {error.strerror}")
    w = Weights(path)
    opening = next((o for _, recognizes, o in FORMATS if recognizes(head, w.size)), None)
    opening = opening or next((o for endings, _, o in FORMATS if path.endswith(endings)), None)
    if not opening:
        fail(
            f"{path}: expected a file of safetensors, NumPy (.npz), Flax (.msgpack), HDF5 (.h5) or PyTorch "
            "(.pt, .pth, .zip of Stable-Baselines3), found something else"
        )
    with no_surprises(path):
        opening(w)
    names = [s.name for s in w.arrays]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        fail(f"{path}: two arrays have the name {twice}")
    return w
