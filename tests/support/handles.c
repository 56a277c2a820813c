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
    struct ks_checkpoint *c = make(PROJECTED);
    struct ks_rng rng = ks_rng_start(3, 0);
    const struct KS(arch) *arch = c->critic.arch;
    size_t n = ENSEMBLE * arch->parameters;

    c->adam_v = numbers(&rng, n);
    for (size_t i = 0; i < n; i++)
        c->adam_v[i] = i % 7 == 0 ? 0 : c->adam_v[i] * c->adam_v[i];
    c->adam_step = 1000;
    c->adam = KS_ADAM_DEFAULTS;
    for (size_t k = 0; k < ENSEMBLE * arch->n_layers; k++) {
        const struct KS(layer) *l = &arch->layer[k % arch->n_layers];
        double *w = c->critic.w + k / arch->n_layers * arch->parameters + l->offset;

        for (size_t j = 0; l->sphere_rows > 0 && j < l->out; j++) {
            double square = 0;

            for (size_t i = 0; i < l->sphere_rows; i++)
                square += w[i * l->out + j] * w[i * l->out + j];
            for (size_t i = 0; i < l->sphere_rows; i++)
                w[i * l->out + j] /= sqrt(square);
        }
    }
    return c;
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
