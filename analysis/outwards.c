/* From zero outwards: up to which size the eigenvalues make up how much of the spectrum. */
#include "ks/probe.h"

#include <math.h>
#include <stdbool.h>

#include "ks/bound.h"

/* Ascending nodes; from zero outwards, always the nearer neighbour of the two sides is taken. */
struct walk {
    size_t n, low, high; /* taken: [low, high) */
    double (*node)(const void *of, size_t i);
    const void *of;
};

static struct walk walk_start(size_t n, double (*node)(const void *of, size_t i), const void *of)
{
    struct walk w = {.n = n, .node = node, .of = of};

    while (w.low < n && node(of, w.low) < 0)
        w.low++;
    w.high = w.low;
    return w;
}

static bool walk_ends(const struct walk *w)
{
    return w->low == 0 && w->high == w->n;
}

static size_t walk_take(struct walk *w)
{
    bool up = w->low == 0 ||
              (w->high < w->n && w->node(w->of, w->high) <= -w->node(w->of, w->low - 1));

    return up ? w->high++ : --w->low;
}

static double theta_at(const void *of, size_t i)
{
    return ((const struct ks_probe *)of)->theta[i];
}

/* The smallest |theta| up to which the weights reach the fraction q. */
static double size_quantile(const struct ks_probe *p, double q)
{
    static const double ROUNDING =
        1e-12; /* weights 1/10 reach 0.9 after 9, though they sum to less */
    struct walk walk = walk_start(p->steps, theta_at, p);
    double sum = 0, size = 0;

    while (sum < q - ROUNDING && !walk_ends(&walk)) {
        size_t i = walk_take(&walk);

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

/* --- a bound for the smallest |eigenvalue| off the known null space ---
 *
 * The extended Jacobi matrix is no help there: its singular vector may lie in the null space. The
 * weights are. With nodes a < b and the start vector's spectral measure mu,
 *
 *   mu([a, b]) >= sum of the weights strictly between them
 *
 * (Chebyshev, Markov, Stieltjes: Szego, Orthogonal Polynomials, 1939, theorem 3.41.1). A null space
 * of dimension k has a share of the start vector that is distributed as chi^2_k / (chi^2_k +
 * chi^2_{n-k}). Where the weights between a and b exceed what that share can be, something else has
 * its eigenvalue in [a, b]. Beyond the outermost Ritz values the spectrum ends somewhere, by
 * bound.h: these ends are nodes too. */

static const double FAILURE = 0.01; /* of a bound, for all probes together */
enum { EVENTS = 4 };                /* that are each allowed a part of it: see below */

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

/* Some eigenvalue off the null space is at most so large. */
static double smallest_off_null(const struct ks_probe *p)
{
    const struct ks_known *known = p->known;
    double failure = FAILURE / EVENTS / (double)known->probes;
    double share = largest_share(known->n, known->null, failure), sum = 0, size = 0;
    struct extended e = extend(p, failure);
    struct walk walk = walk_start(p->steps + 2, node_at, &e);

    while (!walk_ends(&walk)) {
        size_t i = walk_take(&walk);

        size = fabs(node_at(&e, i));
        sum += weight_at(&e, i);
        if (walk.high - walk.low > 2 &&
            sum - weight_at(&e, walk.low) - weight_at(&e, walk.high - 1) > share)
            break;
    }
    return size;
}

/* All eigenvalues are known, the null space's are the smallest: what comes next? */
static double next_smallest(const struct ks_probe *p)
{
    struct walk walk = walk_start(p->steps, theta_at, p);
    double size = 0;

    for (size_t i = 0; i <= p->known->null && !walk_ends(&walk); i++)
        size = fabs(p->theta[walk_take(&walk)]);
    return size;
}

/* With weights that are all alike nothing is known of the share. */
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
