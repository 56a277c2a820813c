#include <math.h>

#include "ks/operator.h"
#include "ks/optim.h"

double ks_preconditioner(const struct ks_checkpoint *c, size_t i)
{
    double correction = 1 - pow(KS_ADAM_BETA2, (double)c->adam_step);

    return c->adam_v[i] > 0 ? sqrt(c->adam_v[i] / correction) + KS_ADAM_EPS : 0;
}
