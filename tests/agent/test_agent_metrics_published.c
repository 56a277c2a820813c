/* Norms, dormant units, ranks and learning rates against transcriptions of the published code. */
#include <lapacke.h>

#include "agents.h"

/* The rows [(s, a); (s', a')] of the last update, with a' from the current actor. */
static double *both_halves(const struct KS(agent) *a)
{
    struct ks_rng rng = ks_stream(SEED, KS_NEXT_ACTION, 0);
    double *x = hold(calloc(2 * BATCH * WIDTH, sizeof *x)), next[BATCH * OBSERVATIONS], *head;

    for (size_t i = 0; i < BATCH * OBSERVATIONS; i++)
        next[i] = (double)last.next_s[i];
    head = actor_outputs(a, BATCH, next);
    rng.drawn = (uint64_t)(a->updates - 1) * BATCH * ACTIONS;
    for (size_t i = 0; i < BATCH; i++) {
        double *one = x + i * WIDTH, *two = x + (BATCH + i) * WIDTH;

        for (size_t j = 0; j < OBSERVATIONS; j++) {
            one[j] = (double)last.s[i * OBSERVATIONS + j];
            two[j] = next[i * OBSERVATIONS + j];
        }
        for (size_t j = 0; j < ACTIONS; j++) {
            const double *h = head + i * 2 * ACTIONS + j;

            one[OBSERVATIONS + j] = (double)last.a[i * ACTIONS + j];
            two[OBSERVATIONS + j] = tanh(h[0] +
                                         exp(fmin(fmax(h[ACTIONS], -10), 2)) * ks_rng_normal(&rng));
        }
    }
    return x;
}

/* The published formulas, literally, for the outputs y [rows, d] of a layer. */
static double published_norm(size_t rows, size_t d, const double *y)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += sqrt(dot(d, y + i * d, y + i * d)) / (double)rows;
    return sum;
}

static double published_dormant(size_t rows, size_t d, const double *y)
{
    double dormant = 0;

    for (size_t j = 0; j < d; j++) {
        double score = 0;

        for (size_t i = 0; i < rows; i++) {
            double mean = 0;

            for (size_t k = 0; k < d; k++)
                mean += y[i * d + k] / (double)d;
            score += y[i * d + j] / (mean + 1e-6) / (double)rows;
        }
        dormant += score <= 0;
    }
    return dormant / (double)d;
}

/* From the eigenvalues of y'y, which are the squares of the singular values, ascending. */
static double published_rank(size_t rows, size_t d, const double *y)
{
    double gram[64] = {0}, values[8], sum = 0, part = 0, rank = 1;

    assert_true(d <= 8);
    for (size_t j = 0; j < d * d; j++)
        for (size_t i = 0; i < rows; i++)
            gram[j] += y[i * d + j / d] * y[i * d + j % d];
    assert_int_equal(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'N', 'U', (int)d, gram, (int)d, values), 0);
    for (size_t j = 0; j < d; j++)
        sum += values[j] = sqrt(fmax(values[j], 0));
    for (size_t j = d; j-- > 0;) {
        part += values[j];
        rank += part / sum < 0.99;
    }
    return rank;
}

struct published {
    double norm, dormant, rank; /* sums over layers; the last activation's */
    size_t layers;
};

/* Activations of a pass in training mode on x [rows, in]; an actor's log-stds within [-10, 2]. */
static struct published published(const struct KS(arch) *arch, size_t rows, const double *w,
                                  const double *x)
{
    struct published p = {0};
    struct KS(net) *net;
    double *primal, *y;

    assert_ok(KS(net_new)(arch, rows, rows, false, &net));
    primal = hold(calloc(net->primal, sizeof *primal));
    KS(net_forward)(net, w, NULL, x, primal);
    for (size_t l = 0; l < arch->n_layers; l++) {
        size_t d = arch->layer[l].out;
        bool head = l + 1 == arch->n_layers;

        if (arch->layer[l].kind->role != KS_ACTIVATION && !head)
            continue;
        y = copy(rows * d, primal + net->at[l].y);
        for (size_t i = 0; i < rows * d && head && !arch->loss.kind; i++)
            if (i % d >= d / 2)
                y[i] = fmin(fmax(y[i], -10), 2);
        p.norm += published_norm(rows, d, y);
        p.dormant += published_dormant(rows, d, y);
        p.layers++;
        if (!head)
            p.rank = published_rank(rows, d, y);
    }
    KS(net_free)(net);
    return p;
}

/* Some units of each layer are switched off, the head's outputs have both signs, and log-stds are
 * beyond their bounds. */
static void unsettle(struct KS(agent) *a)
{
    struct KS(trained) *t[3] = {&a->critic[0], &a->critic[1], &a->actor};

    for (size_t k = 0; k < 3; k++) {
        const struct KS(arch) *arch = k < 2 ? a->critic_arch : a->actor_arch;

        shake(arch->parameters, 20 + k, t[k]->w);
        for (size_t i = 0; i < arch->n_layers; i++) {
            const struct KS(layer) *l = &arch->layer[i];
            double *bias = t[k]->w + l->offset + l->parameters - l->out;

            if (l->n_params < 2)
                continue;
            for (size_t j = k; j < l->out; j += 3)
                bias[j] = i + 1 == arch->n_layers ? 7. : -50;
        }
    }
}

/* The values of single layers: one for each layer, and they add up to the total. */
static void check_layers(const struct metrics *m, const char *quantity, size_t layers,
                         double expected)
{
    double sum = 0;
    size_t found = 0, length = strlen(quantity);

    for (size_t i = 0; i < m->n; i++)
        if (strncmp(m->list[i].name, quantity, length) == 0 && m->list[i].name[length] == '_') {
            sum += m->list[i].value;
            found++;
        }
    assert_int_equal(found, layers);
    assert_close(sum, expected, 1e-11);
}

static void check_published(const char *name)
{
    struct KS(agent) *a = make_agent(name);
    struct published critic[2], actor;
    struct metrics m;
    double *x, s[BATCH * OBSERVATIONS];

    for (size_t i = 0; i < 3; i++)
        update_with(a, i);
    unsettle(a);
    m = metrics_of(a);
    x = both_halves(a);
    for (size_t i = 0; i < BATCH * OBSERVATIONS; i++)
        s[i] = (double)last.s[i];
    for (size_t e = 0; e < 2; e++)
        critic[e] = published(a->critic_arch, 2 * BATCH, a->critic[e].w, x);
    actor = published(a->actor_arch, BATCH, a->actor.w, s);
    assert_close(value(&m, "critic_feature_norm_xqc"), (critic[0].norm + critic[1].norm) / 2,
                 1e-11);
    assert_close(value(&m, "critic_dormant_xqc"),
                 (critic[0].dormant + critic[1].dormant) / 2 / (double)critic[0].layers, 1e-12);
    assert_close(value(&m, "critic_feature_rank_xqc"), (critic[0].rank + critic[1].rank) / 2, 0);
    assert_close(value(&m, "actor_feature_norm_xqc"), actor.norm, 1e-11);
    assert_close(value(&m, "actor_dormant_xqc"), actor.dormant / (double)actor.layers, 1e-12);
    assert_close(value(&m, "actor_feature_rank_xqc"), actor.rank, 0);
    assert_true(critic[0].dormant > 0 && actor.dormant > 0);
    check_layers(&m, "critic_feature_norm_xqc", critic[0].layers,
                 (critic[0].norm + critic[1].norm) / 2);
    check_layers(&m, "critic_dormant_xqc", critic[0].layers,
                 (critic[0].dormant + critic[1].dormant) / 2);
    check_layers(&m, "actor_feature_norm_xqc", actor.layers, actor.norm);
    check_layers(&m, "actor_dormant_xqc", actor.layers, actor.dormant);
}

TEST(test_published)
{
    check_published(SKIPS);
    for (size_t k = 0; ks_architectures[k].name; k++)
        check_published(ks_architectures[k].name);
}

static struct KS(agent) *make_agent_with_delay(size_t delay)
{
    struct ks_agent_config config = named_config("ln+wn+ce");

    config.policy_delay = delay;
    return agent_of(&config);
}

/* The published effective learning rate: a mean over all kernels and biases, weighted with their
 * sizes. An actor's heads for means and log-stds count separately. */
static double published_rate(const struct KS(arch) *arch, const double *w, const double *g)
{
    double rates = 0, count = 0;

    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        size_t kernel = l->parameters - l->out, parts = i + 1 == arch->n_layers ? 2 : 1;

        if (strcmp(l->kind->name, "dense") != 0)
            continue;
        for (size_t part = 0; part < 2 * parts; part++) {
            double w2 = 0, g2 = 0, n = 0;

            for (size_t k = 0; k < l->parameters; k++)
                if ((k % l->out) / (l->out / parts) == part % parts &&
                    (k < kernel) == (part < parts)) {
                    w2 += w[l->offset + k] * w[l->offset + k];
                    g2 += g[l->offset + k] * g[l->offset + k];
                    n++;
                }
            rates += n * sqrt(g2 / w2);
            count += n;
        }
    }
    return rates / count;
}

/* Two agents whose actors step at every update and at every third one. They are equal up to update
 * number 1, where one skips the gradient that the other uses. */
TEST(test_actor_gradient)
{
    struct KS(agent) *a = make_agent_with_delay(3), *often = make_agent_with_delay(1);

    for (uint64_t i = 0; i < 2; i++) {
        struct metrics found, expected;

        update_with(a, i);
        update_with(often, i);
        found = metrics_of(a), expected = metrics_of(often);
        assert_close(value(&found, "actor_grad_norm_xqc"), value(&expected, "actor_grad_norm"),
                     1e-15);
        assert_close(value(&expected, "actor_grad_norm_xqc"), value(&expected, "actor_grad_norm"),
                     1e-15);
        assert_close(value(&found, "actor_effective_lr_xqc"),
                     published_rate(a->actor_arch, a->actor.w, often->actor.g), 1e-14);
        if (i == 1)
            assert_true(fabs(value(&found, "actor_grad_norm") -
                             value(&expected, "actor_grad_norm")) > 1e-3);
    }
}
