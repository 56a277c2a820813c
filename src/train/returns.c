/* Welford's recurrence (Technometrics 4, 1962) computes mean and squared deviations without
 * cancellation. Variances are biased. */
#include "train/returns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

static const double EPS = 1e-8;
/* The largest return after scaling: the ends of the atoms of SimBa-V2 and of BRC. */
static const double BOUND = 5, WIDE_BOUND = 10;

const char *const ks_reward_scalings[] = {"std", "bounded", "range", "magnitude", NULL};

/* The number of G, of mean 0 and variance 1, that count as seen at the start. */
static double prior(enum ks_reward_scale scale)
{
    return scale == KS_SCALE_BOUNDED ? 1e-4 : 0;
}

void ks_returns_add(struct ks_returns *r, enum ks_reward_scale scale, double gamma, double reward,
                    bool done)
{
    double before;

    r->g = (done ? 0 : gamma * r->g) + reward;
    before = r->g - r->mean;
    r->mean += before / ((double)++r->count + prior(scale));
    r->squares += before * (r->g - r->mean);
    r->largest = fmax(r->largest, fabs(r->g));
}

static struct ks_transition before_newest(const struct ks_replay *replay, size_t k)
{
    return ks_replay_get(replay, ks_replay_before_newest(replay, k));
}

static size_t episode_length(const struct ks_replay *replay)
{
    size_t n = 1;

    while (n < replay->count && !before_newest(replay, n).last)
        n++;
    return n;
}

void ks_returns_end_episode(struct ks_returns *r, const struct ks_replay *replay, double gamma,
                            bool truncated)
{
    const size_t n = episode_length(replay);
    double sum = 0, g = 0;

    for (size_t k = 0; k < n && truncated; k++)
        sum += (double)before_newest(replay, k).reward;
    g = sum / (double)n / (1 - gamma);
    for (size_t k = 0; k < n; k++) {
        g = (double)before_newest(replay, k).reward + gamma * g;
        r->largest_return_to_go = fmax(r->largest_return_to_go, fabs(g));
    }
}

void ks_returns_refresh(struct ks_returns *r, const struct ks_replay *replay)
{
    r->magnitude = fmax(ks_replay_mean_reward(replay), EPS);
}

double ks_returns_divisor(const struct ks_returns *r, enum ks_reward_scale scale, double bonus)
{
    const double count = (double)r->count + prior(scale);
    const double variance = count > 0 ? (r->squares + prior(scale)) / count : 0;

    switch (scale) {
    case KS_SCALE_STD: /* Palenicek et al., "XQC", ICLR 2026 */
        return sqrt(variance) + EPS;
    case KS_SCALE_BOUNDED: /* Lee et al., SimBa-V2, ICML 2025 */
        return fmax(sqrt(variance + EPS), r->largest / BOUND);
    case KS_SCALE_RANGE: /* G from a step to the end: Nauman et al., "Bigger, Regularized,
                          * Categorical", NeurIPS 2025; code
                          * naumix/BiggerRegularizedCategorical (eec512f), normalizer.py. There it
                          * is infinite until an episode has ended; here G is 0 until then. */
        return fmax((r->largest_return_to_go - bonus / 2) / WIDE_BOUND, EPS);
    default: /* 1 before the first measurement, as in the code of MR.Q (facebookresearch/MRQ,
              * 8a44a7d) */
        return r->magnitude > 0 ? r->magnitude : 1;
    }
}

/* With a observations so far, of mean m and variance v, and one more, x (the formula for two sets
 * of Chan, Golub & LeVeque, The American Statistician 37, 1983, with a set of one):
 *
 *   m <- m + (x - m)/(a + 1)      v <- (a v + (x - m)^2 a/(a + 1)) / (a + 1)
 */

static const double START = 1e-4, VARIANCE_EPS = 1e-8;

ks_status ks_normalizer_new(size_t n, struct ks_normalizer **normalizer)
{
    KS_OWNED_BY(ks_normalizer_free) struct ks_normalizer *s = NULL;

    *normalizer = NULL;
    KS_TRY(ks_alloc(1, sizeof *s, &s));
    KS_TRY(ks_alloc(n, sizeof *s->mean, &s->mean));
    KS_TRY(ks_alloc(n, sizeof *s->var, &s->var));
    KS_TRY(ks_alloc(n, sizeof *s->row, &s->row));
    s->n = n;
    s->count = START;
    for (size_t i = 0; i < n; i++)
        s->var[i] = 1;
    *normalizer = s, s = NULL;
    return KS_OK;
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
        const double mean = s->mean[i], size = sqrt(s->var[i] + VARIANCE_EPS);

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
