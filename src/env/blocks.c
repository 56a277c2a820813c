/* Parts of observations that several domains share, and functions of vectors. */
#include "env/domain.h"

#include <math.h>
#include <string.h>

double *ks_env_append(double *out, size_t n, const double *values)
{
    memcpy(out, values, n * sizeof *out);
    return out + n;
}

double *ks_env_append_hinges(double *out, const mjModel *model, const int *address,
                             const double *values)
{
    for (int j = 0; j < (int)model->njnt; j++)
        if (model->jnt_type[j] == mjJNT_HINGE)
            *out++ = values[address[j]];
    return out;
}

void ks_env_to_frame(const double R[9], const double v[3], double out[3])
{
    for (size_t k = 0; k < 3; k++)
        out[k] = R[k] * v[0] + R[3 + k] * v[1] + R[6 + k] * v[2];
}

bool ks_env_all_finite(size_t n, const double *values)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

double ks_env_norm(size_t n, const double *v)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i] * v[i];
    return sqrt(sum);
}

double ks_env_difference(size_t n, const double *a, const double *b, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = b[i] - a[i];
    return ks_env_norm(n, out);
}
