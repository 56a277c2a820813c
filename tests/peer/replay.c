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
#include "suites.h"

enum { SIDE = 84, FRAME = 3 * SIDE * SIDE };

/* Draws the states of which the record has pictures, in the file `path`, and counts those that have
 * the same bytes. */
static ks_status compare_frames(const struct trajectory *t, const char *path, size_t *equal,
                                size_t *frames)
{
    static uint8_t here[FRAME], there[FRAME];
    KS_OWNED char *task = NULL;
    KS_OWNED_BY(ks_env_free) struct ks_env *env = NULL;
    KS_OWNED_BY(ks_render_free) struct ks_render *render = NULL;
    double observation[WIDEST], reward;
    enum ks_env_end end;
    FILE *file = fopen(path, "rb");
    ks_status status = KS_OK;
    size_t each;

    if (!file)
        return KS_OK;
    fseek(file, 0, SEEK_END);
    each = (size_t)ftell(file) / FRAME / t->episodes;
    rewind(file);
    if (each == 0 || each > t->steps) {
        status = ks_fail(KS_FORMAT, "%s: expected at most %zu pictures of each of %zu episodes",
                         path, t->steps, t->episodes);
        goto done;
    }
    KS_GO(ks_print_string(&task, "%s-pixels", t->task));
    KS_GO(ks_env_new(task, NULL, &env));
    KS_GO(ks_render_new(env, SIDE, SIDE, &render));
    for (size_t episode = 0; episode < t->episodes; episode++)
        for (size_t i = 0; i < each; i++, ++*frames) {
            const struct trajectory_row row = trajectory_row(t, episode, i);

            KS_GO(i == 0 ? ks_env_force(env, &row.state, observation)
                         : ks_env_step(env, row.action, observation, &reward, &end));
            KS_GO(ks_render_frame(render, here));
            *equal += fread(there, FRAME, 1, file) == 1 && memcmp(here, there, FRAME) == 0;
        }
done:
    fclose(file);
    return status;
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

static ks_status replay_file(const char *path, struct deviation *d)
{
    ks_status status = KS_OK;
    struct trajectory t;
    struct ks_env *env = NULL;
    const char *end = strrchr(path, '.');
    char frames[4096];

    snprintf(frames, sizeof frames, "%.*s.frames", (int)(end ? end - path : 0), path);
    KS_GO(trajectory_read(path, &t));
    if (strcmp(t.mujoco, ks_env_mujoco_version()) != 0) {
        status = ks_fail(KS_FORMAT, "%s: recorded with MuJoCo %s, but this is %s", path, t.mujoco,
                         ks_env_mujoco_version());
        goto done;
    }
    KS_GO(ks_env_new(t.task, NULL, &env));
    KS_GO(check_sizes(path, &t, env));
    KS_GO(replay_episodes(env, &t, d));
    KS_GO(replay_starts(env, &t, d));
    KS_GO(compare_frames(&t, frames, &d->equal_frames, &d->frames));
    printf("%-23s %6zu %8zu %8zu %8zu %12.3g %10.3g %8zu %7zu %10.3g %7zu %8.3f %zu/%zu\n", t.task,
           d->steps, d->terminal, d->values, d->differing, d->observation, d->reward, d->scored,
           t.starts, d->start, d->solved, 1e3 * d->seconds / (double)d->steps, d->equal_frames,
           d->frames);
done:
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
    printf("%-23s %6s %8s %8s %8s %12s %10s %8s %7s %10s %7s %8s %s\n", "task", "steps", "terminal",
           "values", "differ", "observation", "reward", "rewarded", "starts", "start", "solved",
           "ms/step", "frames");
    for (int i = 1; i < argc; i++) {
        struct deviation d = {.observation = 0};
        ks_status status = replay_file(argv[i], &d);
        if (status != KS_OK) {
            fprintf(stderr, "replay: %s\n", ks_error_text());
            return ks_exit_status(status);
        }
        if (!is_within_bound(&d)) {
            fprintf(stderr, "replay: %s: a deviation exceeds the bound of 1e-9\n", argv[i]);
            exit_status = 1;
        }
        if (d.equal_frames < d.frames) {
            fprintf(stderr, "replay: %s: %zu of %zu frames differ\n", argv[i],
                    d.frames - d.equal_frames, d.frames);
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
