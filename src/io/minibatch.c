/* The parts of a checkpoint's batch that belong to one minibatch. */
#include "io/checkpoint.h"

const double *ks_checkpoint_weight(const struct ks_checkpoint *c, size_t n)
{
    return c->weight ? c->weight + n * c->loss_rows : NULL;
}

struct ks_checkpoint ks_checkpoint_minibatch(const struct ks_checkpoint *c, size_t n)
{
    struct ks_checkpoint one = *c;

    one.minibatches = 1;
    one.input += n * c->rows * c->critic.arch->in;
    one.target += n * c->loss_rows * c->critic.arch->loss.targets;
    if (one.weight)
        one.weight += n * c->loss_rows;
    return one;
}
