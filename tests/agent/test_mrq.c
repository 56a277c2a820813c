/* MR.Q's update: the encoder's loss and gradient, the actor's, two-hot rewards, the clipped
 * gradient of the critics, targets, actions. In double. tests/peer/update.sh compares its steps
 * with PyTorch's. */
#include "agents.h"

#include "agent/actor.h"

enum { STEPS = 3, STATE = 6, PAIR = 7, INPUT = STATE + 4 };

static const char CRITIC[] = "dense 5\nlayernorm affine=no eps=1e-5\nelu\ndense 1\n"
                             "loss huber delta=1 weight=0.5\n",
                  ACTOR[] = "dense 5\nlayernorm affine=no eps=1e-5\nrelu\ndense 3\npolicy tanh\n";
static const char *const ENCODER[KS_MODULES] = {
    "dense 6\nlayernorm affine=no eps=1e-5\nelu\noutputs\n", "dense 4\nelu\noutputs\n",
    "dense 6\nlayernorm affine=no eps=1e-5\nelu\ndense 7\noutputs\n", "dense 72\noutputs\n"};

static struct ks_agent_config config(void)
{
    struct ks_agent_config c = small_config(CRITIC, ACTOR);

    c.encoder = ENCODER;
    c.horizon = STEPS;
    c.target_period = 4;
    c.encoder_rate = (struct ks_rate){1e-3, 1e-3, 1};
    c.policy_value = KS_MEAN;
    c.policy_delay = 1;
    c.weight_decay = 1e-3;
    c.decay = KS_DECAY_ALL;
    return c;
}

static struct KS(agent) *make(double gradient_norm)
{
    struct ks_agent_config c = config();
    struct KS(agent) *a;

    c.gradient_norm = gradient_norm;
    a = agent_of(&c);
    shake_all(a);
    shake(a->actor_arch->parameters, 10, a->actor.target);
    for (size_t k = 0; k < KS_MODULES; k++) {
        shake(a->encoder->arch[k]->parameters, 20 + k, a->encoder->module[k].w);
        if (k != KS_MODEL_MODULE)
            shake(a->encoder->arch[k]->parameters, 30 + k, a->encoder->module[k].target);
    }
    return a;
}

struct windows {
    float s[(STEPS + 1) * BATCH * OBSERVATIONS], a[STEPS * BATCH * ACTIONS];
    float reward[STEPS * BATCH], mask[STEPS * BATCH], kept[STEPS * BATCH];
};

/* Row 1 ends after the first step, row 4 after the second, row 5 with the last. */
static struct ks_windows draw_windows(struct windows *w)
{
    struct ks_rng rng = ks_rng_start(5, 98);

    for (size_t i = 0; i < sizeof w->s / sizeof *w->s; i++)
        w->s[i] = (float)(1 + 2 * ks_rng_normal(&rng));
    for (size_t i = 0; i < sizeof w->a / sizeof *w->a; i++)
        w->a[i] = (float)ks_rng_uniform(&rng, -1, 1);
    for (size_t i = 0; i < STEPS * BATCH; i++) {
        const size_t row = i % BATCH, at = i / BATCH;
        const size_t end = row == 1 ? 0 : row == 4 ? 1 : row == 5 ? 2 : STEPS;

        w->reward[i] = (float)(5 * ks_rng_normal(&rng));
        w->mask[i] = at != end;
        w->kept[i] = at <= end;
    }
    return (struct ks_windows){STEPS, BATCH, w->s, w->a, w->reward, w->mask, w->kept, true};
}

/* The gradients of all four modules, with each of the loss's terms. */
TEST(test_encoder_gradient)
{
    for (int terminates = 0; terminates < 2; terminates++) {
        struct KS(agent) *a = make(0);
        struct windows w;
        struct ks_windows windows = draw_windows(&w);

        windows.terminates = terminates;
        for (size_t k = 0; k < KS_MODULES; k++) {
            const size_t n = a->encoder->arch[k]->parameters;
            struct KS(trained) *t = &a->encoder->module[k];
            double *g, largest = 0;

            KS(encoder_gradient)(a, &windows);
            g = copy(n, t->g);
            for (size_t i = 0; i < n; i++)
                largest = fmax(largest, fabs(g[i]));
            assert_true(largest > 1e-3);
            for (size_t i = 0; i < n; i++) {
                const double x = t->w[i], h = 1e-6;
                double up, down;

                t->w[i] = x + h, up = KS(encoder_gradient)(a, &windows);
                t->w[i] = x - h, down = KS(encoder_gradient)(a, &windows);
                t->w[i] = x;
                assert_close(g[i], (up - down) / (2 * h), 1e-8 * (1 + fabs(g[i])));
            }
        }
    }
}

static double *apply(const struct KS(agent) *a, enum ks_module k, bool target, size_t rows,
                     const double *x)
{
    const struct KS(trained) *t = &a->encoder->module[k];

    return forward(&(struct network){a->encoder->arch[k], target ? t->target : t->w, NULL, true},
                   rows, x);
}

/* pair([z; action(actions)]) */
static double *embed(const struct KS(agent) *a, bool target, const double *z, const double *actions)
{
    double *u = apply(a, KS_ACTION_MODULE, target, BATCH, actions), x[BATCH * INPUT];

    for (size_t b = 0; b < BATCH; b++) {
        memcpy(x + b * INPUT, z + b * STATE, STATE * sizeof *x);
        memcpy(x + b * INPUT + STATE, u + b * 4, 4 * sizeof *x);
    }
    return apply(a, KS_PAIR_MODULE, target, BATCH, x);
}

static void to_double(size_t n, const float *from, double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

/* Cross entropy of softmax(f) with the distribution over bins whose mean is the reward. */
static double cross_entropy(const double *f, double reward)
{
    double sum = 0, entropy = 0;

    for (size_t k = 0; k < KS_REWARD_BINS; k++)
        sum += exp(f[k]);
    for (size_t k = 0; k + 1 < KS_REWARD_BINS; k++) {
        const double x = (double)k * 20 / 64 - 10, y = x + 20.0 / 64;
        const double low = copysign(exp(fabs(x)) - 1, x), high = copysign(exp(fabs(y)) - 1, y);

        if (reward >= low && reward < high)
            entropy -= (high - reward) / (high - low) * (f[k] - log(sum)) +
                       (reward - low) / (high - low) * (f[k + 1] - log(sum));
    }
    return entropy;
}

/* The loss by its definition, of the networks applied by hand. */
TEST(test_encoder_loss)
{
    struct KS(agent) *a = make(0);
    struct windows w;
    struct ks_windows windows = draw_windows(&w);
    double s[BATCH * OBSERVATIONS], actions[BATCH * ACTIONS], expected = 0, *z;

    to_double(BATCH * OBSERVATIONS, w.s, s);
    z = apply(a, KS_STATE_MODULE, false, BATCH, s);
    for (size_t i = 0; i < STEPS; i++) {
        double *x, *f, *next;

        to_double(BATCH * ACTIONS, w.a + i * BATCH * ACTIONS, actions);
        to_double(BATCH * OBSERVATIONS, w.s + (i + 1) * BATCH * OBSERVATIONS, s);
        x = embed(a, false, z, actions);
        f = apply(a, KS_MODEL_MODULE, false, BATCH, x);
        next = apply(a, KS_STATE_MODULE, true, BATCH, s);
        for (size_t b = 0; b < BATCH; b++) {
            const double *row = f + b * 72;
            const size_t at = i * BATCH + b;

            for (size_t j = 0; j < STATE; j++) {
                z[b * STATE + j] = row[1 + j];
                expected += (double)w.kept[at] * pow(row[1 + j] - next[b * STATE + j], 2) /
                            (BATCH * STATE);
            }
            expected += 0.1 * (double)w.kept[at] / BATCH *
                        (cross_entropy(row + 7, (double)w.reward[at]) +
                         pow(row[0] - (1 - (double)w.mask[at]), 2));
        }
    }
    assert_close(KS(encoder_gradient)(a, &windows), expected, 1e-12);
}

TEST(test_two_hot)
{
    static const double rewards[] = {0, 1e-9, -1e-9, 0.3, 1, -2.5, 700, -700, 22000, 1e6, -1e6};
    size_t low;
    double share;

    assert_true(KS(reward_bin)(32) == 0);
    assert_close(KS(reward_bin)(64), exp(10) - 1, 1e-8);
    assert_close(KS(reward_bin)(0), 1 - exp(10), 1e-8);
    for (size_t i = 0; i < sizeof rewards / sizeof *rewards; i++) {
        const double inside = fmin(fmax(rewards[i], 1 - exp(10)), exp(10) - 1);

        KS(two_hot)(rewards[i], &low, &share);
        assert_true(low < 64 && share >= 0 && share <= 1);
        assert_close((1 - share) * KS(reward_bin)(low) + share * KS(reward_bin)(low + 1), inside,
                     1e-12 * (1 + fabs(inside)));
    }
    for (size_t k = 0; k < 65; k++) { /* a bin has the whole weight of its own reward */
        KS(two_hot)(KS(reward_bin)(k), &low, &share);
        assert_true(share == 0 || share == 1);
        assert_int_equal(low + (share == 1), k);
    }
}

TEST(test_actor_gradient)
{
    struct KS(agent) *a = make(0);
    const size_t n = a->actor_arch->parameters;
    struct ks_batch batch = draw_transitions(1);
    double *g;

    a->kind->gather(a, &batch);
    for (size_t i = n - 15; i < n; i++) /* large outputs: the penalty counts */
        a->actor.w[i] *= 20;
    KS(mrq_actor_gradient)(a);
    g = copy(n, a->actor.g);
    for (size_t i = 0; i < n; i++) {
        const double x = a->actor.w[i], h = 1e-6;
        double up, down;

        a->actor.w[i] = x + h, up = KS(mrq_actor_gradient)(a);
        a->actor.w[i] = x - h, down = KS(mrq_actor_gradient)(a);
        a->actor.w[i] = x;
        assert_close(g[i], (up - down) / (2 * h), 1e-8);
    }
}

/* The networks' inputs, the targets and the deviations by their definitions. */
TEST(test_update)
{
    struct KS(agent) *a = make(0);
    struct ks_batch batch = draw_transitions(1);
    double s[BATCH * OBSERVATIONS], actions[BATCH * ACTIONS], *z, *x, *next, *head, *f[2], *q[2];
    struct ks_update u;

    a->value_scale = 0.7;
    to_double(BATCH * OBSERVATIONS, batch.s, s);
    to_double(BATCH * ACTIONS, batch.a, actions);
    z = apply(a, KS_STATE_MODULE, false, BATCH, s);
    x = embed(a, false, z, actions);
    to_double(BATCH * OBSERVATIONS, batch.next_s, s);
    next = apply(a, KS_STATE_MODULE, true, BATCH, s);
    head = forward(&(struct network){a->actor_arch, a->actor.target, NULL, true}, BATCH, next);
    assert_ok(KS(agent_begin)(a, &batch, &u));
    for (size_t i = 0; i < BATCH * ACTIONS; i++)
        actions[i] = fmin(fmax(tanh(head[i]) + fmin(fmax(0.2 * a->next.noise[i], -0.3), 0.3), -1),
                          1);
    head = embed(a, true, next, actions);
    for (size_t e = 0; e < 2; e++) {
        f[e] = forward(&(struct network){a->critic_arch, a->critic[e].target, NULL, true}, BATCH,
                       head);
        q[e] = forward(&(struct network){a->critic_arch, a->critic[e].w, NULL, true}, BATCH, x);
    }
    assert_true(relative_error(BATCH * PAIR, a->input, x) < 1e-13);
    assert_true(relative_error(BATCH * PAIR, a->input + BATCH * PAIR, head) < 1e-13);
    assert_ok(KS(agent_finish)(a, &batch, &u));
    for (size_t i = 0; i < BATCH; i++) {
        const double y = batch.reward[i] +
                         0.9 * 0.7 * (double)batch.mask[i] * fmin(f[0][i], f[1][i]);

        assert_close(a->target[i], y, 1e-13);
        assert_close(a->deviation[i], fmax(fabs(q[0][i] - y), fabs(q[1][i] - y)), 1e-13);
    }
    assert_true(KS(agent_temperature)(a) == 0 && isnan(u.entropy));
}

/* The gradients of both critics have together at most that norm, and the same direction. */
TEST(test_clip)
{
    struct KS(agent) *free_agent = make(0), *clipped = make(0.01), *loose = make(1e3);
    const size_t n = free_agent->critic_arch->parameters;
    double squares = 0, factor;

    update(free_agent), update(clipped), update(loose);
    for (size_t e = 0; e < 2; e++)
        for (size_t i = 0; i < n; i++)
            squares += pow(free_agent->critic[e].g[i], 2);
    factor = 0.01 / (sqrt(squares) + 1e-6);
    assert_true(factor < 0.5);
    for (size_t e = 0; e < 2; e++)
        for (size_t i = 0; i < n; i++) {
            assert_close(clipped->critic[e].g[i], factor * free_agent->critic[e].g[i], 1e-15);
            assert_true(fabs(loose->critic[e].g[i] - free_agent->critic[e].g[i]) < 1e-14);
        }
}

/* Targets stay as they are until agent_refresh copies the networks; the encoder does not change in
 * an update, and the targets do not change in a step of the encoder. */
TEST(test_targets)
{
    struct KS(agent) *a = make(0);
    const size_t n[] = {a->critic_arch->parameters, a->actor_arch->parameters,
                        a->encoder->arch[KS_PAIR_MODULE]->parameters};
    struct KS(trained) *const t[] = {&a->critic[1], &a->actor, &a->encoder->module[KS_PAIR_MODULE]};
    double *target[3], *pair = copy(n[2], t[2]->w);
    struct windows w;
    struct ks_windows windows = draw_windows(&w);

    for (size_t k = 0; k < 3; k++)
        target[k] = copy(n[k], t[k]->target);
    update(a);
    assert_memory_equal(t[2]->w, pair, n[2] * sizeof *pair);
    assert_ok(KS(encoder_step)(a, &windows));
    assert_true(memcmp(t[2]->w, pair, n[2] * sizeof *pair) != 0);
    for (size_t k = 0; k < 3; k++)
        assert_memory_equal(t[k]->target, target[k], n[k] * sizeof **target);
    KS(agent_refresh)(a, 2);
    for (size_t k = 0; k < 3; k++)
        assert_memory_equal(t[k]->target, t[k]->w, n[k] * sizeof **target);
    assert_true(a->value_scale == 2 && a->encoder->adam.step == 1);
}

/* tanh of the actor's outputs; with noise, 0.2 n is added and the sum clipped. */
TEST(test_act)
{
    const float observation[OBSERVATIONS] = {0.3F, -1, 0.5F, 2, -0.2F};
    const double noise[ACTIONS] = {0.4, -30, 2};
    struct KS(agent) *a = make(0);
    double s[OBSERVATIONS], *z, *head;
    float action[ACTIONS];

    to_double(OBSERVATIONS, observation, s);
    z = apply(a, KS_STATE_MODULE, false, 1, s);
    head = forward(&(struct network){a->actor_arch, a->actor.w, NULL, true}, 1, z);
    KS(agent_act)(a, observation, NULL, action);
    for (size_t j = 0; j < ACTIONS; j++)
        assert_close((double)action[j], tanh(head[j]), 1e-7);
    KS(agent_act)(a, observation, noise, action);
    for (size_t j = 0; j < ACTIONS; j++)
        assert_close((double)action[j], fmin(fmax(tanh(head[j]) + 0.2 * noise[j], -1), 1), 1e-7);
}

TEST(test_refusals)
{
    static const struct {
        const char *critic, *actor, *words;
        enum ks_module module; /* KS_MODULES: none is replaced */
        const char *text;
    } cases[] = {
        {CRITIC, ACTOR, "expected 72 outputs (1, the embedding's 6 and 65 bins), found 71",
         KS_MODEL_MODULE, "dense 71\noutputs\n"},
        {CRITIC, ACTOR, "expected a description that ends in 'outputs', found a loss",
         KS_STATE_MODULE, CRITIC},
        {CRITIC, ACTOR, "found a policy", KS_STATE_MODULE, ACTOR},
        {CRITIC, ACTOR, "without running statistics", KS_ACTION_MODULE, "batchnorm\noutputs\n"},
        {CRITIC, ACTOR, "expected a layer before 'outputs'", KS_ACTION_MODULE, "outputs\n"},
        {CRITIC, "dense 6\npolicy tanh-gaussian\n", "found policy tanh-gaussian of 3", KS_MODULES,
         ""},
        {CRITIC, "dense 2\npolicy tanh\n", "expected 'policy tanh' of 3 actions, found 2",
         KS_MODULES, ""},
        {"dense 2\nloss ce min=0 max=1\n", ACTOR, "expected critics with one output", KS_MODULES,
         ""},
        {"dense 2\noutputs\n", ACTOR, "expected 'loss ce'", KS_MODULES, ""},
        {CRITIC, "batchnorm\ndense 3\npolicy tanh\n", "expected no running statistics", KS_MODULES,
         ""},
    };
    struct KS(agent) *agent;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ks_agent_config c = config();
        const char *texts[KS_MODULES];

        memcpy(texts, ENCODER, sizeof texts);
        if (cases[i].module < KS_MODULES)
            texts[cases[i].module] = cases[i].text;
        c.critic = cases[i].critic, c.actor = cases[i].actor, c.encoder = texts;
        assert_fails(KS(agent_new)(&c, &agent), KS_FORMAT, cases[i].words);
    }
}

/* Every allocation fails once: the error is returned, and nothing leaks (AddressSanitizer). */
TEST(test_out_of_memory)
{
    struct ks_agent_config c = config();
    struct KS(agent) *a = NULL;
    struct starved s = {.least = 50};

    while (starving(&s)) {
        s.status = KS(agent_new)(&c, &a);
        assert_true(s.status == KS_OK || !a);
    }
    KS(agent_free)(a);
}

/* Independent uniform entries of the given width: checked by their range and variance. */
TEST(test_xavier)
{
    const struct ks_array shape = {.rows = 40, .columns = 80};
    const double bound = 1.5 * sqrt(6.0 / 120);
    struct ks_rng rng = ks_rng_start(3, 3);
    double w[3200], squares = 0, largest = 0;
    const struct ks_starts starts = {KS_XAVIER_UNIFORM, KS_XAVIER_UNIFORM, 1.5};
    struct KS(arch) *arch;
    double *whole;

    KS(xavier_uniform)(&shape, 1.5, &rng, w);
    for (size_t i = 0; i < 3200; i++) {
        squares += w[i] * w[i] / 3200;
        largest = fmax(largest, fabs(w[i]));
    }
    assert_true(largest <= bound && largest > 0.99 * bound);
    assert_close(squares, bound * bound / 3, 5 * bound * bound * sqrt(4.0 / 45 / 3200));
    assert_ok(KS(arch_parse)("dense 80\npolicy tanh\n", "test", 40, &arch));
    rng = ks_rng_start(3, 3);
    whole = hold(calloc(arch->parameters, sizeof *whole));
    assert_ok(KS(init_network)(arch, &starts, &rng, whole, NULL));
    assert_memory_equal(whole, w, sizeof w);
    for (size_t j = 0; j < 80; j++)
        assert_true(whole[3200 + j] == 0);
    KS(arch_free)(arch);
}
