/* Targets of clipped double Q-learning (Fujimoto, van Hoof & Meger, ICML 2018) with an entropy term
 * (Haarnoja et al., ICML 2018), for scalar critics and for categorical ones (Bellemare, Dabney &
 * Munos, ICML 2017, algorithm 1):
 *
 *   mse   y = r + gamma m (min_e Q'_e - T log pi')
 *   ce    the distribution p' of the critic with the smaller mean, moved to
 *         z'_k = clip(r + gamma m (z_k - T log pi'), z_0, z_{K-1})
 *         and split linearly between the two neighbouring atoms.
 */
#include "agent/target.h"

#include <math.h>
#include <string.h>

double KS(atom_spacing)(const struct ks_loss *loss)
{
    return (loss->max - loss->min) / (double)(loss->outputs - 1);
}

double KS(critic_value)(const struct ks_loss *loss, const real *f, real *p)
{
    double q = 0, dz;

    if (!loss->kind->distribution)
        return (double)f[0];
    dz = KS(atom_spacing)(loss);
    KS(softmax)(1, loss->outputs, f, p);
    for (size_t k = 0; k < loss->outputs; k++)
        q += (loss->min + (double)k * dz) * (double)p[k];
    return q;
}

/* Q = sum_k z_k p_k, p = softmax(f):  dQ/df_k = p_k (z_k - Q). */
void KS(critic_value_gradient)(const struct ks_loss *loss, double q, const real *p, real scale,
                               real *f_bar)
{
    double dz;

    if (!loss->kind->distribution) {
        f_bar[0] = scale;
        return;
    }
    dz = KS(atom_spacing)(loss);
    for (size_t k = 0; k < loss->outputs; k++)
        f_bar[k] = scale * p[k] * (real)(loss->min + (double)k * dz - q);
}

/* The smallest value of the critics at row i; on a tie, of the first. Its distribution goes to the
 * first half of scratch. */
static double smallest(const struct ks_loss *loss, const struct ks_next_values *b, size_t i,
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
    return q;
}

/* Moves the mass p [K] of the atoms to z'_k = shift + slope z_k, clipped to the support, and splits
 * it between neighbouring atoms. Returns how many atoms were clipped. */
static size_t project(const struct ks_loss *loss, double shift, double slope, const real *p,
                      real *target)
{
    size_t clipped = 0, last = loss->outputs - 1;
    double dz = KS(atom_spacing)(loss);

    memset(target, 0, loss->outputs * sizeof *target);
    for (size_t k = 0; k <= last; k++) {
        double z = shift + slope * (loss->min + (double)k * dz);
        double at = (fmin(fmax(z, loss->min), loss->max) - loss->min) / dz;
        size_t low = at < (double)last ? (size_t)at : last;
        real high = (real)(at - (double)low); /* share of the atom above; 0 on an atom */

        clipped += z < loss->min || z > loss->max;
        target[low] += (1 - high) * p[k];
        if (low < last)
            target[low + 1] += high * p[k];
    }
    return clipped;
}

size_t KS(critic_target)(const struct ks_loss *loss, const struct ks_next_values *b, size_t i,
                         real *scratch, real *target)
{
    double q = smallest(loss, b, i, scratch), slope = b->gamma * (double)b->mask[i];
    double shift = b->reward[i] - slope * b->temperature * (double)b->log_pi[i];

    if (loss->kind->distribution)
        return project(loss, shift, slope, scratch, target + i * loss->outputs);
    target[i] = (real)(shift + slope * q);
    return 0;
}
