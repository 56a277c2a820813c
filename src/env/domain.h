/* What the files of src/env share: an environment from the inside, and what a domain supplies.
 *
 * To add a domain: write src/env/NAME.c, which defines one struct ks_env_domain, declare that at
 * the end of this file, and add a row a task to the table in env.c. */
#ifndef KS_ENV_DOMAIN_H
#define KS_ENV_DOMAIN_H

#include "ks/env.h"
#include "mujoco.h"
#include <libxml/tree.h>

struct ks_env_domain;

struct ks_env_task {
    const char *name;
    const struct ks_env_domain *domain;
    size_t observations;
    double goal; /* what tells the tasks of a domain apart: a target speed, a target's radius */
};

enum { KS_ENV_EPISODE = 8 };

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
    double control_step; /* seconds; 0: one physics step */
    double limit;        /* seconds of an episode */
    size_t ids;          /* bytes of its struct of looked-up numbers */

    /* Edits the model before it is compiled; NULL: it is used as it is. `path` for messages. */
    ks_status (*edit)(const struct ks_env_task *task, xmlNode *root, const char *path);
    /* Fills env->ids, which is zeroed; once, after compilation. */
    ks_status (*find)(struct ks_env *env);
    /* The task's initialisation of an episode: comes after ks_physics_reset and before the closing
     * ks_physics_forward. Draws in dm_control's order. */
    void (*reset)(struct ks_env *env, struct ks_rng *rng);
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
/* Removes the element `tag` that bears `name`, or sets an attribute of it. */
ks_status ks_env_xml_remove(xmlNode *root, const char *path, const char *tag, const char *name);
ks_status ks_env_xml_set(xmlNode *root, const char *path, const char *tag, const char *name,
                         const char *attribute, const char *value);
/* The number of a named element of the compiled model. */
ks_status ks_env_find(const struct ks_env *env, mjtObj type, const char *name, int *id);
/* Where the values of a sensor start in sensordata; it must have `width` of them. */
ks_status ks_env_find_sensor(const struct ks_env *env, const char *name, int width, int *start);

extern const struct ks_env_domain ks_env_dog;

#endif
