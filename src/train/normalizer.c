/* With a observations so far, of mean m and variance v, and one more, x (the formula for two sets
 * of Chan, Golub & LeVeque, The American Statistician 37, 1983, with a set of one):
 *
 *   m <- m + (x - m)/(a + 1)      v <- (a v + (x - m)^2 a/(a + 1)) / (a + 1)
 */
#include "train/normalizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

static const double START = 1e-4, EPS = 1e-8;

ks_status ks_normalizer_new(size_t n, struct ks_normalizer **normalizer)
{
    struct ks_normalizer *s = NULL;
    ks_status status = KS_OK;

    *normalizer = NULL;
    KS_GO(ks_alloc(1, sizeof *s, &s));
    KS_GO(ks_alloc(n, sizeof *s->mean, &s->mean));
    KS_GO(ks_alloc(n, sizeof *s->var, &s->var));
    KS_GO(ks_alloc(n, sizeof *s->row, &s->row));
    s->n = n;
    s->count = START;
    for (size_t i = 0; i < n; i++)
        s->var[i] = 1;
    *normalizer = s, s = NULL;
done:
    ks_normalizer_free(s);
    return status;
}

void ks_normalizer_free(struct ks_normalizer *s)
{
    if (!s)
        return;
    free(s->mean);
    free(s->var);
    free(s->row);
    free(s);
}

void ks_normalizer_add(struct ks_normalizer *s, const float *observation)
{
    const double before = s->count, after = before + 1;

    for (size_t i = 0; i < s->n; i++) {
        double d = (double)observation[i] - s->mean[i];

        s->mean[i] += d / after;
        s->var[i] = (before * s->var[i] + d * d * before / after) / after;
    }
    s->count = after;
}

void ks_normalizer_apply(const struct ks_normalizer *s, size_t rows, float *x)
{
    for (size_t i = 0; s && i < s->n; i++) {
        const double mean = s->mean[i], size = sqrt(s->var[i] + EPS);

        for (size_t k = i; k < rows * s->n; k += s->n)
            x[k] = (float)(((double)x[k] - mean) / size);
    }
}

const float *ks_normalizer_see(const struct ks_normalizer *s, const float *observation)
{
    if (!s)
        return observation;
    memcpy(s->row, observation, s->n * sizeof *s->row);
    ks_normalizer_apply(s, 1, s->row);
    return s->row;
}
