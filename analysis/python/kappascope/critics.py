"""PyTorch: the critics of traced modules, with their parameters and state."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kappascope.chain import Chain, description_lines, kernel_of
from kappascope.description import Layer
from kappascope.graph import Graph
from kappascope.losses import Loss
from kappascope.minibatches import real_array
from kappascope.names import Array, Arrays, Node, Tensor
from kappascope.refusal import fail
from kappascope.tracing import parts_of, place_of
from kappascope.values import Source


class Critic:
    """The chains of one traced module: its description, input and parameters."""

    def __init__(self, graph: Graph, losses: list[Loss], project: Mapping[str, str]) -> None:
        self.graph, self.losses = graph, losses
        self.chains: list[Chain] = []
        roots = [[root] for root in graph.roots]
        if len(losses) > 1:
            roots = [graph.roots]
            if len(graph.roots) != len(losses):
                fail(
                    f"{graph.name}: expected a tuple of {len(losses)} outputs from forward, as many as "
                    f"losses, found {len(graph.roots)}. Way out: a module for each critic"
                )
        for one in roots:
            chain = Chain(graph, one, losses)
            if chain.lines:
                fail(f"{graph.name} cannot be expressed:", chain.lines)
            lines, chain.values = description_lines(chain.items, project)
            lines += [f"loss {losses[0].text}"] if len(losses) == 1 else []
            chain.text = "\n".join([*lines, ""])
            self.chains.append(chain)
        graph.check_arrangement({root: self.ensemble(c) for c in self.chains for root in c.roots})
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

    def ensemble(self, chain: Chain) -> int:
        """E of a stacked ensemble, else 1."""
        kernel = next(kernel_of(v) for v in chain.values if v.kind == "dense" and v.params)
        shape = kernel.transform(self.graph.parameters[kernel.name]).shape
        return int(shape[0]) if len(shape) == 3 else 1

    def input(self, chain: Chain, seen: dict[Node, Any], rows: int) -> Array:
        """[R, D]: what the first layers read, and what is joined later."""
        return np.concatenate([self._columns(source, seen, rows) for source in chain.sources], -1)

    def _columns(self, source: Source, seen: dict[Node, Any], rows: int) -> Array:
        """[R, d], the same for all members of a stacked ensemble."""
        x = source.take(seen[source.value.node]).detach().cpu().numpy()
        x = x if x.ndim > 1 else x[:, None]
        width = x.shape[-1]
        x = x.reshape(-1, rows, width) if x.size % (rows * width) == 0 else x[None]
        if x.ndim != 3 or x.shape[1] != rows or not (x == x[:1]).all():
            fail(
                f"{place_of(self.graph, source.value.node)}: expected the same {rows} rows as the inputs "
                f"have, for every critic, found {list(x.shape)} that differ. Way out: no change of rows in "
                "forward; inputs that have all rows"
            )
        return np.asarray(x[0])

    def outputs(self, seen: dict[Node, Any], rows: int, width: int) -> Tensor:
        """[E, R, K], in the graph of autograd; width: K."""
        found = []
        for chain in self.chains:
            parts = [seen[root.node].reshape(self.ensemble(chain), rows, -1) for root in chain.roots]
            found.append(self.graph.torch.cat(parts, -1))
        if any(f.shape[-1] != width for f in found):
            fail(
                f"{self.graph.name}: expected {width} outputs for each of {rows} rows, found "
                f"{[list(seen[root.node].shape) for root in self.graph.roots]}"
            )
        return self.graph.torch.cat(found)

    def check_norms(self, seen: dict[Node, Any]) -> None:
        """A lerp's l2norm has eps = 1e-8. Another eps is the same function where no norm is near
        either."""
        for value in (value for chain in self.chains for value in chain.values):
            if value.kind == "lerp" and value.options["norm_eps"] != 1e-8:
                before = self.graph.values[value.node].args[0].node
                least = seen[before].norm(dim=-1).min()
                if not least > 10 * max(value.options["norm_eps"], 1e-8):
                    fail(
                        f"{place_of(self.graph, value.node)}: expected eps=1e-8 in the l2norm of a lerp, "
                        f"found {value.options['norm_eps']:g} and a row of norm {least:g}. Way out: eps=1e-8"
                    )


def collect(critics: list[Critic], layers: list[Layer], read: Callable[[Graph, str], Tensor]) -> Arrays:
    """{"NN_kind/name": [E, ...]} of all critics; read(graph, name) is a tensor of a parameter's
    shape."""
    found: dict[str, list[Array]] = {}
    for critic, chain in ((c, chain) for c in critics for chain in c.chains):
        ensemble = critic.ensemble(chain)
        for layer, value in zip(layers, chain.values):
            for name, shape in layer.params.items():
                shape = (ensemble, *shape)
                if name not in value.params:  # a constant of forward
                    constant = np.broadcast_to(value.options.get(name, np.float32(1)), shape)
                    found.setdefault(f"{layer.group}/{name}", []).append(constant)
                    continue
                parameter = value.params[name]
                array = parameter.transform(read(critic.graph, parameter.name)).detach().cpu()
                single = str(array.dtype) != "torch.float64"
                array = (array.float() if single else array).numpy()
                if array.size != math.prod(shape):
                    fail(
                        f"{place_of(critic.graph, value.node)}: expected {list(shape)} numbers for {name} "
                        f"of {layer.group}, found {list(array.shape)} in {parameter.name}. Way out: one "
                        "number for each feature"
                    )
                found.setdefault(f"{layer.group}/{name}", []).append(array.reshape(shape))
    return {key: np.concatenate(arrays) for key, arrays in found.items()}


def states_of(critics: list[Critic], layers: list[Layer]) -> Arrays:
    """Running statistics of batch normalization and vectors of spectral norms, if all such layers
    of all critics have them: a checkpoint has all of them or none."""
    found: dict[str, list[Array]] = {}
    wanted = {f"{layer.group}/{name}" for layer in layers for name in layer.state}
    for critic in critics:
        buffers = {
            f"{path}.{key}": b for path, m in parts_of(critic.graph.original) for key, b in m._buffers.items()
        }
        for chain in critic.chains:
            for layer, value in zip(layers, chain.values):
                for name, path in value.state.items():
                    array = real_array(path, buffers[path])[None]
                    found.setdefault(f"{layer.group}/{name}", []).append(array)
    count = sum(len(c.chains) for c in critics)
    if set(found) != wanted or any(len(arrays) != count for arrays in found.values()):
        return {}
    return {key: np.concatenate(arrays) for key, arrays in found.items()}


def check_projections(critics: list[Critic], project: Mapping[str, str]) -> None:
    """Each pattern has a kernel."""
    values = [
        v for c in critics for chain in c.chains for v in chain.values if v.kind == "dense" and v.params
    ]
    names = list(dict.fromkeys(kernel_of(value).name for value in values))
    for pattern, how in project.items():
        if how not in ("unit", "unit-kernel"):
            fail(f"project: {pattern}: expected 'unit' or 'unit-kernel', found {how!r}")
        if not fnmatch.filter(names, pattern):
            fail(f"project: {pattern}: no kernel has such a name; found {', '.join(names)}")


def check_parameters(critics: list[Critic]) -> None:
    """No parameter twice, none times a constant that has no place."""
    used: dict[tuple[int, tuple[int, ...]], str] = {}
    lines = []
    for graph, value in ((c.graph, v) for c in critics for chain in c.chains for v in chain.values):
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
