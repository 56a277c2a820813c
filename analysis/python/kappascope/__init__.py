"""Critics of other frameworks as checkpoints that `kappascope analyze` reads, and their runs as studies.

    import kappascope
    kappascope.save("mine.h5", critics=[qf1, qf2], inputs=(obs, actions), targets=y,
                    loss=torch.nn.functional.mse_loss, optimizer=optimizer, step=1000)
    kappascope.analyze("mine.h5")["kappa_effective_bound"]

save           PyTorch: the description is found by tracing the modules with torch.fx
unstack        PyTorch: the critics of a stacked ensemble (torch.func), as a list for save
save_flax      Flax, or any framework of JAX: the description is given, with a map of names
save_arrays    arrays of any program: the description is given
Run            checkpoints and returns of a training run, in the folder of a study
Monitor        a Run that is analyzed in the background while it trains, with the statistics in its logs
returns        the returns of a past run, from a table, or files of Stable-Baselines3 or TensorBoard
analyze        the spectrum of a checkpoint, or of an Operator, in this process
Operator       anybody's symmetric operator, by its products; torch_hessian and jax_hessian make one
audit          runs the program, and returns what it found
load_spectrum  the arrays and statistics of a spectrum
load_vectors   eigenvectors as PyTorch's parameters or trees of JAX
program        where a program of KappaScope is

analysis/export/README.md has examples, and says what can be expressed. The package needs numpy,
h5py, and the programs with their library, which reads descriptions.
What it writes holds the results of the framework itself for its minibatches (outputs, losses, norms of the
gradient), which the analyzer compares with its own before it analyzes anything. What cannot be expressed
raises Refused, whose message has a line for each part: where it is, why, and a way out. Then nothing is
written.

For PyTorch: tracing.py traces a module, and nodes.py says what each node computes, by the rules in rules.py
and rules_sums.py; Graph holds that (graph.py). Outputs finds the critics in what forward returns
(outputs.py); Chain puts the values of one critic into the order of a description (chain.py); critics.py
gathers the numbers, and reference.py the results. The program `kappascope import` is import_program.py, which
reads the options, and importing.py, with maps.py and arrays.py."""

from kappascope.analysis import analyze
from kappascope.export_arrays import save_arrays
from kappascope.export_flax import save_flax
from kappascope.export_torch import save, unstack
from kappascope.library import AnalysisError
from kappascope.monitor import Monitor
from kappascope.names import VERSION
from kappascope.operators import Operator, jax_hessian, torch_hessian
from kappascope.programs import ProgramError, audit, program
from kappascope.refusal import Refused
from kappascope.returns import returns
from kappascope.run import Run
from kappascope.spectra import Spectrum, Statistic, load_spectrum
from kappascope.vectors import load_vectors

__version__ = VERSION
__all__ = [
    "AnalysisError",
    "Monitor",
    "Operator",
    "ProgramError",
    "Refused",
    "Run",
    "Spectrum",
    "Statistic",
    "analyze",
    "audit",
    "jax_hessian",
    "load_spectrum",
    "load_vectors",
    "program",
    "returns",
    "save",
    "save_arrays",
    "save_flax",
    "torch_hessian",
    "unstack",
]
