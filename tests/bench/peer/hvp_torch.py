"""PyTorch's Hessian-vector products: python3 hvp_torch.py CHECKPOINT VECTOR f32|f64 WORKERS

A contestant (contest.py). WORKERS threads share the minibatches; each computes with OMP_NUM_THREADS
threads. Methods: "gradient" (loss, then gradient); "double" (backward through the gradient); "kept"
(the same, but the graph of each minibatch's gradient is kept for all products); "forward" (forward-mode
derivative of the gradient). The results are means over the minibatches."""

import sys
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.autograd import forward_ad

from contest import serve
from critic_torch import about, library_norm, minibatch_loss, plain_norm
from critics import Problem


class Products:
    def __init__(self, problem, workers):
        self.critic, self.minibatches = problem.critic, problem.minibatches
        self.w = [[torch.tensor(a, requires_grad=True) for a in w] for w in problem.parameters]
        self.v = [[torch.tensor(a) for a in v] for v in problem.vectors]
        self.x, self.target = torch.tensor(problem.input), torch.tensor(problem.target)
        self.workers, self.pool = workers, ThreadPoolExecutor(workers)
        self.graphs = {}

    def loss(self, w, n, norm=library_norm):
        return minibatch_loss(self.critic, w, self.x[n], self.target[n], norm)

    def mean(self, part):
        """For every critic e, the mean of part(e, n) over the minibatches n; in canonical order."""
        result = []
        for e in range(len(self.w)):
            total, *others = self.pool.map(lambda k: self.sum(part, e, k), range(self.workers))
            for other in others:
                torch._foreach_add_(total, other)
            torch._foreach_div_(total, self.minibatches)
            result += total
        return result

    def sum(self, part, e, k):
        """The sum over worker k's minibatches."""
        total = [torch.zeros_like(a) for a in self.w[e]]
        for n in range(k, self.minibatches, self.workers):
            torch._foreach_add_(total, list(part(e, n)))
        return total

    def gradient(self):
        losses = []

        def part(e, n):
            losses.append(self.loss(self.w[e], n))
            return torch.autograd.grad(losses[-1], self.w[e])

        gradient = self.mean(part)
        return [sum(losses).detach() / self.minibatches] + gradient

    def graph(self, e, n):
        return torch.autograd.grad(self.loss(self.w[e], n), self.w[e], create_graph=True)

    def double(self):
        return self.mean(lambda e, n: torch.autograd.grad(self.graph(e, n), self.w[e], self.v[e]))

    def kept(self):
        def part(e, n):
            if (e, n) not in self.graphs:
                self.graphs[e, n] = self.graph(e, n)
            return torch.autograd.grad(self.graphs[e, n], self.w[e], self.v[e], retain_graph=True)

        return self.mean(part)

    def forward(self):
        def part(e, n):
            w = [forward_ad.make_dual(*pair) for pair in zip(self.w[e], self.v[e])]
            gradient = torch.autograd.grad(self.loss(w, n, plain_norm), w)
            return [forward_ad.unpack_dual(g).tangent for g in gradient]

        with forward_ad.dual_level():
            return self.mean(part)


def main():
    checkpoint, vector, precision, workers = sys.argv[1:]
    p = Products(Problem(checkpoint, vector, precision), int(workers))
    serve(about(), {"gradient": p.gradient, "double": p.double, "kept": p.kept,
                    "forward": p.forward},
          lambda result: torch.cat([a.detach().flatten() for a in result]).numpy())


main()
