/* Welford's recurrence (Technometrics 4, 1962) computes mean and squared deviations without
 * cancellation. */
#include "train/returns.h"

#include <math.h>

static const double SCALE_EPS = 1e-8; /* outside the root; SimBa-V2 has it inside */

void ks_returns_add(struct ks_returns *r, double gamma, double reward, bool done)
{
    double before;

    r->g = (done ? 0 : gamma * r->g) + reward;
    before = r->g - r->mean;
    r->mean += before / (double)++r->count;
    r->squares += before * (r->g - r->mean);
}

double ks_returns_scale(const struct ks_returns *r)
{
    return (r->count > 0 ? sqrt(r->squares / (double)r->count) : 0) + SCALE_EPS;
}
