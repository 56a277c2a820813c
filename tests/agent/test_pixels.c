/* An agent that sees images: gradients of what stands before critics and actor against differences
 * of the losses, which are computed from the networks one by one; targets, actions. In double.
 * tests/peer/pixels.sh compares whole updates with PyTorch's. */
#include "agents.h"

#include "agent/actor.h"

enum { FEATURES = 3 * 2 * 6, TRUNK = 4, INPUT = TRUNK + ACTIONS };

/* Observations of five pixels; critics and actors with and without batch statistics. */
static const char *const SHARED[KS_PIXELS_PARTS] = {
    "conv2d 3 size=2 padding=1 channels=1 height=1 width=5\nelu\noutputs\n",
    "dense 4\nlayernorm eps=1e-5\ntanh\noutputs\n"};
static const char *const CRITICS[] = {"dense 5\nelu\ndense 1\nloss mse weight=2\n",
                                      "batchnorm\ndense 5 bias=no project=unit\nbatchnorm\nelu\n"
                                      "dense 7 project=unit-kernel\nloss ce min=-5 max=5\n"},
                         *const ACTORS[] = {"dense 4\ntanh\ndense 3\npolicy tanh\n",
                                            "dense 4\nbatchnorm\ntanh\ndense 3\npolicy tanh\n"};
enum { KINDS = 2 };

static struct KS(agent) *make(size_t kind, int threads)
{
    struct ks_agent_config c = small_config(CRITICS[kind], ACTORS[kind]);
    struct KS(agent) *a;

    c.pixels = SHARED;
    c.encoder_rate = (struct ks_rate){1e-3, 1e-3, 1};
    c.policy_delay = 1;
    c.noise_clip = 0.3;
    c.threads = threads;
    a = agent_of(&c);
    a->noise = 0.4;
    shake_all(a);
    for (size_t k = 0; k < KS_PIXELS_PARTS; k++)
        shake(a->pixels->arch[k]->parameters, 20 + k, a->pixels->part[k].w);
    shake(a->pixels->arch[KS_TRUNK]->parameters, 30, a->pixels->part[KS_TRUNK].target);
    return a;
}

static double *see(const struct KS(agent) *a, size_t rows, const float *s)
{
    double x[BATCH * OBSERVATIONS];

    for (size_t i = 0; i < rows * OBSERVATIONS; i++)
        x[i] = (double)s[i];
    return forward(
        &(struct network){a->pixels->arch[KS_IMAGE], a->pixels->part[KS_IMAGE].w, NULL, true}, rows,
        x);
}

/* The critics' input [(s, a); (s', a')], or with `first` [(s', a'); (s, a)], from features e, e'
 * and actions. */
static double *join(const struct KS(agent) *a, const double *trunk, const double *const e[2],
                    const double *const actions[2])
{
    double *x = copy(2 * BATCH * INPUT, (double[2 * BATCH * INPUT]){0});

    for (size_t half = 0; half < 2; half++) {
        const double *h = forward(&(struct network){a->pixels->arch[KS_TRUNK], trunk, NULL, true},
                                  BATCH, e[half]);

        for (size_t i = 0; i < BATCH; i++) {
            double *row = x + (half * BATCH + i) * INPUT;

            memcpy(row, h + i * TRUNK, TRUNK * sizeof *row);
            memcpy(row + TRUNK, actions[half] + i * ACTIONS, ACTIONS * sizeof *row);
        }
    }
    return x;
}

/* a and a' of the agent's input. */
static void read_actions(const struct KS(agent) *a, double *actions[2])
{
    static double values[2][BATCH * ACTIONS];

    for (size_t half = 0; half < 2; half++) {
        for (size_t i = 0; i < BATCH; i++)
            memcpy(values[half] + i * ACTIONS, a->input + (half * BATCH + i) * INPUT + TRUNK,
                   ACTIONS * sizeof **values);
        actions[half] = values[half];
    }
}

/* The critics' loss, with constant next_e, a' and targets. */
static double loss_of(const struct KS(agent) *a, const float *s, const double *next_e)
{
    const struct KS(loss) *loss = &a->critic_arch->loss;
    const double *e[2] = {see(a, BATCH, s), next_e}, *x;
    double *actions[2], sum = 0;

    read_actions(a, actions);
    x = join(a, a->pixels->part[KS_TRUNK].w, e, (const double *const *)actions);
    for (size_t k = 0; k < a->config.ensemble; k++) {
        const struct network critic = {a->critic_arch, a->critic[k].w, NULL,
                                       !a->critic_arch->joint};
        const double *f = forward(&critic, KS(agent_rows)(a), x);

        sum += loss->kind->gradient(loss, &(struct KS(outputs)){BATCH, f, a->target}, 1, NULL);
    }
    return sum / BATCH;
}

static void freeze(struct KS(agent) *a, const struct ks_batch *batch)
{
    struct ks_rng rng = ks_rng_start(SEED, 1);
    double input[2 * BATCH * INPUT], target[BATCH * 8];

    KS(agent_fill_checkpoint_batch)(a, batch, &rng, input);
    KS(agent_fill_checkpoint_target)(a, batch, target);
}

/* Of image and trunk: e(s') and targets are constants, but h(s') is not. */
TEST(test_gradient)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct KS(agent) *a = make(kind, 1);
        struct ks_batch batch = draw_transitions(1);
        double *next_e;

        assert_int_equal(a->pixels->arch[KS_IMAGE]->out, FEATURES);
        freeze(a, &batch);
        next_e = copy(BATCH * FEATURES, a->next_s);
        for (size_t e = 0; e < a->config.ensemble; e++)
            KS(critic_gradient)(a, e);
        KS(pixels_gradient)(a);
        for (size_t k = 0; k < KS_PIXELS_PARTS; k++) {
            const size_t n = a->pixels->arch[k]->parameters;
            struct KS(trained) *t = &a->pixels->part[k];
            double largest = 0;

            for (size_t i = 0; i < n; i++) {
                const double x = t->w[i], h = 1e-6;
                double up, down;

                t->w[i] = x + h, up = loss_of(a, batch.s, next_e);
                t->w[i] = x - h, down = loss_of(a, batch.s, next_e);
                t->w[i] = x;
                largest = fmax(largest, fabs(t->g[i]));
                assert_close(t->g[i], (up - down) / (2 * h), 1e-8 * (1 + fabs(t->g[i])));
            }
            assert_true(largest > 1e-3);
        }
    }
}

/* With noise that clips no action, so that the derivative is the true one. */
TEST(test_actor_gradient)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct KS(agent) *a = make(kind, 1);
        const size_t n = a->actor_arch->parameters;
        struct ks_batch batch = draw_transitions(1);
        double *g;

        a->noise = 0.01;
        for (size_t i = 0; i < n; i++)
            a->actor.w[i] *= 0.3;
        freeze(a, &batch);
        KS(noise_of_update)(a, KS_POLICY_ACTION, 3, a->policy.noise);
        KS(actor_forward)(a, NULL);
        KS(pixels_actor_gradient)(a);
        for (size_t i = 0; i < BATCH; i++)
            for (size_t j = 0; j < ACTIONS; j++)
                assert_true(fabs(a->policy_input[i * INPUT + TRUNK + j]) < 0.999);
        g = copy(n, a->actor.g);
        for (size_t i = 0; i < n; i++) {
            const double x = a->actor.w[i], h = 1e-6;
            double up, down;

            a->actor.w[i] = x + h, KS(actor_forward)(a, NULL), up = KS(pixels_actor_gradient)(a);
            a->actor.w[i] = x - h, KS(actor_forward)(a, NULL), down = KS(pixels_actor_gradient)(a);
            a->actor.w[i] = x;
            assert_close(g[i], (up - down) / (2 * h), 1e-8);
        }
    }
}

static double noisy(double head, double noise, double clip)
{
    const double limit = 1 - 1e-6;

    return fmin(fmax(tanh(head) + fmin(fmax(noise, -clip), clip), -limit), limit);
}

/* Inputs and targets by their definitions: the target's trunk and critics see e(s'), a' is clipped
 * twice. */
TEST(test_update)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct KS(agent) *a = make(kind, 1);
        struct ks_batch batch = draw_transitions(1);
        const double *e[2] = {see(a, BATCH, batch.s), see(a, BATCH, batch.next_s)}, *x, *own;
        const double *head = forward(
            &(struct network){a->actor_arch, a->actor.w, a->actor.state, true}, BATCH, e[1]);
        double actions[2][BATCH * ACTIONS], q[2][BATCH];
        const double *const both[2] = {actions[0], actions[1]};
        const double *const swapped[2] = {actions[1], actions[0]}, *const ahead[2] = {e[1], e[0]};
        struct ks_update u;

        for (size_t i = 0; i < BATCH * ACTIONS; i++)
            actions[0][i] = (double)batch.a[i];
        assert_ok(KS(agent_begin)(a, &batch, &u));
        for (size_t i = 0; i < BATCH * ACTIONS; i++)
            actions[1][i] = noisy(head[i], 0.4 * a->next.noise[i], 0.3);
        own = join(a, a->pixels->part[KS_TRUNK].w, e, both);
        x = join(a, a->pixels->part[KS_TRUNK].target, ahead, swapped);
        assert_true(relative_error(2 * BATCH * INPUT, a->input, own) < 1e-13);
        assert_true(relative_error(BATCH * INPUT, a->target_input, x) < 1e-13);
        for (size_t k = 0; k < 2 && kind == 0; k++) {
            const double *f = forward(
                &(struct network){a->critic_arch, a->critic[k].target, NULL, true}, BATCH, x);

            memcpy(q[k], f, sizeof q[k]);
        }
        assert_ok(KS(agent_finish)(a, &batch, &u));
        for (size_t i = 0; i < BATCH && kind == 0; i++)
            assert_close(a->target[i],
                         batch.reward[i] + 0.9 * (double)batch.mask[i] * fmin(q[0][i], q[1][i]),
                         1e-13);
        assert_true(KS(agent_temperature)(a) == 0 && isnan(u.entropy) && u.actor_stepped);
    }
}

/* The trunk's target follows it; all networks step, to the same bits for every number of threads.
 */
TEST(test_steps)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct KS(agent) *one = make(kind, 1), *two = make(kind, 2);
        struct KS(trained) *image = &one->pixels->part[KS_IMAGE],
                           *trunk = &one->pixels->part[KS_TRUNK];
        const size_t n = one->pixels->arch[KS_TRUNK]->parameters;
        const size_t m = one->pixels->arch[KS_IMAGE]->parameters;
        double *target = copy(n, trunk->target), *w = copy(n, trunk->w),
               *before = copy(m, image->w);

        update(one), update(two);
        for (size_t i = 0; i < n; i++)
            assert_close(trunk->target[i], target[i] + 0.1 * (trunk->w[i] - target[i]), 1e-15);
        assert_true(memcmp(w, trunk->w, n * sizeof *w) != 0);
        for (size_t i = 0; i < m; i++)
            assert_true(before[i] != image->w[i]);
        assert_memory_equal(image->w, two->pixels->part[KS_IMAGE].w, m * sizeof *before);
        assert_memory_equal(one->actor.w, two->actor.w,
                            one->actor_arch->parameters * sizeof *one->actor.w);
        assert_int_equal(one->pixels->adam.step, 1);
    }
}

TEST(test_act)
{
    const float s[OBSERVATIONS] = {0.3F, -1, 0.5F, 2, -0.2F};
    const double noise[ACTIONS] = {0.4, -30, 2};
    struct KS(agent) *a = make(1, 1);
    const double *head = forward(&(struct network){a->actor_arch, a->actor.w, a->actor.state, true},
                                 1, see(a, 1, s));
    float action[ACTIONS];

    KS(agent_act)(a, s, NULL, action);
    for (size_t j = 0; j < ACTIONS; j++)
        assert_close((double)action[j], tanh(head[j]), 1e-7);
    KS(agent_act)(a, s, noise, action);
    for (size_t j = 0; j < ACTIONS; j++)
        assert_close((double)action[j], noisy(head[j], 0.4 * noise[j], INFINITY), 1e-7);
}

TEST(test_refusals)
{
    static const struct {
        const char *image, *trunk, *actor, *words;
    } cases[] = {
        {"dense 3\nloss mse\n", NULL, NULL, "image: expected a description that ends in 'outputs'"},
        {NULL, "batchnorm\noutputs\n", NULL, "trunk: expected layers without running statistics"},
        {"conv2d 3 size=2 channels=1 height=2 width=5\noutputs\n", NULL, NULL,
         "expected channels, height and width of an image of 5 features"},
        {NULL, NULL, "dense 6\npolicy tanh-gaussian log-std=clip\n",
         "actor: expected 'policy tanh' of 3 actions, found policy tanh-gaussian of 3"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *shared[] = {cases[i].image ? cases[i].image : SHARED[0],
                                cases[i].trunk ? cases[i].trunk : SHARED[1]};
        struct ks_agent_config c = small_config(CRITICS[0],
                                                cases[i].actor ? cases[i].actor : ACTORS[0]);
        struct KS(agent) *a;

        c.pixels = shared;
        assert_fails(KS(agent_new)(&c, &a), KS_FORMAT, cases[i].words);
    }
}

/* Only the image convolves, and the critics step first. */
TEST(test_no_effect)
{
    const char *const convolving[] = {SHARED[0],
                                      "conv2d 1 size=1 channels=3 height=2 width=6\noutputs\n"};
    struct ks_agent_config c = small_config(CRITICS[0], ACTORS[0]);
    struct KS(agent) *a;

    c.pixels = convolving;
    assert_fails(KS(agent_new)(&c, &a), KS_FORMAT, "trunk: 'conv2d' is for analysis");
    c.pixels = SHARED;
    c.order = KS_ACTOR_FIRST;
    assert_fails(KS(agent_new)(&c, &a), KS_FORMAT, "expected update_order=critics-first");
}
