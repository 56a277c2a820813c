/* Reads recorded episodes of a task, the files of tests/peer/trajectory.py. */
#ifndef KS_TRAJECTORY_H
#define KS_TRAJECTORY_H

#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/memory.h"
#include "env/env.h"

struct trajectory {
    char task[64], mujoco[32];
    size_t seed; /* start state k is drawn with ks_rng_start(seed, k) */
    size_t episodes, steps, starts;
    size_t nq, nv, na, target, nu, observations;
    size_t width; /* numbers per row */
    double *rows; /* [episodes * (steps + 1) + 2 * starts, width] */
};

struct trajectory_row {
    struct ks_env_start state;
    const double *action, *observation; /* what led here, and what is seen here */
    double reward;
};

static inline struct trajectory_row trajectory_split(const struct trajectory *t,
                                                     const double *values)
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

/* The row after `step` steps of an episode; the row of the start state that draw k gives; the row
 * of that state when forced, with other velocities. */
static inline struct trajectory_row trajectory_row(const struct trajectory *t, size_t episode,
                                                   size_t step)
{
    return trajectory_split(t, t->rows + (episode * (t->steps + 1) + step) * t->width);
}

static inline struct trajectory_row trajectory_start(const struct trajectory *t, size_t k)
{
    return trajectory_split(t, t->rows + (t->episodes * (t->steps + 1) + k) * t->width);
}

static inline struct trajectory_row trajectory_forced(const struct trajectory *t, size_t k)
{
    return trajectory_start(t, t->starts + k);
}

/* The caller frees t->rows. */
static inline ks_status trajectory_read(const char *path, struct trajectory *t)
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

#endif
