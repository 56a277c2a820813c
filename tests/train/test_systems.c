/* Systems: their files, and the parts of training that only they use. Their whole updates are
 * compared with PyTorch's by tests/peer/update.sh. */
#include <glob.h>

#include "agents.h"
#include "scratch.h"

#include "train/architecture.h"

/* --- files --- */

enum { DOG = 223, DOG_ACTIONS = 38 };

/* The systems in configs/systems: the parameters of one critic and of the actor for dog-trot (223
 * observations, 38 actions), as counted in their authors' code (simba-v2-small: by hand).
 * `embedding`: what the actor sees in place of observations, and `shared` the critics, besides the
 * action if there are images; 0: the same. */
static const struct {
    const char *name;
    size_t critic, actor, embedding, shared;
} systems[] = {{"brc", 17549413, 209996, 0, 0},
               {"brc-xqc", 17549413, 209996, 0, 0},
               {"bro", 1241188, 209996, 0, 0},
               {"crossq-wn", 399883, 144138, 0, 0},
               {"drqv2", 1141761, 3100924, 39200, 50 + DOG_ACTIONS},
               {"drqv2-small", 88833, 1068764, 19600, 50 + DOG_ACTIONS},
               {"mrq", 788481, 544806, 512, 512},
               {"sac", 133121, 142668, 0, 0},
               {"simba", 4337153, 170700, 0, 0},
               {"simba-v2", 4648549, 203340, 0, 0},
               {"simba-v2-small", 326629, 20172, 0, 0},
               {"xqc-pixels", 3347733, 5204320, 39200, 50 + DOG_ACTIONS},
               {"xqc-pixels-small", 247317, 1201472, 19600, 50 + DOG_ACTIONS}};
enum { SYSTEMS = sizeof systems / sizeof systems[0] };

static size_t parameters(const char *text, size_t in)
{
    struct KS(arch) *arch;
    size_t n;

    assert_ok(KS(arch_parse)(text, "test", in, &arch));
    n = arch->parameters;
    KS(arch_free)(arch);
    return n;
}

TEST(test_shipped)
{
    glob_t found;

    assert_int_equal(glob("configs/systems/*.system", 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, SYSTEMS);
    globfree(&found);
    for (size_t i = 0; i < SYSTEMS; i++) {
        const size_t in = systems[i].embedding;
        struct ks_settings settings;
        char *path, *text[KS_TEXTS];

        assert_ok(ks_system_find(systems[i].name, &path));
        assert_non_null(path);
        ks_settings_defaults(&settings);
        assert_ok(ks_system_settings(path, &settings));
        assert_ok(ks_settings_check(&settings));
        assert_ok(ks_architecture(systems[i].name, &settings, DOG_ACTIONS, text));
        assert_int_equal(
            parameters(text[KS_CRITIC_TEXT], in > 0 ? systems[i].shared : DOG + DOG_ACTIONS),
            systems[i].critic);
        assert_int_equal(parameters(text[KS_ACTOR_TEXT], in > 0 ? in : DOG), systems[i].actor);
        free(path), ks_texts_free(text);
    }
}

/* brc as the XQC paper runs it differs in two settings alone. */
TEST(test_brc_of_the_paper)
{
    struct ks_settings own, xqc;

    ks_settings_defaults(&own);
    ks_settings_defaults(&xqc);
    assert_ok(ks_system_settings("configs/systems/brc.system", &own));
    assert_ok(ks_system_settings("configs/systems/brc-xqc.system", &xqc));
    assert_int_equal(own.batch, 256);
    assert_int_equal(own.action_repeat, 1);
    assert_int_equal(xqc.batch, 1024);
    assert_int_equal(xqc.action_repeat, 2);
    for (const struct ks_key *key = ks_keys; key->name; key++) {
        char a[KS_VALUE_LENGTH], b[KS_VALUE_LENGTH];

        ks_key_print(key, &own, a);
        ks_key_print(key, &xqc, b);
        if (strcmp(key->name, "batch") != 0 && strcmp(key->name, "action_repeat") != 0)
            assert_string_equal(a, b);
    }
}

TEST(test_own)
{
    struct ks_settings settings;
    char *path, *text[KS_TEXTS];

    write_text("c.arch", "dense 4\nrelu\ndense 1\nloss mse\n");
    write_text("a.arch", "dense 4\ndense 2A\npolicy tanh-gaussian log-std=squash\n");
    write_text("own.system", "[system]\ncritic = c.arch\nactor=a.arch\n[train]\nutd = 5\n");
    ks_settings_defaults(&settings);
    assert_ok(ks_system_find(scratch("own.system"), &path));
    assert_ok(ks_system_settings(path, &settings));
    assert_int_equal(settings.utd, 5);
    assert_ok(ks_architecture(path, &settings, 3, text));
    assert_string_equal(text[KS_CRITIC_TEXT], "dense 4\nrelu\ndense 1\nloss mse\n");
    assert_string_equal(text[KS_ACTOR_TEXT],
                        "dense 4\ndense 6\npolicy tanh-gaussian log-std=squash\n");
    ks_texts_free(text);
    settings.hidden = 64;
    assert_fails(ks_architecture(path, &settings, 3, text), KS_USAGE, "hidden, depth");
    settings.hidden = 512, settings.actor_depth = 1;
    assert_fails(ks_architecture(path, &settings, 3, text), KS_USAGE,
                 "actor_hidden, actor_depth and skip do not apply to a system");
    free(path);
    assert_ok(ks_system_find("bn+wn+ce", &path));
    assert_null(path);
    assert_ok(ks_system_find("../systems/sac", &path));
    assert_null(path);
}

TEST(test_refusals)
{
    static const char TWO[] = "[system]\ncritic = c.arch\nactor = a.arch\n";
    static const struct {
        const char *head, *text, *words;
        ks_status status;
    } files[] = {
        {"", "[system]\ncritic = c.arch\n", "bad.system: expected actor in [system], found none",
         KS_FORMAT},
        {"", "[system]\nactor = c.arch\n", "expected critic in [system], found none", KS_FORMAT},
        {TWO, "critic = d.arch\n", "[system] critic: expected one file, found two", KS_FORMAT},
        {TWO, "other = 1\n", "[system] other: expected critic, actor, optimist, enc", KS_FORMAT},
        {TWO, "encoder_pair = p.arch\n", "expected encoder_state in [system], found none",
         KS_FORMAT},
        {TWO, "trunk = t.arch\n", "expected image in [system], found none", KS_FORMAT},
        {TWO, "trunk = t.arch\nimage = i.arch\nencoder_pair = p.arch\n",
         "expected an encoder, or image and trunk, found both", KS_FORMAT},
        {TWO, "[run]\nutd = 1\n", "[run] utd: expected [system] or [train]", KS_FORMAT},
        {TWO, "[train]\nutd = 0\n", "[train] utd: utd: expected an integer from 1", KS_USAGE},
        {TWO, "[train]\nno = 0\n", "[train] no: unknown setting 'no'", KS_USAGE},
        {TWO, "nonsense\n", "bad.system:4: expected a section", KS_FORMAT},
    };
    char file[256], *text[KS_TEXTS] = {NULL};
    struct ks_settings settings;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(file, sizeof file, "%s%s", files[i].head, files[i].text);
        write_text("bad.system", file);
        ks_settings_defaults(&settings);
        assert_fails(ks_system_settings(scratch("bad.system"), &settings), files[i].status,
                     files[i].words);
    }
    write_text("c.arch", "dense 1\nloss mse\n");
    write_text("a.arch", "dense 4\npolicy tanh-gaussian\n");
    write_text("bad.system", TWO);
    assert_fails(ks_system_describe(scratch("bad.system"), 2, text), KS_FORMAT,
                 "a.arch: expected one line 'dense 2A', found none");
    ks_texts_free(text);
}

static void describe(const char *name, char *text[KS_TEXTS])
{
    struct ks_settings settings;

    ks_settings_defaults(&settings);
    assert_ok(ks_architecture(name, &settings, 38, text));
}

/* BRO's optimistic actor, which sees the observation and the actor's means: 209,920 parameters. */
TEST(test_optimist_of_system)
{
    char *text[KS_TEXTS];

    describe("bro", text);
    assert_int_equal(parameters(text[KS_OPTIMIST_TEXT], 223 + 38), 209920);
    ks_texts_free(text);
    describe("sac", text);
    assert_null(text[KS_OPTIMIST_TEXT]);
    ks_texts_free(text);
    describe("bn+wn+ce", text);
    assert_null(text[KS_OPTIMIST_TEXT]);
    ks_texts_free(text);
    write_text("c.arch", "dense 1\nloss mse\n");
    write_text("a.arch", "dense 2A\npolicy tanh-gaussian\n");
    write_text("o.arch", "dense 4\npolicy shift\n");
    write_text("own.system", "[system]\ncritic = c.arch\nactor = a.arch\noptimist = o.arch\n");
    assert_fails(ks_system_describe(scratch("own.system"), 2, text), KS_FORMAT,
                 "o.arch: expected one line 'dense A', found none");
    ks_texts_free(text);
}

/* MR.Q's encoder: 640,000 + 9,984 + 919,040 + 296,514 parameters; whole agent 3,987,306. */
TEST(test_encoder_of_system)
{
    static const size_t in[KS_MODULES] = {223, 38, 512 + 256, 512},
                        expected[KS_MODULES] = {640000, 9984, 919040, 296514};
    char *text[KS_TEXTS];
    struct ks_widths widths;

    describe("mrq", text);
    for (size_t k = 0; k < KS_MODULES; k++)
        assert_int_equal(parameters(text[KS_ENCODER_TEXT + k], in[k]), expected[k]);
    assert_ok(ks_architecture_widths(text, 223, 38, &widths));
    assert_true(widths.critic == 512 && widths.actor == 512 && widths.encoder == 1865538);
    ks_texts_free(text);
    describe("sac", text);
    assert_null(text[KS_ENCODER_TEXT]);
    assert_ok(ks_architecture_widths(text, 223, 38, &widths));
    assert_true(widths.critic == 261 && widths.actor == 223 && widths.encoder == 0);
    ks_texts_free(text);
    describe("bn+wn+ce", text);
    assert_null(text[KS_ENCODER_TEXT]);
    ks_texts_free(text);
}

/* --- the order of an update --- */

/* Arrays lie at other addresses, so BLAS adds in another order. */
static const double ROUNDING = 1e-13;

/* The critics of one architecture with the actor of another. */
struct pair {
    const char *critic, *actor;
};

static struct KS(agent) *make(struct pair names, enum ks_order order, double critic_rate,
                              double tau)
{
    char *critic, *actor, *unused[2];
    struct ks_agent_config config;
    struct KS(agent) *agent;

    describe_small(names.critic, &critic, &unused[0]);
    describe_small(names.actor, &unused[1], &actor);
    free(unused[0]), free(unused[1]);
    config = small_config(critic, actor);
    config.order = order;
    config.critic_rate = (struct ks_rate){critic_rate, critic_rate, 1};
    config.tau = tau;
    agent = agent_of(&config);
    shake_all(agent);
    free(critic), free(actor);
    return agent;
}

/* The actor steps by the critics as they were, and these by targets of the actor as it is then. No
 * critic here has a batchnorm or projected columns, which would move before the actor's step. */
static void check_order(struct pair name)
{
    struct KS(agent) *a = make(name, KS_ACTOR_FIRST, 1e-3, 0.1);
    struct KS(agent) *still = make(name, KS_CRITICS_FIRST, 0, 0);
    struct KS(agent) *after = make(name, KS_CRITICS_FIRST, 1e-3, 0.1);
    const size_t n = a->actor_arch->parameters, m = a->critic_arch->parameters;
    struct ks_batch batch = draw_transitions(1);
    struct ks_update u, v;

    assert_ok(KS(agent_update)(a, &batch, &u));
    assert_ok(KS(agent_update)(still, &batch, &v));
    assert_true(u.actor_stepped);
    assert_true(relative_error(n, a->actor.w, still->actor.w) < ROUNDING);
    assert_close(u.actor_loss, v.actor_loss, ROUNDING);
    assert_close(a->log_temperature, still->log_temperature, ROUNDING);

    memcpy(after->actor.w, a->actor.w, n * sizeof *a->actor.w);
    memcpy(after->actor.state, a->actor.state, a->actor_arch->states * sizeof *a->actor.state);
    after->log_temperature = a->log_temperature;
    assert_ok(KS(agent_update)(after, &batch, &v));
    assert_true(relative_error(m, a->critic[1].w, after->critic[1].w) < ROUNDING);
    assert_true(relative_error(m, a->critic[1].target, after->critic[1].target) < ROUNDING);
    assert_close(u.critic_loss, v.critic_loss, ROUNDING);

    /* Between its steps only a batchnorm's running statistics move, as in an update of `after`. */
    assert_ok(KS(agent_update)(a, &batch, &u));
    assert_false(u.actor_stepped);
    assert_true(relative_error(n, a->actor.w, still->actor.w) < ROUNDING);
    if (a->actor_arch->joint)
        assert_true(relative_error(a->actor_arch->states, a->actor.state, after->actor.state) <
                    ROUNDING);
}

TEST(test_order)
{
    check_order((struct pair){"ln+ce", "bn+wn+ce"});
    check_order((struct pair){"dense+mse", "ln+mse"});
}

/* --- observations and rewards --- */

/* Mean and variance of k observations together with 1e-4 of mean 0 and variance 1. */
TEST(test_normalizer)
{
    enum { N = 3, K = 500 };
    const double prior = 1e-4, size[N] = {1, 1e-3, 200};
    struct ks_rng rng = ks_rng_start(1, 2);
    KS_OWNED_BY(ks_normalizer_free) struct ks_normalizer *s = NULL;
    static float x[K][N];

    assert_ok(ks_normalizer_new(N, &s));
    x[0][0] = 2;
    assert_close(ks_normalizer_see(s, x[0])[0], 2 / sqrt(1 + 1e-8), 1e-6);
    for (size_t k = 0; k < K; k++) {
        for (size_t i = 0; i < N; i++)
            x[k][i] = (float)(size[i] * (3 + ks_rng_normal(&rng)));
        ks_normalizer_add(s, x[k]);
    }
    for (size_t i = 0; i < N; i++) {
        double sum = 0, mean, squares;

        for (size_t k = 0; k < K; k++)
            sum += (double)x[k][i];
        mean = sum / (K + prior);
        squares = prior * (1 + mean * mean);
        for (size_t k = 0; k < K; k++)
            squares += ((double)x[k][i] - mean) * ((double)x[k][i] - mean);
        assert_close(s->mean[i], mean, 1e-12 * size[i]);
        assert_close(s->var[i], squares / (K + prior), 1e-11 * size[i] * size[i]);
        assert_close(ks_normalizer_see(s, x[7])[i],
                     ((double)x[7][i] - mean) / sqrt(squares / (K + prior) + 1e-8), 1e-6);
    }
    ks_normalizer_apply(NULL, K, x[0]); /* stays as it is */
    assert_ptr_equal(ks_normalizer_see(NULL, x[3]), x[3]);
}

/* The divisor max(sqrt(Var G + 1e-8), max |G| / 5), with the variance that includes the prior. */
TEST(test_bounded_rewards)
{
    enum { K = 300 };
    const enum ks_reward_scale bounded = KS_SCALE_BOUNDED;
    const double prior = 1e-4, gamma = 0.9;
    struct ks_rng rng = ks_rng_start(3, 2);

    assert_string_equal(ks_reward_scalings[KS_SCALE_BOUNDED], "bounded");
    for (size_t spike = 0; spike < 2; spike++) {
        struct ks_returns returns = {.g = 0};
        double all[K], g = 0, sum = 0, squares, largest = 0;

        for (size_t k = 0; k < K; k++) {
            double reward = spike && k == 40 ? -300 : ks_rng_uniform(&rng, -1, 1);
            bool done = k % 70 == 69;

            g = (done ? 0 : gamma * g) + reward;
            all[k] = g;
            sum += g;
            largest = fmax(largest, fabs(g));
            ks_returns_add(&returns, bounded, gamma, reward, done);
        }
        squares = prior * (1 + sum / (K + prior) * sum / (K + prior));
        for (size_t k = 0; k < K; k++)
            squares += (all[k] - sum / (K + prior)) * (all[k] - sum / (K + prior));
        squares = sqrt(squares / (K + prior) + 1e-8);
        assert_int_equal(largest / 5 > squares, spike); /* both kinds are tested */
        assert_close(ks_returns_divisor(&returns, bounded, 0), fmax(squares, largest / 5), 1e-9);
    }
}

/* The divisor (max |G| - bonus / 2) / 10, where G is the return from any step of an ended episode.
 */
TEST(test_range_of_rewards)
{
    /* Rewards 1, -4, 2: returns -0.5, -3, 2 if the last state is terminal. After a time limit the
     * mean reward -1/3 goes on for ever: its return is -2/3 with gamma 1/2. */
    static const float rewards[] = {1, -4, 2};
    const enum ks_reward_scale range = KS_SCALE_RANGE;
    struct ks_returns returns = {.largest_return_to_go = 0};
    KS_OWNED_BY(ks_replay_free) struct ks_replay *replay = NULL;
    float x = 0;

    assert_string_equal(ks_reward_scalings[KS_SCALE_RANGE], "range");
    assert_ok(ks_replay_new(5, 1, 1, &replay));
    assert_close(ks_returns_divisor(&returns, range, -3), 0.15, 1e-15);
    assert_close(ks_returns_divisor(&returns, range, 3), 1e-8, 0);
    for (size_t episode = 0; episode < 2; episode++) { /* the second overwrites the first */
        for (size_t k = 0; k < 3; k++)
            assert_ok(ks_replay_add(
                replay, &(struct ks_transition){&x, &x, &x, rewards[k], 1, .last = k == 2}));
        ks_returns_end_episode(&returns, replay, 0.5, episode > 0);
        assert_close(returns.largest_return_to_go, episode > 0 ? 4 - (2 - 1.0 / 3) / 2 : 3, 1e-15);
        assert_close(ks_returns_divisor(&returns, range, -2),
                     (returns.largest_return_to_go + 1) / 10, 1e-15);
    }
}

/* The divisor is the mean |reward| in replay when it was last measured, and 1 before. */
TEST(test_magnitude_of_rewards)
{
    const enum ks_reward_scale magnitude = KS_SCALE_MAGNITUDE;
    struct ks_returns returns = {.magnitude = 0};
    struct ks_replay *replay;
    float x = 0;

    assert_string_equal(ks_reward_scalings[KS_SCALE_MAGNITUDE], "magnitude");
    assert_ok(ks_replay_new(3, 1, 1, &replay));
    assert_close(ks_returns_divisor(&returns, magnitude, 1), 1, 0);
    for (size_t k = 0; k < 5; k++) { /* the last three rewards: 2, -3, 4 */
        const float reward = (float)k * (k % 2 ? -1 : 1);

        assert_ok(
            ks_replay_add(replay, &(struct ks_transition){&x, &x, &x, reward, 1, .last = false}));
        if (k == 0) {
            ks_returns_refresh(&returns, replay);
            assert_close(ks_returns_divisor(&returns, magnitude, 1), 1e-8, 0);
        }
    }
    assert_close(ks_returns_divisor(&returns, magnitude, 1), 1e-8, 0);
    ks_returns_refresh(&returns, replay);
    assert_close(ks_returns_divisor(&returns, magnitude, 1), 3, 1e-15);
    ks_replay_free(replay);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
