"""Files of other programs with named arrays: safetensors, NumPy's .npz, Flax's msgpack, HDF5, PyTorch.

Such a file may come from anywhere, and it may be damaged or made to do harm. Opening it reads only names,
types and shapes, and compares them with the bytes that the file has. Memory for values is allocated later,
array by array, and only for arrays that are asked for. Nothing in a file is executed.

To add a format, write a module with a function that adds the arrays of a file to Weights (stored.py), and
add it to FORMATS."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Callable
from typing import NoReturn

from kappascope.archives import open_zip
from kappascope.flax_files import open_msgpack
from kappascope.hdf5 import open_hdf5
from kappascope.refusal import fail
from kappascope.safetensors_files import is_safetensors, open_safetensors
from kappascope.stored import SAVEZ, Weights, check_regular, no_surprises
from kappascope.torch_files import open_torch

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


# Files of other kinds, by their first bytes: what they are, and the way out.
_OTHERS = {
    b"\x93NUMPY": ("a single array of NumPy (.npy)", "numpy.savez(FILE.npz, NAME=numpy.load(FILE.npy), ...)"),
    b"\x1f\x8b": ("a file that gzip compressed", "gunzip"),
    b"BZh": ("a file that bzip2 compressed", "bunzip2"),
    b"\xfd7zXZ": ("a file that xz compressed", "unxz"),
    b"\x28\xb5\x2f\xfd": ("a file that zstd compressed", "unzstd"),
    b"version https://git-lfs": ("a pointer of Git LFS in place of the file", "git lfs pull"),
    b"<": ("a page of HTML or XML", "the address of the file itself"),
}
_ORBAX = (
    "in a Python with Orbax, for the folder that has the file _METADATA: python3 -c 'import os, sys, numpy, "
    "orbax.checkpoint as o; from flax.traverse_util import flatten_dict; numpy.savez(sys.argv[2], "
    '**{"/".join(map(str, k)): v for k, v in flatten_dict(o.PyTreeCheckpointer().restore('
    "os.path.abspath(sys.argv[1]))).items()})' FOLDER WEIGHTS.npz"
)
_TENSORFLOW = "numpy.savez(FILE.npz, **{v.name: v.numpy() for v in model.variables}) in a Python with it"
_VARIABLES = (
    "numpy.savez(FILE.npz, **{n: tf.train.load_variable(PREFIX, n) for n, _ in tf.train.list_variables("
    "PREFIX)}) in a Python with TensorFlow (tf), PREFIX without .index"
)
# Files of other kinds, by their names.
_NAMES = {
    **dict.fromkeys(
        ["*.index", "*.data-?????-of-?????"], ("a part of a checkpoint of TensorFlow", _VARIABLES)
    ),
    "*.tflite": ("a model of TensorFlow Lite", _TENSORFLOW),
    "*.onnx": (
        "a model of ONNX",
        "numpy.savez(FILE.npz, **{t.name: onnx.numpy_helper.to_array(t) for t in "
        "onnx.load(PATH).graph.initializer}) in a Python with onnx",
    ),
    "*.eqx": (
        "arrays of Equinox, which have no names",
        "numpy.savez(FILE.npz, **{jax.tree_util.keystr(k): v for k, v in jax.tree_util.tree_leaves_with_path("
        "equinox.filter(model, equinox.is_array))}) in the program that wrote it",
    ),
    "*.tar": ("an archive of tar", "tar -xf, and a file in it"),
}
# Files that only folders of other programs have, or the folders in these.
_FOLDERS = {
    "*.index": ("TensorFlow", _VARIABLES),
    "*.distcp": (
        "torch.distributed.checkpoint",
        "torch.distributed.checkpoint.format_utils.dcp_to_torch_save(FOLDER, FILE.pt) in a Python with it",
    ),
    **dict.fromkeys(["_METADATA", "_CHECKPOINT_METADATA", "manifest.ocdbt", ".zarray"], ("Orbax", _ORBAX)),
    "saved_model.pb": ("TensorFlow", _TENSORFLOW),
}


def _refuse_folder(path: str) -> NoReturn:
    names = sorted(os.listdir(path))
    for file, (program, way) in _FOLDERS.items():
        if any(glob.glob(os.path.join(glob.escape(path), *["*"] * depth, file)) for depth in range(3)):
            fail(f"{path}: expected a file, found a folder of {program}. Way out: {way}")
    some = ", ".join(names[:3]) or "nothing"
    fail(f"{path}: expected a file, found a folder with {some} in it. Way out: a file in it, or {SAVEZ}")


def open_weights(path: str) -> Weights:
    """Opens a file. Its content decides which format it has, or if that does not, its name."""
    try:
        if os.path.isdir(path):
            _refuse_folder(path)
        if not os.path.exists(path) and os.path.exists(path + ".index"):
            what = "the prefix of a checkpoint of TensorFlow"
            fail(f"{path}: expected a file, found {what}. Way out: {_VARIABLES}")
        check_regular(path)
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError as error:
        fail(f"{path}: cannot be opened: {error.strerror}")
    if not head:
        fail(f"{path}: expected a file of arrays, found an empty file")
    w = Weights(path)
    known = [o for _, recognizes, o in FORMATS if recognizes(head, w.size)]
    known += [o for endings, _, o in FORMATS if path.endswith(endings)]
    others = [o for pattern, o in _NAMES.items() if fnmatch.fnmatch(path, pattern)]
    others += [o for start, o in _OTHERS.items() if head.startswith(start)]
    if others or not known:
        what, way = others[0] if others else ("something else", SAVEZ)
        fail(
            f"{path}: expected a file of safetensors, NumPy (.npz), Flax (.msgpack), HDF5 (.h5) or PyTorch "
            f"(.pt, .pth, .zip of Stable-Baselines3), found {what}. Way out: {way}"
        )
    with no_surprises(path):
        known[0](w)
    names = [s.name for s in w.arrays]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        fail(f"{path}: two arrays have the name {twice}")
    return w
