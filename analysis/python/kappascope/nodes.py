"""PyTorch: from the nodes of a traced graph to the layers of a description, by the rules for each."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from kappascope import choices, rules, rules_sums
from kappascope.graph import Graph, is_in_order
from kappascope.names import Arrays, Module, Node, Tensor
from kappascope.tracing import KernelNorm, is_renorm, kernel_norm, path_of
from kappascope.values import ACTIVATIONS, UNWRITTEN, NoLine, Parameter, Value, reason

# Other names of functions and methods, without the _ of those that work in place.
_ALIASES = {"iadd": "add", "concat": "cat", "concatenate": "cat", "square": "pow", "absolute": "abs"}
_ALIASES |= {"negative": "neg", "baddbmm": "addmm"}
_ALIASES |= dict.fromkeys(["truediv", "true_divide", "divide", "itruediv"], "div")
_ALIASES |= dict.fromkeys(["subtract", "isub"], "sub") | dict.fromkeys(["multiply", "imul"], "mul")
_ALIASES |= dict.fromkeys(["linalg_norm", "linalg_vector_norm", "vector_norm"], "norm")
_ALIASES |= dict.fromkeys(["clamp_min", "clip"], "clamp") | dict.fromkeys(["bmm", "mm"], "matmul")
_ALIASES |= dict.fromkeys(["dropout1d", "alpha_dropout", "feature_alpha_dropout"], "dropout")
_LAYOUT = set(
    "squeeze unsqueeze view reshape flatten getitem permute transpose t T mT swapaxes swapdims movedim "
    "expand expand_as view_as unflatten".split()
)
_COPIES = {"contiguous", "clone", "requires_grad_"}
_CASTS = {"float", "double", "to", "type", "type_as", "half", "bfloat16", "as_tensor"}
_SHAPES = set(
    "size dim shape dtype device ndim numel ones_like zeros_like full_like new_ones new_zeros new_full "
    "new_tensor ones zeros full".split()
)
_FIXED = "elu", "softplus"  # activations whose lines have only the usual values of their arguments


def read_graph(module: Module, name: str, inputs: Arrays, by_name: bool) -> Graph:
    """A module, traced, with the value of each node."""
    graph = Graph(module, name, inputs, by_name)
    for node in graph.graph.nodes:
        graph.values[node] = _value_of(graph, node)
        _write_through(graph, node)
    return graph


def _write_through(graph: Graph, node: Node) -> None:
    """Behind an operation in place, such as relu_, the names of its tensor have the new
    value."""
    word = getattr(node.target, "__name__", str(node.target))
    by_name = node.op.startswith("call") and word.endswith("_") and not word.endswith("__")
    changes = by_name or node.kwargs.get("inplace")
    for other, seen in graph.seen.items() if changes else ():
        if (
            other in graph.values
            and isinstance(seen, graph.torch.Tensor)
            and seen.data_ptr() == graph.seen[node].data_ptr()
            and seen.shape == graph.seen[node].shape
        ):
            graph.values[other] = graph.values[node]


def _value_of(graph: Graph, node: Node) -> Value:
    if node.op == "placeholder":
        return Value("given", node, free=True)
    if node.op == "get_attr":
        return _of_attribute(graph, node)
    if node.op == "output":
        return Value("output", node)
    module = graph.modules[node.target] if node.op == "call_module" else None
    word = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    # In place those of _LAYOUT would change the shape of what is seen.
    if word not in _COPIES and word.removesuffix("_") not in _LAYOUT:
        word = word.removesuffix("_")
    word = node.args[1] if word == "getattr" else _ALIASES.get(word, word)
    inputs, trained = graph.inputs(node), module is not None and _is_trained(module)
    try:
        value = (
            _of_module(graph, node, module, inputs) if module is not None else _of_function(graph, node, word)
        )
    except NoLine as error:
        usual = reason(error.word or (word if module is None else type(module).__name__))
        value = Value("bad", node, [v for v in inputs if v.kind not in ("parameter", "constant")][:1])
        value.said = error.why or usual[0], error.way or usual[1]
    value.fixed = not trained and all(v.fixed for v in inputs)
    value.free = value.free or (not value.params and not trained and all(v.free for v in inputs))
    value.free = value.free or (value.fixed and value.kind in UNWRITTEN)
    return value


def _is_trained(module: Module) -> bool:
    return any(p.requires_grad for p in module.parameters())


def _of_attribute(graph: Graph, node: Node) -> Value:
    name = path_of(node)
    if name in graph.parameters:
        value = Value("parameter", node, params={"it": Parameter(name)})
        value.free = value.fixed = not graph.parameters[name].requires_grad
        return value
    if getattr(graph.seen[node], "requires_grad", False):
        way = "torch.nn.Parameter"
        graph.refuse(
            node, f"a tensor that requires gradients and is no parameter of the module. Way out: {way}"
        )
    return Value("constant", node, free=True)


def _of_module(graph: Graph, node: Node, m: Module, x: list[Value]) -> Value:
    """Of a module that is not traced."""
    norm = kernel_norm(m)
    if norm:
        return _normed(graph, node, m, x[:1], norm)
    if type(m).__name__ in ("BatchNorm1d", "SyncBatchNorm") or is_renorm(m):
        return rules.batchnorm(graph, node, m, x[0])
    if _is_trained(m):
        raise NoLine(
            way="export the part behind it, with its output as the input; where only inputs are in "
            "front of it, also requires_grad_(False) for all its parameters, as a part of the input; or "
            "kappascope.torch_hessian, which takes any network"
        )
    raise NoLine


def _normed(graph: Graph, node: Node, m: Module, x: list[Value], how: KernelNorm) -> Value:
    """A Linear whose weight has a norm. PyTorch's g is [out, 1]."""
    norm, params, state = how
    found = {}
    for ours, theirs in params.items():
        p = Parameter(path_of(node, theirs))
        found[ours] = p.then(lambda w: w.flatten()) if ours == "g" else p.then(lambda w: w.t())
    if m.bias is not None:
        found["bias"] = Parameter(path_of(node, "bias"))
    value = Value("dense", node, x, params=found, norm=norm)
    value.state = {ours: path_of(node, theirs) for ours, theirs in state.items()}
    return value


def _of_function(graph: Graph, node: Node, word: str) -> Value:
    inputs = graph.inputs(node)
    if word in _SHAPES or all(v.kind == "constant" for v in inputs):
        return Value("constant", node, free=True)
    if inputs[0].kind == "parameter" and len([v for v in inputs if v.kind != "constant"]) == 1:
        return _of_parameter(graph, node, word, inputs[0])
    if word in _CASTS:
        graph.rounded = True
        return Value("cast", node, inputs) if inputs[0].free else inputs[0]
    if word in _COPIES:
        return inputs[0]
    if word in _LAYOUT:
        return _of_layout(graph, node, inputs[0])
    if word in ("abs", "sqrt", "rsqrt"):
        return Value(word, node, inputs)
    if word in ACTIVATIONS:
        usual = ACTIVATIONS[word]
        a = {**usual, **graph.call(node, "input", *usual, "inplace")}
        for key in usual if word in _FIXED else ():
            if a[key] != usual[key]:
                raise NoLine(f"{key} is {a[key]:g}; the description has {usual[key]:g}")
        return Value(word, node, [a["input"]], **{key: a[key] for key in usual})
    rule = getattr(rules, "on_" + word, None) or getattr(rules_sums, "on_" + word, None)
    if not rule:
        raise NoLine
    _, _, *names = inspect.signature(rule).parameters
    return rule(graph, node, **(graph.call(node, *names) if names else {}))  # type: ignore[no-any-return]


def _of_parameter(graph: Graph, node: Node, word: str, value: Value) -> Value:
    """A view of a parameter, or one times a constant."""
    parameter, factor = value.params["it"], None
    if word in _CASTS:
        graph.rounded = True
        return value
    if word == "neg":
        factor = -1.0
    if word in ("mul", "div"):
        given = list(graph.call(node, "input", "other").values())
        other = [a for a in given if not isinstance(a, Value)]
        if len(other) == 1 and (word == "mul" or isinstance(given[0], Value)):
            factor = float(other[0]) if word == "mul" else 1 / float(other[0])
    if factor is not None:
        scaled = replace(parameter, factor=parameter.factor * factor)
        return Value("parameter", node, params={"it": scaled})
    index = node.args[1] if word == "getitem" else None
    whole = graph.seen[node].numel() == graph.parameters[parameter.name].numel() or parameter.part
    if word in _LAYOUT | _COPIES and whole or type(index) is int:
        if len(node.all_input_nodes) == 1:
            moved = parameter.then(lambda tensor: graph.repeat(node, {value.node: tensor}))
            moved.part += (index % len(graph.seen[value.node]),) if type(index) is int else ()
            return Value("parameter", node, params={"it": moved})
    raise NoLine(
        "a weight that is computed from other parameters is not one of the critic's coordinates",
        "store the weight itself in the module: curvature in the weight",
    )


def _of_layout(graph: Graph, node: Node, value: Value) -> Value:
    """Another view of the same numbers in the same order is the value itself; some neighbouring
    features are a slice; q[arange(R), a], q[arange(R), :, a], q[one_hot.bool()] are the choice of an
    action."""
    part = node.args[1] if getattr(node.target, "__name__", "") == "getitem" else None
    chosen = None if part is None or value.free else choices.chosen(graph, node, part)
    if chosen:
        return chosen
    before, after = graph.seen[value.node], graph.seen[node]
    if not all(isinstance(t, graph.torch.Tensor) and t.dim() for t in (before, after)):
        return Value("layout", node, [value])
    moved, whole = graph.moved(node), before.numel() == after.numel()
    if whole and after.shape[-1] == before.shape[-1] and is_in_order(moved):
        return value
    of_rows = not value.free and before.dim() == 2
    if isinstance(part, tuple) and len(part) > 1 and of_rows and not whole:
        return _slice_of(graph, node, value, part[-1], moved)
    return Value("layout", node, [value])


def _slice_of(graph: Graph, node: Node, value: Value, part: Any, moved: Tensor) -> Value:
    """Features part of [R, d]: neighbouring ones, or a single one, of all rows. moved: as of _moved."""
    before, after = graph.seen[value.node], graph.seen[node]
    if type(part) is int:
        part = slice(part % before.shape[-1], part % before.shape[-1] + 1)
    if isinstance(part, slice) and not any(hasattr(p, "op") for p in (part.start, part.stop, part.step)):
        first, last, step = part.indices(before.shape[-1])
        taken = graph.torch.arange(before.numel()).reshape(before.shape)[:, first:last]
        if step == 1 and len(after) == len(before) and graph.torch.equal(taken.flatten(), moved.flatten()):
            return Value("slice", node, [value], part=(first, last))
    return Value("layout", node, [value])
