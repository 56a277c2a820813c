/* Gymnasium's v4 environments: HalfCheetah, Hopper, Walker2d, Ant, Humanoid, HumanoidStandup.
 * Gymnasium 1.0.0, envs/mujoco/NAME_v4.py.
 *
 * Rewards are for the speed between two control steps, so each domain remembers where the robot
 * was: episode[0]. */
#include "env/domain.h"

#include <math.h>

/* --- what they share --- */

/* A domain: its model, with the sizes q, v and u, the seconds of a control step, and what else
 * differs between them. */
#define DOMAIN(file, q, v, u, seconds, ...)                                                        \
    {                                                                                              \
        .suite = &ks_env_gymnasium, .model = {file, .nq = q, .nv = v, .nu = u},                    \
        .control_step = seconds, __VA_ARGS__                                                       \
    }

/* Adds uniform noise in [-c, c] to the model's own positions, and to velocities of zero the same
 * or, if `normal`, c times normal noise. */
static void scatter(struct ks_env *env, struct ks_rng *rng, double c, bool normal)
{
    const mjModel *m = env->model;
    mjData *d = env->data;

    for (int i = 0; i < m->nq; i++)
        d->qpos[i] = m->qpos0[i] + ks_rng_uniform(rng, -c, c);
    for (int i = 0; i < m->nv; i++)
        d->qvel[i] = normal ? c * ks_rng_normal(rng) : ks_rng_uniform(rng, -c, c);
}

static ks_status reset_wide(struct ks_env *env, struct ks_rng *rng)
{
    scatter(env, rng, 0.1, true);
    return KS_OK;
}

static ks_status reset_narrow(struct ks_env *env, struct ks_rng *rng)
{
    scatter(env, rng, 5e-3, false);
    return KS_OK;
}

static ks_status reset_humanoid(struct ks_env *env, struct ks_rng *rng)
{
    scatter(env, rng, 1e-2, false);
    return KS_OK;
}

static double sum_squares(size_t n, const double *x)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

static double effort(const struct ks_env *env)
{
    return sum_squares(ks_env_actions(env), env->data->ctrl);
}

/* The speed from the remembered position to `position`. */
static double speed(const struct ks_env *env, double position)
{
    return (position - env->episode[0]) / (env->model->opt.timestep * env->substeps);
}

/* --- HalfCheetah, Hopper, Walker2d: in a plane; qpos is x, z, the angle of the torso, joints ---
 */

static void remember_x(struct ks_env *env)
{
    env->episode[0] = env->data->qpos[0];
}

static double *observe_cheetah(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, (size_t)env->model->nq - 1, env->data->qpos + 1);
    return ks_env_append(out, (size_t)env->model->nv, env->data->qvel);
}

static double *observe_legged(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, (size_t)env->model->nq - 1, env->data->qpos + 1);
    for (int i = 0; i < env->model->nv; i++) {
        double v = env->data->qvel[i];
        *out++ = isnan(v) ? v : fmin(fmax(v, -10), 10); /* fmin and fmax would drop a NaN */
    }
    return out;
}

static double reward_cheetah(const struct ks_env *env)
{
    return speed(env, env->data->qpos[0]) - 0.1 * effort(env);
}

static double reward_legged(const struct ks_env *env)
{
    return speed(env, env->data->qpos[0]) + 1 - 1e-3 * effort(env);
}

static bool within(double limit, size_t n, const double *x)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i]) < limit))
            return false;
    return true;
}

static bool hopper_falls(const struct ks_env *env)
{
    const mjData *d = env->data;
    const size_t nq = (size_t)env->model->nq, nv = (size_t)env->model->nv;

    return !(d->qpos[1] > 0.7 && fabs(d->qpos[2]) < 0.2 && within(100, nq - 2, d->qpos + 2) &&
             within(100, nv, d->qvel));
}

static bool walker_falls(const struct ks_env *env)
{
    const double *q = env->data->qpos;

    return !(q[1] > 0.8 && q[1] < 2 && fabs(q[2]) < 1);
}

const struct ks_env_domain ks_env_gym_half_cheetah = DOMAIN(
    "half_cheetah.xml", 9, 9, 6, 0.05, .reset = reset_wide, .remember = remember_x,
    .observe = observe_cheetah, .reward = reward_cheetah);

const struct ks_env_domain ks_env_gym_hopper = DOMAIN(
    "hopper.xml", 6, 6, 3, 0.008, .reset = reset_narrow, .remember = remember_x,
    .observe = observe_legged, .reward = reward_legged, .terminal = hopper_falls);

const struct ks_env_domain ks_env_gym_walker2d = DOMAIN(
    "walker2d.xml", 9, 9, 6, 0.008, .reset = reset_narrow, .remember = remember_x,
    .observe = observe_legged, .reward = reward_legged, .terminal = walker_falls);

/* --- Ant --- */

enum { TORSO };
static const struct ks_env_element ant_elements[] = {[TORSO] = KS_BODY("torso"), {.name = NULL}};

static double torso_x(const struct ks_env *env)
{
    return ks_env_position(env, TORSO)[0];
}

static void remember_torso(struct ks_env *env)
{
    env->episode[0] = torso_x(env);
}

static double *observe_ant(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, (size_t)env->model->nq - 2, env->data->qpos + 2);
    return ks_env_append(out, (size_t)env->model->nv, env->data->qvel);
}

static double reward_ant(const struct ks_env *env)
{
    return speed(env, torso_x(env)) + 1 - 0.5 * effort(env);
}

static bool ant_falls(const struct ks_env *env)
{
    const double z = env->data->qpos[2];

    return !(z >= 0.2 && z <= 1);
}

const struct ks_env_domain ks_env_gym_ant = DOMAIN(
    "ant.xml", 15, 14, 8, 0.05, .elements = ant_elements, .reset = reset_wide,
    .remember = remember_torso, .observe = observe_ant, .reward = reward_ant,
    .terminal = ant_falls);

/* --- Humanoid, HumanoidStandup --- */

/* The x coordinate of the centre of mass. */
static double centre_x(const struct ks_env *env)
{
    const mjModel *m = env->model;
    double moment = 0, mass = 0;

    for (int i = 0; i < m->nbody; i++) {
        moment += m->body_mass[i] * env->data->xipos[3 * i];
        mass += m->body_mass[i];
    }
    return moment / mass;
}

static void remember_centre(struct ks_env *env)
{
    env->episode[0] = centre_x(env);
}

static double *observe_humanoid(const struct ks_env *env, double *out)
{
    const mjData *d = env->data;
    const size_t nq = (size_t)env->model->nq, nv = (size_t)env->model->nv,
                 bodies = (size_t)env->model->nbody;

    out = ks_env_append(out, nq - 2, d->qpos + 2);
    out = ks_env_append(out, nv, d->qvel);
    out = ks_env_append(out, 10 * bodies, d->cinert);
    out = ks_env_append(out, 6 * bodies, d->cvel);
    out = ks_env_append(out, nv, d->qfrc_actuator);
    return ks_env_append(out, 6 * bodies, d->cfrc_ext);
}

static double reward_humanoid(const struct ks_env *env)
{
    return 1.25 * speed(env, centre_x(env)) + 5 - 0.1 * effort(env);
}

static bool humanoid_falls(const struct ks_env *env)
{
    const double z = env->data->qpos[2];

    return !(z > 1 && z < 2);
}

static double reward_standup(const struct ks_env *env)
{
    const size_t forces = 6 * (size_t)env->model->nbody;
    const double height = env->data->qpos[2] / env->model->opt.timestep;

    return height - 0.1 * effort(env) -
           fmin(0.5e-6 * sum_squares(forces, env->data->cfrc_ext), 10) + 1;
}

const struct ks_env_domain ks_env_gym_humanoid = DOMAIN(
    "humanoid.xml", 24, 23, 17, 0.015, .reset = reset_humanoid, .remember = remember_centre,
    .observe = observe_humanoid, .reward = reward_humanoid, .terminal = humanoid_falls);

const struct ks_env_domain ks_env_gym_standup = DOMAIN(
    "humanoidstandup.xml", 24, 23, 17, 0.015, .reset = reset_humanoid, .observe = observe_humanoid,
    .reward = reward_standup);
