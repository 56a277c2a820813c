/* What update.c records of an agent, as datasets of a group of an HDF5 file. */
#ifndef KS_UPDATE_RECORD_H
#define KS_UPDATE_RECORD_H

#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"
#include "io/h5.h"
#include "train/run.h"

enum { MOST_CRITICS = 8 };

struct record {
    const char *folder, *start;
    size_t updates;
    char **argument; /* architectures and settings, NULL-terminated */
    struct ks_train_options options;
    struct ks_run *run;
    struct ks_agent_config config;
    float *s, *a, *next_s, *mask; /* [updates, batch, ...]: minibatches; owned */
    double *reward, *results;     /* [updates, batch], [updates, RESULTS]; owned */
    double *values;               /* scratch of write_values; owned    */
    size_t room;
};

static inline ks_status reserve(struct record *r, size_t n)
{
    if (n <= r->room)
        return KS_OK;
    free(r->values);
    r->room = 0;
    KS_TRY(ks_alloc(n, sizeof *r->values, &r->values));
    r->room = n;
    return KS_OK;
}

/* A dataset [ensemble, n]. */
struct dataset {
    const char *name;
    size_t ensemble, n;
};

/* Writes the arrays x[ensemble] of n numbers each. */
static inline ks_status write_arrays(struct record *r, struct ks_h5 *h5, const char *group,
                                     struct dataset set, const real *const *x)
{
    char *object;

    KS_TRY(reserve(r, set.ensemble * set.n));
    for (size_t e = 0; e < set.ensemble; e++)
        for (size_t i = 0; i < set.n; i++)
            r->values[e * set.n + i] = (double)x[e][i];
    KS_TRY(ks_print_string(&object, "%s/%s", group, set.name));
    ks_h5_write(h5, object, KS_H5_F64,
                &(struct ks_h5_shape){.n_dims = 2, .dims = {set.ensemble, set.n}}, r->values);
    free(object);
    return h5->status;
}

static inline ks_status write_number(struct ks_h5 *h5, const char *group, const char *name,
                                     double value)
{
    char *object;

    KS_TRY(ks_print_string(&object, "%s/%s", group, name));
    ks_h5_write(h5, object, KS_H5_F64, &(struct ks_h5_shape){.n_dims = 2, .dims = {1, 1}}, &value);
    free(object);
    return h5->status;
}

static inline ks_status write_critics(struct record *r, struct ks_h5 *h5, const char *g,
                                      const struct KS(agent) *a)
{
    const size_t n = a->critic_arch->parameters, states = a->critic_arch->states;
    const size_t ensemble = a->config.ensemble;
    const real *w[MOST_CRITICS], *m[MOST_CRITICS], *v[MOST_CRITICS], *target[MOST_CRITICS];
    const real *state[MOST_CRITICS];

    if (ensemble > MOST_CRITICS)
        return ks_fail(KS_USAGE, "expected at most %d critics, found %zu", MOST_CRITICS, ensemble);
    for (size_t e = 0; e < ensemble; e++) {
        const struct KS(trained) *c = &a->critic[e];

        w[e] = c->w, m[e] = c->m, v[e] = c->v, target[e] = c->target, state[e] = c->state;
    }
    KS_TRY(write_arrays(r, h5, g, (struct dataset){"critic", ensemble, n}, w));
    KS_TRY(write_arrays(r, h5, g, (struct dataset){"critic_m", ensemble, n}, m));
    KS_TRY(write_arrays(r, h5, g, (struct dataset){"critic_v", ensemble, n}, v));
    KS_TRY(write_arrays(r, h5, g, (struct dataset){"target", ensemble, n}, target));
    return write_arrays(r, h5, g, (struct dataset){"critic_state", ensemble, states}, state);
}

/* Parameters and moments of one network: NAME, NAME_m, NAME_v. */
static inline ks_status write_trained(struct record *r, struct ks_h5 *h5, const char *g,
                                      const char *name, const struct KS(arch) *arch,
                                      const struct KS(trained) *t)
{
    const struct {
        const char *suffix;
        const real *x;
    } arrays[] = {{"", t->w}, {"_m", t->m}, {"_v", t->v}};
    char full[32];

    for (size_t k = 0; k < 3; k++) {
        snprintf(full, sizeof full, "%s%s", name, arrays[k].suffix);
        KS_TRY(write_arrays(r, h5, g, (struct dataset){full, 1, arch->parameters},
                            (const real *[]){arrays[k].x}));
    }
    return KS_OK;
}

/* A number and Adam's moments of it: NAME, NAME_m, NAME_v. */
static inline ks_status write_scalar(struct ks_h5 *h5, const char *g, const char *name,
                                     const double x[3])
{
    static const char *const suffixes[] = {"", "_m", "_v"};
    char full[32];

    for (size_t k = 0; k < 3; k++) {
        snprintf(full, sizeof full, "%s%s", name, suffixes[k]);
        KS_TRY(write_number(h5, g, full, x[k]));
    }
    return KS_OK;
}

static inline ks_status write_actor(struct record *r, struct ks_h5 *h5, const char *g,
                                    const struct KS(agent) *a)
{
    KS_TRY(write_trained(r, h5, g, "actor", a->actor_arch, &a->actor));
    return write_arrays(r, h5, g, (struct dataset){"actor_state", 1, a->actor_arch->states},
                        (const real *[]){a->actor.state});
}

static inline ks_status write_optimist(struct record *r, struct ks_h5 *h5, const char *g,
                                       const struct KS(optimist) *o)
{
    const struct ks_dual *optimism = &o->optimism, *price = &o->price;

    KS_TRY(write_trained(r, h5, g, "optimist", o->arch, &o->shift));
    KS_TRY(write_scalar(h5, g, "optimism", (double[]){optimism->x, optimism->m, optimism->v}));
    return write_scalar(h5, g, "price", (double[]){price->x, price->m, price->v});
}

/* Writes the agent's current state to the group /update_NNN. */
static inline ks_status write_agent(struct record *r, struct ks_h5 *h5, const struct KS(agent) *a)
{
    char g[32];

    snprintf(g, sizeof g, "/update_%03d", (int)a->updates);
    ks_h5_group(h5, g);
    ks_h5_write_integer(h5, g, "critic_steps", a->critic_adam.step);
    ks_h5_write_integer(h5, g, "actor_steps", a->actor_adam.step);
    KS_TRY(write_critics(r, h5, g, a));
    KS_TRY(write_actor(r, h5, g, a));
    if (a->optimist)
        KS_TRY(write_optimist(r, h5, g, a->optimist));
    return write_scalar(h5, g, "log_temperature",
                        (double[]){a->log_temperature, a->temperature_m, a->temperature_v});
}

#endif
