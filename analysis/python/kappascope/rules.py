"""PyTorch: rules for products with parameters, activations, norms and the choice of an action.

A rule is a function on_WORD for functions and methods of this name, or of one that nodes.py has for it. Its
parameters are the graph, the node, and the arguments of the call: values where they are nodes."""

from __future__ import annotations

from typing import Any

from kappascope import choices
from kappascope.graph import Graph
from kappascope.names import Module, Node
from kappascope.rules_sums import sum_of_two
from kappascope.tracing import is_renorm, path_of
from kappascope.values import NoLine, Parameter, Value, is_parameter, own


def _affine(weight: Any, bias: Any = None) -> dict[str, Parameter]:
    """Scale and bias of a norm."""
    given = {"scale": weight, "bias": bias}
    why = "its weight or bias is no parameter"
    return {key: own(value, why) for key, value in given.items() if value is not None}


def on_cat(graph: Graph, node: Node, input: Any, dim: Any = 0) -> Value:
    constant = next((i for i, p in enumerate(input) if not isinstance(p, Value)), None)
    last = constant != 0 and graph.is_last(input[0], dim)
    if constant == 1 and len(input) == 2 and last:
        if graph.seen[node].shape[-1] == graph.seen[input[0].node].shape[-1] + 1:
            return Value("append", node, input[:1], constant=input[1])
    if constant is not None:
        raise NoLine(
            "a constant can only be joined as one more feature, behind the others",
            "torch.cat([x, one_column], -1)",
        )
    return Value("cat", node, input, last=last)


def on_stack(graph: Graph, node: Node, input: Any, dim: Any = 0) -> Value:
    return Value("cat", node, input, last=False)


def on_pad(
    graph: Graph, node: Node, input: Any, pad: Any, mode: Any = "constant", value: Any = None
) -> Value:
    if list(pad) != [0, 1] or mode != "constant":
        raise NoLine
    return Value("append", node, [input], constant=float(value or 0))


def on_linear(graph: Graph, node: Node, input: Any, weight: Any, bias: Any = None) -> Value:
    why = "its weight is no parameter", "store the weight itself in the module"
    params = {"kernel": own(weight, *why).then(lambda w: w.t())}
    return _dense_of(node, input, params | ({} if bias is None else {"bias": own(bias, *why)}))


def _dense_of(node: Node, x: Value, params: dict[str, Parameter]) -> Value:
    if any(p.factor != 1 for p in params.values()):
        raise NoLine(
            "a kernel times a constant has no line in the description",
            "store the product itself in the module: curvature in the product",
        )
    return Value("dense", node, [x], params=params)


def on_matmul(graph: Graph, node: Node, input: Any, other: Any) -> Value:
    return _product(graph, node, input, other, {})


def _product(graph: Graph, node: Node, x: Any, w: Any, bias: dict[str, Parameter]) -> Value:
    """Also q [R, M, K] @ one_hot [R, K, 1], and one_hot [R, 1, K] @ q [R, K, M]."""
    if isinstance(x, Value) and isinstance(w, Value) and "parameter" not in (x.kind, w.kind):
        if x.free != w.free:
            nodes = node.all_input_nodes
            at, chosen = nodes if w.free else nodes[::-1]
            return choices.select(
                graph, node, at, choices.weights(graph, graph.values[chosen]), 2 if w.free else 1
            )
    if not is_parameter(w) or not isinstance(x, Value) or is_parameter(x):
        raise NoLine(
            "expected activations times a parameter [in, out] or [E, in, out]",
            "torch.nn.functional.linear(x, weight)",
        )
    return _dense_of(node, x, {"kernel": w.params["it"], **bias})


def on_addmm(graph: Graph, node: Node, input: Any, mat1: Any, mat2: Any) -> Value:
    if is_parameter(input):
        return _product(graph, node, mat1, mat2, {"bias": input.params["it"]})
    return sum_of_two(node, _product(graph, node, mat1, mat2, {}), input)


def on_einsum(graph: Graph, node: Node) -> Value:
    """x and W [.., in, out], [.., out, in]: one index is summed, an index of W alone is the
    output's last. Also 'rak,ra->rk' and the like, where [R, A] are weights of actions."""
    if not isinstance(node.args[0], str):
        raise NoLine("expected the indices as a string", "such as 'bi,io->bo'")
    left, _, out = node.args[0].replace(" ", "").partition("->")
    nodes = node.all_input_nodes
    parts = [(graph.values[n], letters, n) for n, letters in zip(nodes, left.split(","))]
    parameters = [v.kind == "parameter" for v, _, _ in parts]
    if [v.free for v, _, _ in parts] in ([False, True], [True, False]) and not any(parameters):
        (_, q, at), (_, weights, chosen) = sorted(parts, key=lambda part: part[0].free)
        action = weights[1:]
        if weights == q[0] + action and q.count(action) == 1 and out == q.replace(action, ""):
            return choices.select(
                graph, node, at, choices.weights(graph, graph.values[chosen]), q.index(action)
            )
    if sorted(parameters) != [False, True]:
        raise NoLine("expected activations and one parameter")
    (x_value, x, _), (w_value, w, _) = sorted(parts, key=lambda part: part[0].kind == "parameter")
    summed = [c for c in w if c in x and c not in out]
    new = [c for c in w if c not in x and c in out[-1:]]
    ensemble = [c for c in w if c in out and c not in new]
    one = len(summed) == len(new) == 1 and x[-1:] == summed[0]
    if not one or len(ensemble) > 1 or ensemble and out[0] != ensemble[0]:
        raise NoLine(
            "expected a sum over the features, whose result is the last index, with the critics, if "
            "any, as the first one",
            "such as 'bi,eio->ebo' or 'ebi,eio->ebo'",
        )
    order = [w.index(c) for c in ensemble + summed + new]
    return _dense_of(node, x_value, {"kernel": w_value.params["it"].then(lambda t: t.permute(order))})


def on_hardtanh(graph: Graph, node: Node, input: Any, min_val: Any = -1, max_val: Any = 1) -> Value:
    if (min_val, max_val) != (0, 6):
        raise NoLine
    return Value("relu6", node, [input])


def on_softmax(
    graph: Graph, node: Node, input: Any, dim: Any = None, _stacklevel: Any = 3, dtype: Any = None
) -> Value:
    """Over all features of rows [R, d], or [E, R, d] of a stacked ensemble."""
    shape = graph.seen[node].shape
    if not graph.is_last(input, dim) or dtype or len(shape) not in (2, 3) or shape[-2] != graph.rows:
        raise NoLine
    return Value("simnorm", node, [input], dim=shape[-1])


def on_dropout(
    graph: Graph, node: Node, input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False
) -> Value:
    if p != 0 and training:
        raise NoLine
    return graph.inputs(node)[0]


def on_clamp(graph: Graph, node: Node, input: Any, min: Any = None, max: Any = None) -> Value:
    if max is not None or not isinstance(min, (int, float)):
        raise NoLine
    if min == 0:
        return Value("relu", node, [input])
    return Value("clamp", node, [input], constant=float(min))


def _check_batch(graph: Graph, x: Value, training: bool) -> None:
    """A norm over rows is one in training mode, of activations [R, d] of all rows."""
    if not training:
        raise NoLine(
            "it is in evaluation mode; the analyzed loss has the statistics of the minibatch, as in training",
            "module.train() before save",
        )
    shape = list(graph.seen[x.node].shape)
    if len(shape) != 2 or shape[0] != graph.rows:
        raise NoLine(
            f"expected activations [R, d] with R = {graph.rows} rows, found {shape}",
            "one such norm for each critic",
        )


def batchnorm(graph: Graph, node: Node, m: Module, x: Value) -> Value:
    """PyTorch's, or sb3-contrib's batch renormalization in its warm-up, by the variance with R - 1."""
    _check_batch(graph, x, m.training)
    renorm = is_renorm(m)
    if renorm and int(graph.original.get_submodule(path_of(node)).steps) > m.warmup_steps:
        raise NoLine(
            "after its warm-up, eps is added to the corrected variance, which no line does",
            "steps=0 of a copy: the loss with batch normalization",
        )
    scale, start = ("scale", "ra_") if renorm else ("weight", "running_")
    names = {"scale": scale, "bias": "bias"} if m.affine else {}
    given = {ours: theirs for ours, theirs in names.items() if getattr(m, theirs) is not None}
    params = {ours: Parameter(path_of(node, theirs)) for ours, theirs in given.items()}
    value = Value("batchnorm", node, [x], params=params, eps=m.eps)
    value.options |= {} if m.momentum is None else {"momentum": round(1 - m.momentum, 12)}
    value.options |= {"unbiased": True} if renorm else {}
    if renorm or m.track_running_stats and m.running_mean is not None:
        value.state = {v: path_of(node, start + v) for v in ("mean", "var")}
    return value


def on_batch_norm(graph: Graph, node: Node) -> Value:
    names = ["input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"]
    if node.target is graph.torch.batch_norm:  # which is not torch.nn.functional.batch_norm
        names = ["input", "weight", "bias", "running_mean", "running_var", *names[5:], "cudnn_enabled"]
    a = {"training": False, "momentum": 0.1, "eps": 1e-5, **graph.call(node, *names)}
    _check_batch(graph, a["input"], a["training"])
    params, momentum = _affine(a.get("weight"), a.get("bias")), round(1 - a["momentum"], 12)
    return Value("batchnorm", node, [a["input"]], params=params, eps=a["eps"], momentum=momentum)


def on_layer_norm(
    graph: Graph,
    node: Node,
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Value:
    if not isinstance(normalized_shape, int) and len(normalized_shape) != 1:
        raise NoLine(f"it normalizes over {len(normalized_shape)} dimensions, not over the features")
    return Value("layernorm", node, [input], eps=eps, params=_affine(weight, bias))


def on_group_norm(
    graph: Graph,
    node: Node,
    input: Any,
    num_groups: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Value:
    dims = graph.seen[node].dim()
    if dims != 2:
        raise NoLine(f"it normalizes {dims}-dimensional activations, not rows [R, d]")
    return Value("groupnorm", node, [input], eps=eps, params=_affine(weight, bias), groups=num_groups)


def on_rms_norm(
    graph: Graph, node: Node, input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None
) -> Value:
    if eps is None:
        raise NoLine(
            "its eps depends on the type of the numbers", "eps=1.1920929e-07, which is PyTorch's for float32"
        )
    params = _affine(weight)
    return Value("rmsnorm" if params else "rms", node, [input], eps=eps, params=params)


def on_normalize(graph: Graph, node: Node, input: Any, p: Any = 2.0, dim: Any = 1, eps: Any = 1e-12) -> Value:
    if p != 2 or not graph.is_last(input, dim):
        raise NoLine("expected p=2 over the features (dim=-1)")
    return Value("l2norm", node, [input], eps=eps)


def on_gather(graph: Graph, node: Node, input: Any, dim: Any, index: Any) -> Value:
    return choices.taken(graph, node, node.all_input_nodes[0], index, dim)


def on_take_along_dim(graph: Graph, node: Node, input: Any, indices: Any, dim: Any) -> Value:
    return choices.taken(graph, node, node.all_input_nodes[0], indices, dim)
