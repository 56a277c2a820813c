"""The other programs' answers: their own iterations, with the stopping rules and the numbers of products
that they offer, on the products of KappaScope's library.

A method takes a Product and returns (values, note); None stands for a question that a program has no
answer to.
"""

import numpy as np
import primme
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

LARGEST, RESIDUAL, COUNT, STEPS = 0.01, 0.001, 10, 90
TRACE = 0.02
SEED = 0
FAILURES = (RuntimeError, AttributeError, ArpackNoConvergence, primme.PrimmeError)


# --- SciPy ---

def scipy_largest(product):
    matrix = LinearOperator((product.n, product.n), matvec=product, dtype="f8")
    return eigsh(matrix, k=1, which="LA", tol=LARGEST, return_eigenvectors=False), ""


def scipy_top(product):
    matrix = LinearOperator((product.n, product.n), matvec=product, dtype="f8")
    values = eigsh(matrix, k=COUNT, which="LM", tol=RESIDUAL, return_eigenvectors=True)[0]
    return sorted(values, key=abs, reverse=True), ""


# --- PRIMME, which multiplies blocks of vectors ---

def columns(product):
    def multiply(block):
        block = np.reshape(block, (product.n, -1))
        return np.stack([product(column) for column in block.T], axis=1)

    return LinearOperator((product.n, product.n), matvec=multiply, matmat=multiply, dtype="f8")


def primme_largest(product):
    return primme.eigsh(columns(product), k=1, which="LA", tol=LARGEST,
                        return_eigenvectors=False), ""


def primme_top(product):
    values = primme.eigsh(columns(product), k=COUNT, which="LM", tol=RESIDUAL)[0]
    return sorted(values, key=abs, reverse=True), ""


# --- hessian-eigenthings ---

def eigenthings(product):
    """Its operator, and its algorithms."""
    import torch
    from hessian_eigenthings import algorithms
    from hessian_eigenthings.operators import LambdaOperator

    operator = LambdaOperator(lambda v: torch.from_numpy(product(v.numpy())), size=product.n,
                              device=torch.device("cpu"), dtype=torch.float64)
    return operator, algorithms


def eigenthings_largest(product):
    operator, algorithms = eigenthings(product)
    return [algorithms.power_iteration_one(operator, tol=LARGEST, seed=SEED)[0]], ""


def eigenthings_top(product):
    operator, algorithms = eigenthings(product)
    found = algorithms.lanczos(operator, k=COUNT, max_iter=STEPS, tol=RESIDUAL, seed=SEED,
                               reorthogonalize=True)
    if not bool(found.converged.all()):
        raise RuntimeError(f"{STEPS} steps are not enough")
    return [float(x) for x in found.eigenvalues], ""


def eigenthings_trace(product):
    """Hutch++ with its default number of products: it has no stopping rule."""
    operator, algorithms = eigenthings(product)
    found = algorithms.trace(operator, seed=SEED)
    return [found.estimate], f"standard error {found.stderr / abs(found.estimate):.1%}"


def eigenthings_nodes(product):
    """Quadrature nodes and weights of one start vector."""
    operator, algorithms = eigenthings(product)
    found = algorithms.spectral_density(operator, num_runs=1, lanczos_steps=STEPS, seed=SEED)
    return found.raw_eigenvalues[0].numpy(), found.raw_weights[0].numpy()


def eigenthings_directions(product):
    nodes, weights = eigenthings_nodes(product)
    return [product.n * weights[abs(nodes) >= max(abs(nodes)) / 100].sum()], "no interval"


def eigenthings_negative(product):
    nodes, weights = eigenthings_nodes(product)
    return [weights[nodes < 0].sum()], "no interval"


# --- PyHessian ---

def pyhessian(product):
    """Its algorithms with our products in place of its own."""
    import torch
    from pyhessian import hessian

    class Hessian(hessian):
        def __init__(self):
            self.model, self.device, self.full_dataset = torch.nn.Linear(1, 1), "cpu", True
            self.params = [torch.zeros(product.n, dtype=torch.float64)]

        def dataloader_hv_product(self, v):
            image = torch.from_numpy(product(v[0].numpy()))
            return float(image @ v[0].double()), [image]

    torch.manual_seed(SEED)
    return Hessian()


def pyhessian_largest(product):
    return [pyhessian(product).eigenvalues(tol=LARGEST)[0][0]], ""


def pyhessian_trace(product):
    return [np.mean(pyhessian(product).trace(tol=TRACE))], "no interval"


def pyhessian_density(product):
    values, weights = pyhessian(product).density(iter=STEPS)
    return np.array(values[0]), np.array(weights[0])


def pyhessian_directions(product):
    nodes, weights = pyhessian_density(product)
    return [product.n * weights[abs(nodes) >= max(abs(nodes)) / 100].sum()], "no interval"


def pyhessian_negative(product):
    nodes, weights = pyhessian_density(product)
    return [weights[nodes < 0].sum()], "no interval"


PROGRAMS = {
    "eigsh": {"largest": scipy_largest, "top": scipy_top},
    "PRIMME": {"largest": primme_largest, "top": primme_top},
    "hessian-eigenthings": {"largest": eigenthings_largest, "top": eigenthings_top,
                            "directions": eigenthings_directions, "trace": eigenthings_trace,
                            "negative": eigenthings_negative},
    "PyHessian": {"largest": pyhessian_largest, "directions": pyhessian_directions,
                  "trace": pyhessian_trace, "negative": pyhessian_negative},
}
