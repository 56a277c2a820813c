/* How far most of the spectrum lies below its largest eigenvalue. */
#include "ks/probe.h"

#include <math.h>

#include "ks/outwards.h"

/* The smallest |theta| up to which the weights reach the fraction q. */
static double size_quantile(const struct ks_probe *p, double q)
{
    /* Nine weights of 1/10 reach 0.9, although their sum is a little less. */
    static const double ROUNDING = 1e-12;
    struct ks_outwards walk = ks_outwards_ritz(p);
    double sum = 0, size = 0;

    while (sum < q - ROUNDING && !ks_outwards_end(&walk)) {
        size_t i = ks_outwards_take(&walk);

        size = fabs(p->theta[i]);
        sum += p->weight[i];
    }
    return size;
}

double ks_probe_kappa_q90(const struct ks_probe *p)
{
    return p->known->abs_max / size_quantile(p, 0.9);
}

double ks_probe_kappa_q50(const struct ks_probe *p)
{
    return p->known->abs_max / size_quantile(p, 0.5);
}
