/* The parts of a checkpoint's batch that belong to one minibatch. */
#include "io/checkpoint.h"

static size_t critic_size(const struct ks_checkpoint *c) /* numbers in the targets of one critic */
{
    return c->loss_rows * c->critic.arch->loss.targets;
}

size_t ks_checkpoint_target_size(const struct ks_checkpoint *c)
{
    return (c->targets_differ ? c->critic.ensemble : 1) * critic_size(c);
}

const double *ks_checkpoint_target(const struct ks_checkpoint *c, size_t critic, size_t n)
{
    return c->target + n * ks_checkpoint_target_size(c) +
           (c->targets_differ ? critic * critic_size(c) : 0);
}

const double *ks_checkpoint_weight(const struct ks_checkpoint *c, size_t n)
{
    return c->weight ? c->weight + n * c->loss_rows : NULL;
}

struct ks_checkpoint ks_checkpoint_minibatch(const struct ks_checkpoint *c, size_t n)
{
    struct ks_checkpoint one = *c;

    one.minibatches = 1;
    one.input += n * c->rows * c->critic.arch->in;
    one.target += n * ks_checkpoint_target_size(c);
    if (one.target_raw)
        one.target_raw += n * ks_checkpoint_target_size(c);
    if (one.weight)
        one.weight += n * c->loss_rows;
    one.references = (struct ks_references){.output = {.value = NULL}};
    return one;
}
