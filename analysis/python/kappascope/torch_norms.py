"""PyTorch: the normalizations that have a name of their own, as modules or functions."""

from __future__ import annotations

from typing import Any

from kappascope.names import Module, Node
from kappascope.torch_arithmetic import Arithmetic
from kappascope.tracing import path_of
from kappascope.values import Parameter, Unread, Value


class Norms(Arithmetic):
    """Finds the values of normalizations."""

    def _layer_parameters(self, node: Node, module: Module, names: dict[str, str]) -> dict[str, Parameter]:
        return {
            ours: Parameter(path_of(node, theirs))
            for ours, theirs in names.items()
            if getattr(module, theirs) is not None
        }

    def _groupnorm(
        self, node: Node, x: Value, groups: int, eps: float, params: dict[str, Parameter]
    ) -> Value:
        dims = self.seen[node].dim()
        if dims != 2:
            return self._bad(
                node, "GroupNorm", f"it normalizes {dims}-dimensional activations, not rows [R, d]"
            )
        return Value("groupnorm", node, [x], groups=groups, eps=eps, params=params)

    def _evaluates(self, node: Node) -> Value:
        return self._bad(
            node,
            "batchnorm",
            "it is in evaluation mode; the analyzed loss has the statistics of the minibatch, as in training",
            "module.train() before save",
        )

    def _by_rows(self, node: Node, x: Value) -> Value | None:
        """None if x is [R, d], the rows of a minibatch; else the refusal of a norm over them."""
        shape = list(self.seen[x.node].shape)
        if len(shape) == 2 and shape[0] == self.rows:
            return None
        return self._bad(
            node,
            "batchnorm",
            f"expected activations [R, d] with R = {self.rows} rows, found {shape}",
            "one such norm for each critic",
        )

    def _batchnorm(self, node: Node, m: Module, x: list[Value]) -> Value:
        if not m.training:
            return self._evaluates(node)
        refused = self._by_rows(node, x[0])
        if refused:
            return refused
        value = Value(
            "batchnorm",
            node,
            x,
            eps=m.eps,
            params=self._layer_parameters(node, m, {"scale": "weight", "bias": "bias"}),
        )
        if m.momentum is not None:
            value.options["momentum"] = 1 - m.momentum
        if m.track_running_stats and m.running_mean is not None:
            value.state = {v: path_of(node, f"running_{v}") for v in ("mean", "var")}
        return value

    def _renorm(self, node: Node, m: Module, x: list[Value]) -> Value:
        """A batchnorm during the warm-up, by the variance with R - 1."""
        if not m.training:
            return self._evaluates(node)
        if int(self.original.get_submodule(path_of(node)).steps) > m.warmup_steps:
            return self._bad(
                node,
                "batchnorm",
                "after its warm-up, eps is added to the corrected variance, which no line does",
                "steps=0 of a copy: the loss with batch normalization",
            )
        params = self._layer_parameters(node, m, {"scale": "scale", "bias": "bias"} if m.affine else {})
        value = Value("batchnorm", node, x, params=params, eps=m.eps, momentum=1 - m.momentum, unbiased=True)
        value.state = {v: path_of(node, f"ra_{v}") for v in ("mean", "var")}
        return self._by_rows(node, x[0]) or value

    def _affine(self, a: dict[str, Any]) -> dict[str, Parameter]:
        """Scale and bias of a norm, from the arguments `weight` and `bias`; None if another value
        than a parameter takes their place."""
        given = {
            ours: a[theirs]
            for ours, theirs in (("scale", "weight"), ("bias", "bias"))
            if a.get(theirs) is not None
        }
        if any(not isinstance(v, Value) or v.kind != "parameter" for v in given.values()):
            raise Unread("its weight or bias is no parameter")
        return {ours: v.params["it"] for ours, v in given.items()}

    def _on_layer_norm(self, node: Node) -> Value:
        a = self._call(node, "input", "normalized_shape", "weight", "bias", "eps")
        shape = a["normalized_shape"]
        if not isinstance(shape, int) and len(shape) != 1:
            return self._bad(
                node, "layer_norm", "it normalizes over several dimensions, not over the features"
            )
        return Value("layernorm", node, [a["input"]], eps=a.get("eps", 1e-5), params=self._affine(a))

    def _on_group_norm(self, node: Node) -> Value:
        a = self._call(node, "input", "num_groups", "weight", "bias", "eps")
        return self._groupnorm(node, a["input"], a["num_groups"], a.get("eps", 1e-5), self._affine(a))

    def _on_batch_norm(self, node: Node) -> Value:
        names = ["input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"]
        if node.target is self.torch.batch_norm:  # which is not torch.nn.functional.batch_norm
            names = ["input", "weight", "bias", "running_mean", "running_var", *names[5:], "cudnn_enabled"]
        a = self._call(node, *names)
        if not a.get("training", False):
            return self._evaluates(node)
        return self._by_rows(node, a["input"]) or Value(
            "batchnorm",
            node,
            [a["input"]],
            eps=a.get("eps", 1e-5),
            momentum=1 - a.get("momentum", 0.1),
            params=self._affine(a),
        )

    def _on_rms_norm(self, node: Node) -> Value:
        a = self._call(node, "input", "normalized_shape", "weight", "eps")
        if a.get("eps") is None:
            return self._bad(
                node,
                "rms_norm",
                "its eps depends on the type of the numbers",
                "eps=1.1920929e-07, which is PyTorch's for float32",
            )
        params = self._affine(a)
        kind = "rmsnorm" if params else "rms"
        return Value(kind, node, [a["input"]], eps=a["eps"], params=params)

    def _on_normalize(self, node: Node) -> Value:
        a = self._call(node, "input", "p", "dim", "eps")
        if a.get("p", 2.0) != 2 or not self._is_last(a["input"], a.get("dim", 1)):
            return self._bad(node, "normalize", "expected p=2 over the features (dim=-1)")
        return Value("l2norm", node, [a["input"]], eps=a.get("eps", 1e-12))
