/* Finger: spin, turn_easy, turn_hard. dm_control 1.0.20, suite/finger.py; `goal` is the target
 * speed in rad/s for spin, and the radius of the target for turn. */
#include "env/domain.h"

#include <math.h>

/* For turn: indices of the target's position in env->episode. */
enum { TARGET_X, TARGET_Z };

enum {
    HINGE,
    TARGET,
    TIP,
    CAP,
    PROXIMAL,
    DISTAL,
    TIP_POSITION,
    TARGET_POSITION,
    SPINNER_POSITION,
    TOUCH_TOP,
    TOUCH_BOTTOM,
    PROXIMAL_VELOCITY,
    DISTAL_VELOCITY,
    HINGE_VELOCITY
};
static const struct ks_env_element elements[] = {
    [HINGE] = KS_JOINT("hinge"),
    [TARGET] = KS_SITE("target"),
    [TIP] = KS_SITE("tip"),
    [CAP] = KS_GEOM("cap1"),
    [PROXIMAL] = KS_SENSOR("proximal", 1),
    [DISTAL] = KS_SENSOR("distal", 1),
    [TIP_POSITION] = KS_SENSOR("tip", 3),
    [TARGET_POSITION] = KS_SENSOR("target", 3),
    [SPINNER_POSITION] = KS_SENSOR("spinner", 3),
    [TOUCH_TOP] = KS_SENSOR("touchtop", 1),
    [TOUCH_BOTTOM] = KS_SENSOR("touchbottom", 1),
    [PROXIMAL_VELOCITY] = KS_SENSOR("proximal_velocity", 1),
    [DISTAL_VELOCITY] = KS_SENSOR("distal_velocity", 1),
    [HINGE_VELOCITY] = KS_SENSOR("hinge_velocity", 1),
    {.name = NULL},
};

/* x and z of a position sensor, relative to the spinner. */
static void from_spinner(const struct ks_env *env, size_t sensor, double out[2])
{
    const double *position = ks_env_sensor(env, sensor);
    const double *spinner = ks_env_sensor(env, SPINNER_POSITION);

    out[0] = position[0] - spinner[0];
    out[1] = position[2] - spinner[2];
}

static double *observe_position(const struct ks_env *env, double *out)
{
    *out++ = *ks_env_sensor(env, PROXIMAL);
    *out++ = *ks_env_sensor(env, DISTAL);
    from_spinner(env, TIP_POSITION, out);
    return out + 2;
}

static double *observe_touch_and_velocity(const struct ks_env *env, double *out)
{
    *out++ = log1p(*ks_env_sensor(env, TOUCH_TOP));
    *out++ = log1p(*ks_env_sensor(env, TOUCH_BOTTOM));
    for (size_t i = PROXIMAL_VELOCITY; i <= HINGE_VELOCITY; i++)
        *out++ = *ks_env_sensor(env, i);
    return out;
}

/* --- spin --- */

static ks_status change_spin(struct ks_env *env)
{
    const double damping = 0.03; /* the model has the value for turn */

    env->model->dof_damping[env->model->jnt_dofadr[env->ids[HINGE]]] = damping;
    env->model->site_rgba[4 * env->ids[TARGET] + 3] = 0; /* invisible: without a target */
    env->model->site_rgba[4 * env->ids[TIP] + 3] = 0;
    return KS_OK;
}

static double *observe_spin(const struct ks_env *env, double *out)
{
    return observe_touch_and_velocity(env, observe_position(env, out));
}

static double reward_spin(const struct ks_env *env)
{
    return *ks_env_sensor(env, HINGE_VELOCITY) <= -env->task->goal;
}

const struct ks_env_domain ks_env_finger_spin = {
    KS_DM_CONTROL("finger.xml", 3, 3, 2, 0.02), .elements = elements,    .change = change_spin,
    .reset = ks_env_random_joints_apart,        .observe = observe_spin, .reward = reward_spin,
};

/* --- turn --- */

static ks_status change_turn(struct ks_env *env)
{
    env->model->site_size[3 * env->ids[TARGET]] = env->task->goal;
    return KS_OK;
}

static void apply(struct ks_env *env)
{
    double *position = env->model->site_pos + 3 * env->ids[TARGET];

    position[0] = env->episode[TARGET_X];
    position[2] = env->episode[TARGET_Z];
}

/* Draws the target on the circle on which the end of the spinner moves. */
static ks_status reset_turn(struct ks_env *env, struct ks_rng *rng)
{
    const double *hinge = env->data->xanchor + 3 * env->ids[HINGE];
    const double *size = env->model->geom_size + 3 * env->ids[CAP];
    double angle = ks_rng_uniform(rng, -mjPI, mjPI), radius = size[0] + size[1] + size[2];

    env->episode[TARGET_X] = hinge[0] + radius * sin(angle);
    env->episode[TARGET_Z] = hinge[2] + radius * cos(angle);
    apply(env);
    return ks_env_random_joints_apart(env, rng);
}

/* The distance from the tip to the target's surface, negative inside. */
static double distance_to_target(const struct ks_env *env)
{
    double tip[2], target[2], to_target[2];

    from_spinner(env, TIP_POSITION, tip);
    from_spinner(env, TARGET_POSITION, target);
    return ks_env_difference(2, tip, target, to_target) -
           env->model->site_size[3 * env->ids[TARGET]];
}

static double *observe_turn(const struct ks_env *env, double *out)
{
    *out++ = distance_to_target(env); /* dist_to_target */
    out = observe_position(env, out);
    from_spinner(env, TARGET_POSITION, out), out += 2; /* target_position */
    return observe_touch_and_velocity(env, out);
}

static double reward_turn(const struct ks_env *env)
{
    return distance_to_target(env) <= 0;
}

const struct ks_env_domain ks_env_finger_turn = {
    KS_DM_CONTROL("finger.xml", 3, 3, 2, 0.02),
    .target = 2,
    .elements = elements,
    .change = change_turn,
    .reset = reset_turn,
    .apply = apply,
    .observe = observe_turn,
    .reward = reward_turn,
};
