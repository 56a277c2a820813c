"""The networks that the contestants compute: layers, the critics' descriptions, random checkpoints.

A network is a short list of layers, in the order and with the numbers of its description;
critic_torch.py and critic_jax.py each compute it. The three critics stand for the twelve of
src/train/architecture.c: weight normalization changes parameters, not the loss's derivatives."""

import json

import h5py
import numpy as np

NAMES = "bn+wn+ce", "ln+wn+ce", "dense+mse"
BATCHNORM_EPS, LAYERNORM_EPS = 1e-3, 1e-6
V_MIN, V_MAX = -5, 5


class Network:
    """layers: (kind, {parameter: shape}) in order. Parameters lie in lists, in canonical order."""

    def __init__(self, name, inputs, width, depth, outputs):
        self.name, self.inputs, self.width, self.depth = name, inputs, width, depth
        self.norm = {"bn": "batchnorm", "ln": "layernorm"}.get(name.split("+")[0])
        self.projected = "+wn" in name
        self.outputs = outputs
        self.joint = self.norm == "batchnorm"  # couples rows: statistics are over all of them
        self.layers = []
        if self.norm:
            self.layers.append((self.norm, {"scale": (inputs,), "bias": (inputs,)}))
        for i in range(depth):
            kernel = {"kernel": (width if i else inputs, width)}
            self.layers.append(("dense", kernel if self.joint else {**kernel, "bias": (width,)}))
            if self.norm:
                self.layers.append((self.norm, {"scale": (width,), "bias": (width,)}))
            self.layers.append(("relu", {}))
        self.layers.append(("dense", {"kernel": (width, self.outputs), "bias": (self.outputs,)}))

    def parameters(self):
        """(group/parameter of a checkpoint, shape), in canonical order."""
        return [(f"{i:02d}_{kind}/{name}", shape) for i, (kind, shapes) in enumerate(self.layers)
                for name, shape in shapes.items()]

    def size(self):
        return sum(int(np.prod(shape)) for _, shape in self.parameters())

    def split(self, vectors):
        """The arrays of flat vectors [..., P]."""
        return split(vectors, [shape for _, shape in self.parameters()])

    def by_layer(self, parameters):
        """(kind, {name: parameter}) of every layer."""
        w = iter(parameters)
        return [(kind, {name: next(w) for name in shapes}) for kind, shapes in self.layers]


def split(vectors, shapes):
    """Vectors [..., P] as arrays [..., *shape], one for each of the shapes."""
    arrays, at = [], 0
    for shape in shapes:
        n = int(np.prod(shape))
        arrays.append(vectors[..., at:at + n].reshape(vectors.shape[:-1] + shape))
        at += n
    return arrays


class Critic(Network):
    def __init__(self, name, inputs=261, width=512, depth=4, atoms=101):
        self.arguments = {"name": name, "inputs": inputs, "width": width, "depth": depth,
                          "atoms": atoms}
        self.loss = name.split("+")[-1]
        super().__init__(name, inputs, width, depth, atoms if self.loss == "ce" else 1)

    def description(self):
        unit = " project=unit" if self.projected else ""
        block = [f"  dense {self.width}{' bias=no' if self.joint else ''}{unit}", "  relu"]
        if self.norm:
            block.insert(1, f"  {self.norm}")
        head = f"dense {self.outputs}{' project=unit-kernel' if self.projected else ''}"
        loss = f"loss ce min={V_MIN} max={V_MAX}" if self.loss == "ce" else "loss mse"
        return "\n".join(([self.norm] if self.norm else []) + [f"repeat {self.depth} {{"] + block +
                         ["}", head, loss]) + "\n"


def random_parameter(rng, critic, name, shape):
    if name.endswith("scale"):
        return 1 + 0.1 * rng.standard_normal(shape)
    if name.endswith("bias"):
        return 0.1 * rng.standard_normal(shape)
    kernel = rng.standard_normal(shape)
    if critic.projected:
        return kernel / np.linalg.norm(kernel, axis=-2, keepdims=True)
    return kernel * np.sqrt(2 / shape[-2])


def random_targets(rng, critic, minibatches, batch):
    """Plausible targets: returns, or for ce distributions concentrated around a return."""
    value = rng.uniform(0.8 * V_MIN, 0.8 * V_MAX, (minibatches, batch, 1))
    if critic.loss == "mse":
        return value
    atoms = np.linspace(V_MIN, V_MAX, critic.outputs)
    bumps = np.exp(-((atoms - value) / 0.3) ** 2 / 2)
    return bumps / bumps.sum(axis=-1, keepdims=True)


def write_checkpoint(path, critic, ensemble, minibatches, batch, seed=0):
    rng = np.random.default_rng(seed)
    rows = 2 * batch if critic.joint else batch
    spread = 10 ** rng.uniform(-1, 1, critic.inputs)  # positions, velocities, forces
    with h5py.File(path, "w") as f:
        f.attrs["format"] = "kappascope-checkpoint"
        f.attrs["version"] = 1
        f.attrs["peer_critic"] = json.dumps(critic.arguments)  # for Problem; KappaScope ignores it
        for name, shape in critic.parameters():
            w = random_parameter(rng, critic, name, (ensemble, *shape))
            f[f"critic/{name}"] = w.astype("f4")
        f["critic"].attrs["arch"] = critic.description()
        f["critic"].attrs["ensemble"] = ensemble
        x = rng.standard_normal((minibatches, rows, critic.inputs))
        f["batch/input"] = (x * (spread if critic.norm else 1)).astype("f4")
        f["batch/target"] = random_targets(rng, critic, minibatches, batch).astype("f4")


def write_vector(path, critic, ensemble, seed=1):
    v = np.random.default_rng(seed).standard_normal((1, ensemble * critic.size()))
    with h5py.File(path, "w") as f:
        f.attrs["format"] = "kappascope-vector"
        f.attrs["version"] = 1
        f["vector"] = v.astype("f4").astype("f8")  # the same in both precisions


def read_vector(path):
    """The first vector of a file, and the loss if the file is a gradient's, else None."""
    with h5py.File(path) as f:
        return f["vector"][0], f.attrs.get("loss")


class Problem:
    """A checkpoint and a vector as arrays of one precision ("f32", "f64").

    parameters, vectors: [E] lists of arrays; input [N, R, D]; target [N, B, K]."""

    def __init__(self, checkpoint, vector, precision):
        dtype = {"f32": "float32", "f64": "float64"}[precision]
        with h5py.File(checkpoint) as f:
            critic = self.critic = Critic(**json.loads(f.attrs["peer_critic"]))
            arrays = [f[f"critic/{name}"][()].astype(dtype) for name, _ in critic.parameters()]
            self.ensemble = int(f["critic"].attrs["ensemble"])
            self.input = f["batch/input"][()].astype(dtype)
            self.target = f["batch/target"][()].astype(dtype)
        v = read_vector(vector)[0].astype(dtype).reshape(self.ensemble, critic.size())
        self.parameters = [[a[e] for a in arrays] for e in range(self.ensemble)]
        self.vectors = [critic.split(v[e]) for e in range(self.ensemble)]
        self.minibatches, self.loss_rows = self.target.shape[:2]
