"""Critics of other frameworks as checkpoints that `kappascope analyze` reads.

    import kappascope
    kappascope.save("mine.h5", critics=[qf1, qf2], inputs=(obs, actions), targets=y,
                    loss=torch.nn.functional.mse_loss, optimizer=optimizer, step=1000)

save       PyTorch: the description is found by tracing the modules with torch.fx
unstack    PyTorch: the critics of a stacked ensemble (torch.func), as a list for save
save_flax  Flax, or any framework of JAX: the description is given, with a map of names
Monitor    saves and analyzes in the background while a program trains, and logs the statistics

analysis/export/README.md has examples, and says what can be expressed. The package needs numpy and h5py.
What it writes holds the results of the framework itself for its minibatches (outputs, losses, norms of the
gradient), which the analyzer compares with its own before it analyzes anything. What cannot be expressed
raises Refused, whose message has a line for each part: where it is, why, and a way out. Then nothing is
written.

For PyTorch: Graph traces a module (tracing.py) and says what its nodes compute (torch_layers.py, graph.py);
Chain puts the values of one critic into the order of a description (chain.py); critics.py gathers the
numbers, and reference.py the results. The program `kappascope import` is import_program.py, which reads the
options, and importing.py, with maps.py and arrays.py."""

from kappascope.export_flax import save_flax
from kappascope.export_torch import save, unstack
from kappascope.monitor import Monitor
from kappascope.refusal import Refused

__version__ = "0.6.0"
__all__ = ["Monitor", "Refused", "save", "save_flax", "unstack"]
