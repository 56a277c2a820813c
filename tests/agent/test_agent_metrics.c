/* Norms, learning rates, dormant units and ranks on networks whose answers are known. */
#include "agents.h"

/* dense+ce: layers 0 dense 8x7, 1 relu, 2 dense 7x7, 3 relu, 4 dense 7x11. Constant parameters and
 * gradients of known norms; means over the two critics. */
TEST(test_norms)
{
    struct KS(agent) *a = make_agent("dense+ce");
    struct metrics m;
    const size_t kernel = 56, bias = 7, rest = 56 + 88;

    for (size_t e = 0; e < 2; e++)
        for (size_t i = 0; i < a->critic_arch->parameters; i++) {
            a->critic[e].w[i] = i < kernel ? 2 : i < kernel + bias ? 0 : 1;
            a->critic[e].g[i] = e == 0 ? 0.5 : 1.5; /* mean 1 */
        }
    m = metrics_of(a);
    assert_close(value(&m, "critic_param_norm_00"), 2 * sqrt(56), 1e-12);
    assert_close(value(&m, "critic_grad_norm_00"), sqrt(63), 1e-12);
    assert_close(value(&m, "critic_effective_lr_00"), 0.5, 1e-12); /* the bias is 0: left out */
    assert_close(value(&m, "critic_effective_lr_02"), 1, 1e-12);
    assert_close(value(&m, "critic_param_norm"), sqrt(4 * 56 + (double)rest), 1e-12);
    assert_close(value(&m, "critic_effective_lr"), (0.5 * 56 + (double)rest) / (56 + (double)rest),
                 1e-12);
    /* no batch has passed through the network yet */
    assert_true(isnan(value(&m, "critic_feature_rank")));
    assert_true(isnan(value(&m, "critic_feature_rank_xqc")));
    assert_true(isnan(value(&m, "critic_dormant_xqc")));
    assert_true(isnan(value(&m, "actor_grad_norm_xqc")));
}

/* Definition 1 of the XQC paper: the rate of the second of two steps over the norm of parameters
 * that are all 1. */
TEST(test_definition_1)
{
    struct KS(agent) *a = make_agent("dense+ce");
    struct metrics m;

    a->critic_adam.rate = (struct ks_rate){0.5, 0.1, 4};
    m = metrics_of(a);
    assert_true(isnan(value(&m, "critic_definition_1_lr"))); /* no step yet */
    update(a);
    update(a);
    for (size_t e = 0; e < 2; e++)
        for (size_t i = 0; i < a->critic_arch->parameters; i++)
            a->critic[e].w[i] = 1;
    m = metrics_of(a);
    assert_close(value(&m, "critic_definition_1_lr"),
                 0.4 / sqrt((double)a->critic_arch->parameters), 1e-12);
    assert_true(value(&m, "actor_definition_1_lr") > 0);
}

/* Three of seven units of the last hidden layer switched off, the others equal: rank 1. */
TEST(test_activations)
{
    struct KS(agent) *a = make_agent("dense+ce");
    struct metrics m;

    update(a);
    for (size_t e = 0; e < 2; e++) {
        double *w = a->critic[e].w + a->critic_arch->layer[2].offset;

        for (size_t i = 0; i < 56; i++) /* [7 + bias, 7] */
            w[i] = i % 7 < 3 ? -1 : 1;
        for (size_t j = 0; j < 7; j++)
            w[49 + j] = j < 3 ? -0.1 : 0.1;
    }
    m = metrics_of(a);
    assert_close(value(&m, "critic_dormant_03"), 3. / 7, 1e-12);
    assert_close(value(&m, "critic_feature_rank"), 1, 0);
    assert_close(value(&m, "critic_feature_norm"), value(&m, "critic_feature_norm_03"), 1e-12);
    assert_close(value(&m, "critic_dormant"), (value(&m, "critic_dormant_01") + 3. / 7) / 2, 1e-12);
}

/* Orthogonal features of equal size: all directions count, so the rank of 6 rows is 6. */
TEST(test_full_rank)
{
    struct KS(agent) *a = make_agent("dense+mse");
    struct metrics m;

    update(a);
    for (size_t i = 0; i < BATCH * WIDTH; i++)
        a->input[i] = i / WIDTH == i % WIDTH;
    for (size_t e = 0; e < 2; e++) {
        memset(a->critic[e].w, 0, a->critic_arch->parameters * sizeof *a->critic[e].w);
        for (size_t j = 0; j < 7; j++) {
            a->critic[e].w[j * 7 + j] = 1;
            a->critic[e].w[a->critic_arch->layer[2].offset + j * 7 + j] = 3;
        }
    }
    m = metrics_of(a);
    assert_close(value(&m, "critic_feature_rank"), 6, 0);
    assert_close(value(&m, "critic_feature_norm"), 3, 1e-12);
    assert_close(value(&m, "critic_dormant_03"), 1. / 7, 1e-12);
}

/* What stands in a metric's name between "critic_" or "actor_" and "_xqc" or "_NN" is a quantity.
 */
static void assert_known(const char *name)
{
    const char *at = strchr(name, '_') + 1;

    for (const struct ks_quantity *q = KS(quantities); q->name; q++) {
        const char *end = at + strlen(q->name);

        if (strncmp(at, q->name, strlen(q->name)) != 0)
            continue;
        end += strncmp(end, "_xqc", 4) == 0 ? 4 : 0;
        if (!*end || (*end == '_' && strspn(end + 1, "0123456789") == strlen(end + 1)))
            return;
    }
    fail_msg("%s: not in the table of quantities", name);
}

/* progress.csv needs the same columns in every row, for every architecture. */
static void check_names(const char *name)
{
    struct KS(agent) *a = make_agent(name);
    struct metrics first = metrics_of(a), second;

    update(a);
    second = metrics_of(a);
    assert_int_equal(first.n, second.n);
    for (size_t i = 0; i < second.n; i++) {
        assert_string_equal(first.list[i].name, second.list[i].name);
        assert_true(isfinite(second.list[i].value));
        assert_known(second.list[i].name);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(second.list[i].name, second.list[j].name);
    }
}

TEST(test_names_stay)
{
    check_names(EVERY_KIND);
    check_names(SKIPS);
    for (size_t k = 0; ks_architectures[k].name; k++)
        check_names(ks_architectures[k].name);
}

/* Layers of the critic of every kind, by their numbers in the text, where a residual has none:
 * dense layers have norms, activations have units, all others neither. */
TEST(test_which_layers)
{
    static const char kinds[] = ".."
                                "d"  /* dense                                             */
                                "."  /* rmsnorm                                           */
                                ".d" /* residual: layernorm, dense, silu                  */
                                "a"
                                "d.a.." /* lerp: dense, scaler, mish, l2norm; its alpha   */
                                "a"     /* relu                                           */
                                "daaa." /* dense, tanh, gelu, elu, layernorm              */
                                "d";
    struct KS(agent) *a = make_agent(EVERY_KIND);
    struct metrics m = metrics_of(a);
    size_t found = 0;

    for (size_t i = 0; i < m.n; i++)
        found += strncmp(m.list[i].name, "critic_", 7) == 0 && !strstr(m.list[i].name, "_xqc");
    for (size_t k = 0; kinds[k]; k++) {
        const char *name[2] = {text_of("critic_param_norm_%02zu", k),
                               text_of("critic_dormant_%02zu", k)};
        bool dense = kinds[k] == 'd', there[2] = {false, false};

        for (size_t i = 0; i < 2 * m.n; i++)
            there[i % 2] |= strcmp(m.list[i / 2].name, name[i % 2]) == 0;
        assert_int_equal(there[0], dense);
        assert_int_equal(there[1], kinds[k] == 'a');
        found -= dense ? 3 : kinds[k] == 'a' ? 2 : 0;
    }
    assert_int_equal(found, 7); /* for all layers */
}

/* If all units are off, the published count of singular values is 1, and ours is 0. */
TEST(test_dead_features)
{
    struct KS(agent) *a = make_agent("dense+ce");
    struct metrics m;

    update(a);
    for (size_t e = 0; e < 2; e++) {
        const struct KS(layer) *l = &a->critic_arch->layer[2];

        for (size_t j = 0; j < l->parameters; j++)
            a->critic[e].w[l->offset + j] = -1;
    }
    m = metrics_of(a);
    assert_close(value(&m, "critic_feature_rank"), 0, 0);
    assert_close(value(&m, "critic_feature_rank_xqc"), 1, 0);
    assert_close(value(&m, "critic_dormant_xqc_03"), 1, 0);
}

static void assert_same(size_t n, const double *x, const double *y)
{
    assert_memory_equal(x, y, n * sizeof *x);
}

static void assert_same_trained(const struct KS(arch) *arch, const struct KS(trained) *x,
                                const struct KS(trained) *y)
{
    assert_same(arch->parameters, x->w, y->w);
    assert_same(arch->parameters, x->m, y->m);
    assert_same(arch->parameters, x->v, y->v);
    assert_same(arch->parameters, x->g, y->g);
    assert_same(arch->states, x->state, y->state);
    if (x->target)
        assert_same(arch->parameters, x->target, y->target);
}

/* Measuring after each update does not change the course of training, and measuring again gives the
 * same values. */
static void check_undisturbed(const char *name)
{
    struct KS(agent) *a = make_agent(name), *plain = make_agent(name);

    for (uint64_t i = 0; i < 5; i++) {
        struct metrics one, two;

        update_with(plain, i);
        update_with(a, i);
        one = metrics_of(a), two = metrics_of(a);
        assert_int_equal(one.n, two.n);
        assert_memory_equal(one.list, two.list, one.n * sizeof *one.list);
        assert_same(BATCH * WIDTH, a->input, plain->input);
        assert_same(BATCH * OBSERVATIONS, a->s, plain->s);
    }
    for (size_t e = 0; e < 2; e++)
        assert_same_trained(a->critic_arch, &a->critic[e], &plain->critic[e]);
    assert_same_trained(a->actor_arch, &a->actor, &plain->actor);
    assert_true(a->log_temperature == plain->log_temperature && a->updates == plain->updates);
}

TEST(test_undisturbed)
{
    check_undisturbed(EVERY_KIND);
    check_undisturbed(SKIPS);
    for (size_t k = 0; ks_architectures[k].name; k++)
        check_undisturbed(ks_architectures[k].name);
}
