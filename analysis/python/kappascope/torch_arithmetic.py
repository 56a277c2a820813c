"""PyTorch: sums, products, quotients and means in a traced graph, which are parts of norms, residual sums and
scalers."""

from __future__ import annotations

from typing import Any

from kappascope.names import Node
from kappascope.tracing import Tracing
from kappascope.values import NoLine, Parameter, Value, inside, split_norm

_NEW = ", in training, too: another critic"
# Other names of arguments.
_ARGUMENTS = {**dict.fromkeys(["self", "x", "A", "tensors"], "input"), "axis": "dim", "keepdims": "keepdim"}


class Arithmetic(Tracing):
    """Finds the values of nodes that compute with one or two others."""

    values: dict[Node, Value]

    def _inputs(self, node: Node) -> list[Value]:
        return [self.values[n] for n in node.all_input_nodes]

    def _call(self, node: Node, *names: str) -> dict[str, Any]:
        """The arguments of a function or method by name, with values in place of nodes; names[0] is
        the first tensor."""
        found = dict(zip(names, node.args))
        found.update(node.kwargs)
        for other, ours in _ARGUMENTS.items():
            if other in found and ours in names:
                found.setdefault(ours, found.pop(other))
        unread = [key for key, value in found.items() if key not in (*names, "inplace") and value is not None]
        unread += [repr(value) for value in node.args[len(names) :] if value is not None]
        if unread:
            raise NoLine(f"its argument {unread[0]} is not read here")
        return {key: self._argument(value) for key, value in found.items()}

    def _argument(self, value: Any) -> Any:
        """A node as its value; a constant as the number it is; lists likewise."""
        import torch.fx

        if isinstance(value, (list, tuple)):
            return [self._argument(v) for v in value]
        if not isinstance(value, torch.fx.Node):
            return value
        found = self.values[value]
        if found.kind != "constant":
            return found
        seen = self.seen[value]
        if not isinstance(seen, torch.Tensor):
            return seen
        alike = seen.numel() and bool((seen == seen.flatten()[0]).all())
        return float(seen.flatten()[0]) if alike else found

    def _is_last(self, value: Value, dim: Any) -> bool:
        dims = self.seen[value.node].dim()
        dim = dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim
        return isinstance(dim, int) and dim % dims == dims - 1

    def _sum(self, node: Node, x: Any, y: Any) -> Value:
        if not isinstance(x, Value) or x.kind in ("parameter", "constant"):
            x, y = y, x
        if isinstance(y, (int, float)):
            value: Value = x
            if value.kind == "relu":
                return Value("relu", node, value.args, shift=value.options["shift"] + y)
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

    def _on_sub(self, node: Node) -> Value:
        a = self._call(node, "input", "other", "alpha")
        x, y = a["input"], a["other"]
        if isinstance(y, (int, float)):
            return self._sum(node, x, -y * a.get("alpha", 1))
        if {"parameter", "constant"} & {getattr(x, "kind", ""), y.kind}:
            raise NoLine
        y = self._times(node, y, a["alpha"]) if "alpha" in a else y
        if not isinstance(x, Value):
            return self._sum(node, self._times(node, y, -1), x)
        return Value("sub", node, [x, y])

    def _on_mul(self, node: Node) -> Value:
        given = self._call(node, "input", "other")
        x, y = given["input"], given["other"]
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

    def _on_div(self, node: Node) -> Value:
        a = self._call(node, "input", "other")
        x, y = a["input"], a["other"]
        if isinstance(y, (int, float)):
            return self._times(node, x, 1 / y)
        norm = self._quotient(node, x, y, root=True) if isinstance(x, Value) else None
        found = norm or self._refused_part(y)
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
        eps, centered = (below.args[0] if root else below).options["constant"], self._centered(x)
        squares = inside(inner, "mean", "square") is x
        if squares and not centered:
            return Value("rms", node, [x], eps=eps) if inner.options["over"] == "features" else None
        if not centered or inner.options.get("over") != centered[1]:
            return None
        if squares or inside(inner, "var") is centered[0]:
            kind = {"features": "layernorm", "rows": "batchnorm"}.get(centered[1])
            unbiased: dict[str, Any] = {"unbiased": True} if inner.options.get("unbiased") else {}
            return Value(kind, node, [centered[0]], eps=eps, **unbiased) if kind else None
        return None

    def _centered(self, x: Value) -> tuple[Value, str] | None:
        """(y, over) if x = y - mean(y)."""
        if x.kind != "sub":
            return None
        y, mean = x.args
        centered = inside(mean, "mean") is y
        return (y, mean.options["over"]) if centered else None

    def _on_abs(self, node: Node) -> Value:
        return Value("abs", node, [self._call(node, "input")["input"]])

    def _on_max(self, node: Node) -> Value:
        """The least of critics, or a feature."""
        inputs = self._inputs(node)
        raise NoLine(word="minimum" if len(inputs) > 1 or inputs[0].kind == "cat" else "max")

    _on_min = _on_amax = _on_amin = _on_max

    def _on_pow(self, node: Node) -> Value:
        a = self._call(node, "input", "exponent")
        if a.get("exponent", 2) != 2:
            raise NoLine
        return Value("square", node, [a["input"]])

    def _over(self, node: Node, kind: str) -> Value:
        """mean, var and norm over the features or the rows; over the features they keep a dimension
        of 1."""
        names = {
            "mean": ("dim", "keepdim"),
            "var": ("dim", "unbiased", "keepdim", "correction"),
            "norm": ("p", "dim", "keepdim", "ord"),
        }
        a = self._call(node, "input", *names[kind])
        if a.get("ord", a.get("p")) not in (2, None, "fro"):
            raise NoLine("the only norm that has a line is the Euclidean one")
        dim = a.get("dim")
        dim = dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim
        shape = self.seen[a["input"].node].shape
        if not isinstance(dim, int):
            raise NoLine(
                f"expected a {kind} over the features, found one over all entries, rows included",
                (f".{kind}(-1, keepdim=True)" if kind == "mean" else "dim=-1, keepdim=True") + _NEW,
            )
        dim, keepdim = dim % len(shape), bool(a.get("keepdim", False))
        over = "features" if dim == len(shape) - 1 else "others"
        if shape[dim] == self.rows and (len(shape), dim) in ((2, 0), (3, 1)):  # [R, d] or [E, R, d]
            over = "rows"
        if over == "features" and not keepdim:
            raise NoLine("it drops the dimension of the features", "keepdim=True")
        correction = a.get("unbiased", a.get("correction", True))
        if kind == "var" and correction not in (0, 1, None):
            raise NoLine(f"expected a correction of 0 or 1, found {correction}", f"correction=0{_NEW}")
        unbiased = kind == "var" and correction != 0
        if unbiased and over != "rows":
            raise NoLine("the variance of a norm is the biased one", f"unbiased=False{_NEW}")
        found = Value(kind, node, [a["input"]], over=over, dim=dim, keepdim=keepdim)
        found.options |= {"unbiased": True} if unbiased else {}
        return found

    def _on_clamp(self, node: Node) -> Value:
        a = self._call(node, "input", "min", "max")
        if a.get("max") is not None or not isinstance(a.get("min"), (int, float)):
            raise NoLine
        if a["min"] == 0:
            return Value("relu", node, [a["input"]], shift=0.0)
        return Value("clamp", node, [a["input"]], constant=float(a["min"]))

    def _on_lerp(self, node: Node) -> Value:
        a = self._call(node, "input", "end", "weight")
        if not isinstance(a["weight"], Value) or a["weight"].kind != "parameter":
            raise NoLine("its weight is no parameter")
        return Value("between", node, [a["input"], a["end"]], params={"alpha": a["weight"].params["it"]})
