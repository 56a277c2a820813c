"""PyTorch: the normalizations that have a name of their own, as modules or functions."""

from __future__ import annotations

from typing import Any

from kappascope.names import Module, Node
from kappascope.torch_arithmetic import Arithmetic
from kappascope.tracing import is_renorm, path_of
from kappascope.values import NoLine, Parameter, Value


class Norms(Arithmetic):
    """Finds the values of normalizations."""

    def _affine(self, a: dict[str, Any]) -> dict[str, Parameter]:
        """Scale and bias of a norm, from the arguments `weight` and `bias`."""
        names = (("scale", "weight"), ("bias", "bias"))
        given = {ours: a[theirs] for ours, theirs in names if a.get(theirs) is not None}
        if any(not isinstance(v, Value) or v.kind != "parameter" for v in given.values()):
            raise NoLine("its weight or bias is no parameter")
        return {ours: v.params["it"] for ours, v in given.items()}

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
        a = self._call(node, *names)
        self._check_batch(a["input"], a.get("training", False))
        value = Value("batchnorm", node, [a["input"]], eps=a.get("eps", 1e-5), params=self._affine(a))
        value.options["momentum"] = round(1 - a.get("momentum", 0.1), 12)
        return value

    def _on_layer_norm(self, node: Node) -> Value:
        a = self._call(node, "input", "normalized_shape", "weight", "bias", "eps")
        shape = a["normalized_shape"]
        if not isinstance(shape, int) and len(shape) != 1:
            raise NoLine(f"it normalizes over {len(shape)} dimensions, not over the features")
        return Value("layernorm", node, [a["input"]], eps=a.get("eps", 1e-5), params=self._affine(a))

    def _on_group_norm(self, node: Node) -> Value:
        a = self._call(node, "input", "num_groups", "weight", "bias", "eps")
        dims = self.seen[node].dim()
        if dims != 2:
            raise NoLine(f"it normalizes {dims}-dimensional activations, not rows [R, d]")
        value = Value("groupnorm", node, [a["input"]], eps=a.get("eps", 1e-5), params=self._affine(a))
        value.options["groups"] = a["num_groups"]
        return value

    def _on_rms_norm(self, node: Node) -> Value:
        a = self._call(node, "input", "normalized_shape", "weight", "eps")
        if a.get("eps") is None:
            raise NoLine(
                "its eps depends on the type of the numbers",
                "eps=1.1920929e-07, which is PyTorch's for float32",
            )
        params = self._affine(a)
        return Value("rmsnorm" if params else "rms", node, [a["input"]], eps=a["eps"], params=params)

    def _on_normalize(self, node: Node) -> Value:
        a = self._call(node, "input", "p", "dim", "eps")
        if a.get("p", 2.0) != 2 or not self._is_last(a["input"], a.get("dim", 1)):
            raise NoLine("expected p=2 over the features (dim=-1)")
        return Value("l2norm", node, [a["input"]], eps=a.get("eps", 1e-12))
