"""y = H x for a checkpoint, by KappaScope's library, with a count of the products."""

import ctypes
import os
import sys

import numpy as np

# struct kappascope_sizes of include/kappascope.h
SIZES = ("parameters", "statistics", "inputs", "outputs", "targets", "layers", "ensemble", "minibatches",
         "rows", "loss_rows", "frozen")


class Problem(ctypes.Structure):
    """struct kappascope_problem of include/kappascope.h."""

    _fields_ = [("kind", ctypes.c_char_p), ("precision", ctypes.c_int),
                ("evaluation", ctypes.c_bool), ("raw_rewards", ctypes.c_bool),
                ("minibatches", ctypes.c_size_t), ("weight_decay", ctypes.c_double),
                ("scale", ctypes.c_double), ("critic", ctypes.c_int), ("layer", ctypes.c_int),
                ("memory", ctypes.c_size_t)]


class Product:
    """The operator of a checkpoint's first `batches` minibatches, or of all for 0; `count`: the products so
    far."""

    def __init__(self, build, path, batches=0):
        with open(f"{os.path.dirname(__file__)}/../../../src/VERSION", encoding="ascii") as file:
            library = f"{build}/lib/libkappascope.so.{file.read().strip()}"
        self.library = ctypes.CDLL(library)
        self.library.kappascope_error.restype = ctypes.c_char_p
        self.library.kappascope_operator_dimension.restype = ctypes.c_size_t
        self.library.kappascope_blas_one_thread()
        checkpoint, self.operator, problem = ctypes.c_void_p(), ctypes.c_void_p(), Problem()
        sizes = (ctypes.c_size_t * len(SIZES))()
        self.call("checkpoint_read", path.encode(), ctypes.byref(checkpoint))
        self.call("checkpoint_sizes", checkpoint, sizes)
        self.minibatches = batches or sizes[SIZES.index("minibatches")]
        self.library.kappascope_problem_defaults(ctypes.byref(problem))
        problem.minibatches = batches
        self.call("operator_new", checkpoint, ctypes.byref(problem), ctypes.byref(self.operator))
        self.n = self.library.kappascope_operator_dimension(self.operator)
        self.count = 0

    def call(self, name, *arguments):
        if getattr(self.library, f"kappascope_{name}")(*arguments) != 0:
            sys.exit(f"answers.py: {self.library.kappascope_error().decode()}")

    def __call__(self, x):
        x = np.ascontiguousarray(x, dtype="f8").ravel()
        y = np.empty(self.n)
        pointer = ctypes.POINTER(ctypes.c_double)
        self.call("operator_apply", self.operator, x.ctypes.data_as(pointer),
                  y.ctypes.data_as(pointer))
        self.count += 1
        return y
