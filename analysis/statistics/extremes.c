/* The statistics of the ends of the spectrum: lambda_max, lambda_min, their bounds, kappa
 * (Palenicek et al., XQC, ICLR 2026) and kappa_lower_bound. */
#include "statistics/probe.h"

#include <math.h>

#include "statistics/beta_distribution.h"
#include "statistics/certificate.h"
#include "statistics/extreme_bound.h"

static const double LOSS = 0.005; /* probability that an end of an interval for the loss fails */
static const double FAILURE = 0.0025; /* of an outer bound, for all probes together */

/* The certificate with the largest (sign 1) or the smallest (sign -1) Rayleigh quotient; NULL:
 * none. If rounding errors of the run are large, it need not be the Ritz vector of that end. */
static const struct ks_certificate *certificate(const struct ks_probe *p, double sign)
{
    const struct ks_certificate *of, *best = NULL;

    for (size_t i = 0; p->facts->certified && i < KS_CERTIFICATES; i++) {
        of = &p->facts->certificates->vector[i];
        if (of->formed && (!best || sign * of->quotient > sign * best->quotient))
            best = of;
    }
    return best;
}

double ks_probe_lambda_max(const struct ks_probe *p)
{
    const struct ks_certificate *y = certificate(p, 1);

    return y ? y->quotient : p->theta[p->steps - 1];
}

double ks_probe_lambda_max_residual(const struct ks_probe *p)
{
    const struct ks_certificate *y = certificate(p, 1);

    return y ? y->residual : p->residual[p->steps - 1];
}

double ks_probe_lambda_max_data_se(const struct ks_probe *p)
{
    const struct ks_certificate *y = certificate(p, 1);

    return y ? y->data_se : NAN;
}

double ks_probe_lambda_min(const struct ks_probe *p)
{
    const struct ks_certificate *y = certificate(p, -1);

    return y ? y->quotient : p->theta[0];
}

double ks_probe_lambda_min_residual(const struct ks_probe *p)
{
    const struct ks_certificate *y = certificate(p, -1);

    return y ? y->residual : p->residual[0];
}

double ks_probe_lambda_min_data_se(const struct ks_probe *p)
{
    const struct ks_certificate *y = certificate(p, -1);

    return y ? y->data_se : NAN;
}

/* How far beyond `edge` an eigenvalue can lie. The combined bound is the weakest over the probes,
 * so it fails only if the bounds of all probes fail; as start vectors are independent, each may
 * fail with probability FAILURE^(1/probes). h is added for rounding. */
static double beyond(const struct ks_probe *p, double edge)
{
    const struct ks_facts *facts = p->facts;
    double failure = pow(FAILURE, 1 / (double)(facts->probes * facts->pretend_probes));

    return facts->h + ks_extreme_bound_excess(p->steps, p->theta, p->beta, edge,
                                              ks_extreme_bound_component(facts->n, failure));
}

double ks_probe_lambda_max_upper(const struct ks_probe *p)
{
    double edge = p->theta[p->steps - 1];

    if (p->facts->unresolved)
        return NAN;
    return edge + (p->beta ? beyond(p, edge) : p->facts->h);
}

double ks_probe_lambda_min_lower(const struct ks_probe *p)
{
    double edge = p->theta[0];

    if (p->facts->unresolved)
        return NAN;
    return edge - (p->beta ? beyond(p, edge) : p->facts->h);
}

/* The loss is the mean over all minibatches that could be drawn, A its operator, and A_N that of
 * the N analyzed ones. Since lambda_max is convex, it is larger on average for A_N than for A; and
 * y'Ay/y'y is at most lambda_max(A) for every y, so also for one that was found without the
 * held-out minibatches, which estimate that quotient without bias. (The same two bounds are known
 * for sample averages in stochastic programming: Mak, Morton, Wood, Oper. Res. Lett. 24, 1999.)
 * Each bound fails with a probability of about LOSS: quotients of minibatches are taken as normal.
 * For lambda_min the signs change. tests/statistics/test_loss_interval.c measures the coverage. */
static double inner_of_loss(const struct ks_probe *p, double sign)
{
    const struct ks_certificate *y = certificate(p, sign);

    if (!y || isnan(y->held_out_se))
        return NAN;
    return y->held_out_quotient -
           sign * ks_student_point((double)p->facts->certificates->held_out - 1, LOSS) *
               y->held_out_se;
}

static double outer_of_loss(const struct ks_probe *p, double sign, double outer)
{
    const struct ks_certificate *y = certificate(p, sign);

    if (!y || isnan(y->data_se))
        return NAN;
    return outer + sign * ks_student_point(p->facts->minibatches - 1, LOSS) * y->data_se;
}

double ks_probe_lambda_max_loss_lower(const struct ks_probe *p)
{
    return inner_of_loss(p, 1);
}

double ks_probe_lambda_max_loss_upper(const struct ks_probe *p)
{
    return outer_of_loss(p, 1, ks_probe_lambda_max_upper(p));
}

double ks_probe_lambda_min_loss_lower(const struct ks_probe *p)
{
    return outer_of_loss(p, -1, ks_probe_lambda_min_lower(p));
}

double ks_probe_lambda_min_loss_upper(const struct ks_probe *p)
{
    return inner_of_loss(p, -1);
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

/* max |theta| / min |theta|, as in the XQC paper. */
double ks_probe_kappa(const struct ks_probe *p)
{
    return ks_probe_largest_size(p) / ks_probe_smallest_size(p);
}

/* The Krylov space contains a unit vector x with |A x| = smallest, and |A| >= max |theta|, so the
 * condition number is at least max |theta| / smallest. Rounding changes |A x| by at most h. */
double ks_probe_kappa_lower_bound(const struct ks_probe *p)
{
    return ks_probe_largest_size(p) / (p->smallest + p->facts->h);
}
