/* Environments: every task, most of them for an episode; saved states, divergence, and missing or
 * wrong models. For the dog itself see test_dog.c. */
#include <pthread.h>

#include "env/physics.h"
#include "h1.h"
#include "suites.h"

static void draw_action(const struct ks_env *env, struct ks_rng *rng, double *action)
{
    for (size_t i = 0; i < ks_env_actions(env); i++)
        action[i] = ks_rng_uniform(rng, -1, 1);
}

/* Rewards of dm_control lie in [0, 1]; an episode ends at its time limit or in a terminal state. */
static void check_step(const struct ks_env *env, size_t steps, double reward, enum ks_env_end end)
{
    const struct ks_env_domain *domain = env->task->domain;

    assert_true(domain->suite != &ks_env_dm_control || (reward >= 0 && reward <= 1));
    if (end == KS_ENV_TERMINATED)
        assert_true(domain->terminal && domain->terminal(env));
    else
        assert_int_equal(end, steps == ks_env_steps(env) ? KS_ENV_TRUNCATED : KS_ENV_GOES_ON);
}

/* Plays at most `steps` control steps of random actions, each held for two; returns the return. */
static double play(struct ks_env *env, uint64_t stream, size_t steps, double *observation)
{
    struct ks_rng rng = ks_rng_start(1, stream);
    double action[WIDEST], reward, sum = 0;
    enum ks_env_end end = KS_ENV_GOES_ON;

    assert_ok(ks_env_reset(env, &rng, observation));
    for (size_t i = 0; i < steps && end == KS_ENV_GOES_ON; i++) {
        if (i % 2 == 0)
            draw_action(env, &rng, action);
        assert_ok(ks_env_step(env, action, observation, &reward, &end));
        check_step(env, i + 1, reward, end);
        for (size_t k = 0; k < ks_env_observations(env); k++)
            assert_true(isfinite(observation[k]));
        sum += reward;
    }
    return sum;
}

/* Makes `steps` more control steps, or as many as there are up to a terminal state; sets the last
 * observation and returns the sum of rewards. */
static double step_on(struct ks_env *env, size_t steps, double *observation)
{
    struct ks_rng rng = ks_rng_start(9, 9);
    double action[WIDEST], reward, sum = 0;
    enum ks_env_end end = KS_ENV_GOES_ON;

    for (size_t i = 0; i < steps && end != KS_ENV_TERMINATED; i++) {
        draw_action(env, &rng, action);
        assert_ok(ks_env_step(env, action, observation, &reward, &end));
        sum += reward;
    }
    return sum;
}

/* Saves the state of `env` after `before` steps; restored in `other`, both continue equally. */
static void check_restored(struct ks_env *env, struct ks_env *other, size_t before)
{
    size_t size = ks_env_state_size(env), last;
    double here[WIDEST], there[WIDEST], *saved = NULL, sum;

    saved = hold(calloc(size, sizeof *saved));
    play(env, 6, before, here);
    ks_env_state_get(env, saved);
    sum = step_on(env, 60, here);
    last = env->step;
    assert_true(last == before + 60 || env->task->domain->terminal);
    play(other, 7, 5, there); /* a different state, with a different target */
    assert_ok(ks_env_state_set(other, size, saved, false));
    assert_true(step_on(other, 60, there) == sum);
    assert_memory_equal(here, there, ks_env_observations(env) * sizeof *here);
    assert_int_equal(other->step, last);
}

/* --- every task --- */

static void check_determinism(struct ks_env *env)
{
    double first[WIDEST], second[WIDEST];
    size_t bytes = ks_env_observations(env) * sizeof *first;

    assert_true(play(env, 1, 30, first) == play(env, 1, 30, second)); /* same seed, same bits */
    assert_memory_equal(first, second, bytes);
    play(env, 2, 30, second);
    assert_memory_not_equal(first, second, bytes);
}

TEST(test_every_task)
{
    struct ks_env_about about;

    for (size_t i = 0; ks_env_about(i, &about); i++) {
        double observation[WIDEST];
        struct ks_env *env = env_if_there(about.name);
        size_t steps = strcmp(about.suite, "myosuite") == 0 ? 100 : 1000, played;

        if (!env)
            continue;
        assert_int_equal(ks_env_observations(env), about.observations);
        assert_int_equal(ks_env_actions(env), about.actions);
        assert_true(about.observations <= WIDEST && about.actions <= WIDEST);
        assert_int_equal(ks_env_steps(env), steps);
        /* an episode of the dog takes seconds: one of its tasks will do */
        played = strncmp(about.name, "dog-", 4) == 0 && strcmp(about.name, "dog-trot") != 0 ? 50
                                                                                            : steps;
        play(env, 4, played, observation);
        assert_true(env->step == played || env->task->domain->terminal);
        assert_close(env->data->time, (double)env->step * about.control_step, 1e-9);
        check_determinism(env);
        check_restored(env, env, 5);
        assert_int_equal(ks_env_divergences(env), 0);
        assert_string_equal(ks_env_divergence(env), "");
        ks_env_free(env);
    }
}

struct player {
    struct ks_env *env;
    uint64_t stream;
    double observation[WIDEST];
};

static void *play_in_thread(void *argument)
{
    struct player *p = argument;

    play(p->env, p->stream, 100, p->observation);
    return NULL;
}

TEST(test_threads_do_not_meet)
{
    struct player players[2] = {{trot, .stream = 1}, {new_env("dog-trot"), .stream = 2}};
    pthread_t threads[2];
    double alone[WIDEST];

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play_in_thread, &players[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        play(trot, players[i].stream, 100, alone);
        assert_memory_equal(players[i].observation, alone, 223 * sizeof *alone);
    }
}

/* --- saved states --- */

TEST(test_restored_state_continues)
{
    struct ks_env *other = new_env("dog-trot");

    check_restored(trot, other, 0); /* right after the reset, and during contacts */
    check_restored(trot, other, 1);
    check_restored(trot, other, 120);
}

/* The saved state includes the last finite observation, which a divergence returns. */
TEST(test_restored_state_diverges)
{
    size_t size = ks_env_state_size(trot);
    double here[WIDEST], there[WIDEST], bad[38] = {NAN}, reward, *saved = NULL;
    enum ks_env_end end;

    saved = hold(calloc(size, sizeof *saved));
    play(trot, 6, 5, here);
    ks_env_state_get(trot, saved);
    play(trot, 7, 5, there);
    assert_ok(ks_env_state_set(trot, size, saved, false));
    assert_ok(ks_env_step(trot, bad, there, &reward, &end));
    assert_int_equal(end, KS_ENV_TRUNCATED);
    assert_memory_equal(here, there, 223 * sizeof *here);
}

TEST(test_states_that_do_not_fit)
{
    size_t size = ks_env_state_size(trot);
    double here[WIDEST], there[WIDEST], *saved = NULL;

    saved = hold(calloc(size, sizeof *saved));
    play(trot, 6, 3, here);
    ks_env_state_get(trot, saved);
    step_on(trot, 5, here);
    assert_ok(ks_env_state_set(trot, size, saved, false));
    assert_fails(ks_env_state_set(trot, size - 1, saved, false), KS_FORMAT, "saved state");
    for (size_t i = 0; i < 4; i++) { /* size, version, goal, step */
        double was = saved[i];
        saved[i] = i == 3 ? 1001 : was + 1;
        assert_fails(ks_env_state_set(trot, size, saved, false), KS_FORMAT, "dog-trot");
        saved[i] = was;
    }
    saved[size - 1] = NAN;
    assert_fails(ks_env_state_set(trot, size, saved, false), KS_FORMAT, "saved state");
    step_on(trot, 5, there); /* nothing has changed */
    assert_memory_equal(here, there, 223 * sizeof *here);
}

/* --- divergence --- */

/* The next step diverges: it ends the episode with the observation `previous`. */
static void check_divergence(const double *previous, const double *action, const char *words)
{
    size_t before = ks_env_divergences(trot);
    double observation[WIDEST], reward = -1;
    enum ks_env_end end;

    assert_ok(ks_env_step(trot, action, observation, &reward, &end));
    assert_int_equal(end, KS_ENV_TRUNCATED);
    assert_close(reward, 0, 0);
    assert_memory_equal(observation, previous, 223 * sizeof *previous);
    assert_int_equal(ks_env_divergences(trot), before + 1);
    assert_contains(ks_env_divergence(trot), "dog-trot: step 1: ");
    assert_contains(ks_env_divergence(trot), words);
}

TEST(test_divergence)
{
    const double action[38] = {0};
    double observation[WIDEST], bad_action[38] = {0}, qvel[79] = {0}, clean, after;

    clean = play(trot, 8, 20, observation);
    qvel[2] = 9e9; /* grows beyond the library's limit of 1e10 within the step */
    qvel[30] = -9e9;
    assert_ok(ks_env_force(trot, &(struct ks_env_start){.qvel = qvel}, observation));
    check_divergence(observation, action, "huge value in Q");
    assert_ok(ks_env_force(trot, NULL, observation));
    bad_action[7] = NAN;
    check_divergence(observation, bad_action, "CTRL");
    after = play(trot, 8, 20, observation); /* the divergence has no effect on the next episode */
    assert_true(clean == after);
}

static double no_number(const struct ks_env *env)
{
    (void)env;
    return NAN;
}

/* NaN and infinity, without a warning from MuJoCo. */
TEST(test_rewards_that_are_not_finite)
{
    const struct ks_env_task *task = trot->task;
    struct ks_env_domain domain = *task->domain;
    struct ks_env_task broken = *task;
    const double action[38] = {0};
    double observation[WIDEST];

    domain.reward = no_number;
    broken.domain = &domain;
    assert_ok(ks_env_force(trot, NULL, observation));
    trot->task = &broken;
    check_divergence(observation, action, "not finite");
    trot->task = task;
}

TEST(test_bad_start_state)
{
    double observation[WIDEST], qvel[79] = {0};

    qvel[40] = NAN;
    assert_fails(ks_env_force(trot, &(struct ks_env_start){.qvel = qvel}, observation), KS_NUMBER,
                 "dog-trot: reset");
    assert_ok(ks_env_force(trot, NULL, observation));
}

static void raise_error(void *argument)
{
    (void)argument;
    ks_mj.stateSize(trot->model, 1 << 30); /* an invalid flag */
}

TEST(test_library_errors_are_caught)
{
    assert_fails(ks_physics_guard(raise_error, NULL), KS_RUN,
                 "MuJoCo: mj_stateSize: invalid state");
}

/* --- models and options --- */

TEST(test_unknown_task)
{
    struct ks_env *env = trot;

    assert_fails(ks_env_new("dog-fly", NULL, &env), KS_USAGE, "unknown task 'dog-fly'");
    assert_null(env);
    assert_fails(ks_env_new("", NULL, &env), KS_USAGE, "dog-stand");
}

TEST(test_flags)
{
    struct ks_env_options options = {.nativeccd = 0, .multiccd = 1};
    struct ks_env *env = NULL;

    assert_ok(ks_env_new("dog-trot", &options, &env));
    assert_string_equal(ks_env_flags(env), "nativeccd=0 multiccd=1");
    ks_env_free(env);
    options.nativeccd = 2;
    assert_fails(ks_env_new("dog-trot", &options, &env), KS_USAGE, "nativeccd");
    options.nativeccd = 1;
    if (mjVERSION_HEADER < 323)
        assert_fails(ks_env_new("dog-trot", &options, &env), KS_USAGE, "does not have this flag");
}

static const char MODEL[] = "suite/dog.xml";

/* The scratch folder has the models in place of the installed ones, until the test ends; this is
 * the dog's. */
static void write_model(const char *text)
{
    set_variable("DM_CONTROL_DIR", scratch_folder);
    write_text(MODEL, text);
}

TEST(test_missing_models)
{
    struct ks_env *env = NULL;

    set_variable("DM_CONTROL_DIR", scratch_folder);
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_MISSING, scratch(MODEL));
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_MISSING, "make deps");
    assert_null(env);
}

TEST(test_malformed_model)
{
    struct ks_env *env = NULL;

    write_model("<mujoco><worldbody>");
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_FORMAT, scratch(MODEL));
    write_model("");
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_FORMAT, "not a well-formed XML");
    write_model("<mujoco/>");
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_FORMAT, "no body named 'ball'");
}

#define EDITED                                                                                     \
    "<worldbody><geom name='floor' type='plane' size='1 1 1'/><geom name='target' size='1'/>"      \
    "<body name='ball'><geom size='1'/><body name='in'><joint/><geom size='1'/></body></body>"     \
    "<camera name='ball'/><camera name='head'/><geom name='wall_px' size='1'/>"                    \
    "<geom name='wall_nx' size='1'/><geom name='wall_py' size='1'/>"                               \
    "<geom name='wall_ny' size='1'/></worldbody>"

/* An attribute of the floor that is far longer than the file, by entities. */
TEST(test_long_attribute)
{
    struct ks_env *env = NULL;

    write_model(text_of("<!DOCTYPE m [<!ENTITY e '%1000d'>]><mujoco><worldbody><geom name='floor' "
                        "material='&e;&e;&e;&e;&e;&e;'/></worldbody>" EDITED "</mujoco>",
                        1));
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_FORMAT,
                 "geom: expected attributes without");
}

/* A model whose meshes are missing; and a model with other sizes than the dog's. */
TEST(test_other_models)
{
    struct ks_env *env = NULL;

    write_model("<mujoco><asset><mesh file='BONEhead.stl'/></asset>" EDITED "</mujoco>");
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_MISSING, "BONEhead.stl");
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_MISSING, "make deps");
    write_model("<mujoco>" EDITED "</mujoco>");
    assert_fails(ks_env_new("dog-trot", NULL, &env), KS_FORMAT, "found 0, 0, 0, 0");
    assert_null(env);
}

/* Every allocation of ks_env_new fails once; AddressSanitizer checks for leaks. */
TEST(test_memory_runs_out)
{
    struct ks_env *env = NULL;
    struct starved s = {.least = 5};

    while (starving(&s)) {
        s.status = ks_env_new("dog-trot", NULL, &env);
        assert_true(s.status == KS_OK || !env);
    }
    ks_env_free(env);
    ks_env_free(NULL);
}

/* HumanoidBench's tasks have small models unless their own are there. */
static int set_up(void **state)
{
    return scratch_make(state) || make_dog(state) ||
           (!getenv("HUMANOID_BENCH_DIR") && small_h1_install());
}

static int tear_down(void **state)
{
    return free_dog(state) || scratch_remove(state);
}

CMFixtureFunction tests_setup = set_up, tests_teardown = tear_down;
