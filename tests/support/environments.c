#include "environments.h"

struct ks_env *env;

double seen[WIDEST];

void take(const char *task)
{
    ks_env_free(env);
    env = NULL;
    assert_ok(ks_env_new(task, NULL, &env));
    assert_true(ks_env_observations(env) <= WIDEST);
}

int drop(void **state)
{
    ks_env_free(env);
    env = NULL;
    return 0;
}

double reward(const double *qpos, const double *qvel, const double *target)
{
    assert_ok(ks_env_force(
        env, &(struct ks_env_start){.qpos = qpos, .qvel = qvel, .target = target}, seen));
    return env->task->domain->reward(env);
}

double myo_step(double action, enum ks_env_end *end)
{
    double actions[MUSCLES], value;

    for (size_t i = 0; i < MUSCLES; i++)
        actions[i] = action;
    assert_ok(ks_env_step(env, actions, seen, &value, end));
    return value;
}

/* Numbers that were not recorded are NaN. */
static void check_deviation(size_t n, const double *here, const double *recorded)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(recorded[i]))
            assert_close(here[i], recorded[i], 1e-9 * fmax(1, fabs(recorded[i])));
}

static void check_forced(const struct trajectory *t, const struct trajectory_row *row)
{
    double value;

    assert_ok(ks_env_force(env, &row->state, seen));
    value = env->task->domain->reward(env);
    check_deviation(1, &value, &row->reward);
    check_deviation(t->observations, seen, row->observation);
}

/* Rows after a terminal state are NaN. */
static bool ends_here(const struct trajectory *t, size_t episode, size_t step)
{
    return step < t->steps && isnan(trajectory_row(t, episode, step + 1).reward);
}

void check_episodes(const struct trajectory *t)
{
    for (size_t episode = 0; episode < t->episodes; episode++) {
        struct trajectory_row row = trajectory_row(t, episode, 0);
        enum ks_env_end end = KS_ENV_GOES_ON;
        double value;

        check_forced(t, &row);
        for (size_t k = 1; k <= t->steps && end == KS_ENV_GOES_ON; k++) {
            row = trajectory_row(t, episode, k);
            assert_ok(ks_env_step(env, row.action, seen, &value, &end));
            check_deviation(t->observations, seen, row.observation);
            assert_close(value, row.reward, 1e-9);
            assert_int_equal(end == KS_ENV_TERMINATED, ends_here(t, episode, k));
        }
    }
}

void check_starts(const struct trajectory *t)
{
    for (size_t k = 0; k < t->starts; k++) {
        struct trajectory_row row = trajectory_start(t, k);
        struct ks_rng rng = ks_rng_start(t->seed, k);

        assert_ok(ks_env_reset(env, &rng, seen));
        check_deviation(t->nq, env->data->qpos, row.state.qpos);
        check_deviation(t->nv, env->data->qvel, row.state.qvel);
        check_deviation(t->target, env->episode, row.state.target);
        check_deviation(t->observations, seen, row.observation);
        row = trajectory_forced(t, k);
        check_forced(t, &row);
    }
}
