"""PyTorch: rules for sums, products, quotients and means, which are parts of norms, of residual sums and
of scalers. rules.py says what a rule is."""

from __future__ import annotations

from typing import Any

from kappascope import choices
from kappascope.graph import Graph
from kappascope.names import Node
from kappascope.values import NoLine, Parameter, Value, inside, own, split_norm

_NEW = ", in training, too: another critic"


def on_add(graph: Graph, node: Node, input: Any, other: Any, alpha: Any = None) -> Value:
    return sum_of_two(node, input, other if alpha is None else _times(node, other, alpha))


def sum_of_two(node: Node, x: Any, y: Any) -> Value:
    """x + y, of which one may be a number or a bias."""
    if not isinstance(x, Value) or x.kind in ("parameter", "constant"):
        x, y = y, x
    if isinstance(y, (int, float)):
        value: Value = x
        if value.kind == "relu":
            return Value("relu", node, value.args, shift=value.options.get("shift", 0.0) + y)
        return value if y == 0 else Value("addc", node, [value], constant=float(y))  # 0: from sum()
    if y.kind == "constant":
        raise NoLine(word="addc")
    if y.kind != "parameter":
        return Value("add", node, [x, y])
    return _biased(node, x, y.params["it"])


def _biased(node: Node, x: Value, bias: Parameter) -> Value:
    """dense + b, or the bias of a norm whose scale came before."""
    ready = {"dense": ("kernel",), "layernorm": ("scale",), "batchnorm": ("scale",)}
    if bias.factor == 1 and x.kind in ready and tuple(x.params) == ready[x.kind]:
        return x.with_params(node, {**x.params, "bias": bias})
    for i, term in enumerate(x.args) if x.kind == "add" else ():
        if bias.factor == 1 and term.kind == "dense" and tuple(term.params) == ("kernel",):
            terms = [*x.args[:i], _biased(term.node, term, bias), *x.args[i + 1 :]]
            return Value("add", node, terms)
    raise NoLine(word="bias")


def on_sub(graph: Graph, node: Node, input: Any, other: Any, alpha: Any = None) -> Value:
    if isinstance(other, (int, float)):
        return sum_of_two(node, input, -other * (1 if alpha is None else alpha))
    if {"parameter", "constant"} & {getattr(input, "kind", ""), other.kind}:
        raise NoLine
    other = other if alpha is None else _times(node, other, alpha)
    if not isinstance(input, Value):
        return sum_of_two(node, _times(node, other, -1), input)
    return Value("sub", node, [input, other])


def on_mul(graph: Graph, node: Node, input: Any, other: Any) -> Value:
    x, y = input, other
    if not isinstance(x, Value) or x.kind in ("parameter", "constant"):
        x, y = y, x
    if isinstance(y, (int, float)):
        return _times(node, x, float(y))
    if y.kind == "parameter":
        return _scaled(node, x, y.params["it"])
    for a, b in ((x, y), (y, x)):
        if inside(b, "sigmoid") is a:
            return Value("silu", node, [a])
        if inside(b, "tanh", "softplus") is a:
            return Value("mish", node, [a])
        norm = _quotient(node, a, b.args[0], root=False) if b.kind == "rsqrt" else None
        if norm:
            return norm
    refused = _refused_part(x) or _refused_part(y)
    if refused:
        return refused
    if x.free != y.free:
        return Value("times", node, [y, x] if x.free else [x, y])
    raise NoLine(
        "a product of activations has a line in the description only as x * sigmoid(x), x * "
        "tanh(softplus(x)) or a norm"
    )


def on_neg(graph: Graph, node: Node) -> Value:
    return _times(node, graph.inputs(node)[0], -1.0)


def _times(node: Node, x: Value, factor: float) -> Value:
    x = split_norm(x)
    if x.kind == "scaler":
        return Value("scaler", node, x.args, params=x.params, init=factor * x.options["init"])
    if x.kind == "mulc":
        factor, x = factor * x.options["init"], x.args[0]
    return Value("mulc", node, [x], init=factor)


def _scaled(node: Node, x: Value, scale: Parameter) -> Value:
    """x times a parameter: the scale of a norm without one, else a scaler."""
    if x.kind in ("rms", "layernorm", "batchnorm") and not x.params and scale.factor == 1:
        return x.with_params(node, {"scale": scale}, "rmsnorm" if x.kind == "rms" else x.kind)
    factor = scale.factor
    if x.kind == "mulc":
        factor, x = factor * x.options["init"], x.args[0]
    return Value("scaler", node, [x], params={"scaler": scale}, init=factor)


def on_div(graph: Graph, node: Node, input: Any, other: Any) -> Value:
    if isinstance(other, (int, float)):
        return _times(node, input, 1 / other)
    norm = _quotient(node, input, other, root=True) if isinstance(input, Value) else None
    found = norm or _refused_part(other)
    if not found:
        raise NoLine(
            "a quotient has a line in the description only as a norm: x / sqrt(mean(x^2) + eps), (x - "
            "mean) / sqrt(var + eps) with the biased variance, x / max(norm, eps)"
        )
    return found


def _refused_part(value: Value) -> Value | None:
    """What was refused in the parts of a norm, which says more than that it is no norm."""
    while value.kind in ("sqrt", "rsqrt", "addc", "clamp") and value.args:
        value = value.args[0]
    return value if value.kind == "bad" and not value.free else None


def _quotient(node: Node, x: Value, below: Value, root: bool) -> Value | None:
    """x / sqrt(mean(x^2) + eps), (x - mean) / sqrt(var + eps), x / max(|x|, eps), x / max(mean|x|, eps),
    from their parts. `below` is the denominator (root), or what rsqrt was taken of."""
    norm, eps = (below.args[0], below.options["constant"]) if below.kind == "clamp" else (below, 1e-12)
    if root and inside(norm, "norm") is x:
        return Value("l2norm", node, [x], eps=eps) if norm.options["over"] == "features" else None
    if root and inside(below, "clamp", "mean", "abs") is x:
        return Value("avgl1norm", node, [x], eps=eps) if norm.options["over"] == "features" else None
    inner = inside(below, "sqrt", "addc") if root else inside(below, "addc")
    if not inner:
        return None
    eps = (below.args[0] if root else below).options["constant"]
    squares, over = inside(inner, "mean", "square") is x, inner.options.get("over")
    y, mean = x.args if x.kind == "sub" else (x, x)
    if mean is x or inside(mean, "mean") is not y:
        return Value("rms", node, [x], eps=eps) if squares and over == "features" else None
    kind = {"features": "layernorm", "rows": "batchnorm"}.get(over or "")
    if not kind or over != mean.options["over"] or not squares and inside(inner, "var") is not y:
        return None
    unbiased: dict[str, Any] = {"unbiased": True} if inner.options.get("unbiased") else {}
    return Value(kind, node, [y], eps=eps, **unbiased)


def on_max(graph: Graph, node: Node) -> Value:
    """The least of critics, or a feature."""
    inputs = graph.inputs(node)
    raise NoLine(word="minimum" if len(inputs) > 1 or inputs[0].kind == "cat" else "max")


on_min = on_amax = on_amin = on_max


def on_pow(graph: Graph, node: Node, input: Any, exponent: Any = 2) -> Value:
    if exponent != 2:
        raise NoLine
    return Value("square", node, [input])


def on_lerp(graph: Graph, node: Node, input: Any, end: Any, weight: Any) -> Value:
    alpha = own(weight, "its weight is no parameter")
    return Value("between", node, [input, end], params={"alpha": alpha})


def on_mean(graph: Graph, node: Node, input: Any, dim: Any = None, keepdim: Any = False) -> Value:
    stacked = _stacked_parts(graph, node, input, dim)
    if stacked:
        return _times(node, stacked, 1 / len(graph.seen[input.node]))
    return _over(graph, node, "mean", input, dim, keepdim)


def on_var(
    graph: Graph,
    node: Node,
    input: Any,
    dim: Any = None,
    unbiased: Any = None,
    keepdim: Any = False,
    correction: Any = 1,
) -> Value:
    correction = correction if unbiased is None else unbiased
    return _over(graph, node, "var", input, dim, keepdim, 1 if correction is None else correction)


def on_norm(
    graph: Graph, node: Node, input: Any, p: Any = 2, dim: Any = None, keepdim: Any = False, ord: Any = None
) -> Value:
    if (p if ord is None else ord) not in (2, None, "fro"):
        raise NoLine("the only norm that has a line is the Euclidean one")
    return _over(graph, node, "norm", input, dim, keepdim)


def _over(
    graph: Graph, node: Node, kind: str, x: Value, dim: Any, keepdim: Any, correction: Any = 0
) -> Value:
    """mean, var and norm over the features or the rows; over the features they keep a dimension
    of 1."""
    shape = graph.seen[x.node].shape
    if not isinstance(dim, int):
        raise NoLine(
            f"expected a {kind} over the features, found one over all entries, rows included",
            (f".{kind}(-1, keepdim=True)" if kind == "mean" else "dim=-1, keepdim=True") + _NEW,
        )
    dim, keepdim = dim % len(shape), bool(keepdim)
    over = "features" if dim == len(shape) - 1 else "others"
    if shape[dim] == graph.rows and (len(shape), dim) in ((2, 0), (3, 1)):  # [R, d] or [E, R, d]
        over = "rows"
    if over == "features" and not keepdim:
        raise NoLine("it drops the dimension of the features", "keepdim=True")
    if correction not in (0, 1):
        raise NoLine(f"expected a correction of 0 or 1, found {correction}", f"correction=0{_NEW}")
    if correction and over != "rows":
        raise NoLine("the variance of a norm is the biased one", f"unbiased=False{_NEW}")
    found = Value(kind, node, [x], over=over, dim=dim, keepdim=keepdim)
    found.options |= {"unbiased": True} if correction else {}
    return found


def _stacked_parts(graph: Graph, node: Node, x: Value, dim: Any) -> Value | None:
    """The sum of the parts of torch.stack(parts, dim)."""
    if x.free or getattr(x.node.target, "__name__", "") != "stack" or dim != 0:
        return None
    if graph.call(x.node, "input", "dim").get("dim", 0) != 0:
        return None
    total: Value = x.args[0]
    for part in x.args[1:]:
        total = Value("add", part.node, [total, part])
    if len(x.args) > 1:
        total.node = node
    return total


def on_sum(graph: Graph, node: Node, input: Any, dim: Any = None, keepdim: Any = False) -> Value:
    """(q * one_hot).sum(dim)"""
    stacked = _stacked_parts(graph, node, input, dim)
    if stacked:
        return stacked
    if input.kind != "times" or not isinstance(dim, int):
        raise NoLine
    at = next(n for n in input.node.all_input_nodes if graph.values[n] is input.args[0])
    return choices.select(
        graph, node, at, choices.weights(graph, input.args[1]), dim % graph.seen[input.node].dim()
    )
