/* Welford's recurrence (Technometrics 4, 1962) computes mean and squared deviations without
 * cancellation. Variances are biased. */
#include "train/returns.h"

#include <math.h>

static const double EPS = 1e-8;
static const double BOUND = 5; /* the largest return after scaling: that of the atoms of SimBa-V2 */

/* sqrt(Var G) + 1e-8: Palenicek et al., "XQC", ICLR 2026 */
static double divide_by_deviation(const struct ks_returns *r, double variance)
{
    (void)r;
    return sqrt(variance) + EPS;
}

/* max(sqrt(Var G + 1e-8), max |G| / 5): Lee et al., SimBa-V2, ICML 2025 */
static double divide_within_bound(const struct ks_returns *r, double variance)
{
    return fmax(sqrt(variance + EPS), r->largest / BOUND);
}

static const struct ks_reward_scaling scalings[] = {
    {.name = "std", .divisor = divide_by_deviation},
    {.name = "bounded", .prior = 1e-4, .divisor = divide_within_bound},
};
const char *const ks_reward_scalings[] = {"std", "bounded", NULL};

const struct ks_reward_scaling *ks_reward_scaling(size_t number)
{
    return &scalings[number];
}

void ks_returns_add(struct ks_returns *r, const struct ks_reward_scaling *scaling, double gamma,
                    double reward, bool done)
{
    double before;

    r->g = (done ? 0 : gamma * r->g) + reward;
    before = r->g - r->mean;
    r->mean += before / ((double)++r->count + scaling->prior);
    r->squares += before * (r->g - r->mean);
    r->largest = fmax(r->largest, fabs(r->g));
}

double ks_returns_divisor(const struct ks_returns *r, const struct ks_reward_scaling *scaling)
{
    const double count = (double)r->count + scaling->prior;

    return scaling->divisor(r, count > 0 ? (r->squares + scaling->prior) / count : 0);
}
