/* Finger: spin, turn_easy, turn_hard. dm_control 1.0.20, suite/finger.py; `goal` is the target
 * speed in rad/s for spin, and the radius of the target for turn. */
#include "env/domain.h"

#include <math.h>

/* For turn: indices of the target's position in env->episode. */
enum { TARGET_X, TARGET_Z };

struct finger {
    int hinge, target, cap; /* joint, site, geom */
    /* indices in sensordata */
    int proximal, distal, proximal_velocity, distal_velocity, hinge_velocity;
    int tip_position, target_position, spinner_position, touch_top, touch_bottom;
};

static ks_status find(struct ks_env *env)
{
    struct finger *finger = env->ids;
    const struct {
        const char *name;
        int width, *start;
    } sensors[] = {
        {"proximal", 1, &finger->proximal},
        {"distal", 1, &finger->distal},
        {"proximal_velocity", 1, &finger->proximal_velocity},
        {"distal_velocity", 1, &finger->distal_velocity},
        {"hinge_velocity", 1, &finger->hinge_velocity},
        {"tip", 3, &finger->tip_position},
        {"target", 3, &finger->target_position},
        {"spinner", 3, &finger->spinner_position},
        {"touchtop", 1, &finger->touch_top},
        {"touchbottom", 1, &finger->touch_bottom},
    };

    KS_TRY(ks_env_find(env, mjOBJ_JOINT, "hinge", &finger->hinge));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "target", &finger->target));
    KS_TRY(ks_env_find(env, mjOBJ_GEOM, "cap1", &finger->cap));
    for (size_t i = 0; i < sizeof sensors / sizeof *sensors; i++)
        KS_TRY(ks_env_find_sensor(env, sensors[i].name, sensors[i].width, sensors[i].start));
    return KS_OK;
}

/* x and z of a position sensor, relative to the spinner. */
static void from_spinner(const struct ks_env *env, int sensor, double out[2])
{
    const struct finger *finger = env->ids;
    const double *position = env->data->sensordata + sensor;
    const double *spinner = env->data->sensordata + finger->spinner_position;

    out[0] = position[0] - spinner[0];
    out[1] = position[2] - spinner[2];
}

static double *observe_position(const struct ks_env *env, double *out)
{
    const struct finger *finger = env->ids;
    const double *s = env->data->sensordata;

    *out++ = s[finger->proximal];
    *out++ = s[finger->distal];
    from_spinner(env, finger->tip_position, out);
    return out + 2;
}

static double *observe_touch_and_velocity(const struct ks_env *env, double *out)
{
    const struct finger *finger = env->ids;
    const double *s = env->data->sensordata;

    *out++ = log1p(s[finger->touch_top]);
    *out++ = log1p(s[finger->touch_bottom]);
    *out++ = s[finger->proximal_velocity];
    *out++ = s[finger->distal_velocity];
    *out++ = s[finger->hinge_velocity];
    return out;
}

/* --- spin --- */

static ks_status find_spin(struct ks_env *env)
{
    const double damping = 0.03; /* the model has the value for turn */
    const struct finger *finger = env->ids;

    KS_TRY(find(env));
    env->model->dof_damping[env->model->jnt_dofadr[finger->hinge]] = damping;
    return KS_OK;
}

static double *observe_spin(const struct ks_env *env, double *out)
{
    return observe_touch_and_velocity(env, observe_position(env, out));
}

static double reward_spin(const struct ks_env *env)
{
    const struct finger *finger = env->ids;

    return env->data->sensordata[finger->hinge_velocity] <= -env->task->goal;
}

const struct ks_env_domain ks_env_finger_spin = {
    .suite = &ks_env_dm_control,
    .model = "finger.xml",
    .nq = 3,
    .nv = 3,
    .nu = 2,
    .control_step = 0.02,
    .limit = 20,
    .ids = sizeof(struct finger),
    .find = find_spin,
    .reset = ks_env_random_joints_apart,
    .observe = observe_spin,
    .reward = reward_spin,
};

/* --- turn --- */

static ks_status find_turn(struct ks_env *env)
{
    const struct finger *finger = env->ids;

    KS_TRY(find(env));
    env->model->site_size[3 * finger->target] = env->task->goal;
    return KS_OK;
}

static void apply(struct ks_env *env)
{
    const struct finger *finger = env->ids;

    env->model->site_pos[3 * finger->target] = env->episode[TARGET_X];
    env->model->site_pos[3 * finger->target + 2] = env->episode[TARGET_Z];
}

/* Draws the target on the circle on which the end of the spinner moves. */
static ks_status reset_turn(struct ks_env *env, struct ks_rng *rng)
{
    const struct finger *finger = env->ids;
    const double *hinge = env->data->xanchor + 3 * finger->hinge;
    const double *size = env->model->geom_size + 3 * finger->cap;
    double angle = ks_rng_uniform(rng, -mjPI, mjPI), radius = size[0] + size[1] + size[2];

    env->episode[TARGET_X] = hinge[0] + radius * sin(angle);
    env->episode[TARGET_Z] = hinge[2] + radius * cos(angle);
    apply(env);
    return ks_env_random_joints_apart(env, rng);
}

/* The distance from the tip to the target's surface, negative inside. */
static double distance_to_target(const struct ks_env *env)
{
    const struct finger *finger = env->ids;
    double tip[2], target[2], to_target[2];

    from_spinner(env, finger->tip_position, tip);
    from_spinner(env, finger->target_position, target);
    return ks_env_difference(2, tip, target, to_target) - env->model->site_size[3 * finger->target];
}

static double *observe_turn(const struct ks_env *env, double *out)
{
    const struct finger *finger = env->ids;

    *out++ = distance_to_target(env); /* dist_to_target */
    out = observe_position(env, out);
    from_spinner(env, finger->target_position, out), out += 2; /* target_position */
    return observe_touch_and_velocity(env, out);
}

static double reward_turn(const struct ks_env *env)
{
    return distance_to_target(env) <= 0;
}

const struct ks_env_domain ks_env_finger_turn = {
    .suite = &ks_env_dm_control,
    .model = "finger.xml",
    .nq = 3,
    .nv = 3,
    .nu = 2,
    .control_step = 0.02,
    .limit = 20,
    .ids = sizeof(struct finger),
    .target = 2,
    .find = find_turn,
    .reset = reset_turn,
    .apply = apply,
    .observe = observe_turn,
    .reward = reward_turn,
};
