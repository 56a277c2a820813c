/* MuJoCo's library, loaded with dlopen when the first environment is created. So a program
 * starts without the library, and can say what to install: mj_step is called as ks_mj.step. */
#ifndef KS_ENV_MUJOCO_H
#define KS_ENV_MUJOCO_H

#include <mujoco/mujoco.h>

#include "core/error.h"

/* Every function and variable of MuJoCo that this folder uses has a row here. */
#define KS_MUJOCO_NAMES(X)                                                                         \
    X(mj_, addBufferVFS)                                                                           \
    X(mj_, defaultVFS)                                                                             \
    X(mj_, deleteData)                                                                             \
    X(mj_, deleteModel)                                                                            \
    X(mj_, deleteVFS)                                                                              \
    X(mj_, forward)                                                                                \
    X(mj_, getState)                                                                               \
    X(mj_, id2name)                                                                                \
    X(mj_, loadXML)                                                                                \
    X(mj_, makeData)                                                                               \
    X(mj_, name2id)                                                                                \
    X(mj_, resetData)                                                                              \
    X(mj_, resetDataKeyframe)                                                                      \
    X(mj_, rnePostConstraint)                                                                      \
    X(mj_, setState)                                                                               \
    X(mj_, stateSize)                                                                              \
    X(mj_, step)                                                                                   \
    X(mj_, step1)                                                                                  \
    X(mj_, step2)                                                                                  \
    X(mj_, version)                                                                                \
    X(mj_, versionString)                                                                          \
    X(mju_, type2Str)                                                                              \
    X(mju_, user_error)                                                                            \
    X(mju_, user_warning)

#define KS_MUJOCO_FIELD(prefix, name) __typeof__(prefix##name) *name;
extern struct ks_mujoco {
    KS_MUJOCO_NAMES(KS_MUJOCO_FIELD)
} ks_mj;

/* Loads the library, once: the installed one, or the one that the build used. On failure
 * (KS_MISSING, KS_MEMORY) none of ks_mj may be used. */
ks_status ks_mujoco_load(void);

#endif
