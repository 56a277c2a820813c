/* Tasks of the user's own: a model of MuJoCo, and a file that says what is observed, what is
 * rewarded, and which states are terminal. configs/README.md describes the file. Control steps are
 * made in dm_control's way (physics.h). */
#ifndef KS_ENV_OWN_H
#define KS_ENV_OWN_H

#include "env/domain.h"
#include "env/tolerance.h"

enum { KS_OWN_TERMS = 64, KS_OWN_NAME = 64 };

/* Some of the numbers of the simulation's state. */
struct ks_own_quantity {
    enum { KS_OWN_QPOS, KS_OWN_QVEL, KS_OWN_ACT, KS_OWN_CTRL, KS_OWN_SENSOR } kind;
    char sensor[KS_OWN_NAME]; /* its name, for KS_OWN_SENSOR          */
    size_t first, end;        /* numbers first..end-1; SIZE_MAX: all that follow, until the model
                               * is known                             */
    size_t start;             /* of the sensor, in sensordata         */
};

/* A line of [observation], [reward] or [terminal]; the latter two have bounds. */
struct ks_own_term {
    char name[KS_OWN_NAME];
    struct ks_own_quantity quantity;
    struct ks_bounds bounds;
    double margin, value; /* of the tolerance */
    enum ks_sigmoid sigmoid;
};

struct ks_own_terms {
    size_t n;
    struct ks_own_term list[KS_OWN_TERMS];
};

struct ks_env_own {
    struct ks_env_task task; /* what env->task points to */
    struct ks_env_domain domain;
    char *path, *name, *model; /* of the file, the task, the model. Owned              */
    char *identity;            /* the file's text, and the digest of the model's. Owned */
    char key[KS_OWN_NAME];     /* keyframe of the start pose; "": the model's pose */
    double position_noise, velocity_noise;
    struct ks_own_terms observation, reward, terminal;
};

/* Whether a task's name is that of such a file or of its model. */
bool ks_env_own_is_file(const char *task);
/* own_file.c: reads the file; for "NAME.xml" this is NAME.task. Fails with KS_IO, or with KS_FORMAT
 * and the place in the file. The caller frees *own with ks_env_own_free. */
ks_status ks_env_own_read(const char *path, struct ks_env_own **own);
void ks_env_own_free(struct ks_env_own *own);

/* own.c: what all such tasks share. */
extern const struct ks_env_domain ks_env_own_domain;

#endif
