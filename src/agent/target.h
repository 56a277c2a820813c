/* Values of critics and the targets they are trained on. */
#ifndef KS_AGENT_TARGET_H
#define KS_AGENT_TARGET_H

#include <stddef.h>

#include "core/real.h"
#include "net/loss.h"

/* Of a ce loss: atom k is at min + k spacing. */
double KS(atom_spacing)(const struct ks_loss *loss);

/* The value Q that one row f [K] of a critic's output stands for: f itself (mse), or the mean of
 * the distribution softmax(f) over the atoms (ce), which is then left in p [K]. */
double KS(critic_value)(const struct ks_loss *loss, const real *f, real *p);
/* f_bar [K] = scale * dQ/df; q and p as critic_value gave them. */
void KS(critic_value_gradient)(const struct ks_loss *loss, double q, const real *p, real scale,
                               real *f_bar);

struct ks_next_values {
    size_t ensemble;
    const real *const *f; /* [ensemble][rows, K]: the target critics' outputs at (s', a') */
    const double *reward; /* [rows]                                                       */
    const float *mask;    /* [rows]: that of ks_batch; gamma mask discounts the value     */
    const real *log_pi;   /* [rows]: of a'                                                */
    double gamma, temperature;
};

/* Row i of target [rows, loss->targets], one for all critics; scratch [2 K]. Returns how many atoms
 * were clipped to the ends of the support (0 without atoms). */
size_t KS(critic_target)(const struct ks_loss *loss, const struct ks_next_values *b, size_t i,
                         real *scratch, real *target);

#endif
