"""PyTorch: from the nodes of a traced graph to the layers of a description.

A rule is a method _on_WORD of Graph for functions and methods of this name, or of one that _ALIASES has for
it. Its parameters are the arguments of the call: values where they are nodes."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kappascope.names import Array, Arrays, Module, Node, Tensor
from kappascope.refusal import fail
from kappascope.tracing import KernelNorm, Tracing, is_renorm, kernel_norm, nearly_equal, path_of
from kappascope.values import ACTIVATIONS, NoLine, Parameter, Source, Value, inside, reason, split_norm

_NEW = ", in training, too: another critic"
# Other names of arguments.
_ARGUMENTS = {**dict.fromkeys(["self", "x", "A", "tensors"], "input"), "axis": "dim", "keepdims": "keepdim"}
_ARGUMENTS |= {"mat2": "other", "batch1": "mat1", "batch2": "mat2"}
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
# Without a trained parameter, these are a part of the input: they have no line.
_UNWRITTEN = set("bad layout parameter cast abs square sqrt rsqrt mean var norm clamp addc sub".split())
_FIXED = "elu", "softplus"  # activations whose lines have only the usual values of their arguments
_NO_TERMS = (_UNWRITTEN - {"sub"}) | {"between", "constant", "times"}  # what cannot be a term of a sum


def added(node: Node, parts: list[Value], blocks: list[Array]) -> Value:
    """The sum of parts times constant matrices: the parts side by side, and a dense."""
    found = Value("dense", node, [Value("cat", node, parts, last=True)], kernel=np.concatenate(blocks))
    found.frozen, found.width = True, blocks[0].shape[1]
    return found


def _is_parameter(value: Any) -> bool:
    return isinstance(value, Value) and value.kind == "parameter"


def _own(value: Any, *refusal: str) -> Parameter:
    """The parameter that a value is. refusal: of another value."""
    if not _is_parameter(value):
        raise NoLine(*refusal)
    return value.params["it"]  # type: ignore[no-any-return]


def _affine(weight: Any, bias: Any = None) -> dict[str, Parameter]:
    """Scale and bias of a norm."""
    given = {"scale": weight, "bias": bias}
    why = "its weight or bias is no parameter"
    return {key: _own(value, why) for key, value in given.items() if value is not None}


def _joins_or_splits(shape: tuple[int, ...], axes: list[int]) -> bool:
    """Whether each dimension of a shape consists of whole axes, or is a part of one."""
    ends = list(itertools.accumulate(axes, operator.mul, initial=1))
    dims = list(itertools.accumulate(shape, operator.mul, initial=1))
    return all(
        {first, last} <= set(ends) or any(a <= first and last <= b for a, b in zip(ends, ends[1:]))
        for first, last in zip(dims, dims[1:])
    )


class Graph(Tracing):
    """One module, traced: `roots` are the outputs of its critics, `values` what its nodes compute."""

    def __init__(self, module: Module, name: str, inputs: Arrays, by_name: bool) -> None:
        super().__init__(module, name, inputs, by_name)
        self.values: dict[Node, Value] = {}
        self.duel, self.sum_of = functools.cache(self._duel), functools.cache(self._sum_of)
        for node in self.graph.nodes:
            self.values[node] = self._value(node)
            self._write_through(node)
        self.starts: dict[Value, int] = {}
        self.returned: list[tuple[Node, list[Value]]] = []
        self.places: dict[Node, Tensor] = {}
        self.roots = self._roots(next(n for n in self.graph.nodes if n.op == "output").args[0])

    # --- what forward returns ---

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
            what = "the last layer of a critic is a Linear, whose outputs the loss reads"
            self.refuse(value.node, f"{what}; {value.refusal()}")
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

    # --- nodes ---

    def _write_through(self, node: Node) -> None:
        """Behind an operation in place, such as relu_, the names of its tensor have the new
        value."""
        word = getattr(node.target, "__name__", str(node.target))
        by_name = node.op.startswith("call") and word.endswith("_") and not word.endswith("__")
        changes = by_name or node.kwargs.get("inplace")
        for other, seen in self.seen.items() if changes else ():
            if (
                other in self.values
                and isinstance(seen, self.torch.Tensor)
                and seen.data_ptr() == self.seen[node].data_ptr()
                and seen.shape == self.seen[node].shape
            ):
                self.values[other] = self.values[node]

    def _value(self, node: Node) -> Value:
        if node.op == "placeholder":
            return Value("given", node, free=True)
        if node.op == "get_attr":
            return self._attribute(node)
        if node.op == "output":
            return Value("output", node)
        module = self.modules[node.target] if node.op == "call_module" else None
        word = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
        # In place those of _LAYOUT would change the shape of what is seen.
        if word not in _COPIES and word.removesuffix("_") not in _LAYOUT:
            word = word.removesuffix("_")
        word = node.args[1] if word == "getattr" else _ALIASES.get(word, word)
        inputs, trained = self._inputs(node), module is not None and self._is_trained(module)
        try:
            value = self._module(node, module, inputs) if module is not None else self._function(node, word)
        except NoLine as error:
            usual = reason(error.word or (word if module is None else type(module).__name__))
            value = Value("bad", node, [v for v in inputs if v.kind not in ("parameter", "constant")][:1])
            value.said = error.why or usual[0], error.way or usual[1]
        value.fixed = not trained and all(v.fixed for v in inputs)
        value.free = value.free or (not value.params and not trained and all(v.free for v in inputs))
        value.free = value.free or (value.fixed and value.kind in _UNWRITTEN)
        return value

    def _inputs(self, node: Node) -> list[Value]:
        return [self.values[n] for n in node.all_input_nodes]

    def _is_trained(self, module: Module) -> bool:
        return any(p.requires_grad for p in module.parameters())

    def _attribute(self, node: Node) -> Value:
        name = path_of(node)
        if name in self.parameters:
            value = Value("parameter", node, params={"it": Parameter(name)})
            value.free = value.fixed = not self.parameters[name].requires_grad
            return value
        if getattr(self.seen[node], "requires_grad", False):
            way = "torch.nn.Parameter"
            self.refuse(
                node, f"a tensor that requires gradients and is no parameter of the module. Way out: {way}"
            )
        return Value("constant", node, free=True)

    def _module(self, node: Node, m: Module, x: list[Value]) -> Value:
        """Of a module that is not traced."""
        norm = kernel_norm(m)
        if norm:
            return self._normed(node, m, x[:1], norm)
        if type(m).__name__ in ("BatchNorm1d", "SyncBatchNorm") or is_renorm(m):
            return self._batchnorm(node, m, x[0])
        if self._is_trained(m):
            raise NoLine(
                way="export the part behind it, with its output as the input; where only inputs are in "
                "front of it, also requires_grad_(False) for all its parameters, as a part of the input"
            )
        raise NoLine

    def _normed(self, node: Node, m: Module, x: list[Value], how: KernelNorm) -> Value:
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

    def _function(self, node: Node, word: str) -> Value:
        inputs = self._inputs(node)
        if word in _SHAPES or all(v.kind == "constant" for v in inputs):
            return Value("constant", node, free=True)
        if inputs[0].kind == "parameter" and len([v for v in inputs if v.kind != "constant"]) == 1:
            return self._of_parameter(node, word, inputs[0])
        if word in _CASTS:
            self.rounded = True
            return Value("cast", node, inputs) if inputs[0].free else inputs[0]
        if word in _COPIES:
            return inputs[0]
        if word in _LAYOUT:
            return self._layout(node, inputs[0])
        if word in ("abs", "sqrt", "rsqrt"):
            return Value(word, node, inputs)
        if word in ACTIVATIONS:
            usual = ACTIVATIONS[word]
            a = {**usual, **self._call(node, "input", *usual, "inplace")}
            for key in usual if word in _FIXED else ():
                if a[key] != usual[key]:
                    raise NoLine(f"{key} is {a[key]:g}; the description has {usual[key]:g}")
            return Value(word, node, [a["input"]], **{key: a[key] for key in usual})
        rule = getattr(self, "_on_" + word, None)
        if not rule:
            raise NoLine
        _, *names = inspect.signature(rule).parameters
        return rule(node, **(self._call(node, *names) if names else {}))  # type: ignore[no-any-return]

    def _call(self, node: Node, *names: str) -> dict[str, Any]:
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
        found = {key: self._argument(value) for key, value in found.items() if key in names}
        if isinstance(found.get("dim"), list) and len(found["dim"]) == 1:
            found["dim"] = found["dim"][0]
        return found

    def _argument(self, value: Any) -> Any:
        """A node as its value; a constant as the number it is; lists likewise."""
        if isinstance(value, (list, tuple)):
            return [self._argument(v) for v in value]
        if not isinstance(value, self.torch.fx.Node):
            return value
        found, seen = self.values[value], self.seen[value]
        if found.kind != "constant":
            return found
        if not isinstance(seen, self.torch.Tensor):
            return seen
        alike = seen.numel() and bool((seen == seen.flatten()[0]).all())
        return float(seen.flatten()[0]) if alike else found

    def _is_last(self, value: Value, dim: Any) -> bool:
        dims = self.seen[value.node].dim()
        return isinstance(dim, int) and dim % dims == dims - 1

    def _of_parameter(self, node: Node, word: str, value: Value) -> Value:
        """A view of a parameter, or one times a constant."""
        parameter, factor = value.params["it"], None
        if word in _CASTS:
            self.rounded = True
            return value
        if word == "neg":
            factor = -1.0
        if word in ("mul", "div"):
            given = list(self._call(node, "input", "other").values())
            other = [a for a in given if not isinstance(a, Value)]
            if len(other) == 1 and (word == "mul" or isinstance(given[0], Value)):
                factor = float(other[0]) if word == "mul" else 1 / float(other[0])
        if factor is not None:
            scaled = replace(parameter, factor=parameter.factor * factor)
            return Value("parameter", node, params={"it": scaled})
        index = node.args[1] if word == "getitem" else None
        whole = self.seen[node].numel() == self.parameters[parameter.name].numel() or parameter.part
        if word in _LAYOUT | _COPIES and whole or type(index) is int:
            if len(node.all_input_nodes) == 1:
                moved = parameter.then(lambda tensor: self._repeat(node, {value.node: tensor}))
                moved.part += (index % len(self.seen[value.node]),) if type(index) is int else ()
                return Value("parameter", node, params={"it": moved})
        raise NoLine(
            "a weight that is computed from other parameters is not one of the critic's coordinates",
            "store the weight itself in the module: curvature in the weight",
        )

    # --- views ---

    def _layout(self, node: Node, value: Value) -> Value:
        """Another view of the same numbers in the same order is the value itself; some neighbouring
        features are a slice; q[arange(R), a], q[arange(R), :, a], q[one_hot.bool()] are the choice of an
        action."""
        part = node.args[1] if getattr(node.target, "__name__", "") == "getitem" else None
        chosen = None if part is None or value.free else self._chosen(node, part)
        if chosen:
            return chosen
        before, after = self.seen[value.node], self.seen[node]
        if not all(isinstance(t, self.torch.Tensor) and t.dim() for t in (before, after)):
            return Value("layout", node, [value])
        moved, whole = self._moved(node), before.numel() == after.numel()
        if whole and after.shape[-1] == before.shape[-1] and self._is_in_order(moved):
            return value
        of_rows = not value.free and before.dim() == 2
        if isinstance(part, tuple) and len(part) > 1 and of_rows and not whole:
            return self._slice(node, value, part[-1], moved)
        return Value("layout", node, [value])

    def _repeat(self, node: Node, given: Mapping[Node, Tensor]) -> Any:
        """What a node computes with other tensors in place of its inputs."""
        args, kwargs = self.torch.fx.node.map_arg(
            (node.args, node.kwargs), lambda n: given[n] if n in given else self.seen[n]
        )
        if node.op == "call_method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        return node.target(*args, **kwargs)

    def _moved(self, node: Node) -> Any:
        """Where each number of a view is in its input: values alone might be equal by chance."""
        inner = node.all_input_nodes[0]
        seen = self.seen[inner]
        return self._repeat(node, {inner: self.torch.arange(seen.numel()).reshape(seen.shape)})

    def _is_in_order(self, places: Tensor) -> bool:
        return bool((places.flatten() == self.torch.arange(places.numel())).all())

    def _slice(self, node: Node, value: Value, part: Any, moved: Tensor) -> Value:
        """Features part of [R, d]: neighbouring ones, or a single one, of all rows. moved: as of _moved."""
        before, after = self.seen[value.node], self.seen[node]
        if type(part) is int:
            part = slice(part % before.shape[-1], part % before.shape[-1] + 1)
        if isinstance(part, slice) and not any(hasattr(p, "op") for p in (part.start, part.stop, part.step)):
            first, last, step = part.indices(before.shape[-1])
            taken = self.torch.arange(before.numel()).reshape(before.shape)[:, first:last]
            if step == 1 and len(after) == len(before) and self.torch.equal(taken.flatten(), moved.flatten()):
                return Value("slice", node, [value], part=(first, last))
        return Value("layout", node, [value])

    def _on_cat(self, node: Node, input: Any, dim: Any = 0) -> Value:
        constant = next((i for i, p in enumerate(input) if not isinstance(p, Value)), None)
        last = constant != 0 and self._is_last(input[0], dim)
        if constant == 1 and len(input) == 2 and last:
            if self.seen[node].shape[-1] == self.seen[input[0].node].shape[-1] + 1:
                return Value("append", node, input[:1], constant=input[1])
        if constant is not None:
            raise NoLine(
                "a constant can only be joined as one more feature, behind the others",
                "torch.cat([x, one_column], -1)",
            )
        return Value("cat", node, input, last=last)

    def _on_stack(self, node: Node, input: Any, dim: Any = 0) -> Value:
        return Value("cat", node, input, last=False)

    def _on_pad(self, node: Node, input: Any, pad: Any, mode: Any = "constant", value: Any = None) -> Value:
        if list(pad) != [0, 1] or mode != "constant":
            raise NoLine
        return Value("append", node, [input], constant=float(value or 0))

    # --- products with parameters ---

    def _on_linear(self, node: Node, input: Any, weight: Any, bias: Any = None) -> Value:
        why = "its weight is no parameter", "store the weight itself in the module"
        params = {"kernel": _own(weight, *why).then(lambda w: w.t())}
        return self._kernel(node, input, params | ({} if bias is None else {"bias": _own(bias, *why)}))

    def _kernel(self, node: Node, x: Value, params: dict[str, Parameter]) -> Value:
        if any(p.factor != 1 for p in params.values()):
            raise NoLine(
                "a kernel times a constant has no line in the description",
                "store the product itself in the module: curvature in the product",
            )
        return Value("dense", node, [x], params=params)

    def _on_matmul(self, node: Node, input: Any, other: Any) -> Value:
        return self._product(node, input, other, {})

    def _product(self, node: Node, x: Any, w: Any, bias: dict[str, Parameter]) -> Value:
        """Also q [R, M, K] @ one_hot [R, K, 1], and one_hot [R, 1, K] @ q [R, K, M]."""
        if isinstance(x, Value) and isinstance(w, Value) and "parameter" not in (x.kind, w.kind):
            if x.free != w.free:
                nodes = node.all_input_nodes
                at, chosen = nodes if w.free else nodes[::-1]
                return self._select(node, at, self._weights(self.values[chosen]), 2 if w.free else 1)
        if not _is_parameter(w) or not isinstance(x, Value) or _is_parameter(x):
            raise NoLine(
                "expected activations times a parameter [in, out] or [E, in, out]",
                "torch.nn.functional.linear(x, weight)",
            )
        return self._kernel(node, x, {"kernel": w.params["it"], **bias})

    def _on_addmm(self, node: Node, input: Any, mat1: Any, mat2: Any) -> Value:
        if _is_parameter(input):
            return self._product(node, mat1, mat2, {"bias": input.params["it"]})
        return self._sum(node, self._product(node, mat1, mat2, {}), input)

    def _on_einsum(self, node: Node) -> Value:
        """x and W [.., in, out], [.., out, in]: one index is summed, an index of W alone is the
        output's last. Also 'rak,ra->rk' and the like, where [R, A] are weights of actions."""
        if not isinstance(node.args[0], str):
            raise NoLine("expected the indices as a string", "such as 'bi,io->bo'")
        left, _, out = node.args[0].replace(" ", "").partition("->")
        nodes = node.all_input_nodes
        parts = [(self.values[n], letters, n) for n, letters in zip(nodes, left.split(","))]
        parameters = [v.kind == "parameter" for v, _, _ in parts]
        if [v.free for v, _, _ in parts] in ([False, True], [True, False]) and not any(parameters):
            (_, q, at), (_, weights, chosen) = sorted(parts, key=lambda part: part[0].free)
            action = weights[1:]
            if weights == q[0] + action and q.count(action) == 1 and out == q.replace(action, ""):
                return self._select(node, at, self._weights(self.values[chosen]), q.index(action))
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
        return self._kernel(node, x_value, {"kernel": w_value.params["it"].then(lambda t: t.permute(order))})

    # --- activations that have arguments of other kinds ---

    def _on_hardtanh(self, node: Node, input: Any, min_val: Any = -1, max_val: Any = 1) -> Value:
        if (min_val, max_val) != (0, 6):
            raise NoLine
        return Value("relu6", node, [input])

    def _on_softmax(
        self, node: Node, input: Any, dim: Any = None, _stacklevel: Any = 3, dtype: Any = None
    ) -> Value:
        """Over all features of rows [R, d], or [E, R, d] of a stacked ensemble."""
        shape = self.seen[node].shape
        if not self._is_last(input, dim) or dtype or len(shape) not in (2, 3) or shape[-2] != self.rows:
            raise NoLine
        return Value("simnorm", node, [input], dim=shape[-1])

    def _on_dropout(
        self, node: Node, input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False
    ) -> Value:
        if p != 0 and training:
            raise NoLine
        return self._inputs(node)[0]

    def _on_clamp(self, node: Node, input: Any, min: Any = None, max: Any = None) -> Value:
        if max is not None or not isinstance(min, (int, float)):
            raise NoLine
        if min == 0:
            return Value("relu", node, [input])
        return Value("clamp", node, [input], constant=float(min))

    # --- norms that have a name of their own ---

    def _check_batch(self, x: Value, training: bool) -> None:
        """A norm over rows is one in training mode, of activations [R, d] of all rows."""
        if not training:
            raise NoLine(
                "it is in evaluation mode; the analyzed loss has the statistics of the minibatch, as in "
                "training",
                "module.train() before save",
            )
        shape = list(self.seen[x.node].shape)
        if len(shape) != 2 or shape[0] != self.rows:
            raise NoLine(
                f"expected activations [R, d] with R = {self.rows} rows, found {shape}",
                "one such norm for each critic",
            )

    def _batchnorm(self, node: Node, m: Module, x: Value) -> Value:
        """PyTorch's, or sb3-contrib's batch renormalization in its warm-up, by the variance with R - 1."""
        self._check_batch(x, m.training)
        renorm = is_renorm(m)
        if renorm and int(self.original.get_submodule(path_of(node)).steps) > m.warmup_steps:
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

    def _on_batch_norm(self, node: Node) -> Value:
        names = ["input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"]
        if node.target is self.torch.batch_norm:  # which is not torch.nn.functional.batch_norm
            names = ["input", "weight", "bias", "running_mean", "running_var", *names[5:], "cudnn_enabled"]
        a = {"training": False, "momentum": 0.1, "eps": 1e-5, **self._call(node, *names)}
        self._check_batch(a["input"], a["training"])
        params, momentum = _affine(a.get("weight"), a.get("bias")), round(1 - a["momentum"], 12)
        return Value("batchnorm", node, [a["input"]], params=params, eps=a["eps"], momentum=momentum)

    def _on_layer_norm(
        self,
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

    def _on_group_norm(
        self, node: Node, input: Any, num_groups: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
    ) -> Value:
        dims = self.seen[node].dim()
        if dims != 2:
            raise NoLine(f"it normalizes {dims}-dimensional activations, not rows [R, d]")
        return Value("groupnorm", node, [input], eps=eps, params=_affine(weight, bias), groups=num_groups)

    def _on_rms_norm(
        self, node: Node, input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None
    ) -> Value:
        if eps is None:
            raise NoLine(
                "its eps depends on the type of the numbers",
                "eps=1.1920929e-07, which is PyTorch's for float32",
            )
        params = _affine(weight)
        return Value("rmsnorm" if params else "rms", node, [input], eps=eps, params=params)

    def _on_normalize(self, node: Node, input: Any, p: Any = 2.0, dim: Any = 1, eps: Any = 1e-12) -> Value:
        if p != 2 or not self._is_last(input, dim):
            raise NoLine("expected p=2 over the features (dim=-1)")
        return Value("l2norm", node, [input], eps=eps)

    # --- sums, products and quotients, which are parts of norms, residual sums and scalers ---

    def _on_add(self, node: Node, input: Any, other: Any, alpha: Any = None) -> Value:
        return self._sum(node, input, other if alpha is None else self._times(node, other, alpha))

    def _sum(self, node: Node, x: Any, y: Any) -> Value:
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
        return self._biased(node, x, y.params["it"])

    def _biased(self, node: Node, x: Value, bias: Parameter) -> Value:
        """dense + b, or the bias of a norm whose scale came before."""
        ready = {"dense": ("kernel",), "layernorm": ("scale",), "batchnorm": ("scale",)}
        if bias.factor == 1 and x.kind in ready and tuple(x.params) == ready[x.kind]:
            return x.with_params(node, {**x.params, "bias": bias})
        for i, term in enumerate(x.args) if x.kind == "add" else ():
            if bias.factor == 1 and term.kind == "dense" and tuple(term.params) == ("kernel",):
                terms = [*x.args[:i], self._biased(term.node, term, bias), *x.args[i + 1 :]]
                return Value("add", node, terms)
        raise NoLine(word="bias")

    def _on_sub(self, node: Node, input: Any, other: Any, alpha: Any = None) -> Value:
        if isinstance(other, (int, float)):
            return self._sum(node, input, -other * (1 if alpha is None else alpha))
        if {"parameter", "constant"} & {getattr(input, "kind", ""), other.kind}:
            raise NoLine
        other = other if alpha is None else self._times(node, other, alpha)
        if not isinstance(input, Value):
            return self._sum(node, self._times(node, other, -1), input)
        return Value("sub", node, [input, other])

    def _on_mul(self, node: Node, input: Any, other: Any) -> Value:
        x, y = input, other
        if not isinstance(x, Value) or x.kind in ("parameter", "constant"):
            x, y = y, x
        if isinstance(y, (int, float)):
            return self._times(node, x, float(y))
        if y.kind == "parameter":
            return self._scaled(node, x, y.params["it"])
        for a, b in ((x, y), (y, x)):
            if inside(b, "sigmoid") is a:
                return Value("silu", node, [a])
            if inside(b, "tanh", "softplus") is a:
                return Value("mish", node, [a])
            norm = self._quotient(node, a, b.args[0], root=False) if b.kind == "rsqrt" else None
            if norm:
                return norm
        refused = self._refused_part(x) or self._refused_part(y)
        if refused:
            return refused
        if x.free != y.free:
            return Value("times", node, [y, x] if x.free else [x, y])
        raise NoLine(
            "a product of activations has a line in the description only as x * sigmoid(x), x * "
            "tanh(softplus(x)) or a norm"
        )

    def _on_neg(self, node: Node) -> Value:
        return self._times(node, self._inputs(node)[0], -1.0)

    def _times(self, node: Node, x: Value, factor: float) -> Value:
        x = split_norm(x)
        if x.kind == "scaler":
            return Value("scaler", node, x.args, params=x.params, init=factor * x.options["init"])
        if x.kind == "mulc":
            factor, x = factor * x.options["init"], x.args[0]
        return Value("mulc", node, [x], init=factor)

    def _scaled(self, node: Node, x: Value, scale: Parameter) -> Value:
        """x times a parameter: the scale of a norm without one, else a scaler."""
        if x.kind in ("rms", "layernorm", "batchnorm") and not x.params and scale.factor == 1:
            return x.with_params(node, {"scale": scale}, "rmsnorm" if x.kind == "rms" else x.kind)
        factor = scale.factor
        if x.kind == "mulc":
            factor, x = factor * x.options["init"], x.args[0]
        return Value("scaler", node, [x], params={"scaler": scale}, init=factor)

    def _on_div(self, node: Node, input: Any, other: Any) -> Value:
        if isinstance(other, (int, float)):
            return self._times(node, input, 1 / other)
        norm = self._quotient(node, input, other, root=True) if isinstance(input, Value) else None
        found = norm or self._refused_part(other)
        if not found:
            raise NoLine(
                "a quotient has a line in the description only as a norm: x / sqrt(mean(x^2) + eps), (x - "
                "mean) / sqrt(var + eps) with the biased variance, x / max(norm, eps)"
            )
        return found

    def _refused_part(self, value: Value) -> Value | None:
        """What was refused in the parts of a norm, which says more than that it is no norm."""
        while value.kind in ("sqrt", "rsqrt", "addc", "clamp") and value.args:
            value = value.args[0]
        return value if value.kind == "bad" and not value.free else None

    def _quotient(self, node: Node, x: Value, below: Value, root: bool) -> Value | None:
        """x / sqrt(mean(x^2) + eps), (x - mean) / sqrt(var + eps), x / max(|x|, eps), x / max(mean|x|, eps),
        from their parts. `below` is the denominator (root), or what rsqrt was taken of."""
        if root and inside(below, "clamp", "norm") is x:
            return Value("l2norm", node, [x], eps=below.options["constant"])
        if root and inside(below, "clamp", "mean", "abs") is x:
            over, eps = below.args[0].options["over"], below.options["constant"]
            return Value("avgl1norm", node, [x], eps=eps) if over == "features" else None
        if root and inside(below, "norm") is x:
            return Value("l2norm", node, [x], eps=1e-12)
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

    def _on_max(self, node: Node) -> Value:
        """The least of critics, or a feature."""
        inputs = self._inputs(node)
        raise NoLine(word="minimum" if len(inputs) > 1 or inputs[0].kind == "cat" else "max")

    _on_min = _on_amax = _on_amin = _on_max

    def _on_pow(self, node: Node, input: Any, exponent: Any = 2) -> Value:
        if exponent != 2:
            raise NoLine
        return Value("square", node, [input])

    def _on_lerp(self, node: Node, input: Any, end: Any, weight: Any) -> Value:
        alpha = _own(weight, "its weight is no parameter")
        return Value("between", node, [input, end], params={"alpha": alpha})

    def _on_mean(self, node: Node, input: Any, dim: Any = None, keepdim: Any = False) -> Value:
        stacked = self._stacked_parts(node, input, dim)
        if stacked:
            return self._times(node, stacked, 1 / len(self.seen[input.node]))
        return self._over(node, "mean", input, dim, keepdim)

    def _on_var(
        self,
        node: Node,
        input: Any,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: Any = False,
        correction: Any = 1,
    ) -> Value:
        correction = correction if unbiased is None else unbiased
        return self._over(node, "var", input, dim, keepdim, 1 if correction is None else correction)

    def _on_norm(
        self, node: Node, input: Any, p: Any = 2, dim: Any = None, keepdim: Any = False, ord: Any = None
    ) -> Value:
        if (p if ord is None else ord) not in (2, None, "fro"):
            raise NoLine("the only norm that has a line is the Euclidean one")
        return self._over(node, "norm", input, dim, keepdim)

    def _over(self, node: Node, kind: str, x: Value, dim: Any, keepdim: Any, correction: Any = 0) -> Value:
        """mean, var and norm over the features or the rows; over the features they keep a dimension
        of 1."""
        shape = self.seen[x.node].shape
        if not isinstance(dim, int):
            raise NoLine(
                f"expected a {kind} over the features, found one over all entries, rows included",
                (f".{kind}(-1, keepdim=True)" if kind == "mean" else "dim=-1, keepdim=True") + _NEW,
            )
        dim, keepdim = dim % len(shape), bool(keepdim)
        over = "features" if dim == len(shape) - 1 else "others"
        if shape[dim] == self.rows and (len(shape), dim) in ((2, 0), (3, 1)):  # [R, d] or [E, R, d]
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

    # --- sums of branches ---

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

    def width(self, value: Value) -> int:
        """The number of features."""
        if value.kind == "cat" and value.options["last"]:
            return sum(map(self.width, value.args))  # which may stand for the terms of a sum
        shape = self.seen[value.node].shape
        return int(shape[-1]) if len(shape) > 1 else 1

    # --- heads of Q-networks ---

    def _duel(self, value: Value) -> Value | None:
        """value + advantage - mean advantage as a layer `dueling` of a joined value and advantages;
        None if it is something else."""
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

    def _on_sum(self, node: Node, input: Any, dim: Any = None, keepdim: Any = False) -> Value:
        """(q * one_hot).sum(dim)"""
        stacked = self._stacked_parts(node, input, dim)
        if stacked:
            return stacked
        if input.kind != "times" or not isinstance(dim, int):
            raise NoLine
        at = next(n for n in input.node.all_input_nodes if self.values[n] is input.args[0])
        return self._select(node, at, self._weights(input.args[1]), dim % self.seen[input.node].dim())

    def _weights(self, chosen: Value) -> Source:
        """The weights [R, A] of A actions, whatever dimensions of length 1 they have."""
        width = self.seen[chosen.node].numel() // self.rows
        return Source(chosen, width, lambda t: t.reshape(len(t), -1).to(self.dtype), "weights")

    def _on_gather(self, node: Node, input: Any, dim: Any, index: Any) -> Value:
        return self._taken(node, node.all_input_nodes[0], index, dim)

    def _on_take_along_dim(self, node: Node, input: Any, indices: Any, dim: Any) -> Value:
        return self._taken(node, node.all_input_nodes[0], indices, dim)

    def _chosen(self, node: Node, part: Any) -> Value | None:
        """q[arange(R), a], q[arange(R), :, a], q[one_hot.bool()]; None if it is another index."""
        parts = part if isinstance(part, tuple) else (part,)
        nodes = [i for i, one in enumerate(parts) if isinstance(one, self.torch.fx.Node)]
        seen = [self.seen[parts[i]] for i in nodes]
        index = self.values[parts[nodes[-1]]] if nodes else None
        if index and index.free and len(parts) == 1 and seen[0].dtype == self.torch.bool:
            return self._select(node, node.args[0], self._weights(index), 1)
        rows = len(nodes) == 2 and nodes[0] == 0 and seen[0].flatten().tolist() == list(range(self.rows))
        if index and rows and all(one == slice(None) for i, one in enumerate(parts) if i not in nodes):
            return self._taken(node, node.args[0], index, nodes[1])
        return None

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
