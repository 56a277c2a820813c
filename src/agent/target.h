/* Values of critics and the targets they are trained on. */
#ifndef KS_AGENT_TARGET_H
#define KS_AGENT_TARGET_H

#include <stddef.h>

#include "core/real.h"
#include "net/loss.h"

/* How the values of an ensemble become one: the smallest, with the distribution or the quantiles of
 * that critic, the first on a tie; or the mean, with the mean of the distributions or quantiles. */
enum ks_value { KS_SMALLEST, KS_MEAN };

/* sum_k z_k p_k over the K atoms z_k of a ce loss; with masses p [K], the mean times their sum. */
double KS(atoms_mean)(const struct KS(loss) *loss, const real *p);

/* The value Q of one row f [K] of a critic's output: the mean of f (mse, where K = 1; quantile), or
 * the mean of the distribution softmax(f) over the atoms (ce). Sets p [K] to f or to softmax(f). */
double KS(critic_value)(const struct KS(loss) *loss, const real *f, real *p);
/* f_bar [K] = scale * dQ/df, with q and p from ks_critic_value. */
void KS(critic_value_gradient)(const struct KS(loss) *loss, double q, const real *p, real scale,
                               real *f_bar);

struct KS(next_values) {
    size_t ensemble;
    enum ks_value value;  /* how the critics' values become one                           */
    const real *const *f; /* [ensemble][rows, K]: the target critics' outputs at (s', a') */
    const double *reward; /* [rows]                                                       */
    const float *mask;    /* [rows]: as in ks_batch; gamma mask discounts the value       */
    const real *log_pi;   /* [rows]: log pi(a'|s')                                        */
    double gamma, temperature;
};

/* Sets row i of target [rows, loss->targets], which is the same for all critics. scratch [2 K].
 * Returns how many atoms were clipped to the ends of the support (0 without atoms). */
size_t KS(critic_target)(const struct KS(loss) *loss, const struct KS(next_values) *b, size_t i,
                         real *scratch, real *target);

#endif
