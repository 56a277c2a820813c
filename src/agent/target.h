/* Values of critics and the targets they are trained on. */
#ifndef KS_AGENT_TARGET_H
#define KS_AGENT_TARGET_H

#include <stddef.h>

#include "core/real.h"
#include "net/loss.h"

/* The distance between neighbouring atoms of a ce loss: atom k is at min + k spacing. */
double KS(atom_spacing)(const struct ks_loss *loss);

/* The value Q of one row f [K] of a critic's output: f itself (mse), or the mean of the
 * distribution softmax(f) over the atoms (ce), which is also written to p [K]. */
double KS(critic_value)(const struct ks_loss *loss, const real *f, real *p);
/* f_bar [K] = scale * dQ/df, with q and p from ks_critic_value. */
void KS(critic_value_gradient)(const struct ks_loss *loss, double q, const real *p, real scale,
                               real *f_bar);

struct ks_next_values {
    size_t ensemble;
    const real *const *f; /* [ensemble][rows, K]: the target critics' outputs at (s', a') */
    const double *reward; /* [rows]                                                       */
    const float *mask;    /* [rows]: as in ks_batch; gamma mask discounts the value       */
    const real *log_pi;   /* [rows]: log pi(a'|s')                                        */
    double gamma, temperature;
};

/* Sets row i of target [rows, loss->targets], which is the same for all critics. scratch [2 K].
 * Returns how many atoms were clipped to the ends of the support (0 for mse). */
size_t KS(critic_target)(const struct ks_loss *loss, const struct ks_next_values *b, size_t i,
                         real *scratch, real *target);

#endif
