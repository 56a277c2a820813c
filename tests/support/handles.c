#include "handles.h"

struct kappascope_critic critic_of(const struct ks_checkpoint *c)
{
    struct kappascope_critic critic;

    kappascope_critic_defaults(&critic);
    critic.arch = c->critic.text;
    critic.inputs = c->critic.arch->in;
    critic.ensemble = c->critic.ensemble;
    critic.parameters = c->critic.w;
    critic.statistics = c->critic.state;
    critic.minibatches = c->minibatches;
    critic.rows = c->rows;
    critic.loss_rows = c->loss_rows;
    critic.input = c->input;
    critic.target = c->target;
    critic.weight = c->weight;
    critic.adam_v = c->adam_v;
    critic.adam_step = c->adam_step;
    return critic;
}

struct kappascope_checkpoint *from_memory(const struct ks_checkpoint *c)
{
    const struct kappascope_critic critic = critic_of(c);
    struct kappascope_checkpoint *checkpoint;

    assert_done(kappascope_checkpoint_new(&critic, &checkpoint));
    return checkpoint;
}

struct ks_checkpoint *make_projected(void)
{
    return settle(make(PROJECTED), 3);
}

int count_up(void *context, const double *x, double *y)
{
    struct counting *c = context;

    c->products++;
    for (size_t i = 0; i < c->n; i++)
        y[i] = (double)(i + 1) * x[i];
    if (c->products == c->nan_at)
        y[0] = NAN;
    return c->products == c->fail_at ? 77 : 0;
}
