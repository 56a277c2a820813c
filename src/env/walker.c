/* Walker: stand, walk, run. dm_control 1.0.20, suite/walker.py; `goal` is the target speed in m/s,
 * 0 for stand. */
#include "env/domain.h"

enum { TORSO, BODIES = 7 };
static const char *const body_names[BODIES] = {
    "torso", "right_thigh", "right_leg", "right_foot", "left_thigh", "left_leg", "left_foot"};

struct walker {
    int bodies[BODIES];
    int torso_linvel; /* index in sensordata */
};

static ks_status find(struct ks_env *env)
{
    struct walker *walker = env->ids;

    for (size_t i = 0; i < BODIES; i++)
        KS_TRY(ks_env_find(env, mjOBJ_BODY, body_names[i], &walker->bodies[i]));
    return ks_env_find_sensor(env, "torso_subtreelinvel", 3, &walker->torso_linvel);
}

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    ks_env_random_joints(env, rng);
    return KS_OK;
}

static double *observe(const struct ks_env *env, double *out)
{
    const struct walker *walker = env->ids;
    const mjData *d = env->data;

    *out++ = d->xpos[3 * walker->bodies[TORSO] + 2]; /* height */
    for (size_t i = 0; i < BODIES; i++) {            /* orientations */
        *out++ = d->xmat[9 * walker->bodies[i] + KS_XX];
        *out++ = d->xmat[9 * walker->bodies[i] + KS_XZ];
    }
    return ks_env_append(out, 9, d->qvel); /* velocity */
}

static double reward(const struct ks_env *env)
{
    const double stand_height = 1.2;
    const struct walker *walker = env->ids;
    const mjData *d = env->data;
    double speed = env->task->goal, height = d->xpos[3 * walker->bodies[TORSO] + 2];
    double standing = ks_at_least(height, stand_height, stand_height / 2, KS_GAUSSIAN, 0.1);
    double upright = (1 + d->xmat[9 * walker->bodies[TORSO] + KS_ZZ]) / 2;
    double stand = (3 * standing + upright) / 4;

    if (speed == 0)
        return stand;
    return stand *
           (5 * ks_at_least(d->sensordata[walker->torso_linvel], speed, speed / 2, KS_LINEAR, 0.5) +
            1) /
           6;
}

const struct ks_env_domain ks_env_walker = {
    .suite = &ks_env_dm_control,
    .model = "walker.xml",
    .nq = 9,
    .nv = 9,
    .nu = 6,
    .control_step = 0.025,
    .limit = 25,
    .ids = sizeof(struct walker),
    .find = find,
    .reset = reset,
    .observe = observe,
    .reward = reward,
};
