/* MyoHand with an object: obj-hold (an ellipsoid to a position), key-turn, pen-twirl (a pen into a
 * direction). MyoSuite 2.5.0, envs/myo/myobase/obj_hold_v0.py, key_turn_v0.py, pen_v0.py. The
 * joints of the object follow the joints of the hand. */
#include "env/myosuite.h"

#include <math.h>

/* A point in a cube. */
static void draw_near(struct ks_rng *rng, const double centre[3], double half, double out[3])
{
    for (size_t i = 0; i < 3; i++)
        out[i] = centre[i] + ks_rng_uniform(rng, -half, half);
}

/* --- obj-hold: env->episode has the goal's position, then the object's three radii --- */

enum { GOAL_AT = 0, RADII = 3, HOLD_TARGET = 6 };

enum { GOAL, CENTRE, OBJECT };
static const struct ks_env_element hold[] = {[GOAL] = KS_SITE("goal"),
                                             [CENTRE] = KS_SITE("object"),
                                             [OBJECT] = KS_GEOM("object"),
                                             {.name = NULL}};

static ks_status keep_hold(struct ks_env *env)
{
    ks_env_append(env->original + GOAL_AT, 3, env->model->site_pos + 3 * env->ids[GOAL]);
    ks_env_append(env->original + RADII, 3, env->model->geom_size + 3 * env->ids[OBJECT]);
    return KS_OK;
}

static void apply_hold(struct ks_env *env)
{
    ks_env_append(env->model->site_pos + 3 * env->ids[GOAL], 3, env->episode + GOAL_AT);
    ks_env_append(env->model->geom_size + 3 * env->ids[OBJECT], 3, env->episode + RADII);
}

/* A random goal lies around the object's start. As in MyoSuite, another size does not change the
 * object's mass. */
static ks_status reset_hold(struct ks_env *env, struct ks_rng *rng)
{
    ks_env_append(env->episode, HOLD_TARGET, env->original);
    if (env->task->goal > 0) {
        draw_near(rng, env->model->qpos0 + KS_HAND_JOINTS, 0.03, env->episode + GOAL_AT);
        for (size_t i = 0; i < 3; i++)
            env->episode[RADII + i] = ks_rng_uniform(rng, 0.02, 0.03);
    }
    ks_env_myo_begin(env);
    env->data->qpos[0] = KS_PALM_UP;
    return KS_OK;
}

static double *observe_hold(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, KS_HAND_JOINTS, env->data->qpos);
    out = ks_env_myo_append_velocities(env, 0, KS_HAND_JOINTS, out);
    out = ks_env_append(out, 3, ks_env_position(env, CENTRE));
    ks_env_between(env, CENTRE, GOAL, out), out += 3;
    return ks_env_myo_append_activations(env, out);
}

static double hold_distance(const struct ks_env *env)
{
    double error[3];

    return ks_env_between(env, CENTRE, GOAL, error);
}

static bool is_lost(const struct ks_env *env)
{
    return hold_distance(env) > 0.3;
}

static const double HELD = 0.01;

static bool hold_solved(const struct ks_env *env)
{
    return hold_distance(env) < HELD;
}

static double reward_hold(const struct ks_env *env)
{
    const double distance = hold_distance(env);

    return -100 * distance + 4 * ks_env_myo_bonus(distance, 2 * HELD, HELD) - 10 * is_lost(env);
}

const struct ks_env_domain ks_env_myo_hold = KS_MYO_DOMAIN(
    "myohand_hold.xml", 7, 6, 0.02, .elements = hold, .target = HOLD_TARGET, .change = keep_hold,
    .reset = reset_hold, .apply = apply_hold, .observe = observe_hold, .reward = reward_hold,
    .terminal = is_lost, .solved = hold_solved);

/* --- key-turn: env->episode has the key's position --- */

enum { KEY, KEY_HEAD, INDEX, THUMB };
static const struct ks_env_element key[] = {[KEY] = KS_BODY("key"),
                                            [KEY_HEAD] = KS_SITE("keyhead"),
                                            [INDEX] = KS_SITE("IFtip"),
                                            [THUMB] = KS_SITE("THtip"),
                                            {.name = NULL}};

static ks_status keep_key(struct ks_env *env)
{
    ks_env_append(env->original, 3, env->model->body_pos + 3 * env->ids[KEY]);
    return KS_OK;
}

static void apply_key(struct ks_env *env)
{
    ks_env_append(env->model->body_pos + 3 * env->ids[KEY], 3, env->episode);
}

/* The angle is drawn before the position. */
static ks_status reset_key(struct ks_env *env, struct ks_rng *rng)
{
    double angle = 0;

    ks_env_append(env->episode, 3, env->original);
    if (env->task->goal > 0) {
        angle = ks_rng_uniform(rng, -mjPI / 2, mjPI / 2);
        draw_near(rng, env->original, 0.01, env->episode);
    }
    ks_env_myo_begin(env);
    env->data->qpos[KS_HAND_JOINTS] = angle;
    return KS_OK;
}

static double *observe_key(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, KS_HAND_JOINTS, env->data->qpos);
    out = ks_env_myo_append_velocities(env, 0, KS_HAND_JOINTS, out);
    *out++ = env->data->qpos[KS_HAND_JOINTS];
    out = ks_env_myo_append_velocities(env, KS_HAND_JOINTS, 1, out);
    ks_env_between(env, INDEX, KEY_HEAD, out), out += 3;
    ks_env_between(env, THUMB, KEY_HEAD, out), out += 3;
    return ks_env_myo_append_activations(env, out);
}

/* How far a finger tip is from where it would touch the key's head, 3 cm from its centre. */
static double approach(const struct ks_env *env, size_t tip)
{
    double vector[3];

    return fabs(ks_env_between(env, tip, KEY_HEAD, vector) - 0.03);
}

static const double APART = 0.1;

static bool lets_go(const struct ks_env *env)
{
    return approach(env, INDEX) > APART || approach(env, THUMB) > APART;
}

static bool key_solved(const struct ks_env *env)
{
    return env->data->qpos[KS_HAND_JOINTS] > (env->task->goal > 0 ? 2 * mjPI : 3.14);
}

static double reward_key(const struct ks_env *env)
{
    const double angle = env->data->qpos[KS_HAND_JOINTS];
    const double index = approach(env, INDEX), thumb = approach(env, THUMB);

    return angle - 10 * index - 10 * thumb - ks_env_myo_effort(env) +
           4 * ((angle > mjPI / 2) + (angle > mjPI)) -
           25 * ((index > APART / 2) + (thumb > APART / 2));
}

const struct ks_env_domain ks_env_myo_key = KS_MYO_DOMAIN(
    "myohand_keyturn.xml", 1, 1, 0.02, .elements = key, .target = 3, .change = keep_key,
    .reset = reset_key, .apply = apply_key, .observe = observe_key, .reward = reward_key,
    .terminal = lets_go, .solved = key_solved);

/* --- pen-twirl: env->episode has the quaternion of the pen that shows the target direction --- */

enum { PEN_JOINTS = 6 };

/* The pen, and the pen that shows the target direction; the pen is to stay at STAY. */
enum { PEN, SHOWN, STAY, TOP, BOTTOM, SHOWN_TOP, SHOWN_BOTTOM };
static const struct ks_env_element pen[] = {[PEN] = KS_BODY("Object"),
                                            [SHOWN] = KS_BODY("target"),
                                            [STAY] = KS_SITE("eps_ball"),
                                            [TOP] = KS_SITE("object_top"),
                                            [BOTTOM] = KS_SITE("object_bottom"),
                                            [SHOWN_TOP] = KS_SITE("target_top"),
                                            [SHOWN_BOTTOM] = KS_SITE("target_bottom"),
                                            {.name = NULL}};

static ks_status keep_pen(struct ks_env *env)
{
    ks_env_append(env->original, 4, env->model->body_quat + 4 * env->ids[SHOWN]);
    return KS_OK;
}

static void apply_pen(struct ks_env *env)
{
    ks_env_append(env->model->body_quat + 4 * env->ids[SHOWN], 4, env->episode);
}

/* A random direction is turned by two angles from U(-1, 1). */
static void draw_direction(struct ks_rng *rng, double quaternion[4])
{
    const double x = ks_rng_uniform(rng, -1, 1) / 2, y = ks_rng_uniform(rng, -1, 1) / 2;

    quaternion[0] = cos(y) * cos(x);
    quaternion[1] = cos(y) * sin(x);
    quaternion[2] = sin(y) * cos(x);
    quaternion[3] = sin(y) * sin(x);
}

static ks_status reset_pen(struct ks_env *env, struct ks_rng *rng)
{
    ks_env_append(env->episode, 4, env->original);
    if (env->task->goal > 0)
        draw_direction(rng, env->episode);
    ks_env_myo_begin(env);
    env->data->qpos[0] = KS_PALM_UP;
    return KS_OK;
}

/* The direction from one end of a pen to the other, a vector of length 1. */
static void direction(const struct ks_env *env, size_t from, size_t to, double out[3])
{
    const double *at = env->model->site_pos;
    double length = ks_env_difference(3, at + 3 * env->ids[from], at + 3 * env->ids[to], out);

    ks_env_between(env, from, to, out);
    for (size_t i = 0; i < 3; i++)
        out[i] /= length;
}

static void pen_directions(const struct ks_env *env, double is[3], double wanted[3])
{
    direction(env, BOTTOM, TOP, is);
    direction(env, SHOWN_BOTTOM, SHOWN_TOP, wanted);
}

static double *observe_pen(const struct ks_env *env, double *out)
{
    double is[3], wanted[3];

    pen_directions(env, is, wanted);
    out = ks_env_append(out, KS_HAND_JOINTS, env->data->qpos);
    out = ks_env_append(out, 3, ks_env_position(env, PEN));
    out = ks_env_myo_append_velocities(env, KS_HAND_JOINTS, PEN_JOINTS, out);
    out = ks_env_append(out, 3, is);
    out = ks_env_append(out, 3, wanted);
    ks_env_between(env, STAY, PEN, out), out += 3;
    ks_env_difference(3, wanted, is, out), out += 3;
    return ks_env_myo_append_activations(env, out);
}

static double pen_distance(const struct ks_env *env)
{
    double offset[3];

    return ks_env_between(env, STAY, PEN, offset);
}

/* The cosine of the angle between the pen's direction and the target's. */
static double pen_alignment(const struct ks_env *env)
{
    double is[3], wanted[3], product = 0;

    pen_directions(env, is, wanted);
    for (size_t i = 0; i < 3; i++)
        product += is[i] * wanted[i];
    return product / (ks_env_norm(3, is) * ks_env_norm(3, wanted));
}

static const double DROPPED = 0.075, ALIGNED = 0.95;

static bool is_dropped(const struct ks_env *env)
{
    return pen_distance(env) > DROPPED;
}

static bool pen_solved(const struct ks_env *env)
{
    return pen_alignment(env) > ALIGNED && !is_dropped(env);
}

static double reward_pen(const struct ks_env *env)
{
    const double distance = pen_distance(env), aligned = pen_alignment(env);
    const double bonus = distance < DROPPED ? (aligned > 0.9) + 5 * (aligned > ALIGNED) : 0;

    return -distance + aligned - 5 * ks_env_myo_effort(env) - 5 * is_dropped(env) + 10 * bonus;
}

const struct ks_env_domain ks_env_myo_pen = KS_MYO_DOMAIN(
    "myohand_pen.xml", PEN_JOINTS, PEN_JOINTS, 0.01, .elements = pen, .target = 4,
    .change = keep_pen, .reset = reset_pen, .apply = apply_pen, .observe = observe_pen,
    .reward = reward_pen, .terminal = is_dropped, .solved = pen_solved);
