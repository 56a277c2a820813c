/* A bound for the smallest |eigenvalue| off the known null space.
 *
 * The extended Jacobi matrix does not help here: its singular vector may lie in the null space. The
 * weights do. For nodes a < b and the start vector's spectral measure mu,
 *
 *   mu([a, b]) >= sum of the weights strictly between them
 *
 * (Chebyshev, Markov, Stieltjes: Szego, Orthogonal Polynomials, 1939, theorem 3.41.1). The share of
 * the start vector in a null space of dimension k is distributed as chi^2_k / (chi^2_k +
 * chi^2_{n-k}). Where the weights between a and b exceed what that share can be, an eigenvector
 * outside the null space has its eigenvalue in [a, b]. Bounds for both ends of the spectrum, beyond
 * the outermost Ritz values (bound.h), are nodes too. */
#include "ks/probe.h"

#include <math.h>

#include "ks/bound.h"
#include "ks/outwards.h"

static const double FAILURE = 0.01; /* of a bound, for all probes together */
/* Each with an equal part of it: two tails in largest_share, two ends in extend. */
enum { EVENTS = 4 };

/* Laurent and Massart, Ann. Stat. 28, 2000, lemma 1: chi^2_d > d + 2 sqrt(d x) + 2 x, or
 * < d - 2 sqrt(d x), have a probability of at most exp(-x). */
static double largest_share(size_t n, size_t null, double failure)
{
    double x = -log(failure), k = (double)null, rest = (double)(n - null);
    double most = k + 2 * sqrt(k * x) + 2 * x, least = fmax(rest - 2 * sqrt(rest * x), 0);

    return most / (most + least);
}

struct extended {
    const struct ks_probe *probe;
    double low, high; /* ends of the spectrum */
};

static double node_at(const void *of, size_t i)
{
    const struct extended *e = of;

    return i == 0 ? e->low : i == e->probe->steps + 1 ? e->high : e->probe->theta[i - 1];
}

static double weight_at(const struct extended *e, size_t i)
{
    return i == 0 || i == e->probe->steps + 1 ? 0 : e->probe->weight[i - 1];
}

static struct extended extend(const struct ks_probe *p, double failure)
{
    double low = p->theta[0], high = p->theta[p->steps - 1];
    double component = ks_bound_component(p->known->n, failure);

    return (struct extended){
        .probe = p,
        .low = low - ks_bound_excess(p->steps, p->theta, p->beta, low, component),
        .high = high + ks_bound_excess(p->steps, p->theta, p->beta, high, component)};
}

/* The size that some eigenvalue off the null space does not exceed. */
static double smallest_off_null(const struct ks_probe *p)
{
    const struct ks_known *known = p->known;
    double failure = FAILURE / EVENTS / (double)known->probes;
    double share = largest_share(known->n, known->null, failure), sum = 0, size = 0;
    struct extended e = extend(p, failure);
    struct ks_outwards walk = ks_outwards_start(p->steps + 2, node_at, &e);

    while (!ks_outwards_end(&walk)) {
        size_t i = ks_outwards_take(&walk);

        size = fabs(node_at(&e, i));
        sum += weight_at(&e, i);
        if (walk.high - walk.low > 2 &&
            sum - weight_at(&e, walk.low) - weight_at(&e, walk.high - 1) > share)
            break;
    }
    return size;
}

/* All eigenvalues are known, and the null space has the smallest: the next one's size. */
static double next_smallest(const struct ks_probe *p)
{
    struct ks_outwards walk = ks_outwards_ritz(p);
    double size = 0;

    for (size_t i = 0; i <= p->known->null && !ks_outwards_end(&walk); i++)
        size = fabs(p->theta[ks_outwards_take(&walk)]);
    return size;
}

/* Of uniform weights (--compat) none is the share of anything: there is no bound. */
double ks_probe_kappa_effective_bound(const struct ks_probe *p)
{
    const struct ks_known *known = p->known;
    double size;

    if (known->abs_max == 0 || known->null >= known->n)
        return NAN;
    if (known->null == 0)
        size = p->smallest;
    else if (!p->beta)
        size = next_smallest(p);
    else if (known->unweighted)
        return NAN;
    else
        size = smallest_off_null(p);
    return fmax(known->abs_max / (size + known->noise_floor), 1);
}
