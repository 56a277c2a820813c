/* What update.c, mrq.c and pixels.c record of an agent, as datasets of an HDF5 file, which
 * remembers the first failure. */
#ifndef KS_UPDATE_RECORD_H
#define KS_UPDATE_RECORD_H

#include <stdio.h>
#include <stdlib.h>

#include "test.h"

#include "agent/agent.h"
#include "core/memory.h"
#include "io/h5.h"

enum { MOST_CRITICS = 8 };

/* n numbers to be written, which the caller frees; NULL if there is no memory or has been another
 * failure. */
static inline double *new_values(struct ks_h5 *h5, size_t n)
{
    double *values = NULL;

    if (h5->status == KS_OK)
        h5->status = ks_alloc(n, sizeof *values, &values);
    return values;
}

static inline void write_floats(struct ks_h5 *h5, const char *object,
                                const struct ks_h5_shape *shape, const float *x)
{
    size_t n = 1;
    double *values;

    for (size_t i = 0; i < shape->n_dims; i++)
        n *= shape->dims[i];
    values = new_values(h5, n);
    for (size_t i = 0; i < n && values; i++)
        values[i] = (double)x[i];
    ks_h5_write(h5, object, KS_H5_F64, shape, values);
    free(values);
}

/* A dataset [arrays, n]. */
static inline void write_arrays(struct ks_h5 *h5, const char *object, size_t arrays, size_t n,
                                const real *const *x)
{
    double *values = new_values(h5, arrays * n);

    for (size_t i = 0; i < arrays * n && values; i++)
        values[i] = (double)x[i / n][i % n];
    ks_h5_write(h5, object, KS_H5_F64, &(struct ks_h5_shape){.n_dims = 2, .dims = {arrays, n}},
                values);
    free(values);
}

/* Parameters and moments of networks with n parameters each: OBJECT, OBJECT_m, OBJECT_v. */
static inline void write_trained(struct ks_h5 *h5, const char *object, size_t networks, size_t n,
                                 const struct KS(trained) *t)
{
    const real *x[3][MOST_CRITICS];

    for (size_t e = 0; e < networks; e++)
        x[0][e] = t[e].w, x[1][e] = t[e].m, x[2][e] = t[e].v;
    write_arrays(h5, object, networks, n, x[0]);
    write_arrays(h5, text_of("%s_m", object), networks, n, x[1]);
    write_arrays(h5, text_of("%s_v", object), networks, n, x[2]);
}

/* Running statistics, and target parameters, of networks with n of them. */
static inline void write_state(struct ks_h5 *h5, const char *object, size_t networks, size_t n,
                               const struct KS(trained) *t)
{
    const real *x[MOST_CRITICS];

    for (size_t e = 0; e < networks; e++)
        x[e] = t[e].state;
    write_arrays(h5, object, networks, n, x);
}

static inline void write_targets(struct ks_h5 *h5, const char *object, size_t networks, size_t n,
                                 const struct KS(trained) *t)
{
    const real *x[MOST_CRITICS];

    for (size_t e = 0; e < networks; e++)
        x[e] = t[e].target;
    write_arrays(h5, object, networks, n, x);
}

static inline void write_doubles(struct ks_h5 *h5, const char *object, size_t rows, size_t columns,
                                 const double *x)
{
    ks_h5_write(h5, object, KS_H5_F64, &(struct ks_h5_shape){.n_dims = 2, .dims = {rows, columns}},
                x);
}

/* Makes the group /update_NNN for the agent's current state; its name, until the next
 * call. */
static inline const char *new_group(struct ks_h5 *h5, const struct KS(agent) *a)
{
    static char group[32];

    snprintf(group, sizeof group, "/update_%03d", (int)a->updates);
    ks_h5_group(h5, group);
    ks_h5_write_integer(h5, group, "critic_steps", a->critic_adam.step);
    ks_h5_write_integer(h5, group, "actor_steps", a->actor_adam.step);
    return group;
}

#endif
