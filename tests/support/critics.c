#include "critics.h"

#include "net/net.h"

struct ks_checkpoint *blank_critic(const char *text, struct critic_sizes s)
{
    struct ks_checkpoint *c;
    struct KS(arch) *a;

    assert_ok(ks_alloc(1, sizeof *c, &c));
    assert_ok(ks_copy_string(text, &c->critic.text));
    assert_ok(KS(arch_parse)(text, "test", s.in, &a));
    c->critic.arch = a;
    c->critic.ensemble = s.ensemble;
    c->minibatches = s.minibatches, c->rows = s.rows, c->loss_rows = s.loss_rows;
    assert_ok(ks_alloc(s.ensemble * a->parameters, sizeof(double), &c->critic.w));
    assert_ok(ks_alloc(s.ensemble * a->frozen, sizeof(double), &c->critic.frozen));
    assert_ok(ks_alloc(s.ensemble * a->states, sizeof(double), &c->critic.state));
    assert_ok(ks_alloc(s.minibatches * s.rows * s.in, sizeof(double), &c->input));
    assert_ok(ks_alloc(s.minibatches * s.loss_rows * a->loss.targets, sizeof(double), &c->target));
    return c;
}

struct ks_checkpoint *keep_checkpoint(struct ks_checkpoint *c)
{
    static struct ks_checkpoint *kept[64];
    static size_t turn;

    turn = (turn + 1) % (sizeof kept / sizeof *kept);
    ks_checkpoint_free(kept[turn]);
    return kept[turn] = c;
}

struct ks_checkpoint *read_checkpoint(const char *path)
{
    struct ks_checkpoint *c = NULL;

    assert_ok(try_checkpoint(path, &c));
    return keep_checkpoint(c);
}

void fill_normal(struct ks_rng *rng, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++)
        values[i] = ks_rng_normal(rng);
}

double *numbers(struct ks_rng *rng, size_t n)
{
    double *values;

    assert_ok(ks_alloc(n, sizeof *values, &values));
    fill_normal(rng, n, values);
    return values;
}

struct ks_checkpoint *random_critic(const char *text, struct critic_sizes s, uint64_t seed)
{
    struct ks_rng rng = ks_rng_start(seed, 0);
    struct ks_checkpoint *c = blank_critic(text, s);
    const struct KS(arch) *a = c->critic.arch;
    size_t states = s.ensemble * a->states, k = a->loss.targets;
    size_t targets = s.minibatches * s.loss_rows * k;

    fill_normal(&rng, s.ensemble * a->parameters, c->critic.w);
    fill_normal(&rng, s.ensemble * a->frozen, c->critic.frozen);
    fill_normal(&rng, states, c->critic.state);
    for (size_t i = 0; i < states; i++)
        c->critic.state[i] = fabs(c->critic.state[i]);
    fill_normal(&rng, s.minibatches * s.rows * s.in, c->input);
    fill_normal(&rng, targets, c->target);
    for (size_t i = 0; i < targets && k > 1; i++)
        c->target[i] = i % k == i / k % k ? 1 - 0.1 * (double)(k - 1) : 0.1;
    return c;
}

void critic_outputs(const struct ks_checkpoint *c, size_t critic, size_t n, size_t rows,
                    bool evaluation, double *f)
{
    const struct KS(arch) *arch = c->critic.arch;
    KS_OWNED double *primal = NULL;
    struct KS(net) *net;

    assert_ok(KS(net_new)(arch, rows, rows, evaluation, &net));
    assert_ok(ks_alloc(net->primal, sizeof *primal, &primal));
    KS(net_forward)
    (net, c->critic.w + critic * arch->parameters,
     evaluation ? c->critic.state + critic * arch->states : NULL, c->input + n * c->rows * arch->in,
     primal);
    memcpy(f, KS(net_output)(net, primal), rows * arch->out * sizeof *f);
    KS(net_free)(net);
}

struct ks_problem full_problem(const struct ks_checkpoint *c)
{
    return (struct ks_problem){
        .checkpoint = c, .minibatches = c->minibatches, .scale = 1, .critic = -1, .layer = -1};
}

/* A return between -2 and 2. */
static double task_value(const double *x)
{
    return 1.5 * sin(x[0] + 0.5 * x[1]) + 0.4 * cos(2 * x[2] - x[3]) * x[4] / (1 + fabs(x[4]));
}

/* The two atoms next to the value share the probability. */
static void set_target(const struct KS(loss) *loss, double value, double *target)
{
    double at, step = (loss->max - loss->min) / ((double)loss->targets - 1);
    size_t k;

    if (!loss->kind->distribution) {
        *target = value;
        return;
    }
    at = fmin(fmax((value - loss->min) / step, 0), (double)loss->targets - 1.001);
    k = (size_t)at;
    target[k] = 1 - (at - (double)k);
    target[k + 1] = at - (double)k;
}

static void draw_task(struct ks_rng *rng, struct ks_checkpoint *c)
{
    const struct KS(loss) *loss = &c->critic.arch->loss;

    for (size_t i = 0; i < c->minibatches * c->rows; i++) {
        double *x = c->input + i * TASK_IN;

        for (size_t k = 0; k < TASK_IN; k++)
            x[k] = ks_rng_normal(rng);
        x[1] += 0.9 * x[0];
        x[4] *= 3;
        x[5] = 0.1 * x[5] + 2;
        set_target(loss, task_value(x), c->target + i * loss->targets);
    }
}

void project_columns(struct ks_networks *n)
{
    const size_t layers = n->arch->n_layers;

    for (size_t i = 0; i < n->ensemble * layers; i++) {
        const struct KS(layer) *l = &n->arch->layer[i % layers];

        for (size_t j = 0; l->sphere_rows > 0 && j < l->out; j++) {
            double *column = n->w + i / layers * n->arch->parameters + l->offset + j;
            double norm = cblas_dnrm2((int)l->sphere_rows, column, (int)l->out);

            cblas_dscal((int)l->sphere_rows, 1 / norm, column, (int)l->out);
        }
    }
}

struct ks_checkpoint *settle(struct ks_checkpoint *c, uint64_t seed)
{
    const size_t n = ks_networks_parameters(&c->critic);
    struct ks_rng rng = ks_rng_start(seed, 1);

    project_columns(&c->critic);
    c->adam_m = numbers(&rng, n);
    c->adam_v = numbers(&rng, n);
    for (size_t i = 0; i < n; i++)
        c->adam_v[i] = i % 7 == 3 ? 0 : 1e-3 * c->adam_v[i] * c->adam_v[i];
    c->adam_step = 20;
    c->adam = KS_ADAM_DEFAULTS;
    return c;
}

static void draw_start(struct ks_rng *rng, struct ks_networks *n)
{
    double *w = n->w;

    for (size_t i = 0; i < n->arch->n_layers; i++)
        for (size_t k = 0; k < n->arch->layer[i].n_params; k++) {
            const struct ks_array *a = &n->arch->layer[i].param[k];

            for (size_t j = 0; j < KS(array_size)(a); j++, w++)
                *w = a->orthogonal ? ks_rng_normal(rng) / sqrt((double)a->rows) : a->start;
        }
    project_columns(n);
}

void adam_step(struct ks_checkpoint *c, const double *g)
{
    double t = (double)++c->adam_step, rate = 3e-3;

    for (size_t i = 0; i < c->critic.arch->parameters; i++) {
        c->adam_m[i] = 0.9 * c->adam_m[i] + 0.1 * g[i];
        c->adam_v[i] = 0.999 * c->adam_v[i] + 0.001 * g[i] * g[i];
        c->critic.w[i] -= rate * c->adam_m[i] / (1 - pow(0.9, t)) /
                          (sqrt(c->adam_v[i] / (1 - pow(0.999, t))) + 1e-8);
    }
    project_columns(&c->critic);
}

struct ks_checkpoint *train_critic(size_t k)
{
    struct ks_rng rng = ks_rng_start(0x747261696e, k);
    struct critic_sizes sizes = {1, TASK_IN, TASK_BATCHES, TASK_ROWS, TASK_ROWS};
    struct ks_checkpoint *c = blank_critic(trained_critics[k].text, sizes);
    const struct KS(arch) *a = c->critic.arch;
    struct ks_problem q;
    double *gradient, loss;

    assert_ok(ks_alloc(a->parameters, sizeof(double), &c->adam_m));
    assert_ok(ks_alloc(a->parameters, sizeof(double), &c->adam_v));
    assert_ok(ks_alloc(a->parameters, sizeof *gradient, &gradient));
    draw_task(&rng, c);
    draw_start(&rng, &c->critic);
    q = full_problem(c);
    for (size_t i = 0; i < TASK_STEPS; i++) {
        assert_ok(ks_gradient(&q, &loss, gradient));
        adam_step(c, gradient);
    }
    free(gradient);
    return c;
}

struct ks_checkpoint *draw_minibatches(const struct ks_checkpoint *c, size_t n, uint64_t seed)
{
    struct ks_rng rng = ks_rng_start(0x6d696e69, seed);
    struct critic_sizes sizes = {1, TASK_IN, n, TASK_ROWS, TASK_ROWS};
    struct ks_checkpoint *other = blank_critic(c->critic.text, sizes);

    memcpy(other->critic.w, c->critic.w, c->critic.arch->parameters * sizeof(double));
    draw_task(&rng, other);
    return other;
}
