/* Replays recorded episodes of dm_control, Gymnasium or MyoSuite and compares every observation and
 * reward.
 *
 * Usage: replay FILE...          prints a row per file; exit status 1 if one exceeds the bound
 *        replay                  prints the version of MuJoCo
 *        replay --tasks SUITE    prints the names of the tasks of "dm_control", "gymnasium",
 * "myosuite"
 *
 * An episode is forced to its recorded start state and then steps with the recorded actions,
 * without corrections: with the same libmujoco, 1,000 steps of a chaotic system agree only if every
 * step does. It must end where the recorded one does, in the same way. Start states are drawn with
 * the same random numbers as in the other program, so they agree only if they are drawn in its
 * order and from its distributions. The same states are also compared with random velocities, since
 * random actions alone seldom earn rewards. Where tasks have a goal, these states also say whether
 * they are an end and whether they are a solution. The deviation of a value is
 * |here - recorded| / max(1, |recorded|). */
#include <time.h>

#include "suites.h"

static const double bound = 1e-9;

struct deviation {
    double observation, reward, start; /* largest deviations */
    size_t steps, values, differing;   /* steps; their values: all, and those whose bits differ */
    size_t scored;                     /* compared rewards that are not 0 */
    size_t terminal;                   /* episodes that ended in a terminal state */
    size_t solved;                     /* forced states that solve the task */
    double seconds;
};

static double larger(double largest, size_t n, const double *here, const double *recorded)
{
    for (size_t i = 0; i < n; i++) {
        double off = fabs(here[i] - recorded[i]) / fmax(1, fabs(recorded[i]));
        if (!(off <= largest)) /* true for NaN, too */
            largest = isnan(off) ? INFINITY : off;
    }
    return largest;
}

static size_t count_differing(size_t n, const double *here, const double *recorded)
{
    size_t differing = 0;

    for (size_t i = 0; i < n; i++)
        differing += memcmp(&here[i], &recorded[i], sizeof here[i]) != 0;
    return differing;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Compares a reward with the recorded one, if one was recorded. */
static void compare_reward(double reward, double recorded, struct deviation *d)
{
    if (isnan(recorded))
        return;
    d->reward = larger(d->reward, 1, &reward, &recorded);
    d->scored += recorded != 0;
}

static ks_status force(struct ks_env *env, const struct trajectory *t,
                       const struct trajectory_row *row, double *observation, struct deviation *d)
{
    KS_TRY(ks_env_force(env, &row->state, observation));
    d->observation = larger(d->observation, t->observations, observation, row->observation);
    compare_reward(env->task->domain->reward(env), row->reward, d);
    return KS_OK;
}

/* Compares what a forced state is with the two flags that stand in place of its action. */
static ks_status compare_goal(const struct ks_env *env, const struct trajectory_row *row,
                              struct deviation *d)
{
    bool ends = env->task->domain->terminal(env), solved = ks_env_solved(env);

    if (ends != (row->action[0] != 0) || solved != (row->action[1] != 0))
        return ks_fail(KS_RUN, "%s: a forced state: end %d, solved %d here, %g, %g recorded",
                       env->task->name, ends, solved, row->action[0], row->action[1]);
    d->solved += solved;
    return KS_OK;
}

/* How the recorded episode ends with `step`: rows after a terminal state are NaN. */
static enum ks_env_end recorded_end(const struct ks_env *env, const struct trajectory *t,
                                    size_t episode, size_t step)
{
    if (step < t->steps && isnan(trajectory_row(t, episode, step + 1).reward))
        return KS_ENV_TERMINATED;
    return step == ks_env_steps(env) ? KS_ENV_TRUNCATED : KS_ENV_GOES_ON;
}

static ks_status replay_episode(struct ks_env *env, const struct trajectory *t, size_t episode,
                                double *observation, struct deviation *d)
{
    struct trajectory_row row = trajectory_row(t, episode, 0);
    enum ks_env_end end = KS_ENV_GOES_ON;

    KS_TRY(force(env, t, &row, observation, d));
    for (size_t step = 1; step <= t->steps && end == KS_ENV_GOES_ON; step++) {
        double reward, started = now();
        row = trajectory_row(t, episode, step);
        KS_TRY(ks_env_step(env, row.action, observation, &reward, &end));
        d->seconds += now() - started;
        d->observation = larger(d->observation, t->observations, observation, row.observation);
        compare_reward(reward, row.reward, d);
        d->steps++;
        d->values += t->observations + 1;
        d->differing += count_differing(t->observations, observation, row.observation) +
                        count_differing(1, &reward, &row.reward);
        if (end != recorded_end(env, t, episode, step))
            return ks_fail(KS_RUN, "%s: step %zu: end %d here, %d recorded: %s", t->task, step, end,
                           recorded_end(env, t, episode, step), ks_env_divergence(env));
    }
    d->terminal += end == KS_ENV_TERMINATED;
    return KS_OK;
}

static ks_status draw_start(struct ks_env *env, const struct trajectory *t, size_t k,
                            double *observation, struct deviation *d)
{
    struct trajectory_row row = trajectory_start(t, k);
    struct ks_rng rng = ks_rng_start(t->seed, k);

    KS_TRY(ks_env_reset(env, &rng, observation));
    d->start = larger(d->start, t->observations, observation, row.observation);
    compare_reward(env->task->domain->reward(env), row.reward, d);
    d->start = larger(d->start, t->nq, env->data->qpos, row.state.qpos);
    d->start = larger(d->start, t->nv, env->data->qvel, row.state.qvel);
    d->start = larger(d->start, t->na, env->data->act, row.state.act);
    d->start = larger(d->start, t->target, env->episode, row.state.target);
    row = trajectory_forced(t, k);
    KS_TRY(force(env, t, &row, observation, d));
    return ks_env_has_goal(env) ? compare_goal(env, &row, d) : KS_OK;
}

static ks_status check_sizes(const char *path, const struct trajectory *t, const struct ks_env *env)
{
    size_t target = env->task->domain->target;

    if (t->observations != ks_env_observations(env) || t->nu != ks_env_actions(env) ||
        t->target != target)
        return ks_fail(KS_FORMAT,
                       "%s: %s has %zu observations, %zu actions and %zu coordinates of a target, "
                       "but the record has %zu, %zu and %zu",
                       path, t->task, ks_env_observations(env), ks_env_actions(env), target,
                       t->observations, t->nu, t->target);
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
        status = ks_fail(KS_FORMAT, "%s: recorded with MuJoCo %s, but this is %s", path, t.mujoco,
                         ks_env_mujoco_version());
        goto done;
    }
    KS_GO(ks_env_new(t.task, NULL, &env));
    KS_GO(check_sizes(path, &t, env));
    KS_GO(ks_alloc(t.observations, sizeof *observation, &observation));
    for (size_t episode = 0; episode < t.episodes; episode++)
        KS_GO(replay_episode(env, &t, episode, observation, d));
    for (size_t k = 0; k < t.starts; k++)
        KS_GO(draw_start(env, &t, k, observation, d));
    printf("%-18s %6zu %8zu %8zu %8zu %12.3g %10.3g %8zu %7zu %10.3g %7zu %8.3f\n", t.task,
           d->steps, d->terminal, d->values, d->differing, d->observation, d->reward, d->scored,
           t.starts, d->start, d->solved, 1e3 * d->seconds / (double)d->steps);
done:
    free(observation);
    ks_env_free(env);
    free(t.rows);
    return status;
}

static void print_tasks(const char *suite)
{
    struct ks_env_about about;

    for (size_t i = 0; ks_env_about(i, &about); i++)
        if (strcmp(about.suite, suite) == 0)
            puts(about.name);
}

int main(int argc, char **argv)
{
    int exit_status = 0;

    if (argc == 1) {
        puts(ks_env_mujoco_version());
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--tasks") == 0) {
        print_tasks(argv[2]);
        return 0;
    }
    printf("MuJoCo %s; largest relative deviations\n", ks_env_mujoco_version());
    printf("%-18s %6s %8s %8s %8s %12s %10s %8s %7s %10s %7s %8s\n", "task", "steps", "terminal",
           "values", "differ", "observation", "reward", "rewarded", "starts", "start", "solved",
           "ms/step");
    for (int i = 1; i < argc; i++) {
        struct deviation d = {.observation = 0};
        ks_status status = replay(argv[i], &d);
        if (status != KS_OK) {
            fprintf(stderr, "replay: %s\n", ks_error_text());
            return ks_exit_status(status);
        }
        if (!(d.observation <= bound && d.reward <= bound && d.start <= bound)) {
            fprintf(stderr, "replay: %s: a deviation exceeds the bound of %g\n", argv[i], bound);
            exit_status = 1;
        }
        if (d.scored == 0) {
            fprintf(stderr, "replay: %s: every reward is 0, so rewards are not compared\n",
                    argv[i]);
            exit_status = 1;
        }
    }
    return exit_status;
}
