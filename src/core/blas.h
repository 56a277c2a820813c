/* The BLAS library in use: its version, its kernel, its threads; and the processor. */
#ifndef KS_CORE_BLAS_H
#define KS_CORE_BLAS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* Limits OpenBLAS to one thread: KappaScope runs its own worker threads, one per core, and two
 * thread pools would compete. Every program calls this first, with its argv.
 *
 * OpenBLAS reads its environment only when it is loaded. So the process sets a variable and
 * re-executes itself (exec) in two cases:
 * - OpenBLAS does not recognize the processor and selected a kernel for older ones (version 0.3.21
 *   runs SSE3 on an Emerald Rapids, at a fifth of the speed), and OPENBLAS_CORETYPE is not set.
 * - The address space is limited (ulimit -v or -d): the threads that OpenBLAS creates when it is
 *   loaded would map buffers that are never used, and retry forever if the limit forbids it.
 *
 * With argv NULL the process is never re-executed. */
void ks_blas_start(char **argv);

/* Makes sure, before the first matrix product, that `threads` threads can call BLAS. OpenBLAS maps
 * a buffer of 128 MiB for each thread that calls it concurrently, and retries forever if that
 * fails. Mapping the buffers now turns that hang into an error: KS_MEMORY, with the address space
 * needed, if they and the threads' stacks do not fit. */
ks_status ks_blas_reserve(size_t threads);

/* "OpenBLAS 0.3.21" and "SkylakeX". Do not free; the version is valid until the thread ends. */
const char *ks_blas_version(void);
const char *ks_blas_kernel(void);

/* The name of OpenBLAS's kernel for a processor with, or without, AVX2 and AVX-512; NULL if
 * `kernel` suits this processor already. */
const char *ks_blas_better_kernel(const char *kernel, bool avx2, bool avx512);

/* A one-line warning if the kernel is slower than the processor allows, else NULL. */
const char *ks_blas_warning(void);

/* The model name that the system reports, "Intel(R) Xeon(R) CPU @ 2.30GHz", else the architecture,
 * "aarch64". Never NULL; valid until the thread's next call. */
const char *ks_processor_name(void);

#endif
