/* MyoHand with an object: obj-hold (an ellipsoid to a position), key-turn, pen-twirl (a pen into a
 * direction). MyoSuite 2.5.0, envs/myo/myobase/obj_hold_v0.py, key_turn_v0.py, pen_v0.py. The
 * joints of the object follow the joints of the hand. */
#include "env/myosuite.h"

#include <math.h>
#include <string.h>

/* A point in a cube. */
static void draw_near(struct ks_rng *rng, const double centre[3], double half, double out[3])
{
    for (size_t i = 0; i < 3; i++)
        out[i] = centre[i] + ks_rng_uniform(rng, -half, half);
}

/* --- obj-hold: env->episode has the goal's position, then the object's three radii --- */

enum { GOAL_AT = 0, RADII = 3, HOLD_TARGET = 6 };

struct hold {
    int goal, centre, object; /* site, site, geom */
    double goal_at[3], radii[3];
};

static ks_status find_hold(struct ks_env *env)
{
    struct hold *hold = env->ids;
    const mjModel *m = env->model;

    KS_TRY(ks_env_find(env, mjOBJ_SITE, "goal", &hold->goal));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "object", &hold->centre));
    KS_TRY(ks_env_find(env, mjOBJ_GEOM, "object", &hold->object));
    memcpy(hold->goal_at, m->site_pos + 3 * hold->goal, sizeof hold->goal_at);
    memcpy(hold->radii, m->geom_size + 3 * hold->object, sizeof hold->radii);
    return KS_OK;
}

static void apply_hold(struct ks_env *env)
{
    const struct hold *hold = env->ids;

    memcpy(env->model->site_pos + 3 * hold->goal, env->episode + GOAL_AT, sizeof hold->goal_at);
    memcpy(env->model->geom_size + 3 * hold->object, env->episode + RADII, sizeof hold->radii);
}

/* A random goal lies around the object's start. As in MyoSuite, another size does not change the
 * object's mass. */
static ks_status reset_hold(struct ks_env *env, struct ks_rng *rng)
{
    const struct hold *hold = env->ids;

    memcpy(env->episode + GOAL_AT, hold->goal_at, sizeof hold->goal_at);
    memcpy(env->episode + RADII, hold->radii, sizeof hold->radii);
    if (env->task->goal > 0) {
        draw_near(rng, env->model->qpos0 + KS_HAND_JOINTS, 0.03, env->episode + GOAL_AT);
        for (size_t i = 0; i < 3; i++)
            env->episode[RADII + i] = ks_rng_uniform(rng, 0.02, 0.03);
    }
    ks_env_myo_begin(env);
    env->data->qpos[0] = KS_PALM_UP;
    return KS_OK;
}

static double hold_error(const struct ks_env *env, double error[3])
{
    const struct hold *hold = env->ids;

    return ks_env_myo_between(env, hold->centre, hold->goal, error);
}

static double *observe_hold(const struct ks_env *env, double *out)
{
    const struct hold *hold = env->ids;

    out = ks_env_append(out, KS_HAND_JOINTS, env->data->qpos);
    out = ks_env_myo_append_velocities(env, 0, KS_HAND_JOINTS, out);
    out = ks_env_append(out, 3, env->data->site_xpos + 3 * hold->centre);
    hold_error(env, out), out += 3;
    return ks_env_myo_append_activations(env, out);
}

static double hold_distance(const struct ks_env *env)
{
    double error[3];

    return hold_error(env, error);
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

const struct ks_env_domain ks_env_myo_hold = {
    .suite = &ks_env_myosuite,
    .model = "myohand_hold.xml",
    .nq = KS_HAND_JOINTS + 7,
    .nv = KS_HAND_JOINTS + 6,
    .nu = KS_HAND_MUSCLES,
    .na = KS_HAND_MUSCLES,
    .control_step = 0.02,
    .limit = 2,
    .ids = sizeof(struct hold),
    .target = HOLD_TARGET,
    .find = find_hold,
    .reset = reset_hold,
    .apply = apply_hold,
    .observe = observe_hold,
    .reward = reward_hold,
    .terminal = is_lost,
    .solved = hold_solved,
};

/* --- key-turn: env->episode has the key's position --- */

struct key {
    int key, head, index, thumb; /* body, sites */
    double at[3];                /* the position in the model */
};

static ks_status find_key(struct ks_env *env)
{
    struct key *key = env->ids;

    KS_TRY(ks_env_find(env, mjOBJ_BODY, "key", &key->key));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "keyhead", &key->head));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "IFtip", &key->index));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "THtip", &key->thumb));
    memcpy(key->at, env->model->body_pos + 3 * key->key, sizeof key->at);
    return KS_OK;
}

static void apply_key(struct ks_env *env)
{
    const struct key *key = env->ids;

    memcpy(env->model->body_pos + 3 * key->key, env->episode, sizeof key->at);
}

/* The angle is drawn before the position. */
static ks_status reset_key(struct ks_env *env, struct ks_rng *rng)
{
    const struct key *key = env->ids;
    double angle = 0;

    memcpy(env->episode, key->at, sizeof key->at);
    if (env->task->goal > 0) {
        angle = ks_rng_uniform(rng, -mjPI / 2, mjPI / 2);
        draw_near(rng, key->at, 0.01, env->episode);
    }
    ks_env_myo_begin(env);
    env->data->qpos[KS_HAND_JOINTS] = angle;
    return KS_OK;
}

static double *observe_key(const struct ks_env *env, double *out)
{
    const struct key *key = env->ids;

    out = ks_env_append(out, KS_HAND_JOINTS, env->data->qpos);
    out = ks_env_myo_append_velocities(env, 0, KS_HAND_JOINTS, out);
    *out++ = env->data->qpos[KS_HAND_JOINTS];
    out = ks_env_myo_append_velocities(env, KS_HAND_JOINTS, 1, out);
    ks_env_myo_between(env, key->index, key->head, out), out += 3;
    ks_env_myo_between(env, key->thumb, key->head, out), out += 3;
    return ks_env_myo_append_activations(env, out);
}

/* How far a finger tip is from where it would touch the key's head, 3 cm from its centre. */
static double approach(const struct ks_env *env, int tip)
{
    const struct key *key = env->ids;
    double vector[3];

    return fabs(ks_env_myo_between(env, tip, key->head, vector) - 0.03);
}

static const double APART = 0.1;

static bool lets_go(const struct ks_env *env)
{
    const struct key *key = env->ids;

    return approach(env, key->index) > APART || approach(env, key->thumb) > APART;
}

static bool key_solved(const struct ks_env *env)
{
    return env->data->qpos[KS_HAND_JOINTS] > (env->task->goal > 0 ? 2 * mjPI : 3.14);
}

static double reward_key(const struct ks_env *env)
{
    const struct key *key = env->ids;
    const double angle = env->data->qpos[KS_HAND_JOINTS];
    const double index = approach(env, key->index), thumb = approach(env, key->thumb);

    return angle - 10 * index - 10 * thumb - ks_env_myo_effort(env) +
           4 * ((angle > mjPI / 2) + (angle > mjPI)) -
           25 * ((index > APART / 2) + (thumb > APART / 2));
}

const struct ks_env_domain ks_env_myo_key = {
    .suite = &ks_env_myosuite,
    .model = "myohand_keyturn.xml",
    .nq = KS_HAND_JOINTS + 1,
    .nv = KS_HAND_JOINTS + 1,
    .nu = KS_HAND_MUSCLES,
    .na = KS_HAND_MUSCLES,
    .control_step = 0.02,
    .limit = 2,
    .ids = sizeof(struct key),
    .target = 3,
    .find = find_key,
    .reset = reset_key,
    .apply = apply_key,
    .observe = observe_key,
    .reward = reward_key,
    .terminal = lets_go,
    .solved = key_solved,
};

/* --- pen-twirl: env->episode has the quaternion of the pen that shows the target direction --- */

enum { PEN_JOINTS = 6 };

struct pen {
    int pen, shown;                                   /* bodies */
    int centre, top, bottom, shown_top, shown_bottom; /* sites; the pen is to stay at the first */
    double length, shown_length;
    double quaternion[4]; /* of `shown` in the model */
};

static ks_status find_pen(struct ks_env *env)
{
    struct pen *pen = env->ids;
    const double *at = env->model->site_pos;
    double vector[3];

    KS_TRY(ks_env_find(env, mjOBJ_BODY, "Object", &pen->pen));
    KS_TRY(ks_env_find(env, mjOBJ_BODY, "target", &pen->shown));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "eps_ball", &pen->centre));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "object_top", &pen->top));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "object_bottom", &pen->bottom));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "target_top", &pen->shown_top));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "target_bottom", &pen->shown_bottom));
    pen->length = ks_env_difference(3, at + 3 * pen->bottom, at + 3 * pen->top, vector);
    pen->shown_length = ks_env_difference(3, at + 3 * pen->shown_bottom, at + 3 * pen->shown_top,
                                          vector);
    memcpy(pen->quaternion, env->model->body_quat + 4 * pen->shown, sizeof pen->quaternion);
    return KS_OK;
}

static void apply_pen(struct ks_env *env)
{
    const struct pen *pen = env->ids;

    memcpy(env->model->body_quat + 4 * pen->shown, env->episode, sizeof pen->quaternion);
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
    const struct pen *pen = env->ids;

    memcpy(env->episode, pen->quaternion, sizeof pen->quaternion);
    if (env->task->goal > 0)
        draw_direction(rng, env->episode);
    ks_env_myo_begin(env);
    env->data->qpos[0] = KS_PALM_UP;
    return KS_OK;
}

/* From the place where the pen is to stay to the pen; returns the distance. */
static double pen_offset(const struct ks_env *env, double offset[3])
{
    const struct pen *pen = env->ids;
    const mjData *d = env->data;

    return ks_env_difference(3, d->site_xpos + 3 * pen->centre, d->xpos + 3 * pen->pen, offset);
}

/* The directions of the pen and of the target, vectors of length 1. */
static void pen_directions(const struct ks_env *env, double is[3], double wanted[3])
{
    const struct pen *pen = env->ids;

    ks_env_myo_between(env, pen->bottom, pen->top, is);
    ks_env_myo_between(env, pen->shown_bottom, pen->shown_top, wanted);
    for (size_t i = 0; i < 3; i++) {
        is[i] /= pen->length;
        wanted[i] /= pen->shown_length;
    }
}

static double *observe_pen(const struct ks_env *env, double *out)
{
    const struct pen *pen = env->ids;
    double is[3], wanted[3];

    pen_directions(env, is, wanted);
    out = ks_env_append(out, KS_HAND_JOINTS, env->data->qpos);
    out = ks_env_append(out, 3, env->data->xpos + 3 * pen->pen);
    out = ks_env_myo_append_velocities(env, KS_HAND_JOINTS, PEN_JOINTS, out);
    out = ks_env_append(out, 3, is);
    out = ks_env_append(out, 3, wanted);
    pen_offset(env, out), out += 3;
    ks_env_difference(3, wanted, is, out), out += 3;
    return ks_env_myo_append_activations(env, out);
}

static double pen_distance(const struct ks_env *env)
{
    double offset[3];

    return pen_offset(env, offset);
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

const struct ks_env_domain ks_env_myo_pen = {
    .suite = &ks_env_myosuite,
    .model = "myohand_pen.xml",
    .nq = KS_HAND_JOINTS + PEN_JOINTS,
    .nv = KS_HAND_JOINTS + PEN_JOINTS,
    .nu = KS_HAND_MUSCLES,
    .na = KS_HAND_MUSCLES,
    .control_step = 0.01,
    .limit = 1,
    .ids = sizeof(struct pen),
    .target = 4,
    .find = find_pen,
    .reset = reset_pen,
    .apply = apply_pen,
    .observe = observe_pen,
    .reward = reward_pen,
    .terminal = is_dropped,
    .solved = pen_solved,
};
