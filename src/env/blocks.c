/* Parts of observations that several domains share, and functions of vectors. */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "env/domain.h"

const double *ks_env_position(const struct ks_env *env, size_t element)
{
    const mjData *d = env->data;
    const mjtObj type = env->task->domain->elements[element].type;

    return (type == mjOBJ_BODY   ? d->xpos
            : type == mjOBJ_GEOM ? d->geom_xpos
                                 : d->site_xpos) +
           3 * env->ids[element];
}

const double *ks_env_frame(const struct ks_env *env, size_t element)
{
    const mjData *d = env->data;
    const bool body = env->task->domain->elements[element].type == mjOBJ_BODY;

    return (body ? d->xmat : d->geom_xmat) + 9 * env->ids[element];
}

const double *ks_env_sensor(const struct ks_env *env, size_t element)
{
    return env->data->sensordata + env->ids[element];
}

double ks_env_between(const struct ks_env *env, size_t from, size_t to, double out[3])
{
    return ks_env_difference(3, ks_env_position(env, from), ks_env_position(env, to), out);
}

double *ks_env_append(double *out, size_t n, const double *values)
{
    memcpy(out, values, n * sizeof *out);
    return out + n;
}

double *ks_env_append_hinges(double *out, const mjModel *model, const int *address,
                             const double *values)
{
    for (int j = 0; j < (int)model->njnt; j++)
        if (model->jnt_type[j] == mjJNT_HINGE)
            *out++ = values[address[j]];
    return out;
}

void ks_env_to_frame(const double R[9], const double v[3], double out[3])
{
    for (size_t k = 0; k < 3; k++)
        out[k] = R[k] * v[0] + R[3 + k] * v[1] + R[6 + k] * v[2];
}

bool ks_env_all_finite(size_t n, const double *values)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite((float)values[i]))
            return false;
    return true;
}

double ks_env_norm(size_t n, const double *v)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i] * v[i];
    return sqrt(sum);
}

double ks_env_difference(size_t n, const double *a, const double *b, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = b[i] - a[i];
    return ks_env_norm(n, out);
}

/* Random start states that several domains share: dm_control 1.0.20, suite/utils/randomizers.py. */

static void normalize(double quaternion[4])
{
    double norm = ks_env_norm(4, quaternion);

    for (size_t i = 0; i < 4; i++)
        quaternion[i] /= norm;
}

void ks_env_random_rotation(struct ks_rng *rng, double quaternion[4])
{
    for (size_t i = 0; i < 4; i++)
        quaternion[i] = ks_rng_normal(rng);
    normalize(quaternion);
}

/* A free joint keeps its position, and its quaternion is four numbers from U(0, 1), normalized.
 * That is not uniform over rotations, but dm_control does it, "since changing it could affect
 * results". Slide joints without limits are unchanged. No model here has a ball joint. */
ks_status ks_env_random_joints(struct ks_env *env, struct ks_rng *rng)
{
    const mjModel *m = env->model;

    for (int j = 0; j < (int)m->njnt; j++) {
        const double *range = m->jnt_range + 2 * j;
        double *q = env->data->qpos + m->jnt_qposadr[j];
        if (m->jnt_type[j] == mjJNT_FREE) {
            for (size_t i = 0; i < 4; i++)
                q[3 + i] = ks_rng_uniform(rng, 0, 1);
            normalize(q + 3);
        } else if (m->jnt_limited[j]) {
            *q = ks_rng_uniform(rng, range[0], range[1]);
        } else if (m->jnt_type[j] == mjJNT_HINGE) {
            *q = ks_rng_uniform(rng, -mjPI, mjPI);
        }
    }
    return KS_OK;
}

/* dm_control gives up after the same number of draws for the finger. For the humanoid it never
 * gives up, but there three in four draws are free of contacts. */
ks_status ks_env_random_joints_apart(struct ks_env *env, struct ks_rng *rng)
{
    const int attempts = 1000;

    for (int i = 0; i < attempts; i++) {
        ks_env_random_joints(env, rng);
        ks_physics_forward(env->model, env->data);
        if (env->data->ncon == 0)
            return KS_OK;
    }
    return ks_fail(KS_NUMBER, "%s: reset: bodies touch in all %d drawn poses", env->task->name,
                   attempts);
}

/* f(d) for d > 0; the scale is chosen such that f(1) = v. */
static double sigmoid(double d, enum ks_sigmoid kind, double v)
{
    double s, sd;

    assert(v < 1 && (v > 0 || (v == 0 && kind != KS_GAUSSIAN)));
    switch (kind) {
    case KS_GAUSSIAN:
        s = sqrt(-2 * log(v)), sd = d * s;
        return exp(-0.5 * (sd * sd));
    case KS_LINEAR:
        s = 1 - v, sd = d * s;
        return fabs(sd) < 1 ? 1 - sd : 0;
    case KS_QUADRATIC:
        s = sqrt(1 - v), sd = d * s;
        return fabs(sd) < 1 ? 1 - sd * sd : 0;
    }
    return NAN;
}

double ks_tolerance(double x, struct ks_bounds bounds, double margin, enum ks_sigmoid kind,
                    double v)
{
    bool inside = bounds.lower <= x && x <= bounds.upper;

    assert(bounds.lower <= bounds.upper && margin >= 0);
    if (inside || margin == 0)
        return inside;
    return sigmoid((x < bounds.lower ? bounds.lower - x : x - bounds.upper) / margin, kind, v);
}

double ks_at_least(double x, double bound, double margin, enum ks_sigmoid kind, double v)
{
    return ks_tolerance(x, (struct ks_bounds){bound, INFINITY}, margin, kind, v);
}

double ks_small_control(size_t n, const double *ctrl, double most)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ks_tolerance(ctrl[i], (struct ks_bounds){0, 0}, most, KS_QUADRATIC, 0);
    return (4 + sum / (double)n) / 5;
}
