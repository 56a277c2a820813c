"""PyTorch: the critics of traced modules, with their parameters and state."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kappascope.arguments import plain
from kappascope.chain import Chain, kernel_of
from kappascope.description import Layer, Loss
from kappascope.graph import Graph
from kappascope.minibatches import real_array
from kappascope.names import Array, Arrays, Node, Tensor
from kappascope.outputs import Outputs
from kappascope.refusal import fail
from kappascope.tracing import parts_of, place_of


class Critic:
    """The chains of one traced module, one for each of its critics."""

    def __init__(self, graph: Graph, losses: list[Loss], project: Mapping[str, str]) -> None:
        self.graph, self.losses, self.returned = graph, losses, Outputs(graph)
        found = self.returned.roots
        roots = [[root] for root in found]
        if len(losses) > 1:
            roots = [found]
            if len(found) != len(losses):
                fail(
                    f"{graph.name}: expected a tuple of {len(losses)} outputs from forward, as many as "
                    f"losses, found {len(found)}. Way out: a module for each critic"
                )
        self.chains = [Chain(graph, one, losses, project) for one in roots]
        self.returned.check_arrangement(
            {root: chain.ensemble for chain in self.chains for root in chain.roots}
        )
        graph.compare_with_forward(
            {p.name for chain in self.chains for value in chain.values for p in value.params.values()}
        )

    def shares_layers(self) -> bool:
        """Whether the critics of this module, of one architecture, have parameters in common."""
        if len({chain.text for chain in self.chains}) > 1:
            return False
        used = [
            {(id(self.graph.parameters[p.name]), p.part) for v in chain.values for p in v.params.values()}
            for chain in self.chains
        ]
        return any(a & b for i, a in enumerate(used) for b in used[:i])

    def outputs(self, seen: dict[Node, Any], width: int) -> Tensor:
        """[E, R, K], in the graph of autograd; width: K."""
        found, rows = [], self.graph.rows
        for chain in self.chains:
            parts = [seen[root.node].reshape(chain.ensemble, rows, -1) for root in chain.roots]
            found.append(self.graph.torch.cat(parts, -1))
        if any(f.shape[-1] != width for f in found):
            fail(
                f"{self.graph.name}: expected {width} outputs for each of {rows} rows, found "
                f"{[list(seen[root.node].shape) for root in self.returned.roots]}"
            )
        return self.graph.torch.cat(found)


def chains_of(critics: list[Critic]) -> list[Chain]:
    return [chain for critic in critics for chain in critic.chains]


def collect(chains: list[Chain], layers: list[Layer], read: Callable[[Graph, str], Tensor]) -> Arrays:
    """{"NN_kind/name": [E, ...]} of all critics; read(graph, name) is a tensor of a parameter's
    shape."""
    found: dict[str, list[Array]] = {}
    for chain in chains:
        for layer, value in zip(layers, chain.values):
            for name, shape in layer.params.items():
                shape = (chain.ensemble, *shape)
                if name not in value.params:  # a constant of forward
                    constant = np.broadcast_to(value.options.get(name, np.float32(1)), shape)
                    found.setdefault(f"{layer.group}/{name}", []).append(constant)
                    continue
                parameter = value.params[name]
                array = plain(parameter.transform(read(chain.graph, parameter.name)))
                array = array if array.dtype == np.float64 else array.astype(np.float32)
                if array.size != math.prod(shape):
                    way = "one number for each feature"
                    if array.size == math.prod(shape[1:]):
                        way = f"one {name} for each critic: these share one, and their Hessian has no blocks"
                    fail(
                        f"{place_of(chain.graph, value.node)}: expected {list(shape)} numbers for {name} "
                        f"of {layer.group}, found {list(array.shape)} in {parameter.name}. Way out: {way}"
                    )
                found.setdefault(f"{layer.group}/{name}", []).append(array.reshape(shape))
    return {key: np.concatenate(arrays) for key, arrays in found.items()}


def states_of(chains: list[Chain], layers: list[Layer]) -> Arrays:
    """Running statistics of batch normalization and vectors of spectral norms, if all such layers
    of all critics have them: a checkpoint has all of them or none."""
    found: dict[str, list[Array]] = {}
    wanted = {f"{layer.group}/{name}" for layer in layers for name in layer.state}
    for chain in chains:
        original = parts_of(chain.graph.original)
        buffers = {f"{path}.{key}": b for path, m in original for key, b in m._buffers.items()}
        for layer, value in zip(layers, chain.values):
            for name, path in value.state.items():
                array = real_array(path, buffers[path])[None]
                found.setdefault(f"{layer.group}/{name}", []).append(array)
    if set(found) != wanted or any(len(arrays) != len(chains) for arrays in found.values()):
        return {}
    return {key: np.concatenate(arrays) for key, arrays in found.items()}


def check_projections(chains: list[Chain], project: Mapping[str, str]) -> None:
    """Each pattern has a kernel."""
    values = [v for chain in chains for v in chain.values if v.kind == "dense" and v.params]
    names = list(dict.fromkeys(kernel_of(value).name for value in values))
    for pattern, how in project.items():
        if how not in ("unit", "unit-kernel"):
            fail(f"project: {pattern}: expected 'unit' or 'unit-kernel', found {how!r}")
        if not fnmatch.filter(names, pattern):
            fail(f"project: {pattern}: no kernel has such a name; found {', '.join(names)}")


def check_parameters(chains: list[Chain]) -> None:
    """No parameter twice, none times a constant that has no place."""
    used: dict[tuple[int, tuple[int, ...]], str] = {}
    lines = []
    for graph, value in ((chain.graph, v) for chain in chains for v in chain.values):
        for name, p in value.params.items():
            tensor, path = graph.parameters[p.name], f"{graph.name}.{p.name}"
            key = id(tensor), p.part
            if key in used:
                what = "is used twice" if used[key] == path else f"is also {used[key]}"
                lines.append(
                    f"{place_of(graph, value.node)}: {path} {what}. Every layer of every critic has "
                    "parameters of its own in the description. Way out: export the part behind a shared one; "
                    "or, for critics that share their first layers, one module whose forward returns a tuple "
                    "of their outputs, which are heads with a loss each"
                )
            used[key] = path
            if p.factor != 1 and name not in ("scaler", "alpha"):
                lines.append(
                    f"{place_of(graph, value.node)}: {path} times {p.factor:g} has no line in the "
                    "description. Way out: store the product in the module: curvature in the product"
                )
    if lines:
        fail("the critics cannot be expressed:", lines)
