"""The programs to measure, each with all settings that may be its fastest: threads, workers, devices,
libraries."""

import os
import re
import subprocess

OURS = "KappaScope"


def has_avx512():
    with open("/proc/cpuinfo") as info:
        return "avx512f" in info.read()


def kernel(options):
    """The OpenBLAS kernel that KappaScope's programs use."""
    out = subprocess.run([f"{options.build}/bin/kappascope-analyze", "--version"], check=True,
                         env=without_kernel(), stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"kernel (\S+)", out)[1]


def without_kernel():
    return {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}


def plural(n, word):
    return f"{n} {word}{'s' if n > 1 else ''}"


def settings(options, ours, torch, jax):
    """The ways to start each program: {(program, label): (command, environment)}. PyTorch's command gets
    the number of workers as its last argument."""
    n = len(os.sched_getaffinity(0))
    bare = dict.fromkeys(["OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
                          "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "ATEN_CPU_CAPABILITY"])
    passive = {**bare, "OMP_WAIT_POLICY": "PASSIVE"}
    plain = {**bare, "OPENBLAS_CORETYPE": kernel(options)}
    tuned = {**plain, "OMP_WAIT_POLICY": "PASSIVE"}
    if has_avx512():  # PyTorch before 2.0 does not use AVX-512 by default
        tuned["ATEN_CPU_CAPABILITY"] = "avx512"
    ynnpack = ("--xla_cpu_experimental_ynn_fusion_type="
               "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT")
    devices = f"--xla_force_host_platform_device_count={n}"
    every = {(OURS, "as it comes"): (ours, bare),
             ("PyTorch", "as it comes"): (torch + ["1"], plain)}
    for t in sorted({1, n}):
        threads = {"OMP_NUM_THREADS": str(t)}
        every[OURS, plural(t, "worker")] = ours, {**passive, **threads}
        every["PyTorch", plural(t, "thread")] = torch + ["1"], {**tuned, **threads}
    every["PyTorch", f"{plural(n, 'worker')} of 1 thread"] = (torch + [str(n)],
                                                              {**tuned, "OMP_NUM_THREADS": "1"})
    every["JAX", "as it comes"] = jax, {"XLA_FLAGS": None}
    every["JAX", "1 thread"] = ["taskset", "-c", "0", *jax], {"XLA_FLAGS": None}
    every["JAX", "YNNPACK"] = jax, {"XLA_FLAGS": ynnpack}
    every["JAX", plural(n, "device")] = jax, {"XLA_FLAGS": devices}
    every["JAX", f"{plural(n, 'device')}, YNNPACK"] = jax, {"XLA_FLAGS": f"{devices} {ynnpack}"}
    return every
