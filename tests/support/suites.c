#include "suites.h"

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

bool suite_is_there(const char *task)
{
    struct ks_env_about about;
    struct ks_env *tried = NULL;
    ks_status status = ks_env_new(task, NULL, &tried);

    ks_env_free(tried);
    assert_true(ks_env_about_task(task, &about));
    if (status == KS_MISSING && (strcmp(about.suite, "myosuite") == 0 || about.source))
        print_message("skipped: %s\n", ks_error_text());
    else
        assert_ok(status);
    return status == KS_OK;
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
