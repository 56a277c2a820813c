/* True terminal states: how a step reports them, what replay and evaluations make of them, and the
 * values that critics learn. On a task with known values: a chain of states, of which each gives
 * the reward 1, whatever the action. It steps cartpole's model, which no reward depends on. */

#include "runs.h"

#include "core/memory.h"
#include "env/domain.h"
#include "net/net.h"
#include "train/learner.h"

static const double GAMMA = 0.9;
enum { WIDTH = 5, LENGTH = 3 }; /* of an observation; control steps to the terminal state */

static struct ks_env_domain chain_domain;
static struct ks_env_task chain_task;
static size_t terminal_after;

/* The number of control steps, one-hot. */
static double *observe(const struct ks_env *env, double *out)
{
    for (size_t i = 0; i < WIDTH; i++)
        *out++ = i == (env->step < WIDTH ? env->step : WIDTH - 1);
    return out;
}

static double reward(const struct ks_env *env)
{
    (void)env;
    return 1;
}

static bool terminal(const struct ks_env *env)
{
    return env->step >= terminal_after;
}

static void become_chain(struct ks_env *env, size_t length)
{
    assert_int_equal(env->task->observations, WIDTH);
    terminal_after = length;
    chain_domain = *env->task->domain;
    chain_domain.observe = observe;
    chain_domain.reward = reward;
    chain_domain.terminal = terminal;
    chain_task = *env->task;
    chain_task.domain = &chain_domain;
    env->task = &chain_task;
}

/* --- the environment --- */

/* Steps until the episode ends; returns the number of steps. */
static size_t play(struct ks_env *env, enum ks_env_end *end)
{
    double observation[WIDTH], action = 0, reward = 0;
    size_t n = 0;

    for (*end = KS_ENV_GOES_ON; *end == KS_ENV_GOES_ON; n++)
        assert_ok(ks_env_step(env, &action, observation, &reward, end));
    return n;
}

TEST(test_ends)
{
    static const struct {
        size_t terminal, steps;
        enum ks_env_end end;
    } cases[] = {{LENGTH, LENGTH, KS_ENV_TERMINATED},
                 {1000, 1000, KS_ENV_TERMINATED}, /* before the time limit */
                 {1001, 1000, KS_ENV_TRUNCATED}};
    KS_OWNED_BY(ks_env_free) struct ks_env *env = NULL;
    double observation[WIDTH], bad = NAN, reward;
    enum ks_env_end end;

    assert_ok(ks_env_new("cartpole-balance", NULL, &env));
    become_chain(env, LENGTH);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        terminal_after = cases[i].terminal;
        assert_ok(ks_env_force(env, NULL, observation));
        assert_int_equal(play(env, &end), cases[i].steps);
        assert_int_equal(end, cases[i].end);
    }
    terminal_after = 1; /* the state after a divergence is none of the task's */
    assert_ok(ks_env_force(env, NULL, observation));
    assert_ok(ks_env_step(env, &bad, observation, &reward, &end));
    assert_int_equal(end, KS_ENV_TRUNCATED);
}

/* --- a run --- */

static struct ks_run *start(size_t action_repeat, size_t random_steps)
{
    struct ks_train_options *options = plan_run(
        "cartpole-balance", "dense+mse",
        "hidden=32 depth=1 actor_hidden=4 actor_depth=1 batch=64 utd=1 eval_episodes=2 gamma=0.9 "
        "reward_normalization=0 tau=0.05 critic_lr=0.003 temperature=1e-6");
    struct ks_run *run;

    options->settings.action_repeat = action_repeat;
    options->settings.random_steps = random_steps;
    assert_ok(ks_run_new(options, &run));
    become_chain(run->learner.player.env, LENGTH);
    run->evaluation.player.env->task = &chain_task;
    return begin_run(run);
}

/* An episode ends within an action's repetition; its last transition has mask 0. The next episode
 * begins at once. An evaluation stops there, too. */
TEST(test_transitions)
{
    enum { REPEAT = 2, EPISODES = 4, EACH = 2 };
    struct ks_run *run = start(REPEAT, EPISODES * EACH);

    for (size_t k = 0; k < EPISODES * EACH; k++)
        assert_ok(ks_learner_step(&run->learner, run->metrics));
    for (size_t k = 0; k < EPISODES * EACH; k++) {
        struct ks_transition t = ks_replay_get(run->learner.replay, k);
        bool last = k % EACH == EACH - 1;

        assert_true(t.s[last ? REPEAT : 0] == 1);
        assert_true(t.next_s[last ? LENGTH : REPEAT] == 1);
        assert_true(t.mask == (last ? 0 : 1));
        assert_true(t.last == last);
        assert_true(t.reward == (last ? LENGTH - REPEAT : REPEAT));
    }
    assert_ok(ks_evaluate(&run->evaluation, &run->learner, 1));
    assert_close(run->evaluation.return_mean, LENGTH, 0);
}

/* Q(s, a) of the first critic after that many steps of the chain. */
static double value_of(const struct KS(agent) *agent, const struct KS(net) *net, size_t step,
                       double action, real *primal)
{
    real input[WIDTH + 1] = {0};

    input[step] = 1;
    input[WIDTH] = (real)action;
    KS(net_forward)(net, agent->critic[0].w, NULL, input, primal);
    return (double)*KS(net_output)(net, primal);
}

/* The values are sums of the discounted rewards to come: 1, 1 + gamma, 1 + gamma + gamma^2. */
TEST(test_values)
{
    enum { STEPS = 3000, RANDOM_STEPS = 64 };
    struct ks_run *run = start(1, RANDOM_STEPS);
    struct KS(agent) *agent = run->learner.agent;
    struct KS(net) *net;
    double value = 0;
    real *primal;

    for (size_t k = 0; k < STEPS; k++)
        assert_ok(ks_learner_step(&run->learner, run->metrics));
    assert_ok(KS(net_new)(agent->critic_arch, 1, 1, true, &net));
    primal = hold(calloc(net->primal, sizeof *primal));
    for (size_t step = LENGTH; step-- > 0;) {
        value = 1 + GAMMA * value;
        for (double a = -0.9; a < 1; a += 0.9)
            assert_close(value_of(agent, net, step, a, primal), value, 0.02);
    }
    KS(net_free)(net);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
