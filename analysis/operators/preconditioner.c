/* Adam's preconditioner, Kingma and Ba: Adam: a method for stochastic optimization, ICLR 2015,
 * algorithm 1. It is compiled once, for its users in both precisions. */
#include <math.h>

#include "operators/operator.h"

double ks_preconditioner(const struct ks_checkpoint *c, size_t i)
{
    double correction = 1 - pow(c->adam.beta2, (double)c->adam_step);

    return c->adam_v[i] > 0 ? sqrt(c->adam_v[i] / correction) + c->adam.eps : 0;
}
