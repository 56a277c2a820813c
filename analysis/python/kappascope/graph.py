"""PyTorch: the outputs of the critics in a traced graph, and the heads of Q-networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from kappascope.names import Arrays, Module, Node, Tensor
from kappascope.refusal import fail
from kappascope.torch_layers import Layers
from kappascope.tracing import nearly_equal, place_of
from kappascope.values import UNWRITTEN, Source, Value, reason

_NO_TERMS = (UNWRITTEN - {"sub"}) | {"between", "constant", "times"}  # what cannot be a term of a sum


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
        self.roots = self._roots(next(n for n in self.graph.nodes if n.op == "output").args[0])

    def _roots(self, returned: Any) -> list[Value]:
        """The last layer of every critic in what forward returns: a value, a tuple, a dict, a
        concatenation."""
        if isinstance(returned, dict):
            returned = list(returned.values())
        if isinstance(returned, (list, tuple)):
            return [root for part in returned for root in self._roots(part)]
        if not isinstance(returned, (Value, self.torch.fx.Node)):
            fail(
                f"{self.name}: expected forward to return the outputs of its critics alone, found "
                f"{returned!r} among them. Way out: a wrapper whose forward returns the outputs"
            )
        value = self.values[returned] if not isinstance(returned, Value) else returned
        if value.kind == "layout" or value.kind == "cat" and not value.free:
            roots = [root for part in value.args for root in self._roots(part)]
            if value.kind == "layout":
                self._check_arrangement(value, roots)
            return roots
        total = None if self.duel(value) else self.sum_of(value)
        if total:
            return [total]
        if value.kind not in ("dense", "select", "slice") and not self.duel(value):
            why, way = (value.why, value.way) if value.why else reason(value.kind)
            fail(
                f"{self.name} cannot be expressed:",
                [
                    f"{place_of(self, value.node)}: the last layer of a critic is a Linear, whose outputs "
                    f"the loss reads; {why}. Way out: {way}"
                ],
            )
        return [value]

    def _check_arrangement(self, value: Value, roots: list[Value]) -> None:
        """What forward returns has the outputs of every row in their order, and lacks none."""
        after, before = self.seen[value.node], [self.seen[root.node] for root in roots]
        width = 1 if all(t.shape[-1] == 1 or t.dim() == 1 for t in before) else before[0].shape[-1]
        good = after.numel() == sum(t.numel() for t in before)
        if good and width > 1:
            tables = (
                [
                    sorted(tuple(row) for t in part for row in t.reshape(-1, width).tolist())
                    for part in ([after], before)
                ]
                if after.shape[-1] == width
                else [0, 1]
            )
            good = tables[0] == tables[1]
        if not good:
            fail(
                f"{self.name} cannot be expressed:",
                [
                    f"{place_of(self, value.node)}: forward cuts or reorders the outputs of the last "
                    f"layer, {[list(t.shape) for t in before]}, to {list(after.shape)}. Way out: return "
                    "them as they are, and do this in the loss"
                ],
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
        width, parts, blocks = seen.shape[-1] if seen.dim() > 1 else 1, [], []
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
        found = Value(
            "dense", value.node, [Value("cat", value.node, parts, last=True)], kernel=np.concatenate(blocks)
        )
        found.frozen, found.width = True, width
        return found

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
        a, dim = self.seen[advantages.node], means[0].options["dim"]
        if dim == a.dim() - 1:
            atoms = 1
        elif a.dim() == 3 and dim == 1:
            atoms = a.shape[-1]
        else:
            return None
        flat = self.unfolded(advantages)
        v, rows = self.seen[base.node], len(a)
        if flat is None or v.numel() != rows * atoms or v.shape[-1] != atoms:
            return None
        a, v = a.reshape(rows, -1, atoms), v.reshape(rows, 1, atoms)
        if not self._same(v + a - a.mean(1, keepdim=True), value):
            return None
        joined = Value("cat", value.node, [base, flat], last=True)
        return Value("dueling", value.node, [joined], atoms=atoms)

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
        same = same and self.torch.equal(before.flatten(), inner.flatten())
        return value.args[0] if same else None

    def _on_sum(self, node: Node) -> Value:
        a = self._call(node, "input", "dim", "keepdim")
        x, dim = a["input"], a.get("dim")
        dim = dim[0] if isinstance(dim, list) and len(dim) == 1 else dim
        if x.kind != "times" or not isinstance(dim, int):
            return self._bad(node, "sum")
        features, chosen = x.args
        shape = self.seen[features.node].shape
        if dim % len(shape) != 1:
            return self._bad(node, "sum")
        return self._select(
            node, features, Source(chosen, shape[1], lambda t: t.reshape(len(t), -1), "weights")
        )

    def _on_gather(self, node: Node) -> Value:
        a = self._call(node, "input", "dim", "index")
        x = a["input"]
        index = self.seen[a["index"].node] if isinstance(a["index"], Value) else None
        if (
            index is None
            or not a["index"].free
            or a["dim"] % index.dim() != 1
            or index.shape[1] != 1
            or not bool((index == index[..., :1]).all())
        ):
            return self._bad(node, "gather")
        count, functional = self.seen[x.node].shape[1], self.torch.nn.functional
        return self._select(
            node,
            x,
            Source(
                a["index"],
                count,
                lambda t: functional.one_hot(t.reshape(len(t), -1)[:, 0], count).to(self.dtype),
                f"one of {count}",
            ),
        )

    def _select(self, node: Node, x: Value, source: Source) -> Value:
        """The layer `select`: x is [R, K] or [R, K, M], and the source [R, K]."""
        flat, rows = self.unfolded(x), self.rows
        if flat is not None and len(self.seen[x.node]) == rows:
            blocks = self.seen[x.node].reshape(rows, source.width, -1)
            chosen = source.take(self.seen[source.value.node])
            value = Value("select", node, [flat], source=source)
            if list(chosen.shape) == [rows, source.width] and self._same(
                (blocks * chosen[..., None]).sum(1), value
            ):
                return value
        return self._bad(node, "times")
