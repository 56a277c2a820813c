/* The ends of the spectrum, and the condition numbers that are made of them. */
#include "ks/probe.h"

#include <math.h>

#include "ks/bound.h"

static const double FAILURE = 0.01; /* of lambda_max_upper, for all probes together */

double ks_probe_lambda_max(const struct ks_probe *p)
{
    return p->theta[p->steps - 1];
}

double ks_probe_lambda_max_residual(const struct ks_probe *p)
{
    return p->residual[p->steps - 1];
}

/* The largest over the probes is taken. It fails only where all of them do, and start vectors are
 * independent: so each may fail with probability FAILURE^(1/probes). */
double ks_probe_lambda_max_upper(const struct ks_probe *p)
{
    const struct ks_known *known = p->known;
    double top = ks_probe_lambda_max(p), failure = pow(FAILURE, 1 / (double)known->probes);

    if (!p->beta)
        return top;
    return top +
           ks_bound_excess(p->steps, p->theta, p->beta, top, ks_bound_component(known->n, failure));
}

double ks_probe_lambda_min(const struct ks_probe *p)
{
    return p->theta[0];
}

double ks_probe_lambda_min_residual(const struct ks_probe *p)
{
    return p->residual[0];
}

double ks_probe_largest_size(const struct ks_probe *p)
{
    return fmax(fabs(p->theta[0]), fabs(p->theta[p->steps - 1]));
}

double ks_probe_smallest_size(const struct ks_probe *p)
{
    double size = INFINITY;

    for (size_t i = 0; i < p->steps; i++)
        size = fmin(size, fabs(p->theta[i]));
    return size;
}

/* As in the XQC paper. */
double ks_probe_kappa(const struct ks_probe *p)
{
    return ks_probe_largest_size(p) / ks_probe_smallest_size(p);
}

/* There is a unit vector x in the Krylov space with |A x| = smallest, and |A| >= max |theta|. It
 * holds for the operator as it was computed: where `smallest` lies below the noise floor, no more
 * can be claimed of the exact one than max |theta| / (smallest + noise floor). */
double ks_probe_kappa_lower_bound(const struct ks_probe *p)
{
    return ks_probe_largest_size(p) / p->smallest;
}
