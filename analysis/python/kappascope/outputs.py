"""PyTorch: what forward returns, and where the outputs of the last layers are in it."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import numpy as np

from kappascope.graph import Graph, added
from kappascope.names import Node, Tensor
from kappascope.refusal import fail
from kappascope.tracing import nearly_equal
from kappascope.values import Value


def _joins_or_splits(shape: tuple[int, ...], axes: list[int]) -> bool:
    """Whether each dimension of a shape consists of whole axes, or is a part of one."""
    ends = list(itertools.accumulate(axes, operator.mul, initial=1))
    dims = list(itertools.accumulate(shape, operator.mul, initial=1))
    return all(
        {first, last} <= set(ends) or any(a <= first and last <= b for a, b in zip(ends, ends[1:]))
        for first, last in zip(dims, dims[1:])
    )


class Outputs:
    """What forward returns; `roots` are the last layers of its critics."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.starts: dict[Value, int] = {}
        self.returned: list[tuple[Node, list[Value]]] = []
        self.places: dict[Node, Tensor] = {}
        self.roots = self._roots(next(n for n in graph.graph.nodes if n.op == "output").args[0])

    def _roots(self, returned: Any) -> list[Value]:
        """The last layer of every critic in what forward returns: a value, a tuple, a dict, a
        concatenation."""
        if isinstance(returned, dict):
            returned = list(returned.values())
        if isinstance(returned, (list, tuple)):
            return [root for part in returned for root in self._roots(part)]
        if not isinstance(returned, self.graph.torch.fx.Node):
            fail(
                f"{self.graph.name}: expected forward to return the outputs of its critics alone, found "
                f"{returned!r} among them. Way out: a wrapper whose forward returns the outputs"
            )
        roots = self._last_layers(self.graph.values[returned], 0)
        self.returned.append((returned, roots))
        return roots

    def _last_layers(self, value: Value, start: int) -> list[Value]:
        """Those of one value. start: how many numbers the last layers in front of them have."""
        graph = self.graph
        if value.kind == "layout" or value.kind == "cat" and not value.free:
            roots: list[Value] = []
            for part in value.args:
                before = sum(graph.seen[root.node].numel() for root in roots)
                roots += self._last_layers(part, start + before)
            return roots
        self.starts[value] = start
        total = None if graph.duel(value) else graph.sum_of(value)
        if not total and value.kind == "mulc":
            part = graph.unfolded(value.args[0])
            total = part and added(value.node, [part], [value.options["init"] * np.eye(graph.width(part))])
        if total:
            return [total]
        if value.kind not in ("dense", "select", "slice") and not graph.duel(value):
            what = "the last layer of a critic is a Linear, whose outputs the loss reads"
            graph.refuse(value.node, f"{what}; {value.refusal()}")
        return [value]

    def check_arrangement(self, critics: dict[Value, int]) -> None:
        """What forward returns has each number of the last layers once, in the order of critics, rows and
        outputs; its dimensions are these three in any order, joined or split. Else the loss would compare
        an output with the target of another one. critics: how many each last layer has."""
        graph = self.graph
        torch = graph.torch
        for node, roots in self.returned:
            places, shape = (self._places_in_roots(graph.values[node]).flatten(), graph.seen[node].shape)
            shapes = [list(graph.seen[root.node].shape) for root in roots]
            sizes = [math.prod(one) for one in shapes]
            good = len(places) == sum(sizes) and all(
                n % (critics[root] * graph.rows) == 0 for n, root in zip(sizes, roots)
            )
            if good:
                parts = [
                    part.reshape(critics[root], graph.rows, -1)
                    for part, root in zip(torch.arange(sum(sizes)).split(sizes), roots)
                ]
                alike = len({part.shape[-1] for part in parts}) == 1
                whole = torch.cat(parts, 0 if alike else -1)  # [E, R, K]
                good = any(
                    torch.equal(places, whole.permute(axes).flatten())
                    and _joins_or_splits(shape, [whole.shape[axis] for axis in axes])
                    for axes in itertools.permutations(range(3))
                )
            if not good:
                graph.refuse(
                    node,
                    f"forward cuts or reorders the outputs of the last layer, {shapes}, to {list(shape)}. "
                    "Way out: return them as they are, and do this in the loss",
                )
            self.places[node] = places

    def _places_in_roots(self, value: Value) -> Tensor:
        """Where each number of a value is in the last layers, one behind the other."""
        graph = self.graph
        seen, node = graph.seen[value.node], value.node
        if value in self.starts:
            return self.starts[value] + graph.torch.arange(seen.numel()).reshape(seen.shape)
        inner = node.all_input_nodes[: 1 if value.kind == "layout" else None]
        return graph.repeat(
            node, {n: self._places_in_roots(graph.values[n]).reshape(graph.seen[n].shape) for n in inner}
        )

    def check_order(self, seen: dict[Node, Any]) -> None:
        """The order of the first minibatch is that of another one, whose inputs might change it."""
        graph = self.graph
        for node, roots in self.returned:
            numbers, places = graph.torch.cat([seen[r.node].flatten() for r in roots]), self.places[node]
            bound = 1e-2 if graph.rounded else 1e-12
            alike = len(numbers) == len(places)
            if not alike or not nearly_equal(seen[node].flatten(), numbers[places], bound):
                graph.refuse(
                    node,
                    "forward cuts or reorders the outputs of the last layer in some minibatches. Way out: "
                    "return them as they are, and do this in the loss",
                )
