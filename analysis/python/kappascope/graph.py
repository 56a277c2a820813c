"""PyTorch: the outputs of the critics in a traced graph, and the heads of Q-networks."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import numpy as np

from kappascope.names import Array, Arrays, Module, Node, Tensor
from kappascope.refusal import fail
from kappascope.torch_layers import Layers
from kappascope.tracing import nearly_equal
from kappascope.values import UNWRITTEN, NoLine, Parameter, Source, Value, reason

_NO_TERMS = (UNWRITTEN - {"sub"}) | {"between", "constant", "times"}  # what cannot be a term of a sum


def added(node: Node, parts: list[Value], blocks: list[Array]) -> Value:
    """The sum of parts times constant matrices: the parts side by side, and a dense."""
    found = Value("dense", node, [Value("cat", node, parts, last=True)], kernel=np.concatenate(blocks))
    found.frozen, found.width = True, blocks[0].shape[1]
    return found


def _joins_or_splits(shape: tuple[int, ...], axes: list[int]) -> bool:
    """Whether each dimension of a shape consists of whole axes, or is a part of one."""
    ends = list(itertools.accumulate(axes, operator.mul, initial=1))
    dims = list(itertools.accumulate(shape, operator.mul, initial=1))
    return all(
        {first, last} <= set(ends) or any(a <= first and last <= b for a, b in zip(ends, ends[1:]))
        for first, last in zip(dims, dims[1:])
    )


class Graph(Layers):
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

    # --- sums of branches ---

    def sum_of(self, value: Value) -> Value | None:
        """A sum or difference of features, also times constants, as the features side by side and a dense
        with the kernel [I; I]; None if it is something else."""
        if value not in self.sums:
            self.sums[value] = self._find_sum(value)
        return self.sums[value]

    def _find_sum(self, value: Value) -> Value | None:
        seen, scale, total = self.seen[value.node], 1.0, value
        if value.kind == "mulc":
            scale, total = value.options["init"], value.args[0]
        if (
            total.kind not in ("add", "sub")
            or total.free
            or seen.dim() > (3 if self._is_stacked(value) else 2)
        ):
            return None
        width, parts, blocks = self.width(value), [], []
        for sign, part in zip((1, 1 if total.kind == "add" else -1), total.args):
            narrow = seen.dim() > 1 and self.seen[part.node].shape == (*seen.shape[:-1], 1)
            if self.seen[part.node].shape != seen.shape and not narrow:
                return None
            factor = scale * sign
            while part.kind == "mulc" and not part.free:
                factor, part = factor * part.options["init"], part.args[0]
            flat = part if part.kind != "layout" or part.free else self.unfolded(part)
            if flat is None or flat.kind in _NO_TERMS and not flat.free:
                return None
            parts.append(flat)
            blocks.append(factor * (np.ones((1, width)) if narrow else np.eye(width)))
        return added(value.node, parts, blocks)

    def width(self, value: Value) -> int:
        """The number of features."""
        if value.kind == "cat" and value.options["last"]:
            return sum(map(self.width, value.args))  # which may stand for the terms of a sum
        shape = self.seen[value.node].shape
        return int(shape[-1]) if len(shape) > 1 else 1

    def _is_stacked(self, value: Value) -> bool:
        """Whether the value is [E, R, d], of all critics of a stacked ensemble."""
        shape = self.seen[value.node].shape
        return len(shape) == 3 and shape[1] == self.rows

    # --- heads of Q-networks ---

    def duel(self, value: Value) -> Value | None:
        """value + advantage - mean advantage as a layer `dueling` of a joined value and advantages;
        None if it is something else."""
        if value not in self.duels:
            self.duels[value] = self._find_duel(value)
        return self.duels[value]

    def _find_duel(self, value: Value) -> Value | None:
        terms = self._terms(value, 1) if value.kind in ("add", "sub") else []
        means = [t for sign, t in terms if sign < 0 and t.kind == "mean" and t.options["keepdim"]]
        plus = [t for sign, t in terms if sign > 0]
        if len(means) != 1 or len(plus) != 2 or means[0].args[0] not in plus:
            return None
        advantages = means[0].args[0]
        base = plus[0] if plus[1] is advantages else plus[1]
        a, axis = self.seen[advantages.node], means[0].options["dim"]
        flat = self._ordered(advantages.node, axis)
        v, rows = self.seen[base.node], len(a)
        atoms = a[0].numel() // a.shape[axis]
        if flat is None or v.numel() != rows * atoms:
            return None
        by_action, v = a.movedim(axis, 1).reshape(rows, -1, atoms), v.reshape(rows, 1, atoms)
        total = v + by_action - by_action.mean(1, keepdim=True)
        if not self._same(total.movedim(1, axis).reshape(a.shape), value):
            return None
        joined = Value("cat", value.node, [self.unfolded(base) or base, flat], last=True)
        return Value("dueling", value.node, [joined], atoms=atoms, axis=axis)

    def _terms(self, value: Value, sign: int) -> list[tuple[int, Value]]:
        """The terms of sums and differences, with their signs."""
        if value.kind not in ("add", "sub"):
            return [(sign, value)]
        x, y = value.args
        return self._terms(x, sign) + self._terms(y, sign if value.kind == "add" else -sign)

    def _same(self, expected: Tensor, value: Value) -> bool:
        found = self.seen[value.node]
        return expected.numel() == found.numel() and nearly_equal(
            found.reshape(expected.shape), expected, 1e-12 if not self.rounded else 1e-5
        )

    def unfolded(self, value: Value) -> Value | None:
        """The value [R, K M] behind a view [R, K, M] of it; a value [R, K] as it is; else None."""
        before = self.seen[value.node]
        if value.kind != "layout":
            return value if before.dim() == 2 or self.duel(value) else None
        inner = self.seen[value.args[0].node]
        same = isinstance(inner, self.torch.Tensor) and inner.dim() == 2
        same = same and before.numel() == inner.numel() and len(before) == len(inner)
        same = same and self._is_in_order(self._moved(value.node))
        return value.args[0] if same else None

    # --- the choice of an action ---

    def _on_sum(self, node: Node) -> Value:
        """(q * one_hot).sum(dim)"""
        a = self._call(node, "input", "dim", "keepdim")
        x, dim = a["input"], a.get("dim")
        dim = dim[0] if isinstance(dim, list) and len(dim) == 1 else dim
        stacked = self._stacked_parts(node, x, dim)
        if stacked:
            return stacked
        if x.kind != "times" or not isinstance(dim, int):
            raise NoLine
        at = next(n for n in x.node.all_input_nodes if self.values[n] is x.args[0])
        return self._select(node, at, self._weights(x.args[1]), dim % self.seen[x.node].dim())

    def _over(self, node: Node, kind: str) -> Value:
        """Also the mean of stacked features."""
        a = self._call(node, "input", "dim", "keepdim") if kind == "mean" else {}
        stacked = self._stacked_parts(node, a["input"], a.get("dim")) if a else None
        if stacked:
            return self._times(node, stacked, 1 / len(self.seen[a["input"].node]))
        return super()._over(node, kind)

    def _stacked_parts(self, node: Node, x: Value, dim: Any) -> Value | None:
        """The sum of the parts of torch.stack(parts, dim)."""
        if x.free or getattr(x.node.target, "__name__", "") != "stack" or dim != 0:
            return None
        if self._call(x.node, "input", "dim").get("dim", 0) != 0:
            return None
        total: Value = x.args[0]
        for part in x.args[1:]:
            total = Value("add", part.node, [total, part])
        if len(x.args) > 1:
            total.node = node
        return total

    def _weights(self, chosen: Value) -> Source:
        """The weights [R, A] of A actions, whatever dimensions of length 1 they have."""
        width = self.seen[chosen.node].numel() // self.rows
        return Source(chosen, width, lambda t: t.reshape(len(t), -1).to(self.dtype), "weights")

    def _on_gather(self, node: Node) -> Value:
        a = self._call(node, "input", "dim", "index")
        return self._taken(node, node.all_input_nodes[0], a["index"], a["dim"])

    def _on_take_along_dim(self, node: Node) -> Value:
        a = self._call(node, "input", "indices", "dim")
        return self._taken(node, node.all_input_nodes[0], a["indices"], a["dim"])

    def _layout(self, node: Node, value: Value) -> Value:
        """Also q[arange(R), a], q[arange(R), :, a], q[one_hot.bool()]."""
        parts = node.args[1] if getattr(node.target, "__name__", "") == "getitem" else ()
        parts = parts if isinstance(parts, tuple) else (parts,)
        nodes = [i for i, part in enumerate(parts) if isinstance(part, self.torch.fx.Node)]
        seen = [self.seen[parts[i]] for i in nodes]
        index = self.values[parts[nodes[-1]]] if nodes and not value.free else None
        if index and index.free and len(parts) == 1 and seen[0].dtype == self.torch.bool:
            return self._select(node, node.args[0], self._weights(index), 1)
        rows = len(nodes) == 2 and nodes[0] == 0 and seen[0].flatten().tolist() == list(range(self.rows))
        if index and rows and all(part == slice(None) for i, part in enumerate(parts) if i not in nodes):
            return self._taken(node, node.args[0], index, nodes[1])
        return super()._layout(node, value)

    def _product(self, node: Node, x: Any, w: Any, bias: Parameter | None = None) -> Value:
        """Also q [R, M, K] @ one_hot [R, K, 1], and one_hot [R, 1, K] @ q [R, K, M]."""
        both = isinstance(x, Value) and isinstance(w, Value) and "parameter" not in (x.kind, w.kind)
        if not both or x.free == w.free:
            return super()._product(node, x, w, bias)
        nodes = node.all_input_nodes
        at, chosen = nodes if w.free else nodes[::-1]
        return self._select(node, at, self._weights(self.values[chosen]), 2 if w.free else 1)

    def _on_einsum(self, node: Node) -> Value:
        """Also 'rak,ra->rk' and the like, where [R, A] are weights of actions."""
        if not isinstance(node.args[0], str):
            return super()._on_einsum(node)
        nodes, (left, _, out) = node.all_input_nodes, node.args[0].replace(" ", "").partition("->")
        values = [self.values[n] for n in nodes]
        parts = sorted(zip((v.free for v in values), left.split(","), nodes), key=lambda part: part[0])
        if [free for free, _, _ in parts] == [False, True] and "parameter" not in [v.kind for v in values]:
            (_, q, at), (_, weights, chosen) = parts
            action = weights[1:]
            if weights == q[0] + action and q.count(action) == 1 and out == q.replace(action, ""):
                return self._select(node, at, self._weights(self.values[chosen]), q.index(action))
        return super()._on_einsum(node)

    def _taken(self, node: Node, at: Node, index: Any, axis: int) -> Value:
        """The layer `select` of one action for each row, by its number."""
        seen, functional = self.seen[at], self.torch.nn.functional
        axis, count = axis % seen.dim(), seen.shape[axis]
        numbers = self.seen[index.node].reshape(len(seen), -1) if isinstance(index, Value) else seen
        if not isinstance(index, Value) or not index.free or not bool((numbers == numbers[:, :1]).all()):
            raise NoLine(word="gather")

        def one_hot(t: Tensor) -> Tensor:
            return functional.one_hot(t.reshape(len(t), -1)[:, 0].long(), count).to(self.dtype)

        return self._select(node, at, Source(index, count, one_hot, f"one of {count}"), axis)

    def _places(self, node: Node, base: Value) -> Any:
        """Of each value of a node, which is a view of `base`: its place in that; None if it is no view."""
        torch, value = self.torch, self.values[node]
        seen = self.seen[base.node]
        if value is base and self.seen[node].shape == seen.shape:
            places, duel = torch.arange(seen.numel()).reshape(seen.shape), self.duel(base)
            last = duel and duel.options["axis"] == 2  # whose layer has the actions in the outer order
            return places.reshape(len(seen), *seen.shape[:0:-1]).movedim(1, 2) if last else places
        if value.kind != "layout" and value is not base or not node.all_input_nodes:
            return None
        places = self._places(node.all_input_nodes[0], base)
        return None if places is None else self._repeat(node, {node.all_input_nodes[0]: places})

    def _permuted(self, dense: Value, order: Any) -> Value | None:
        """A dense with its outputs in another order; None if it has none of its own."""
        dense = self.sum_of(dense) or dense
        if dense.kind != "dense" or dense.state:
            return None
        params = {key: p.then(lambda w: w[..., order]) for key, p in dense.params.items()}
        found = dense.with_params(dense.node, params)
        if not params:
            found.options["kernel"] = dense.options["kernel"][:, order.numpy()]
        found.frozen = dense.frozen
        return found

    def _ordered(self, at: Node, axis: int) -> Value | None:
        """The features of which `at` is a view, with the actions, which it has in this axis, in the outer
        order; None if there are no such features."""
        base, seen, rows = self._base(at), self.seen[at], self.rows
        places = self._places(at, base) if len(seen) == rows and 1 <= axis < seen.dim() <= 3 else None
        if places is None or self.seen[base.node].dim() != 2 and not self.duel(base):
            return None
        width = self.seen[base.node].numel() // rows
        places = places.long().reshape(rows, *seen.shape[1:])
        order = places[0].movedim(axis - 1, 0).flatten()
        rises = width * self.torch.arange(rows)[:, None]
        if not bool((places.flatten(1) == places[0].flatten() + rises).all()):
            return None
        if order.tolist() == list(range(width)):
            return base
        return self._permuted(base, order) if sorted(order.tolist()) == list(range(width)) else None

    def _base(self, at: Node) -> Value:
        """The value of which a node is a view."""
        base = self.values[at]
        while base.kind == "layout" and base.args:
            base = base.args[0]
        return base

    def _select(self, node: Node, at: Node, source: Source, axis: int) -> Value:
        """The layer `select`: at is [R, K], or [R, K, M] or [R, M, K], with the actions in this axis, and the
        source [R, K]."""
        flat, seen = self._ordered(at, axis), self.seen[at]
        if flat is not None:
            blocks = seen.movedim(axis, 1).reshape(self.rows, seen.shape[axis], -1)
            chosen = source.take(self.seen[source.value.node])
            value = Value("select", node, [flat], source=source)
            if list(chosen.shape) == list(blocks.shape[:2]):
                if self._same((blocks * chosen[..., None]).sum(1), value):
                    return value
        left = [self._base(at)]
        while left:  # what was refused in front of it says more
            value = left.pop()
            if value.kind == "bad":
                return value
            left += [v for v in value.args if not v.free]
        raise NoLine(word="times")
