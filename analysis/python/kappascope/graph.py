"""PyTorch: the outputs of the critics in a traced graph."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import numpy as np

from kappascope.names import Arrays, Module, Node, Tensor
from kappascope.refusal import fail
from kappascope.torch_rules import Rules, added
from kappascope.tracing import nearly_equal
from kappascope.values import Value, reason


def _joins_or_splits(shape: tuple[int, ...], axes: list[int]) -> bool:
    """Whether each dimension of a shape consists of whole axes, or is a part of one."""
    ends = list(itertools.accumulate(axes, operator.mul, initial=1))
    dims = list(itertools.accumulate(shape, operator.mul, initial=1))
    return all(
        {first, last} <= set(ends) or any(a <= first and last <= b for a, b in zip(ends, ends[1:]))
        for first, last in zip(dims, dims[1:])
    )


class Graph(Rules):
    """One module, traced: `roots` are the outputs of its critics, `values` what its nodes compute."""

    def __init__(self, module: Module, name: str, inputs: Arrays, by_name: bool) -> None:
        super().__init__(module, name, inputs, by_name)
        self.values: dict[Node, Value] = {}
        self.duels: dict[Value, Value | None] = {}
        self.sums: dict[Value, Value | None] = {}
        for node in self.graph.nodes:
            self.values[node] = self._value(node)
            self._write_through(node)
        self.starts: dict[Value, int] = {}
        self.returned: list[tuple[Node, list[Value]]] = []
        self.places: dict[Node, Tensor] = {}
        self.roots = self._roots(next(n for n in self.graph.nodes if n.op == "output").args[0])

    def _roots(self, returned: Any) -> list[Value]:
        """The last layer of every critic in what forward returns: a value, a tuple, a dict, a
        concatenation."""
        if isinstance(returned, dict):
            returned = list(returned.values())
        if isinstance(returned, (list, tuple)):
            return [root for part in returned for root in self._roots(part)]
        if not isinstance(returned, self.torch.fx.Node):
            fail(
                f"{self.name}: expected forward to return the outputs of its critics alone, found "
                f"{returned!r} among them. Way out: a wrapper whose forward returns the outputs"
            )
        roots = self._last_layers(self.values[returned], 0)
        self.returned.append((returned, roots))
        return roots

    def _last_layers(self, value: Value, start: int) -> list[Value]:
        """Those of one value. start: how many numbers the last layers in front of them have."""
        if value.kind == "layout" or value.kind == "cat" and not value.free:
            roots: list[Value] = []
            for part in value.args:
                before = sum(self.seen[root.node].numel() for root in roots)
                roots += self._last_layers(part, start + before)
            return roots
        self.starts[value] = start
        total = None if self.duel(value) else self.sum_of(value)
        if not total and value.kind == "mulc":
            part = self.unfolded(value.args[0])
            total = part and added(value.node, [part], [value.options["init"] * np.eye(self.width(part))])
        if total:
            return [total]
        if value.kind not in ("dense", "select", "slice") and not self.duel(value):
            why, way = (value.why, value.way) if value.why else reason(value.kind)
            self.refuse(
                value.node,
                "the last layer of a critic is a Linear, whose outputs the loss reads; "
                f"{why}. Way out: {way}",
            )
        return [value]

    def check_arrangement(self, critics: dict[Value, int]) -> None:
        """What forward returns has each number of the last layers once, in the order of critics, rows and
        outputs; its dimensions are these three in any order, joined or split. Else the loss would compare
        an output with the target of another one. critics: how many each last layer has."""
        torch = self.torch
        for node, roots in self.returned:
            places, shape = self._places_in_roots(self.values[node]).flatten(), self.seen[node].shape
            shapes = [list(self.seen[root.node].shape) for root in roots]
            sizes = [math.prod(one) for one in shapes]
            good = len(places) == sum(sizes) and all(
                n % (critics[root] * self.rows) == 0 for n, root in zip(sizes, roots)
            )
            if good:
                parts = [
                    part.reshape(critics[root], self.rows, -1)
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
                self.refuse(
                    node,
                    f"forward cuts or reorders the outputs of the last layer, {shapes}, to {list(shape)}. "
                    "Way out: return them as they are, and do this in the loss",
                )
            self.places[node] = places

    def _places_in_roots(self, value: Value) -> Tensor:
        """Where each number of a value is in the last layers, one behind the other."""
        seen, node = self.seen[value.node], value.node
        if value in self.starts:
            return self.starts[value] + self.torch.arange(seen.numel()).reshape(seen.shape)
        inner = node.all_input_nodes[: 1 if value.kind == "layout" else None]
        return self._repeat(
            node, {n: self._places_in_roots(self.values[n]).reshape(self.seen[n].shape) for n in inner}
        )

    def check_order(self, seen: dict[Node, Any]) -> None:
        """The order of the first minibatch is that of another one, whose inputs might change it."""
        for node, roots in self.returned:
            numbers, places = self.torch.cat([seen[r.node].flatten() for r in roots]), self.places[node]
            bound = 1e-2 if self.rounded else 1e-12
            alike = len(numbers) == len(places)
            if not alike or not nearly_equal(seen[node].flatten(), numbers[places], bound):
                self.refuse(
                    node,
                    "forward cuts or reorders the outputs of the last layer in some minibatches. Way out: "
                    "return them as they are, and do this in the loss",
                )
