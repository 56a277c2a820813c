/* The BLAS in use: version, kernel, threads. */
#ifndef KS_BLAS_H
#define KS_BLAS_H

#include <stdbool.h>

/* One thread in OpenBLAS: threads are ours, one worker a core, and two pools would fight. Every
 * program calls it first. */
void ks_blas_start(void);

/* "OpenBLAS 0.3.21", "SkylakeX": strings that live as long as the program. */
const char *ks_blas_version(void);
const char *ks_blas_kernel(void);

/* The kernel leaves half of a processor with (or without) AVX-512 unused. */
bool ks_blas_is_slow(const char *kernel, bool avx512);

/* One line about a kernel that is slower than the processor allows, or NULL: the processor has
 * AVX-512 and the kernel in use has not. */
const char *ks_blas_warning(void);

#endif
