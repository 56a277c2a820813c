#include "ks/blas.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include <cblas.h>

static const char CHOICE[] = "OPENBLAS_CORETYPE"; /* names the kernel that OpenBLAS shall use */

static bool is_in(const char *kernel, const char *const *list)
{
    for (size_t i = 0; list[i]; i++)
        if (strcasecmp(kernel, list[i]) == 0)
            return true;
    return false;
}

/* OpenBLAS's kernels that use AVX-512, or AVX2, by the names of its dynamic dispatch. */
static const char *const wide[] = {"SkylakeX", "Cooperlake", "Sapphirerapids", NULL};
static const char *const middle[] = {"Haswell", "Zen", "Excavator", NULL};

const char *ks_blas_better_kernel(const char *kernel, bool avx2, bool avx512)
{
    if (avx512 && !is_in(kernel, wide))
        return wide[0];
    if (avx2 && !avx512 && !is_in(kernel, middle) && !is_in(kernel, wide))
        return middle[0];
    return NULL;
}

static const char *better_kernel(void)
{
#if defined(__x86_64__)
    return ks_blas_better_kernel(ks_blas_kernel(), __builtin_cpu_supports("avx2"),
                                 __builtin_cpu_supports("avx512f"));
#else
    return NULL;
#endif
}

void ks_blas_start(char **argv)
{
    const char *better = getenv(CHOICE) ? NULL : better_kernel();

    /* OpenBLAS looks at its environment when it is loaded, and never again. */
    if (argv && better && setenv(CHOICE, better, 1) == 0)
        execv("/proc/self/exe", argv);
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
    static _Thread_local char line[256];
    const char *better = better_kernel();

    if (!better)
        return NULL;
    snprintf(line, sizeof line,
             "OpenBLAS uses its %s kernel, half the speed of this processor or less: set "
             "OPENBLAS_CORETYPE=%s%s",
             ks_blas_kernel(), better, getenv(CHOICE) ? ", or unset it" : "");
    return line;
}
