"""PyTorch: what the nodes of a traced graph compute, and what the rules ask about it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from kappascope.names import Array, Arrays, Module, Node, Tensor
from kappascope.tracing import Tracing, nearly_equal
from kappascope.values import UNWRITTEN, NoLine, Value

# Other names of arguments.
_ARGUMENTS = {**dict.fromkeys(["self", "x", "A", "tensors"], "input"), "axis": "dim", "keepdims": "keepdim"}
_ARGUMENTS |= {"mat2": "other", "batch1": "mat1", "batch2": "mat2"}
_NO_TERMS = (UNWRITTEN - {"sub"}) | {"between", "constant", "times"}  # what cannot be a term of a sum


def added(node: Node, parts: list[Value], blocks: list[Array]) -> Value:
    """The sum of parts times constant matrices: the parts side by side, and a dense."""
    found = Value("dense", node, [Value("cat", node, parts, last=True)], kernel=np.concatenate(blocks))
    found.frozen, found.width = True, blocks[0].shape[1]
    return found


def is_in_order(places: Tensor) -> bool:
    """Whether the places of numbers are 0, 1, 2 and so on."""
    return list(places.flatten().tolist()) == list(range(places.numel()))


class Graph(Tracing):
    """One module, traced: `values` are what its nodes compute, which nodes.py fills in."""

    def __init__(self, module: Module, name: str, inputs: Arrays, by_name: bool) -> None:
        super().__init__(module, name, inputs, by_name)
        self.values: dict[Node, Value] = {}
        self.duel, self.sum_of = functools.cache(self._duel), functools.cache(self._sum_of)

    # --- arguments of a node ---

    def inputs(self, node: Node) -> list[Value]:
        return [self.values[n] for n in node.all_input_nodes]

    def call(self, node: Node, *names: str) -> dict[str, Any]:
        """The arguments of a function or method by name, with values in place of nodes; names[0] is
        the first tensor."""
        found = dict(zip(names, node.args))
        found.update(node.kwargs)
        for other, ours in _ARGUMENTS.items():
            if other in found and other not in names and ours in names:
                found.setdefault(ours, found.pop(other))
        if "inplace" not in names:
            found.pop("inplace", None)
        unread = [key for key, value in found.items() if key not in names and value is not None]
        unread += [repr(value) for value in node.args[len(names) :] if value is not None]
        if unread:
            raise NoLine(f"its argument {unread[0]} is not read here")
        found = {key: self.argument(value) for key, value in found.items() if key in names}
        if isinstance(found.get("dim"), list) and len(found["dim"]) == 1:
            found["dim"] = found["dim"][0]
        return found

    def argument(self, value: Any) -> Any:
        """A node as its value; a constant as the number it is; lists likewise."""
        if isinstance(value, (list, tuple)):
            return [self.argument(v) for v in value]
        if not isinstance(value, self.torch.fx.Node):
            return value
        found, seen = self.values[value], self.seen[value]
        if found.kind != "constant":
            return found
        if not isinstance(seen, self.torch.Tensor):
            return seen
        alike = seen.numel() and bool((seen == seen.flatten()[0]).all())
        return float(seen.flatten()[0]) if alike else found

    def is_last(self, value: Value, dim: Any) -> bool:
        dims = self.seen[value.node].dim()
        return isinstance(dim, int) and dim % dims == dims - 1

    def width(self, value: Value) -> int:
        """The number of features."""
        if value.kind == "cat" and value.options["last"]:
            return sum(map(self.width, value.args))  # which may stand for the terms of a sum
        shape = self.seen[value.node].shape
        return int(shape[-1]) if len(shape) > 1 else 1

    def same(self, expected: Tensor, value: Value) -> bool:
        found = self.seen[value.node]
        return expected.numel() == found.numel() and nearly_equal(
            found.reshape(expected.shape), expected, 1e-12 if not self.rounded else 1e-5
        )

    # --- views ---

    def repeat(self, node: Node, given: Mapping[Node, Tensor]) -> Any:
        """What a node computes with other tensors in place of its inputs."""
        args, kwargs = self.torch.fx.node.map_arg(
            (node.args, node.kwargs), lambda n: given[n] if n in given else self.seen[n]
        )
        if node.op == "call_method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        return node.target(*args, **kwargs)

    def moved(self, node: Node) -> Any:
        """Where each number of a view is in its input: values alone might be equal by chance."""
        inner = node.all_input_nodes[0]
        seen = self.seen[inner]
        return self.repeat(node, {inner: self.torch.arange(seen.numel()).reshape(seen.shape)})

    def unfolded(self, value: Value) -> Value | None:
        """The value [R, K M] behind a view [R, K, M] of it; a value [R, K] as it is; else None."""
        before = self.seen[value.node]
        if value.kind != "layout":
            return value if before.dim() == 2 or self.duel(value) else None
        inner = self.seen[value.args[0].node]
        same = isinstance(inner, self.torch.Tensor) and inner.dim() == 2
        same = same and before.numel() == inner.numel() and len(before) == len(inner)
        same = same and is_in_order(self.moved(value.node))
        return value.args[0] if same else None

    def base(self, at: Node) -> Value:
        """The value of which a node is a view."""
        base = self.values[at]
        while base.kind == "layout" and base.args:
            base = base.args[0]
        return base

    def places(self, node: Node, base: Value) -> Any:
        """Of each value of a node, which is a view of `base`: its place in that; None if it is no view."""
        torch, value = self.torch, self.values[node]
        seen = self.seen[base.node]
        if value is base and self.seen[node].shape == seen.shape:
            places, duel = torch.arange(seen.numel()).reshape(seen.shape), self.duel(base)
            last = duel and duel.options["axis"] == 2  # whose layer has the actions in the outer order
            return places.reshape(len(seen), *seen.shape[:0:-1]).movedim(1, 2) if last else places
        if value.kind != "layout" and value is not base or not node.all_input_nodes:
            return None
        places = self.places(node.all_input_nodes[0], base)
        return None if places is None else self.repeat(node, {node.all_input_nodes[0]: places})

    def permuted(self, dense: Value, order: Any) -> Value | None:
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

    def ordered(self, at: Node, axis: int) -> Value | None:
        """The features of which `at` is a view, with the actions, which it has in this axis, in the outer
        order; None if there are no such features."""
        base, seen, rows = self.base(at), self.seen[at], self.rows
        places = self.places(at, base) if len(seen) == rows and 1 <= axis < seen.dim() <= 3 else None
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
        return self.permuted(base, order) if sorted(order.tolist()) == list(range(width)) else None

    # --- sums of branches, and dueling heads ---

    def _sum_of(self, value: Value) -> Value | None:
        """A sum or difference of features, also times constants, as the features side by side and a dense
        with the kernel [I; I]; None if it is something else."""
        seen, scale, total = self.seen[value.node], 1.0, value
        if value.kind == "mulc":
            scale, total = value.options["init"], value.args[0]
        if total.kind not in ("add", "sub") or total.free:
            return None
        if seen.dim() > 2 and seen.shape[1:-1] != (self.rows,):  # neither [R, d] nor [E, R, d]
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

    def _duel(self, value: Value) -> Value | None:
        """value + advantage - mean advantage as a layer `dueling` of a joined value and advantages;
        None if it is something else."""
        terms = self.terms(value, 1) if value.kind in ("add", "sub") else []
        means = [t for sign, t in terms if sign < 0 and t.kind == "mean" and t.options["keepdim"]]
        plus = [t for sign, t in terms if sign > 0]
        if len(means) != 1 or len(plus) != 2 or means[0].args[0] not in plus:
            return None
        advantages = means[0].args[0]
        base = plus[0] if plus[1] is advantages else plus[1]
        a, axis = self.seen[advantages.node], means[0].options["dim"]
        flat = self.ordered(advantages.node, axis)
        v, rows = self.seen[base.node], len(a)
        atoms = a[0].numel() // a.shape[axis]
        if flat is None or v.numel() != rows * atoms:
            return None
        by_action, v = a.movedim(axis, 1).reshape(rows, -1, atoms), v.reshape(rows, 1, atoms)
        total = v + by_action - by_action.mean(1, keepdim=True)
        if not self.same(total.movedim(1, axis).reshape(a.shape), value):
            return None
        joined = Value("cat", value.node, [self.unfolded(base) or base, flat], last=True)
        return Value("dueling", value.node, [joined], atoms=atoms, axis=axis)

    def terms(self, value: Value, sign: int) -> list[tuple[int, Value]]:
        """The terms of sums and differences, with their signs."""
        if value.kind not in ("add", "sub"):
            return [(sign, value)]
        x, y = value.args
        return self.terms(x, sign) + self.terms(y, sign if value.kind == "add" else -sign)
