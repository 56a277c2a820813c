/* How much of the spectrum is zero, and how much lies below. */
#include "ks/probe.h"

#include <math.h>
#include <stdbool.h>

/* The distance of the two neighbouring Ritz values that zero lies between: the quadrature resolves
 * no finer there. 0 where zero lies outside. */
static double gap_around_zero(const struct ks_probe *p)
{
    size_t above = 0;

    while (above < p->steps && p->theta[above] < 0)
        above++;
    return above == 0 || above == p->steps ? 0 : p->theta[above] - p->theta[above - 1];
}

/* Below the noise floor; or within the gap, if the residual bound leaves zero possible: the nodes
 * -1 and 1 of +-[1, 2] have a gap of 2 and are no zeros. */
static bool is_zero(const struct ks_probe *p, double gap, size_t i)
{
    double size = fabs(p->theta[i]), noise = p->known->noise_floor;

    return size <= noise || (size <= gap && size <= p->residual[i] + noise);
}

double ks_probe_zero_mass(const struct ks_probe *p)
{
    double gap = gap_around_zero(p), sum = 0;

    for (size_t i = 0; i < p->steps; i++)
        if (is_zero(p, gap, i))
            sum += p->weight[i];
    return sum;
}

double ks_probe_negative_mass(const struct ks_probe *p)
{
    double gap = gap_around_zero(p), sum = 0;

    for (size_t i = 0; i < p->steps && p->theta[i] < 0; i++)
        if (!is_zero(p, gap, i))
            sum += p->weight[i];
    return sum;
}
