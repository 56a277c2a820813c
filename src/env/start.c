/* Random start states that several domains share: dm_control 1.0.20, suite/utils/randomizers.py. */
#include "env/domain.h"

#include "env/physics.h"

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
void ks_env_random_joints(struct ks_env *env, struct ks_rng *rng)
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
