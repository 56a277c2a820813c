"""PyTorch: from the nodes of a traced graph to the layers of a description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kappascope.names import Module, Node, Tensor
from kappascope.torch_norms import Norms
from kappascope.tracing import KernelNorm, is_renorm, kernel_norm, path_of
from kappascope.values import (
    ACTIVATIONS,
    ALIASES,
    CASTS,
    COPIES,
    LAYOUT,
    SETTINGS,
    SHAPES,
    UNWRITTEN,
    NoLine,
    Parameter,
    Value,
    reason,
)

_PRODUCTS = {"baddbmm": ("batch1", "batch2"), "addmm": ("mat1", "mat2")}  # input + left @ right


class Layers(Norms):
    """Finds the value of every node of the graph."""

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
        word = node.args[1] if word == "getattr" else ALIASES.get(word, word)
        inputs, trained = self._inputs(node), module is not None and self._is_trained(module)
        try:
            value = self._module(node, module, inputs) if module is not None else self._function(node, word)
        except NoLine as error:
            usual = reason(error.word or (word if module is None else type(module).__name__))
            value = Value("bad", node, [v for v in inputs if v.kind not in ("parameter", "constant")][:1])
            value.why, value.way = error.why or usual[0], error.way or usual[1]
        value.fixed = not trained and all(v.fixed for v in inputs)
        value.free = value.free or (not value.params and not trained and all(v.free for v in inputs))
        value.free = value.free or (value.fixed and value.kind in UNWRITTEN)
        return value

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

    def _activation(self, node: Node, kind: str) -> Value:
        a = self._call(node, "input", *SETTINGS.get(kind, ["inplace"]))
        fixed: dict[str, dict[str, float]] = {"elu": {"alpha": 1.0}, "softplus": {"beta": 1, "threshold": 20}}
        for key, only in fixed.get(kind, {}).items():
            if a.get(key, only) != only:
                raise NoLine(f"{key} is {a[key]:g}; the description has {only:g}")
        options: dict[str, dict[str, Any]] = {
            "relu": {"shift": 0.0},
            "gelu": {"approximate": a.get("approximate", "none")},
            "leaky_relu": {"negative_slope": a.get("negative_slope", 0.01)},
        }
        return Value(kind, node, [a["input"]], **options.get(kind, {}))

    def _on_hardtanh(self, node: Node) -> Value:
        a = self._call(node, "input", "min_val", "max_val")
        if (a.get("min_val", -1), a.get("max_val", 1)) != (0, 6):
            raise NoLine
        return Value("relu6", node, [a["input"]])

    def _on_softmax(self, node: Node) -> Value:
        """Over all features of rows [R, d], or [E, R, d] of a stacked ensemble."""
        a = self._call(node, "input", "dim", "_stacklevel", "dtype")
        shape, last = self.seen[node].shape, self._is_last(a["input"], a.get("dim"))
        if not last or a.get("dtype") or len(shape) not in (2, 3) or shape[-2] != self.rows:
            raise NoLine
        return Value("simnorm", node, [a["input"]], dim=shape[-1])

    def _function(self, node: Node, word: str) -> Value:
        inputs = self._inputs(node)
        if word in SHAPES or all(v.kind == "constant" for v in inputs):
            return Value("constant", node, free=True)
        if inputs[0].kind == "parameter" and len([v for v in inputs if v.kind != "constant"]) == 1:
            return self._of_parameter(node, word, inputs[0])
        if word in CASTS:
            self.rounded = True
            return Value("cast", node, inputs) if inputs[0].free else inputs[0]
        if word in COPIES:
            return inputs[0]
        if word in LAYOUT:
            return self._layout(node, inputs[0])
        if word in ACTIVATIONS:
            return self._activation(node, ACTIVATIONS[word])
        if word in ("mean", "var", "norm"):
            return self._over(node, word)
        if word in ("sqrt", "rsqrt"):
            return Value(word, node, inputs)
        if word in _PRODUCTS:
            return self._biased_product(node, *_PRODUCTS[word])
        rule = getattr(self, "_on_" + word, None)
        if not rule:
            raise NoLine
        return rule(node)  # type: ignore[no-any-return]

    def _on_matmul(self, node: Node) -> Value:
        a = self._call(node, "input", "other", "mat2")
        return self._product(node, a["input"], a.get("other", a.get("mat2")))

    def _on_add(self, node: Node) -> Value:
        a = self._call(node, "input", "other", "alpha")
        y = self._times(node, a["other"], a["alpha"]) if "alpha" in a else a["other"]
        return self._sum(node, a["input"], y)

    def _of_parameter(self, node: Node, word: str, value: Value) -> Value:
        """A view of a parameter, or one times a constant."""
        parameter, seen, factor = value.params["it"], self.seen[node], None
        if word in CASTS:
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
            scaled = Parameter(parameter.name, parameter.transform, parameter.factor * factor, parameter.part)
            return Value("parameter", node, params={"it": scaled})
        size = self.parameters[parameter.name].numel()
        index = node.args[1] if word == "getitem" else None
        whole = seen.numel() == size or parameter.part
        if word in LAYOUT | COPIES and whole or type(index) is int:

            def view(tensor: Tensor) -> Tensor:
                if node.op == "call_method":
                    return getattr(tensor, node.target)(*node.args[1:], **node.kwargs)
                return node.target(tensor, *node.args[1:], **node.kwargs)

            if not any(hasattr(a, "op") for a in node.args[1:]):
                moved = parameter.then(view)
                moved.part += (index % len(self.seen[value.node]),) if type(index) is int else ()
                return Value("parameter", node, params={"it": moved})
        raise NoLine(
            "a weight that is computed from other parameters is not one of the critic's coordinates",
            "store the weight itself in the module: curvature in the weight",
        )

    def _layout(self, node: Node, value: Value) -> Value:
        """Another view of the same numbers in the same order is the value itself; some neighbouring
        features are a slice."""
        before, after = self.seen[value.node], self.seen[node]
        if not all(isinstance(t, self.torch.Tensor) and t.dim() for t in (before, after)):
            return Value("layout", node, [value])
        moved, whole = self._moved(node), before.numel() == after.numel()
        if whole and after.shape[-1] == before.shape[-1] and self._is_in_order(moved):
            return value
        part = node.args[1] if getattr(node.target, "__name__", "") == "getitem" else None
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

    def _on_linear(self, node: Node) -> Value:
        a = self._call(node, "input", "weight", "bias")
        if any(a.get(key) is not None and a[key].kind != "parameter" for key in ("weight", "bias")):
            raise NoLine("its weight is no parameter", "store the weight itself in the module")
        params = {"kernel": a["weight"].params["it"].then(lambda w: w.t())}
        if a.get("bias") is not None:
            params["bias"] = a["bias"].params["it"]
        return self._kernel(node, [a["input"]], params)

    def _kernel(self, node: Node, x: list[Value], params: dict[str, Parameter]) -> Value:
        if any(p.factor != 1 for p in params.values()):
            raise NoLine(
                "a kernel times a constant has no line in the description",
                "store the product itself in the module: curvature in the product",
            )
        return Value("dense", node, x, params=params)

    def _product(self, node: Node, x: Any, w: Any, bias: Parameter | None = None) -> Value:
        if getattr(w, "kind", "") != "parameter" or getattr(x, "kind", "parameter") == "parameter":
            raise NoLine(
                "expected activations times a parameter [in, out] or [E, in, out]",
                "torch.nn.functional.linear(x, weight)",
            )
        return self._kernel(node, [x], {"kernel": w.params["it"]} | ({"bias": bias} if bias else {}))

    def _biased_product(self, node: Node, left: str, right: str) -> Value:
        a = self._call(node, "input", left, right)
        if not isinstance(a["input"], Value) or a["input"].kind != "parameter":
            return self._sum(node, self._product(node, a[left], a[right]), a["input"])
        return self._product(node, a[left], a[right], a["input"].params["it"])

    def _on_einsum(self, node: Node) -> Value:
        """x and W [.., in, out], [.., out, in]: one index is summed, an index of W alone is the
        output's last."""
        equation, operands = node.args[0], node.args[1:]
        if not isinstance(equation, str):
            raise NoLine("expected the indices as a string", "such as 'bi,io->bo'")
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = operands[0]
        left, _, out = equation.replace(" ", "").partition("->")
        letters, values = left.split(","), [self.values[n] for n in operands]
        if len(values) == 2 and values[0].kind == "parameter":
            letters, values = letters[::-1], values[::-1]
        if len(values) != 2 or values[1].kind != "parameter" or values[0].kind == "parameter":
            raise NoLine("expected activations and one parameter")
        x, w = letters
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
        kernel = values[1].params["it"].then(lambda t: t.permute(order))
        return self._kernel(node, [values[0]], {"kernel": kernel})

    def _on_pad(self, node: Node) -> Value:
        a = self._call(node, "input", "pad", "mode", "value")
        if list(a["pad"]) != [0, 1] or a.get("mode", "constant") != "constant":
            raise NoLine
        return Value("append", node, [a["input"]], constant=float(a.get("value") or 0))

    def _on_dropout(self, node: Node) -> Value:
        a = self._call(node, "input", "p", "training", "inplace")
        if a.get("p", 0.5) != 0 and a.get("training", True):
            raise NoLine
        return self._inputs(node)[0]

    def _on_cat(self, node: Node) -> Value:
        a = self._call(node, "input", "dim")
        parts = a["input"]
        constant = next((i for i, p in enumerate(parts) if not isinstance(p, Value)), None)
        last = constant != 0 and self._is_last(parts[0], a.get("dim", 0))
        if constant == 1 and len(parts) == 2 and last:
            if self.seen[node].shape[-1] == self.seen[parts[0].node].shape[-1] + 1:
                return Value("append", node, parts[:1], constant=parts[1])
        if constant is not None:
            raise NoLine(
                "a constant can only be joined as one more feature, behind the others",
                "torch.cat([x, one_column], -1)",
            )
        return Value("cat", node, parts, last=last)

    def _on_stack(self, node: Node) -> Value:
        return Value("cat", node, self._call(node, "input", "dim")["input"], last=False)
