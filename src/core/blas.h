/* The BLAS in use: version, kernel, threads. */
#ifndef KS_CORE_BLAS_H
#define KS_CORE_BLAS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* One thread in OpenBLAS: threads are ours, one worker a core, and two pools would fight. Every
 * program calls it first, with its arguments: where OpenBLAS does not know the processor and took a
 * kernel for older ones (0.3.21 runs SSE3 on an Emerald Rapids, a fifth of the speed), and
 * OPENBLAS_CORETYPE says nothing, the program starts anew with a better one. It also starts anew
 * where the address space is limited (ulimit -v, -d): the threads that OpenBLAS makes when it is
 * loaded would map buffers that nobody uses, and retry for ever where the limit forbids them.
 * argv NULL: it does not start anew.
 */
void ks_blas_start(char **argv);

/* Makes sure, before the first matrix product, that `threads` threads can call BLAS. OpenBLAS maps
 * a buffer of 128 MiB for each thread that is in it at the same time, and where that fails it tries
 * again for ever. So these buffers are mapped now, where a failure can be told. KS_MEMORY, with the
 * address space that is needed, where there is no room for them and for the threads' stacks. */
ks_status ks_blas_reserve(size_t threads);

/* "OpenBLAS 0.3.21", "SkylakeX": strings that live as long as the program. */
const char *ks_blas_version(void);
const char *ks_blas_kernel(void);

/* OpenBLAS's name of a kernel that uses more of a processor with (or without) AVX2 and AVX-512 than
 * `kernel` does; NULL: there is none. */
const char *ks_blas_better_kernel(const char *kernel, bool avx2, bool avx512);

/* One line about a kernel that is slower than the processor allows, or NULL. */
const char *ks_blas_warning(void);

#endif
