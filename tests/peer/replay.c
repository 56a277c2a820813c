/* Replays recorded episodes of dm_control and compares every observation and reward.
 *
 * Usage: replay FILE...          prints a line a file; exit status 1 beyond the bound
 *        replay                  prints the version of MuJoCo
 *
 * An episode is forced to its recorded start state, then steps with the recorded actions; nothing
 * is corrected on the way, so with the same libmujoco 1,000 steps of a chaotic system agree only if
 * every step does. The deviation of a value is |here - recorded| / max(1, |recorded|). */
#include <math.h>
#include <string.h>
#include <time.h>

#include "../trajectory.h"

static const double bound = 1e-9;

struct deviation {
    double largest, largest_reward;
    size_t values, differing; /* observations and rewards; those not equal in every bit */
    size_t control_steps;
    double seconds;
};

static void compare(struct deviation *d, size_t n, const double *here, const double *recorded,
                    double *largest)
{
    for (size_t i = 0; i < n; i++) {
        double off = fabs(here[i] - recorded[i]) / fmax(1, fabs(recorded[i]));
        if (!(off <= *largest)) /* a NaN counts */
            *largest = isnan(off) ? INFINITY : off;
        d->differing += memcmp(&here[i], &recorded[i], sizeof here[i]) != 0;
    }
    d->values += n;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ks_status replay_episode(struct ks_env *env, const struct trajectory *t, size_t episode,
                                double *observation, struct deviation *d)
{
    struct trajectory_row row = trajectory_row(t, episode, 0);

    KS_TRY(ks_env_force(env, row.qpos, row.qvel, row.act, observation));
    compare(d, t->observations, observation, row.observation, &d->largest);
    for (size_t step = 1; step <= t->steps; step++) {
        double reward, started = now();
        bool ended;
        row = trajectory_row(t, episode, step);
        KS_TRY(ks_env_step(env, row.action, observation, &reward, &ended));
        d->seconds += now() - started;
        d->control_steps++;
        compare(d, t->observations, observation, row.observation, &d->largest);
        compare(d, 1, &reward, &row.reward, &d->largest_reward);
        if (ended != (step == ks_env_steps(env)))
            return ks_fail(KS_RUN, "%s: ended after step %zu: %s", t->task, step,
                           ks_env_divergence(env));
    }
    return KS_OK;
}

static ks_status replay(const char *path, struct deviation *d)
{
    ks_status status = KS_OK;
    struct trajectory t;
    struct ks_env *env = NULL;
    double *observation = NULL;

    KS_GO(trajectory_read(path, &t));
    if (strcmp(t.mujoco, ks_env_mujoco_version()) != 0) {
        status = ks_fail(KS_FORMAT, "%s: recorded with MuJoCo %s, this is %s", path, t.mujoco,
                         ks_env_mujoco_version());
        goto done;
    }
    KS_GO(ks_env_new(t.task, NULL, &env));
    if (t.observations != ks_env_observations(env) || t.nu != ks_env_actions(env)) {
        status = ks_fail(
            KS_FORMAT, "%s: %s has %zu observations and %zu actions, the record %zu, %zu", path,
            t.task, ks_env_observations(env), ks_env_actions(env), t.observations, t.nu);
        goto done;
    }
    KS_GO(ks_alloc(t.observations, sizeof *observation, &observation));
    for (size_t episode = 0; episode < t.episodes; episode++)
        KS_GO(replay_episode(env, &t, episode, observation, d));
    printf("%-10s MuJoCo %s, %zu episodes of %zu steps: %zu values, %zu differ; largest relative "
           "deviation %.3g (observations), %.3g (rewards); %.3f ms a control step\n",
           t.task, t.mujoco, t.episodes, t.steps, d->values, d->differing, d->largest,
           d->largest_reward, 1e3 * d->seconds / (double)d->control_steps);
done:
    free(observation);
    ks_env_free(env);
    free(t.rows);
    return status;
}

int main(int argc, char **argv)
{
    int exit_status = 0;

    if (argc == 1)
        puts(ks_env_mujoco_version());
    for (int i = 1; i < argc; i++) {
        struct deviation d = {.largest = 0};
        ks_status status = replay(argv[i], &d);
        if (status != KS_OK) {
            fprintf(stderr, "replay: %s\n", ks_error_text());
            return ks_exit_status(status);
        }
        if (!(d.largest <= bound && d.largest_reward <= bound)) {
            fprintf(stderr, "replay: %s: beyond the bound of %g\n", argv[i], bound);
            exit_status = 1;
        }
    }
    return exit_status;
}
