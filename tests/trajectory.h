/* Recorded episodes of a task: what tests/peer/dm_control_record.py writes. */
#ifndef KS_TRAJECTORY_H
#define KS_TRAJECTORY_H

#include <stdio.h>
#include <stdlib.h>

#include "ks/env.h"
#include "ks/error.h"
#include "ks/memory.h"

struct trajectory {
    char task[64], mujoco[32];
    size_t episodes, steps;
    size_t nq, nv, na, nu, observations;
    size_t width; /* numbers of a row */
    double *rows; /* [episodes * (steps + 1), width] */
};

/* The parts of a row: after `step` steps of an episode. */
struct trajectory_row {
    const double *qpos, *qvel, *act, *action, *observation;
    double reward;
};

static inline struct trajectory_row trajectory_row(const struct trajectory *t, size_t episode,
                                                   size_t step)
{
    const double *values = t->rows + (episode * (t->steps + 1) + step) * t->width;
    struct trajectory_row row = {.qpos = values};

    row.qvel = row.qpos + t->nq;
    row.act = row.qvel + t->nv;
    row.action = row.act + t->na;
    row.observation = row.action + t->nu;
    row.reward = row.observation[t->observations];
    return row;
}

/* The caller frees t->rows. */
static inline ks_status trajectory_read(const char *path, struct trajectory *t)
{
    FILE *file = fopen(path, "rb");
    ks_status status = KS_OK;
    size_t count;

    *t = (struct trajectory){.rows = NULL};
    if (!file)
        return ks_fail(KS_IO, "%s: cannot be opened", path);
    if (fscanf(file, "ks-trajectory %63s %31s %zu %zu %zu %zu %zu %zu %zu", t->task, t->mujoco,
               &t->episodes, &t->steps, &t->nq, &t->nv, &t->na, &t->nu, &t->observations) != 9 ||
        fgetc(file) != '\n') {
        status = ks_fail(KS_FORMAT, "%s: this is not a recorded trajectory", path);
        goto done;
    }
    t->width = t->nq + t->nv + t->na + t->nu + t->observations + 1;
    count = t->episodes * (t->steps + 1) * t->width;
    KS_GO(ks_alloc(count, sizeof *t->rows, &t->rows));
    if (fread(t->rows, sizeof *t->rows, count, file) != count || fgetc(file) != EOF)
        status = ks_fail(KS_FORMAT, "%s: expected %zu numbers after the first line", path, count);
done:
    fclose(file);
    return status;
}

#endif
