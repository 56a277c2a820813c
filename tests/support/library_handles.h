/* Handles of the public header for its tests: critics from memory, and a matrix given by its
 * products.
 */
#ifndef KS_TEST_LIBRARY_HANDLES_H
#define KS_TEST_LIBRARY_HANDLES_H

#include "small_critics.h"

#include "kappascope.h"

#define assert_done(call)                                                                          \
    do {                                                                                           \
        if ((call) != KAPPASCOPE_OK)                                                               \
            fail_msg("%s: %s", #call, kappascope_error());                                         \
    } while (0)

/* The call fails with this status and a message that contains `words`. */
#define assert_refuses(call, status, words)                                                        \
    do {                                                                                           \
        int ks_found = (int)(call);                                                                \
        if (ks_found != (int)(status) || !strstr(kappascope_error(), (words)))                     \
            fail_msg("%s: %d, '%s'", #call, ks_found, kappascope_error());                         \
    } while (0)

/* A critic in memory that points to the arrays of a checkpoint. */
static inline struct kappascope_critic critic_of(const struct ks_checkpoint *c)
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

static inline struct kappascope_checkpoint *from_memory(const struct ks_checkpoint *c)
{
    const struct kappascope_critic critic = critic_of(c);
    struct kappascope_checkpoint *checkpoint;

    assert_done(kappascope_checkpoint_new(&critic, &checkpoint));
    return checkpoint;
}

static const char PROJECTED[] = "batchnorm\ndense 6 bias=no project=unit\nbatchnorm\nrelu\n"
                                "dense 4 project=unit-kernel\nloss ce min=-5 max=5\n";

/* A checkpoint that every operator accepts: columns of norm 1 and Adam's second moment. */
static inline struct ks_checkpoint *make_projected(void)
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

/* diag(1 .. n), or a failure, or a NaN, at product number `at`. */
struct counting {
    size_t n, products, fail_at, nan_at;
};

static inline int count_up(void *context, const double *x, double *y)
{
    struct counting *c = context;

    c->products++;
    for (size_t i = 0; i < c->n; i++)
        y[i] = (double)(i + 1) * x[i];
    if (c->products == c->nan_at)
        y[0] = NAN;
    return c->products == c->fail_at ? 77 : 0;
}

#endif
