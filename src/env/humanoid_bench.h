/* HumanoidBench's robot h1: what the files of its tasks share. humanoid_bench.c. */
#ifndef KS_ENV_HUMANOID_BENCH_H
#define KS_ENV_HUMANOID_BENCH_H

#include "env/domain.h"

/* The robot's elements in the model. A domain whose struct of ids has more starts with this one. */
struct ks_h1 {
    int pelvis, torso;                               /* bodies              */
    int head, imu, left_foot, right_foot, left_hand; /* sites               */
    int velocity; /* of the centre of mass: index in sensordata of its x    */
};

/* A domain of the robot: its model in the file "h1_pos_TASK.xml", with `free` free objects, the
 * struct of its ids, and what else differs between the 14 domains. */
#define KS_H1_DOMAIN(task, free, struct_of_ids, ...)                                               \
    {                                                                                              \
        .suite = &ks_env_humanoid_bench, .model = "h1_pos_" task ".xml", .nq = 26 + 7 * (free),    \
        .nv = 25 + 6 * (free), .nu = 19, .control_step = 0.02, .limit = 20,                        \
        .ids = sizeof(struct_of_ids), __VA_ARGS__                                                  \
    }

/* Fills a struct ks_h1, env->ids; KS_FORMAT if the model lacks an element or the keyframe from
 * which episodes start. */
ks_status ks_h1_find(struct ks_env *env);
/* Adds uniform noise in [-0.01, 0.01] to every coordinate, also of quaternions and objects.
 */
ks_status ks_h1_reset(struct ks_env *env, struct ks_rng *rng);
/* qpos, qvel */
double *ks_h1_observe(const struct ks_env *env, double *out);
/* Whether the pelvis is below 0.2 m. */
bool ks_h1_falls(const struct ks_env *env);

/* A coordinate of a site: axis 0, 1, 2 for x, y, z. */
double ks_h1_site(const struct ks_env *env, int site, size_t axis);

/* Factors of rewards, all in [0, 1]: a head at `height` or above; a torso whose zz is `zz` or more;
 * their product for a standing robot, height 1.65 and zz 0.9; small forces of the actuators, from
 * 0.8; no horizontal speed; a speed of `speed` or more along x, from 1/6. */
double ks_h1_tall(const struct ks_env *env, double height);
double ks_h1_upright(const struct ks_env *env, double zz, double margin);
double ks_h1_stand(const struct ks_env *env);
double ks_h1_relaxed(const struct ks_env *env);
double ks_h1_still(const struct ks_env *env);
double ks_h1_move(const struct ks_env *env, double speed);

#endif
