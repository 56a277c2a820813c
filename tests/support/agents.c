#include "agents.h"

static const char EVERY_KIND_CRITIC[] = /* layers 0 to 18 */
    "batchnorm\nappend 0.5\ndense 7 project=unit\nrmsnorm\n"
    "residual {\nlayernorm affine=no\ndense 7\nsilu\n}\n"
    "lerp init=0.4 scale=0.5 {\ndense 7 bias=no project=unit\nscaler init=0.5 "
    "scale=2\nmish\nl2norm\n}\n"
    "relu shift=0.1\ndense 7\ntanh\ngelu\nelu\nlayernorm\ndense 11 project=unit-kernel\n"
    "loss ce min=-3 max=4\n";

static const char EVERY_KIND_ACTOR[] =
    "l2norm\ndense 6\nresidual {\nbatchnorm\nelu\ndense 6 bias=no\n}\nlerp init=0.3 {\ngelu\n}\n"
    "append 1\nscaler scale=0.5\ndense 6\npolicy tanh-gaussian log-std=clip\n";

static const char QUANTILES_CRITIC[] =
    "dense 7\nrelu\nresidual {\nlayernorm\ndense 7\n}\ndense 11\nloss quantile kappa=0.7\n";

static const char QUANTILES_ACTOR[] =
    "dense 6\nrelu\ndense 6\npolicy tanh-gaussian log-std=squash min=-1 max=1\n";

static const char RENORM_CRITIC[] = "batchrenorm\ndense 7\nrelu\nbatchrenorm\ndense 1\nloss mse\n";

static const char RENORM_ACTOR[] =
    "batchrenorm\ndense 6\nrelu\nbatchrenorm\ndense 6\npolicy tanh-gaussian log-std=clip\n";

static void copy_descriptions(const char *critic_text, const char *actor_text, char **critic,
                              char **actor)
{
    assert_ok(ks_copy_string(critic_text, critic));
    assert_ok(ks_copy_string(actor_text, actor));
}

void describe_small(const char *name, char **critic, char **actor)
{
    struct ks_settings settings;
    char *text[KS_TEXTS];

    if (strcmp(name, EVERY_KIND) == 0) {
        copy_descriptions(EVERY_KIND_CRITIC, EVERY_KIND_ACTOR, critic, actor);
        return;
    }
    if (strcmp(name, QUANTILES) == 0) {
        copy_descriptions(QUANTILES_CRITIC, QUANTILES_ACTOR, critic, actor);
        return;
    }
    if (strcmp(name, RENORM) == 0) {
        copy_descriptions(RENORM_CRITIC, RENORM_ACTOR, critic, actor);
        return;
    }
    ks_settings_defaults(&settings);
    settings.hidden = 7;
    settings.actor_hidden = 6;
    settings.depth = settings.actor_depth = 2;
    settings.atoms = 11;
    settings.v_min = -3;
    settings.v_max = 4;
    if (strcmp(name, SKIPS) == 0) {
        settings.skip = 1;
        settings.depth = settings.actor_depth = 3;
        name = "bn+wn+ce";
    }
    assert_ok(ks_architecture(name, &settings, ACTIONS, text));
    *critic = text[KS_CRITIC_TEXT];
    *actor = text[KS_ACTOR_TEXT];
}

struct ks_agent_config small_config(const char *critic, const char *actor)
{
    return (struct ks_agent_config){.critic = critic,
                                    .actor = actor,
                                    .observations = OBSERVATIONS,
                                    .actions = ACTIONS,
                                    .ensemble = 2,
                                    .batch = BATCH,
                                    .gamma = 0.9,
                                    .tau = 0.1,
                                    .critic_rate = {1e-3, 1e-4, 100},
                                    .actor_rate = {1e-3, 1e-4, 100},
                                    .beta1 = 0.9,
                                    .temperature_beta1 = 0.9,
                                    .policy_delay = 3,
                                    .temperature = 0.2,
                                    .target_entropy = -1.5,
                                    .seed = SEED,
                                    .threads = 1};
}

struct ks_agent_config named_config(const char *name)
{
    static char *critic, *actor;

    free(critic);
    free(actor);
    describe_small(name, &critic, &actor);
    return small_config(critic, actor);
}

struct KS(agent) *agent_of(const struct ks_agent_config *config)
{
    static struct KS(agent) *kept[16];
    static size_t turn;

    turn = (turn + 1) % (sizeof kept / sizeof *kept);
    KS(agent_free)(kept[turn]);
    kept[turn] = NULL;
    assert_ok(KS(agent_new)(config, &kept[turn]));
    return kept[turn];
}

struct KS(agent) *make_agent_of(const char *name, int threads)
{
    struct ks_agent_config config = named_config(name);

    config.threads = threads;
    return agent_of(&config);
}

struct KS(agent) *make_agent(const char *name)
{
    return make_agent_of(name, 1);
}

struct ks_batch draw_transitions(uint64_t seed)
{
    static float s[BATCH * OBSERVATIONS], a[BATCH * ACTIONS], next_s[BATCH * OBSERVATIONS];
    static float mask[BATCH];
    static double reward[BATCH];
    struct ks_rng rng = ks_rng_start(seed, 99);

    for (size_t i = 0; i < BATCH * OBSERVATIONS; i++) {
        s[i] = (float)(1 + 2 * ks_rng_normal(&rng));
        next_s[i] = (float)(1 + 2 * ks_rng_normal(&rng));
    }
    for (size_t i = 0; i < BATCH * ACTIONS; i++)
        a[i] = (float)ks_rng_uniform(&rng, -1, 1);
    for (size_t i = 0; i < BATCH; i++) {
        reward[i] = ks_rng_normal(&rng);
        mask[i] = i % 3 != 1;
    }
    return (struct ks_batch){s, a, next_s, reward, mask};
}

void shake(size_t n, uint64_t seed, double *w)
{
    struct ks_rng rng = ks_rng_start(seed, 5);

    for (size_t i = 0; i < n; i++)
        w[i] += 0.1 * ks_rng_normal(&rng);
}

void shake_all(struct KS(agent) *a)
{
    for (size_t e = 0; e < 2; e++) {
        struct KS(trained) *c = &a->critic[e];

        shake(a->critic_arch->parameters, 1 + e, c->w);
        shake(a->critic_arch->parameters, 3 + e, c->target);
        for (size_t i = 0; i < a->critic_arch->states; i++)
            c->state[i] = fabs(c->state[i] + 0.1 * (double)(i % 5));
    }
    shake(a->actor_arch->parameters, 9, a->actor.w);
}

double *forward(const struct network *network, size_t rows, const double *x)
{
    const struct KS(arch) *arch = network->arch;
    struct KS(net) *net;
    double *primal, *moved = hold(calloc(arch->states + 1, sizeof *moved));
    double *y = hold(calloc(rows * arch->out, sizeof *y));

    assert_ok(KS(net_new)(arch, rows, rows, network->evaluation, &net));
    primal = hold(calloc(net->primal, sizeof *primal));
    if (network->state)
        memcpy(moved, network->state, arch->states * sizeof *moved);
    KS(net_forward)(net, network->w, moved, x, primal);
    memcpy(y, KS(net_output)(net, primal), rows * arch->out * sizeof *y);
    KS(net_free)(net);
    return y;
}

double *copy(size_t n, const double *from)
{
    double *to = hold(calloc(n + 1, sizeof *to));

    memcpy(to, from, n * sizeof *to);
    return to;
}

struct before remember(const struct KS(agent) *a)
{
    struct before b;

    for (size_t e = 0; e < 2; e++) {
        b.critic[e] = copy(a->critic_arch->parameters, a->critic[e].w);
        b.target[e] = copy(a->critic_arch->parameters, a->critic[e].target);
        b.critic_state[e] = copy(a->critic_arch->states, a->critic[e].state);
    }
    b.actor = copy(a->actor_arch->parameters, a->actor.w);
    b.actor_state = copy(a->actor_arch->states, a->actor.state);
    return b;
}

struct ks_batch last;

struct ks_update update_with(struct KS(agent) *a, uint64_t seed)
{
    struct ks_update u;

    last = draw_transitions(seed);
    assert_ok(KS(agent_update)(a, &last, &u));
    return u;
}

struct ks_update update(struct KS(agent) *a)
{
    return update_with(a, 1);
}

double *actor_outputs(const struct KS(agent) *a, size_t rows, const double *s)
{
    const struct network actor = {a->actor_arch, a->actor.w, a->actor.state, .evaluation = true};

    return forward(&actor, rows, s);
}

struct metrics metrics_of(struct KS(agent) *a)
{
    struct metrics m;

    assert_true(KS(agent_most_metrics)(a) <= MOST_METRICS);
    assert_ok(KS(agent_metrics)(a, a->updates > 0 ? &last : NULL, m.list, &m.n));
    assert_true(m.n <= KS(agent_most_metrics)(a));
    return m;
}

double value(const struct metrics *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->list[i].name, name) == 0)
            return m->list[i].value;
    fail_msg("no '%s'", name);
    return 0;
}
