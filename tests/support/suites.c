#include "suites.h"

#include <time.h>

struct ks_env *trot;

int make_dog(void **state)
{
    if (ks_env_new("dog-trot", NULL, &trot) == KS_OK)
        return 0;
    fprintf(stderr, "%s\n", ks_error_text());
    return -1;
}

int free_dog(void **state)
{
    ks_env_free(trot);
    return 0;
}

struct ks_env *env_if_there(const char *task)
{
    struct ks_env_about about;
    struct ks_env *env = NULL;
    ks_status status = ks_env_new(task, NULL, &env);

    assert_true(ks_env_about_task(task, &about));
    if (status == KS_MISSING && (strcmp(about.suite, "myosuite") == 0 || about.source))
        print_message("skipped: %s\n", ks_error_text());
    else
        assert_ok(status);
    return env;
}

bool suite_is_there(const char *task)
{
    struct ks_env *env = env_if_there(task);

    ks_env_free(env);
    return env != NULL;
}

RELEASES(free_env, ks_env_free)

struct ks_env *new_env(const char *task)
{
    struct ks_env *env;

    assert_ok(ks_env_new(task, NULL, &env));
    return hold_object(env, free_env);
}

static struct trajectory_row trajectory_split(const struct trajectory *t, const double *values)
{
    struct trajectory_row row = {.state.qpos = values};

    row.state.qvel = row.state.qpos + t->nq;
    row.state.act = row.state.qvel + t->nv;
    row.state.target = row.state.act + t->na;
    row.action = row.state.target + t->target;
    row.observation = row.action + t->nu;
    row.reward = row.observation[t->observations];
    return row;
}

struct trajectory_row trajectory_row(const struct trajectory *t, size_t episode, size_t step)
{
    return trajectory_split(t, t->rows + (episode * (t->steps + 1) + step) * t->width);
}

struct trajectory_row trajectory_start(const struct trajectory *t, size_t k)
{
    return trajectory_split(t, t->rows + (t->episodes * (t->steps + 1) + k) * t->width);
}

struct trajectory_row trajectory_forced(const struct trajectory *t, size_t k)
{
    return trajectory_start(t, t->starts + k);
}

ks_status trajectory_read(const char *path, struct trajectory *t)
{
    FILE *file = fopen(path, "rb");
    ks_status status = KS_OK;
    size_t count;

    *t = (struct trajectory){.rows = NULL};
    if (!file)
        return ks_fail(KS_IO, "%s: cannot open", path);
    if (fscanf(file, "ks-trajectory %63s %31s %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu", t->task,
               t->mujoco, &t->seed, &t->episodes, &t->steps, &t->starts, &t->nq, &t->nv, &t->na,
               &t->target, &t->nu, &t->observations) != 12 ||
        fgetc(file) != '\n') {
        status = ks_fail(KS_FORMAT, "%s: not a recorded trajectory", path);
        goto done;
    }
    t->width = t->nq + t->nv + t->na + t->target + t->nu + t->observations + 1;
    count = (t->episodes * (t->steps + 1) + 2 * t->starts) * t->width;
    KS_GO(ks_alloc(count, sizeof *t->rows, &t->rows));
    if (fread(t->rows, sizeof *t->rows, count, file) != count || fgetc(file) != EOF)
        status = ks_fail(KS_FORMAT, "%s: expected %zu numbers after the first line", path, count);
done:
    fclose(file);
    return status;
}

struct trajectory read_record(const char *path)
{
    struct trajectory t;

    assert_ok(trajectory_read(path, &t));
    hold(t.rows);
    return t;
}

double larger_deviation(double largest, size_t n, const double *here, const double *recorded)
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
    d->reward = larger_deviation(d->reward, 1, &reward, &recorded);
    d->scored += recorded != 0;
}

static ks_status force(struct ks_env *env, const struct trajectory *t,
                       const struct trajectory_row *row, double *observation, struct deviation *d)
{
    KS_TRY(ks_env_force(env, &row->state, observation));
    d->observation = larger_deviation(d->observation, t->observations, observation,
                                      row->observation);
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
                                struct deviation *d)
{
    double observation[WIDEST];
    struct trajectory_row row = trajectory_row(t, episode, 0);
    enum ks_env_end end = KS_ENV_GOES_ON;

    KS_TRY(force(env, t, &row, observation, d));
    for (size_t step = 1; step <= t->steps && end == KS_ENV_GOES_ON; step++) {
        double reward, started = now();
        row = trajectory_row(t, episode, step);
        KS_TRY(ks_env_step(env, row.action, observation, &reward, &end));
        d->seconds += now() - started;
        d->observation = larger_deviation(d->observation, t->observations, observation,
                                          row.observation);
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

ks_status replay_episodes(struct ks_env *env, const struct trajectory *t, struct deviation *d)
{
    for (size_t episode = 0; episode < t->episodes; episode++)
        KS_TRY(replay_episode(env, t, episode, d));
    return KS_OK;
}

static ks_status draw_start(struct ks_env *env, const struct trajectory *t, size_t k,
                            struct deviation *d)
{
    double observation[WIDEST];
    struct trajectory_row row = trajectory_start(t, k);
    struct ks_rng rng = ks_rng_start(t->seed, k);

    KS_TRY(ks_env_reset(env, &rng, observation));
    d->start = larger_deviation(d->start, t->observations, observation, row.observation);
    compare_reward(env->task->domain->reward(env), row.reward, d);
    d->start = larger_deviation(d->start, t->nq, env->data->qpos, row.state.qpos);
    d->start = larger_deviation(d->start, t->nv, env->data->qvel, row.state.qvel);
    d->start = larger_deviation(d->start, t->na, env->data->act, row.state.act);
    d->start = larger_deviation(d->start, t->target, env->episode, row.state.target);
    row = trajectory_forced(t, k);
    KS_TRY(force(env, t, &row, observation, d));
    return ks_env_has_goal(env) ? compare_goal(env, &row, d) : KS_OK;
}

ks_status replay_starts(struct ks_env *env, const struct trajectory *t, struct deviation *d)
{
    for (size_t k = 0; k < t->starts; k++)
        KS_TRY(draw_start(env, t, k, d));
    return KS_OK;
}

bool is_within_bound(const struct deviation *d)
{
    return d->observation <= 1e-9 && d->reward <= 1e-9 && d->start <= 1e-9;
}

void assert_replays(replay *part, struct ks_env *env, const struct trajectory *t)
{
    struct deviation d = {.observation = 0};

    assert_int_equal(t->observations, ks_env_observations(env));
    assert_int_equal(t->nu, ks_env_actions(env));
    assert_ok(part(env, t, &d));
    assert_true(is_within_bound(&d));
}
