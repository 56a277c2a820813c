/* Targets of clipped double Q-learning (Fujimoto, van Hoof & Meger, ICML 2018) with an entropy term
 * (Haarnoja et al., ICML 2018), for scalar critics, for quantiles (Dabney, Rowland, Bellemare &
 * Munos, AAAI 2018) and for categorical critics (Bellemare, Dabney & Munos, ICML 2017, algorithm
 * 1):
 *
 *   mse       y = r + gamma m (min_e Q'_e - T log pi')
 *   quantile  y_k = r + gamma m (f'_k - T log pi'), f' of the critic with the smaller mean
 *   ce        the distribution p' of the critic with the smaller mean, moved to
 *             z'_k = clip(r + gamma m (z_k - T log pi'), z_0, z_{K-1})
 *             and split linearly between the two neighbouring atoms.
 *
 * With KS_MEAN the minimum is a mean: of the values, of the k-th quantiles (Nauman et al., "Bigger,
 * Regularized, Optimistic", NeurIPS 2024), or of the distributions (Nauman et al., "Bigger,
 * Regularized, Categorical", NeurIPS 2025).
 */
#include "agent/target.h"

#include <string.h>

/* Atom k of a ce loss is at z_k = min + k dz. */
static double atom_spacing(const struct KS(loss) *loss)
{
    return (loss->max - loss->min) / (double)(loss->outputs - 1);
}

double KS(atoms_mean)(const struct KS(loss) *loss, const real *p)
{
    const int n = (int)loss->outputs;
    double mass = 0, moment = 0;

#pragma omp simd reduction(+ : mass, moment)
    for (int k = 0; k < n; k++) {
        mass += (double)p[k];
        moment += k * (double)p[k];
    }
    return loss->min * mass + atom_spacing(loss) * moment;
}

double KS(critic_value)(const struct KS(loss) *loss, const real *f, real *p)
{
    double sum = 0;

    if (loss->kind->distribution) {
        KS(softmax)(1, loss->outputs, f, p);
        return KS(atoms_mean)(loss, p);
    }
    memcpy(p, f, loss->outputs * sizeof *p);
    for (size_t k = 0; k < loss->outputs; k++)
        sum += (double)p[k];
    return sum / (double)loss->outputs;
}

/* Q = sum_k z_k p_k, p = softmax(f):  dQ/df_k = p_k (z_k - Q).   Q = mean_k f_k:  dQ/df_k = 1/K. */
void KS(critic_value_gradient)(const struct KS(loss) *loss, double q, const real *p, real scale,
                               real *f_bar)
{
    const bool atoms = loss->kind->distribution;
    const double dz = atoms ? atom_spacing(loss) : 0;
    const int n = (int)loss->outputs;

    for (int k = 0; k < n; k++)
        f_bar[k] = atoms ? scale * p[k] * (real)(loss->min + k * dz - q) : scale / (real)n;
}

/* The row p of the critic with the smallest value, on a tie of the first, goes to the first half of
 * scratch. */
static void smallest(const struct KS(loss) *loss, const struct KS(next_values) *b, size_t i,
                     real *scratch)
{
    size_t n = loss->outputs;
    double q = KS(critic_value)(loss, b->f[0] + i * n, scratch);

    for (size_t e = 1; e < b->ensemble; e++) {
        double other = KS(critic_value)(loss, b->f[e] + i * n, scratch + n);

        if (other < q) {
            q = other;
            memcpy(scratch, scratch + n, n * sizeof *scratch);
        }
    }
}

/* The mean of the critics' rows p goes to the first half of scratch. */
static void mean(const struct KS(loss) *loss, const struct KS(next_values) *b, size_t i,
                 real *scratch)
{
    size_t n = loss->outputs;

    KS(critic_value)(loss, b->f[0] + i * n, scratch);
    for (size_t e = 1; e < b->ensemble; e++) {
        KS(critic_value)(loss, b->f[e] + i * n, scratch + n);
        for (size_t k = 0; k < n; k++)
            scratch[k] += scratch[n + k];
    }
    for (size_t k = 0; k < n; k++)
        scratch[k] /= (real)b->ensemble;
}

static void (*const combine[])(const struct KS(loss) *loss, const struct KS(next_values) *b,
                               size_t i, real *scratch) = {
    [KS_SMALLEST] = smallest,
    [KS_MEAN] = mean,
};

/* Moves the mass p [K] of the atoms to z'_k = shift + slope z_k, clipped to the support, and splits
 * it between neighbouring atoms. Returns how many atoms were clipped. */
static size_t project(const struct KS(loss) *loss, double shift, double slope, const real *p,
                      real *target)
{
    const int last = (int)loss->outputs - 1;
    double dz = atom_spacing(loss);
    size_t clipped = 0;

    memset(target, 0, loss->outputs * sizeof *target);
    for (int k = 0; k <= last; k++) {
        double z = shift + slope * (loss->min + k * dz), above = z > loss->min ? z : loss->min;
        double at = ((above < loss->max ? above : loss->max) - loss->min) / dz;
        int low = at < last ? (int)at : last;
        real high = (real)(at - low); /* share of the atom above; 0 on an atom */

        clipped += z < loss->min || z > loss->max;
        target[low] += (1 - high) * p[k];
        if (low < last)
            target[low + 1] += high * p[k];
    }
    return clipped;
}

size_t KS(critic_target)(const struct KS(loss) *loss, const struct KS(next_values) *b, size_t i,
                         real *scratch, real *target)
{
    const double slope = b->gamma * (double)b->mask[i];
    const double shift = b->reward[i] - slope * b->temperature * (double)b->log_pi[i];

    combine[b->value](loss, b, i, scratch);
    target += i * loss->outputs;
    if (loss->kind->distribution)
        return project(loss, shift, slope, scratch, target);
    for (size_t k = 0; k < loss->outputs; k++)
        target[k] = (real)(shift + slope * (double)scratch[k]);
    return 0;
}
