"""Vectors over the parameters, such as eigenvectors, in the layout of PyTorch's modules: load_vectors."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kappascope.critics import Critic, chains_of, collect
from kappascope.description import Description, Layer, Loss
from kappascope.export_flax import FLAX, names_of, take
from kappascope.export_torch import bind, common_description, modules_of, share_layers
from kappascope.graph import Graph
from kappascope.hdf5 import read_hdf5
from kappascope.minibatches import read_minibatches
from kappascope.names import Array, Arrays, Module, Path, Tensor
from kappascope.nodes import read_graph
from kappascope.outputs import Outputs
from kappascope.reference import leaves_of, nest
from kappascope.refusal import Refused, fail
from kappascope.tracing import plain_module, surroundings

ROWS = 8  # of inputs that are made up to trace a module


def load_vectors(
    path: Path, critics: Any, inputs: Any = None, names: Mapping[str, str] | None = None
) -> list[Any]:
    """The vectors of a file of `kappascope analyze` (--eigenvectors, --gradient, --apply) as PyTorch's
    parameters: for each vector a dict {name: tensor} like state_dict() of the critic, with shape, dtype and
    device of each parameter, and 0 in those that are not trained; of several critics, a list of such dicts.

        for v in kappascope.load_vectors("top.h5", qf1):
            moved = {name: p + 0.1 * v[name] for name, p in qf1.named_parameters()}

    critics    as for save, in the same order; their values do not matter
    inputs     as for save, which files of --gradient need; without them the modules are traced with random
               rows, which is enough for a forward(x) or a forward(x, y) that joins both

    names      of Flax, as for save_flax: `critics` is the dict or the state that save_flax got as variables
               (not a module of Equinox), and each vector is such a tree of arrays; only of critics all of
               whose layers are trained

    Raises Refused if the file has no vectors, or is of other critics."""
    vectors, parameters = _read(path)
    several = isinstance(critics, (list, tuple))
    if hasattr(critics[0] if several and critics else critics, "items"):
        return _trees(path, critics, names or {}, parameters, vectors)
    import torch

    modules, error = modules_of(critics), ""
    if share_layers(modules):
        fail("critics: they share layers. Way out: one module, whose forward returns a tuple, as for save")
    with surroundings(torch):
        for given in _inputs(path, plain_module(modules[0]), inputs, parameters):
            try:
                arrays, by_name = bind(plain_module(modules[0]), given)
                arrays, _ = read_minibatches(arrays)
                positions = _positions(torch, modules, arrays, by_name, parameters)
            except Exception as failure:  # of a forward that does not take such rows
                if inputs is not None:
                    raise
                positions, error = None, error or str(failure).strip().splitlines()[0]
            if positions is not None and len(positions) == vectors.shape[1]:
                own = [_named(torch, modules, positions, vector) for vector in vectors]
                return own if several or len(modules) > 1 else [v[0] for v in own]
    way = "" if inputs is not None else f"{error and ' (' + error + ')'}. Way out: inputs=, as for save"
    return fail(
        f"{path}: expected vectors over the parameters of these critics, found {vectors.shape[1]} numbers"
        + (f" over {parameters[:300]}" if parameters else "")
        + way
    )


def _read(path: Path) -> tuple[Array, str]:
    """The vectors [k, n], and what they are over."""

    def read(file: Any) -> tuple[Array, str]:
        format, over = (
            one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one)
            for one in (file.attrs.get("format", "another file of HDF5"), file.attrs.get("parameters", ""))
        )
        if format != "kappascope-vector":
            fail(f"{path}: expected a file of vectors (kappascope-vector), found {format}")
        return np.asarray(file["vector"][()], np.float64), over

    try:
        vectors, over = read_hdf5(path, read)
    except Refused:
        raise
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        fail(f"{path}: expected a file of vectors, which `kappascope analyze` writes: {said}")
    if vectors.ndim != 2:
        fail(f"{path}: /vector: expected [k, n], found {list(vectors.shape)}")
    return vectors, over


def _trees(path: Path, critics: Any, names: Mapping[str, str], parameters: str, vectors: Array) -> list[Any]:
    """The vectors as trees of JAX."""
    found: dict[str, Layer] = {}
    for group, kind, name, shape in re.findall(r"(\d+_(\w+))/(\w+) \[([\d, ]*)\]", parameters):
        layer = found.setdefault(group, Layer(group, kind))
        layer.params[name] = tuple(map(int, shape.split(",")))
    layers, trees = list(found.values()), critics if isinstance(critics, (list, tuple)) else [critics]
    sizes = [math.prod(shape) for layer in layers for shape in layer.params.values()]
    if sum(sizes) == 0 or vectors.shape[1] % sum(sizes):
        fail(f"{path}: expected eigenvectors of `kappascope analyze`, found no parameters that fit")
    ensemble = vectors.shape[1] // sum(sizes)
    if len(trees) not in (1, ensemble):
        fail(f"{path}: expected the variables of {ensemble} critics, or one tree, found {len(trees)} trees")
    own = [leaves_of(tree) for tree in trees]
    _, taken = take(own, names_of({**FLAX, **names}, layers), layers, ensemble)

    def tree_of(i: int, parts: list[Array]) -> Any:
        others = {name: np.zeros_like(leaf) for name, leaf in own[i].items()}
        for name, part in zip(taken.values(), parts):
            leaf = others[name]
            mine = part if len(trees) == 1 else part[i]
            others[name] = mine.reshape(leaf.shape).astype(leaf.dtype)
        return nest(trees[i], others)

    result = []
    for vector in vectors:
        parts = np.split(vector.reshape(ensemble, -1), np.cumsum(sizes)[:-1], axis=1)
        moved = [tree_of(i, parts) for i in range(len(trees))]
        result.append(moved if isinstance(critics, (list, tuple)) else moved[0])
    return result


def _inputs(path: Path, module: Module, inputs: Any, parameters: str) -> Iterator[Any]:
    """The inputs that are given; or random ones of the width that the first array has, for one argument
    of forward, or for two that together have this width."""
    if inputs is not None:
        yield inputs
        return
    first = re.match(r"[^[]*\[(\d+)", parameters)
    if not first:
        fail(f"{path}: the file does not say what its parameters are. Way out: inputs=, as for save")
    width, rows = int(first[1]), np.random.default_rng(0).standard_normal((ROWS, int(first[1])))
    takes = [
        p
        for p in inspect.signature(module.forward).parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    if len(takes) == 1:
        yield (rows,)
    elif len(takes) == 2:
        for k in range(1, width):
            yield rows[:, :k], rows[:, k:]


def _positions(
    torch: Any, modules: list[Module], arrays: Arrays, by_name: bool, parameters: str
) -> Array | None:
    """[E P]: where the numbers of a vector are among all numbers of the modules' parameters, one after the
    other; None if the modules do not have these parameters."""
    starts: dict[tuple[str, int], int] = {}
    total = 0
    for i, module in enumerate(modules):
        for p in plain_module(module).parameters():
            starts[f"critics[{i}]", id(p)] = total
            total += p.numel()

    def read(graph: Graph, name: str) -> Tensor:
        shape, start = graph.parameters[name].shape, starts[graph.name, id(graph.parameters[name])]
        return torch.arange(start, start + shape.numel(), dtype=torch.float64).reshape(shape)

    graphs = [read_graph(m, f"critics[{i}]", arrays, by_name) for i, m in enumerate(modules)]
    for heads in dict.fromkeys((1, len(Outputs(graphs[0]).roots))):
        traced = [Critic(graph, [Loss("mse")] * heads, {}) for graph in graphs]
        if heads == 1 and any(c.shares_layers() for c in traced):
            continue
        description = common_description(traced)
        if parameters and _list(description) != parameters:
            continue
        found = collect(chains_of(traced), description.trained(), read)
        return np.concatenate([a.reshape(len(a), -1) for a in found.values()], 1).ravel().astype(np.int64)
    return None


def _list(description: Description) -> str:
    """As the attribute `parameters` of a file of eigenvectors."""
    return ", ".join(
        f"{layer.group}/{name} [{', '.join(map(str, shape))}]"
        for layer in description.layers
        if layer.trainable
        for name, shape in layer.params.items()
    )


def _named(torch: Any, modules: list[Module], positions: Array, vector: Array) -> list[dict[str, Tensor]]:
    """{name: tensor} of each module."""
    named = [list(plain_module(m).named_parameters()) for m in modules]
    flat = np.zeros(sum(p.numel() for own in named for _, p in own))
    flat[positions] = vector
    parts = iter(np.split(flat, np.cumsum([p.numel() for own in named for _, p in own])[:-1]))
    return [
        {
            name: torch.as_tensor(next(parts).reshape(p.shape), dtype=p.dtype, device=p.device)
            for name, p in own
        }
        for own in named
    ]
