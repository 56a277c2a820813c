#include "ks/blas.h"

#include <stdio.h>
#include <strings.h>

#include <cblas.h>

void ks_blas_start(void)
{
    openblas_set_num_threads(1);
}

/* openblas_get_config() starts with "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...": two words. */
const char *ks_blas_version(void)
{
    static _Thread_local char version[64];
    char product[32] = "OpenBLAS", number[31] = "";

    sscanf(openblas_get_config(), "%31s %30s", product, number);
    snprintf(version, sizeof version, "%s %s", product, number);
    return version;
}

const char *ks_blas_kernel(void)
{
    return openblas_get_corename();
}

bool ks_blas_is_slow(const char *kernel, bool avx512)
{
    /* OpenBLAS's kernels that use AVX-512, by the names of its dynamic dispatch */
    static const char *const wide[] = {"SkylakeX", "Cooperlake", "Sapphirerapids", NULL};

    for (size_t i = 0; wide[i]; i++)
        if (strcasecmp(kernel, wide[i]) == 0)
            return false;
    return avx512;
}

static bool has_avx512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

const char *ks_blas_warning(void)
{
    static _Thread_local char line[256];

    if (!ks_blas_is_slow(ks_blas_kernel(), has_avx512()))
        return NULL;
    snprintf(line, sizeof line,
             "OpenBLAS uses its %s kernel though this processor has AVX-512: half the speed; unset "
             "OPENBLAS_CORETYPE, or set OPENBLAS_CORETYPE=SkylakeX",
             ks_blas_kernel());
    return line;
}
