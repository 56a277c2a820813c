/* Checks of the current environment against recorded episodes and start states of its task. */
#ifndef KS_RECORDED_H
#define KS_RECORDED_H

#include "one_env.h"
#include "trajectory.h"

/* Numbers that were not recorded are NaN. */
static inline void check_deviation(size_t n, const double *here, const double *recorded)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(recorded[i]))
            assert_close(here[i], recorded[i], 1e-9 * fmax(1, fabs(recorded[i])));
}

static inline void check_forced(const struct trajectory *t, const struct trajectory_row *row)
{
    double value;

    assert_ok(ks_env_force(env, &row->state, seen));
    value = env->task->domain->reward(env);
    check_deviation(1, &value, &row->reward);
    check_deviation(t->observations, seen, row->observation);
}

/* Rows after a terminal state are NaN. */
static inline bool ends_here(const struct trajectory *t, size_t episode, size_t step)
{
    return step < t->steps && isnan(trajectory_row(t, episode, step + 1).reward);
}

static inline void check_episodes(const struct trajectory *t)
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

/* Draws start states, and forces the same ones with other velocities. */
static inline void check_starts(const struct trajectory *t)
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

#endif
