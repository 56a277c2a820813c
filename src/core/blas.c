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

const char *ks_blas_warning(void)
{
#if defined(__x86_64__)
    /* OpenBLAS's kernels that use AVX-512, by the names of its dynamic dispatch. */
    static const char *const avx512[] = {"SkylakeX", "Cooperlake", "Sapphirerapids", NULL};
    static _Thread_local char line[256];

    for (size_t i = 0; avx512[i]; i++)
        if (strcasecmp(ks_blas_kernel(), avx512[i]) == 0)
            return NULL;
    if (!__builtin_cpu_supports("avx512f"))
        return NULL;
    snprintf(line, sizeof line,
             "OpenBLAS uses its %s kernel though this processor has AVX-512: half the speed; unset "
             "OPENBLAS_CORETYPE, or set OPENBLAS_CORETYPE=SkylakeX",
             ks_blas_kernel());
    return line;
#else
    return NULL;
#endif
}
