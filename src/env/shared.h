/* Tasks of the user's own in C: a shared object with the four functions of kappascope_env.h. */
#ifndef KS_ENV_SHARED_H
#define KS_ENV_SHARED_H

#include "env/domain.h"
#include "kappascope_env.h"

struct ks_env_shared {
    struct ks_env_task task; /* what env->task points to */
    struct ks_env_domain domain;
    char *path, *name, *identity; /* the file's, the task's, and the SHA-256 of the file. Owned */
    void *library;                /* of dlopen */
    struct kappascope_env_description about;
    void (*reset)(void *state, uint64_t seed);
    int (*step)(void *state, const double *action, double *reward);
    void (*observe)(const void *state, double *observation);
    unsigned char *state; /* [about.state]; owned */
    double reward;        /* of the last step, and how the episode goes on after it */
    enum ks_env_end end;
};

/* Loads the file. Fails with KS_IO if it cannot be read, and with KS_FORMAT if it is not a shared
 * object, lacks a function, has another version of the interface, or sizes out of range. The caller
 * frees *shared with ks_env_shared_free. */
ks_status ks_env_shared_read(const char *path, struct ks_env_shared **shared);
void ks_env_shared_free(struct ks_env_shared *shared);

#endif
