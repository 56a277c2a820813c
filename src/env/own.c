/* Tasks of the user's own: their episodes. */
#include "env/own.h"

#include <math.h>
#include <string.h>

/* --- what the model has to have --- */

/* The number of values of a quantity, before its range is taken. */
static ks_status find_size(const struct ks_env *env, struct ks_own_quantity *q, size_t *size)
{
    const mjModel *m = env->model;
    int id = 0;

    switch (q->kind) {
    case KS_OWN_QPOS:
        *size = (size_t)m->nq;
        return KS_OK;
    case KS_OWN_QVEL:
        *size = (size_t)m->nv;
        return KS_OK;
    case KS_OWN_ACT:
        *size = (size_t)m->na;
        return KS_OK;
    case KS_OWN_CTRL:
        *size = (size_t)m->nu;
        return KS_OK;
    case KS_OWN_SENSOR:
        break;
    }
    KS_TRY(ks_env_find(env, mjOBJ_SENSOR, q->sensor, &id));
    q->start = (size_t)m->sensor_adr[id];
    *size = (size_t)m->sensor_dim[id];
    return KS_OK;
}

static ks_status find_terms(const struct ks_env *env, const char *section,
                            struct ks_own_terms *terms)
{
    for (size_t i = 0; i < terms->n; i++) {
        struct ks_own_term *t = &terms->list[i];
        size_t size = 0;

        KS_TRY(find_size(env, &t->quantity, &size));
        if (t->quantity.end == SIZE_MAX)
            t->quantity.end = size;
        if (t->quantity.first >= t->quantity.end || t->quantity.end > size)
            return ks_fail(KS_FORMAT,
                           "%s: [%s] %s: values %zu to %zu are asked for, but %s has %zu of them",
                           env->own->path, section, t->name, t->quantity.first, t->quantity.end - 1,
                           env->own->model, size);
    }
    return KS_OK;
}

static size_t width(const struct ks_own_term *t)
{
    return t->quantity.end - t->quantity.first;
}

static ks_status check_times(const struct ks_env *env)
{
    const struct ks_env_domain *domain = env->task->domain;
    double substeps = domain->control_step / env->model->opt.timestep;

    if (substeps < 0.999 || fabs(substeps - round(substeps)) > 1e-6 * substeps)
        return ks_fail(KS_FORMAT,
                       "%s: [task] control_step: expected a multiple of the model's timestep of %g "
                       "seconds, found %g",
                       env->own->path, env->model->opt.timestep, domain->control_step);
    if (domain->limit < domain->control_step)
        return ks_fail(KS_FORMAT, "%s: [task] episode: expected at least control_step, found %g",
                       env->own->path, domain->limit);
    return KS_OK;
}

static ks_status find(struct ks_env *env)
{
    struct ks_env_own *own = env->own;
    int id = 0;

    if (env->model->nu == 0)
        return ks_fail(KS_FORMAT, "%s: the model has no actuators", own->model);
    KS_TRY(check_times(env));
    if (*own->key)
        KS_TRY(ks_env_find(env, mjOBJ_KEY, own->key, &id));
    KS_TRY(find_terms(env, "observation", &own->observation));
    KS_TRY(find_terms(env, "reward", &own->reward));
    KS_TRY(find_terms(env, "terminal", &own->terminal));
    own->task.observations = 0;
    for (size_t i = 0; i < own->observation.n; i++)
        own->task.observations += width(&own->observation.list[i]);
    return KS_OK;
}

/* --- an episode --- */

/* A number for each joint that slides or turns about one axis, and for the position of a free
 * joint; orientations are left as they are. */
static void add_position_noise(struct ks_env *env, struct ks_rng *rng)
{
    const mjModel *m = env->model;
    double noise = env->own->position_noise;

    for (int j = 0; j < (int)m->njnt; j++) {
        static const int numbers[] = {
            [mjJNT_FREE] = 3, [mjJNT_BALL] = 0, [mjJNT_SLIDE] = 1, [mjJNT_HINGE] = 1};
        double *q = env->data->qpos + m->jnt_qposadr[j];
        for (int i = 0; i < numbers[m->jnt_type[j]]; i++)
            q[i] += ks_rng_uniform(rng, -noise, noise);
    }
}

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    const mjModel *m = env->model;
    mjData *d = env->data;
    double noise = env->own->velocity_noise;

    if (*env->own->key) {
        int id = mj_name2id(m, mjOBJ_KEY, env->own->key);
        memcpy(d->qpos, m->key_qpos + id * m->nq, (size_t)m->nq * sizeof *d->qpos);
        memcpy(d->qvel, m->key_qvel + id * m->nv, (size_t)m->nv * sizeof *d->qvel);
        memcpy(d->act, m->key_act + id * m->na, (size_t)m->na * sizeof *d->act);
    }
    add_position_noise(env, rng);
    for (int i = 0; i < (int)m->nv; i++)
        d->qvel[i] += ks_rng_uniform(rng, -noise, noise);
    return KS_OK;
}

static const double *values(const struct ks_env *env, const struct ks_own_quantity *q)
{
    const mjData *d = env->data;
    const double *const arrays[] = {[KS_OWN_QPOS] = d->qpos,
                                    [KS_OWN_QVEL] = d->qvel,
                                    [KS_OWN_ACT] = d->act,
                                    [KS_OWN_CTRL] = d->ctrl,
                                    [KS_OWN_SENSOR] = d->sensordata};

    return arrays[q->kind] + q->start + q->first;
}

static double *observe(const struct ks_env *env, double *out)
{
    for (size_t i = 0; i < env->own->observation.n; i++) {
        const struct ks_own_term *t = &env->own->observation.list[i];
        out = ks_env_append(out, width(t), values(env, &t->quantity));
    }
    return out;
}

/* The product over the terms; a term with several values counts with the mean of theirs. */
static double reward(const struct ks_env *env)
{
    double product = 1;

    for (size_t i = 0; i < env->own->reward.n; i++) {
        const struct ks_own_term *t = &env->own->reward.list[i];
        const double *x = values(env, &t->quantity);
        double sum = 0;
        for (size_t k = 0; k < width(t); k++)
            sum += ks_tolerance(x[k], t->bounds, t->margin, t->sigmoid, t->value);
        product *= sum / (double)width(t);
    }
    return product;
}

/* Whether any value of a term is outside of its bounds. */
static bool terminal(const struct ks_env *env)
{
    for (size_t i = 0; i < env->own->terminal.n; i++) {
        const struct ks_own_term *t = &env->own->terminal.list[i];
        const double *x = values(env, &t->quantity);
        for (size_t k = 0; k < width(t); k++)
            if (!(x[k] >= t->bounds.lower && x[k] <= t->bounds.upper))
                return true;
    }
    return false;
}

const struct ks_env_domain ks_env_own_domain = {
    .suite = &ks_env_own_suite,
    .find = find,
    .reset = reset,
    .observe = observe,
    .reward = reward,
    .terminal = terminal,
};
