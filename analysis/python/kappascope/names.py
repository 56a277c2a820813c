"""Names for types. PyTorch and JAX are imported only where they are needed, so their types are Any here."""

from __future__ import annotations

import os
from typing import Any, Union

from numpy.typing import NDArray

VERSION = "0.7.0"  # as src/VERSION has it
Array = NDArray[Any]
Arrays = dict[str, Array]
Path = Union[str, "os.PathLike[str]"]
Shapes = dict[str, tuple[int, ...]]
Tensor = Any  # torch.Tensor
Module = Any  # torch.nn.Module
Node = Any  # torch.fx.Node
