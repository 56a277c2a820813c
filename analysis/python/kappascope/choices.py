"""PyTorch: the choice of an action, which is the layer `select` of a description."""

from __future__ import annotations

from typing import Any

from kappascope.graph import Graph
from kappascope.names import Node, Tensor
from kappascope.values import NoLine, Source, Value


def weights(graph: Graph, chosen: Value) -> Source:
    """The weights [R, A] of A actions, whatever dimensions of length 1 they have."""
    width = graph.seen[chosen.node].numel() // graph.rows
    return Source(chosen, width, lambda t: t.reshape(len(t), -1).to(graph.dtype), "weights")


def chosen(graph: Graph, node: Node, part: Any) -> Value | None:
    """q[arange(R), a], q[arange(R), :, a], q[one_hot.bool()]; None if it is another index."""
    parts = part if isinstance(part, tuple) else (part,)
    nodes = [i for i, one in enumerate(parts) if isinstance(one, graph.torch.fx.Node)]
    seen = [graph.seen[parts[i]] for i in nodes]
    index = graph.values[parts[nodes[-1]]] if nodes else None
    if index and index.free and len(parts) == 1 and seen[0].dtype == graph.torch.bool:
        return select(graph, node, node.args[0], weights(graph, index), 1)
    rows = len(nodes) == 2 and nodes[0] == 0 and seen[0].flatten().tolist() == list(range(graph.rows))
    if index and rows and all(one == slice(None) for i, one in enumerate(parts) if i not in nodes):
        return taken(graph, node, node.args[0], index, nodes[1])
    return None


def taken(graph: Graph, node: Node, at: Node, index: Any, axis: int) -> Value:
    """The layer `select` of one action for each row, by its number."""
    seen, functional = graph.seen[at], graph.torch.nn.functional
    axis, count = axis % seen.dim(), seen.shape[axis]
    numbers = graph.seen[index.node].reshape(len(seen), -1) if isinstance(index, Value) else seen
    if not isinstance(index, Value) or not index.free or not bool((numbers == numbers[:, :1]).all()):
        raise NoLine(word="gather")

    def one_hot(t: Tensor) -> Tensor:
        return functional.one_hot(t.reshape(len(t), -1)[:, 0].long(), count).to(graph.dtype)

    return select(graph, node, at, Source(index, count, one_hot, f"one of {count}"), axis)


def select(graph: Graph, node: Node, at: Node, source: Source, axis: int) -> Value:
    """The layer `select`: at is [R, K], or [R, K, M] or [R, M, K], with the actions in this axis, and the
    source [R, K]."""
    flat, seen = graph.ordered(at, axis), graph.seen[at]
    if flat is not None:
        blocks = seen.movedim(axis, 1).reshape(graph.rows, seen.shape[axis], -1)
        mask = source.take(graph.seen[source.value.node])
        value = Value("select", node, [flat], source=source)
        if list(mask.shape) == list(blocks.shape[:2]):
            if graph.same((blocks * mask[..., None]).sum(1), value):
                return value
    left = [graph.base(at)]
    while left:  # what was refused in front of it says more
        value = left.pop()
        if value.kind == "bad":
            return value
        left += [v for v in value.args if not v.free]
    raise NoLine(word="times")
