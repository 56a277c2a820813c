/* What the files of src/env share: an environment from the inside, and what a domain supplies.
 *
 * To add a domain: write src/env/NAME.c, which defines one struct ks_env_domain, declare that at
 * the end of this file, and add a row a task to the table in env.c. */
#ifndef KS_ENV_DOMAIN_H
#define KS_ENV_DOMAIN_H

#include "env/env.h"
#include "env/mujoco.h"
#include <libxml/tree.h>

struct ks_env_domain;

struct ks_env_task {
    const char *name;
    const struct ks_env_domain *domain;
    size_t observations;
    double goal; /* what tells the tasks of a domain apart: a target's speed or radius, ... */
};

enum { KS_ENV_EPISODE = 8 };

/* Elements of a rotation matrix, row-major: XZ is the x component of the frame's z axis. */
enum { KS_XX = 0, KS_XZ = 2, KS_ZX = 6, KS_ZZ = 8 };

struct ks_env {
    const struct ks_env_task *task;
    mjModel *model;
    mjData *data;
    void *ids; /* what the domain's `find` looked up, [domain->ids] bytes */
    double
        episode[KS_ENV_EPISODE]; /* what its `reset` measured or drew beyond qpos, qvel and act */
    int substeps;                /* physics steps of a control step */
    size_t steps, step;          /* control steps of an episode; done in this one */
    bool ended;
    double *gain, *offset; /* [actions]: control = gain * action + offset */
    double *good;          /* [observations]: the last one handed out */
    size_t divergences;
    char divergence[512], flags[64];
};

struct ks_env_domain {
    const char *model;   /* "dog.xml" */
    int nq, nv, nu, na;  /* of the compiled model: all that sets the width of an observation */
    double control_step; /* seconds */
    double limit;        /* seconds of an episode */
    size_t ids;          /* bytes of its struct of looked-up numbers */
    size_t target;       /* coordinates of the target's place that `reset` draws: the first numbers
                            of env->episode */

    /* Edits the model before it is compiled; NULL: it is used as it is. `path` for messages. */
    ks_status (*edit)(const struct ks_env_task *task, xmlNode *root, const char *path);
    /* Fills env->ids, which is zeroed, and writes into the model what is the same in all episodes
     * of the task; once, after compilation. */
    ks_status (*find)(struct ks_env *env);
    /* The task's initialisation of an episode: comes after ks_physics_reset and before the closing
     * ks_physics_forward. Draws in dm_control's order. KS_NUMBER if no draw makes a start state. */
    ks_status (*reset)(struct ks_env *env, struct ks_rng *rng);
    /* Writes what `episode` says into the model (a target's place or size); NULL: nothing to write.
     * `reset` calls it, and so does a saved state that comes back. */
    void (*apply)(struct ks_env *env);
    /* Writes the blocks in alphabetical order of their names; returns where it stopped. */
    double *(*observe)(const struct ks_env *env, double *out);
    double (*reward)(const struct ks_env *env);
};

/* model.c: the task's model from DM_CONTROL_DIR, edited and compiled. The caller frees it with
 * mj_deleteModel. KS_MISSING if a file of it is not there. */
ks_status ks_env_load(const struct ks_env_task *task, mjModel **model);
/* Removes the element `tag` that bears `name`, or all of that tag; or sets an attribute of it. */
ks_status ks_env_xml_remove(xmlNode *root, const char *path, const char *tag, const char *name);
void ks_env_xml_remove_all(xmlNode *root, const char *tag);
ks_status ks_env_xml_set(xmlNode *root, const char *path, const char *tag, const char *name,
                         const char *attribute, const char *value);
/* The number of a named element of the compiled model. */
ks_status ks_env_find(const struct ks_env *env, mjtObj type, const char *name, int *id);
/* Where the values of a sensor start in sensordata; it must have `width` of them. */
ks_status ks_env_find_sensor(const struct ks_env *env, const char *name, int width, int *start);

/* start.c: draws that several domains start with. `random_joints` draws every joint's position,
 * `random_joints_apart` until nothing touches: KS_NUMBER if it never does so. */
void ks_env_random_joints(struct ks_env *env, struct ks_rng *rng);
ks_status ks_env_random_joints_apart(struct ks_env *env, struct ks_rng *rng);
/* Uniform over all rotations. */
void ks_env_random_rotation(struct ks_rng *rng, double quaternion[4]);

/* blocks.c: parts of observations. What appends returns the end. */
double *ks_env_append(double *out, size_t n, const double *values);
/* The hinges' values, in the order of joints; address: jnt_qposadr or jnt_dofadr. */
double *ks_env_append_hinges(double *out, const mjModel *model, const int *address,
                             const double *values);
/* R' v: a vector of the world in the frame R. */
void ks_env_to_frame(const double R[9], const double v[3], double out[3]);
double ks_env_norm(size_t n, const double *v);
/* b - a, whose norm is returned. */
double ks_env_difference(size_t n, const double *a, const double *b, double *out);

extern const struct ks_env_domain ks_env_acrobot, ks_env_cartpole, ks_env_cheetah, ks_env_dog,
    ks_env_finger_spin, ks_env_finger_turn, ks_env_fish, ks_env_hopper, ks_env_humanoid,
    ks_env_pendulum, ks_env_quadruped, ks_env_reacher, ks_env_walker;

#endif
