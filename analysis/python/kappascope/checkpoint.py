"""Writing a checkpoint: an HDF5 file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any

import h5py
import numpy as np

from kappascope.arguments import check_attributes, check_whole, real
from kappascope.names import Array, Arrays, Path
from kappascope.refusal import fail

LOCK = "lock"  # the file that is locked in a temporary folder


def fixed_string(text: str) -> Array:
    """An attribute of fixed length, as the programs of KappaScope write it: HDF5 stores strings of variable
    length in a heap without a checksum."""
    data = text.encode("utf-8", "surrogateescape")
    return np.array(data, h5py.string_dtype("utf-8", max(len(data), 1)))


def _image(contents: Arrays, attributes: dict[str, dict[str, Any]]) -> bytes:
    """The bytes of an HDF5 file with {name: array} and {object: {attribute: value}}. It is made in
    memory: HDF5 cannot give up a file on a full disk that it has begun to write."""
    with h5py.File("image.h5", "w", driver="core", backing_store=False) as file:
        for name, array in contents.items():
            how = {}
            if array.size > 0 and array.ndim > 0:
                how = dict(chunks=True, shuffle=True, compression=1, fletcher32=True)
            file.create_dataset(name, data=array, **how)
        for name, values in attributes.items():
            file.require_group(name).attrs.update(values)
        file.flush()
        return bytes(file.id.get_file_image())


def check_replaceable(path: Path) -> None:
    """Fails if a file of this name cannot be written: it must be none, or a regular file."""
    path = os.fspath(path)
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.path.basename(path):
        fail(f"{path}: cannot be created: expected the name of a file, found a folder")
    if os.path.exists(path) and not os.path.isfile(path):
        fail(f"{path}: cannot be created: it exists and is a special file")
    if not os.path.isdir(folder):
        fail(f"{path}: cannot be created: there is no folder {folder}")


def replace(temporary: str, path: str) -> None:
    """Gives a file its name, for good."""
    os.replace(temporary, path)
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_abandoned(pattern: str) -> None:
    """Removes what killed programs have left behind: files of this pattern, or folders with such a file. The
    program that works on one has locked it. Where files cannot be locked, none is removed."""
    for name in glob.glob(pattern):
        with contextlib.suppress(OSError), open(name, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.basename(name) == LOCK:
                shutil.rmtree(os.path.dirname(name))
            else:
                os.unlink(name)


def lock(file: Any) -> None:
    """Says that a program works on a temporary file, where the file system can say so."""
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)


def write_file(path: Path, image: bytes, shared: bool = False) -> None:
    """Writes a file that appears whole or not at all. shared: other programs may write the same one now."""
    check_replaceable(path)
    path = os.fspath(path)
    if not shared:
        remove_abandoned(f"{glob.escape(path)}.[0-9]*-[0-9]*.part")
    temporary = f"{path}.{os.getpid()}-{time.time_ns()}.part"
    try:
        with open(temporary, "xb") as file:
            lock(file)
            file.write(image)
            file.flush()
            os.fsync(file.fileno())
        replace(temporary, path)
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:  # of a write
            error.filename = path
        raise


def _constants(adam: dict[str, Any]) -> dict[str, Any]:
    """The attributes of /optimizer. Raises Refused, also of moments that Adam cannot have."""
    found: dict[str, Any] = {"step": check_whole("optimizer: step", adam["step"])}
    for name, high in (("beta1", 1.0), ("beta2", 1.0), ("eps", np.inf)):
        value = real(adam[name])
        if value is None or not 0 <= value < high:
            fail(f"optimizer: {name}: expected at least 0 and below {high:g}, found {adam[name]!r}")
        found[name] = value
    for name, array in adam["v"].items():
        if (array < 0).any():
            fail(f"/optimizer/v/{name}: expected means of squares, found {array.min():g}")
    return found


def write_checkpoint(
    path: Path,
    arch: str,
    ensemble: int,
    arrays: Arrays,
    batch: Arrays,
    adam: dict[str, Any] | None,
    given: Mapping[str, Any] | None,
    step: int | None = None,
    fixed: bool = False,
) -> None:
    """arrays: {"NN_kind/name": [E, ...]}; batch: {name: array}; adam: None, or {"m": arrays, "v":
    arrays, attributes}; given: further attributes of the file; step: the attribute env_step; fixed:
    strings have a fixed length."""
    say: Callable[[str], Any] = fixed_string if fixed else str
    contents = {f"critic/{name}": array for name, array in arrays.items()}
    contents |= {f"batch/{name}": array for name, array in batch.items()}
    own = {"format": say("kappascope-checkpoint"), "version": 2 if "weight" in batch else 1}
    root = ({} if step is None else {"env_step": step}) | dict(given or {})
    reserved = [name for name in own if name in root]
    if reserved:
        fail(f"attributes: {', '.join(reserved)} says what kind of file this is, and cannot be given")
    objects = {
        "/": own | check_attributes("attributes", root),
        "/critic": {"arch": say(arch), "ensemble": ensemble},
    }
    if adam:
        for moment in "mv":
            contents |= {f"optimizer/{moment}/{name}": a for name, a in adam[moment].items()}
        objects["/optimizer"] = _constants(adam)
    for name, array in contents.items():
        if not np.isfinite(array).all():
            fail(f"{path}: {name}: expected finite numbers, found {array[~np.isfinite(array)][0]}")
    write_file(path, _image(contents, objects))
