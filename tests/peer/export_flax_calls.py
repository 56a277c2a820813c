"""What a user of Flax writes to export a critic: one function for each of the critics of
export_critics_flax.py and export_flax.py, which counts their lines."""

import kappascope


def in_blocks(first, size, parts):
    """The map of names of two blocks of `size` layers, numbered from `first`: parts has the place
    of a layer in its block, its kind and its module."""
    return {
        f"{first + size * i + place:02d}_{kind}": module.format(i)
        for i in range(2)
        for place, kind, module in parts
    }


# fmt: off

def sac(path, module, variables, obs, actions, y, state):
    arch = "dense 12\nrelu\ndense 12\nrelu\ndense 1\n"
    kappascope.save_flax(path, variables, apply=module.apply, arch=arch,
                                inputs=(obs, actions), targets=y, loss="mse weight=2",
                                ensemble=2, optimizer=state, step=1000)


def simba(path, module, variables, obs, actions, y, state):
    arch = """
        dense 12
        repeat 2 {
          residual {
            layernorm
            dense 48
            relu
            dense 12
          }
        }
        layernorm
        dense 1
        """
    names = {"00_dense": "Dense_0", "09_layernorm": "LayerNorm_0", "10_dense": "Dense_1",
             **in_blocks(1, 4, [
                 (0, "layernorm", "SimBaBlock_{}/LayerNorm_0"),
                 (1, "dense", "SimBaBlock_{}/Dense_0"),
                 (3, "dense", "SimBaBlock_{}/Dense_1")])}
    kappascope.save_flax(path, variables, apply=module.apply, arch=arch, names=names,
                                inputs=(obs, actions), targets=y, loss="mse weight=2",
                                ensemble=2, optimizer=state)


def simba_v2(path, module, variables, obs, actions, y, state):
    arch = """
        append 3
        l2norm
        dense 12 bias=no project=unit
        scaler init=0.408248290463863 scale=0.408248290463863
        l2norm
        repeat 2 {
          lerp init=0.3333333333333333 scale=0.2886751345948129 {
            dense 48 bias=no project=unit
            scaler init=0.2041241452319315 scale=0.2041241452319315
            relu shift=1e-8
            dense 12 bias=no project=unit
            l2norm
          }
        }
        dense 12 bias=no project=unit
        scaler
        dense 11 project=unit-kernel
        """
    names = {"02_dense": "Dense_0", "03_scaler": "Scaler_0", "17_dense": "Dense_1",
             "18_scaler": "Scaler_1", "19_dense": "Dense_2", **in_blocks(5, 6, [
                 (0, "dense", "LERPBlock_{}/Dense_0"), (1, "scaler", "LERPBlock_{}/Scaler_0"),
                 (3, "dense", "LERPBlock_{}/Dense_1"),
                 (5, "lerp/alpha", "LERPBlock_{}/alpha/scaler")])}
    kappascope.save_flax(path, variables, apply=module.apply, arch=arch, names=names,
                                inputs=(obs, actions), targets=y, loss="ce min=-5 max=5",
                                ensemble=2, optimizer=state)


def bro(path, module, variables, obs, actions, y, state):
    arch = """
        dense 12
        layernorm
        relu
        repeat 2 {
          residual {
            dense 12
            layernorm
            relu
            dense 12
            layernorm
          }
        }
        dense 7
        loss quantile
        """
    names = {"00_dense": "Dense_0", "01_layernorm": "LayerNorm_0", "13_dense": "Dense_1",
             **in_blocks(3, 5, [
                 (0, "dense", "BROBlock_{}/Dense_0"), (1, "layernorm", "BROBlock_{}/LayerNorm_0"),
                 (3, "dense", "BROBlock_{}/Dense_1"), (4, "layernorm", "BROBlock_{}/LayerNorm_1")])}
    kappascope.save_flax(path, variables, apply=module.apply, arch=arch, names=names,
                                inputs=(obs, actions), targets=y, ensemble=2, optimizer=state)


def tdmpc2(path, module, variables, z, actions, y, state):
    arch = "repeat 2 {\ndense 12\nlayernorm eps=1e-5\nmish\n}\ndense 11\n"
    kappascope.save_flax(path, variables, apply=module.apply, arch=arch,
                                inputs=(z, actions), targets=y, loss="ce min=-10 max=10",
                                ensemble=5, optimizer=state)


def mrq(path, module, variables, zsa, y, state):
    arch = "repeat 3 {\ndense 12\nlayernorm affine=no eps=1e-5\nelu\n}\ndense 1\n"
    kappascope.save_flax(path, variables, apply=module.apply, arch=arch, inputs=zsa,
                                targets=y, loss="huber weight=0.5", ensemble=2, optimizer=state)


def crossq(path, module, variables, obs, actions, y, state):
    arch = "batchnorm\nrepeat 2 {\ndense 12\nrelu\nbatchnorm\n}\ndense 1\n"
    train = lambda v, x, a: module.apply(v, x, a, True, mutable=["batch_stats"])  # noqa: E731
    kappascope.save_flax(path, variables, apply=train, arch=arch, inputs=(obs, actions),
                                targets=y, loss="mse", ensemble=2, optimizer=state)


# fmt: on


def branches(path, module, variables, obs, actions, y, state):
    arch = """
        input [0:5]
        dense 12
        relu
        branch {
          dense 1
        }
        branch {
          dense 3
        }
        dueling
        select input[5:8]
        """
    kappascope.save_flax(
        path,
        variables,
        apply=lambda v, action, obs: module.apply(v, obs, action),
        arch=arch,
        inputs={"obs": obs, "action": actions},
        targets=y[..., None],
        loss="mse weight=2",
        ensemble=2,
        optimizer=state,
    )


def heads(path, module, variables, obs, actions, y, state):
    arch = """
        dense 12
        relu
        branch {
          dense 1
          loss mse weight=0.5
        }
        branch {
          dense 5
          loss ce min=0 max=1
        }
        """
    kappascope.save_flax(path, variables, apply=module.apply, arch=arch,
                                inputs=(obs, actions), targets=[y[..., :1], y[..., 1:]],
                                ensemble=2, optimizer=state)
