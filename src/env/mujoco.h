/* MuJoCo's library, loaded with dlopen when the first environment is created. So a program
 * starts without the library, and can say what to install. The names below refer to the loaded
 * functions. */
#ifndef KS_ENV_MUJOCO_H
#define KS_ENV_MUJOCO_H

#include <mujoco/mujoco.h>

#include "core/error.h"

/* Every function and variable of MuJoCo that this folder uses needs a row here and a #define. */
#define KS_MUJOCO_NAMES(X)                                                                         \
    X(mj_addBufferVFS)                                                                             \
    X(mj_defaultVFS)                                                                               \
    X(mj_deleteData)                                                                               \
    X(mj_deleteModel)                                                                              \
    X(mj_deleteVFS)                                                                                \
    X(mj_forward)                                                                                  \
    X(mj_getState)                                                                                 \
    X(mj_id2name)                                                                                  \
    X(mj_loadXML)                                                                                  \
    X(mj_makeData)                                                                                 \
    X(mj_name2id)                                                                                  \
    X(mj_resetData)                                                                                \
    X(mj_resetDataKeyframe)                                                                        \
    X(mj_rnePostConstraint)                                                                        \
    X(mj_setState)                                                                                 \
    X(mj_stateSize)                                                                                \
    X(mj_step)                                                                                     \
    X(mj_step1)                                                                                    \
    X(mj_step2)                                                                                    \
    X(mj_version)                                                                                  \
    X(mj_versionString)                                                                            \
    X(mju_type2Str)                                                                                \
    X(mju_user_error)                                                                              \
    X(mju_user_warning)

#define KS_MUJOCO_DECLARE(name) extern __typeof__(name) *ks_##name;
KS_MUJOCO_NAMES(KS_MUJOCO_DECLARE)

#ifndef KS_MUJOCO_PLAIN /* defined in mujoco.c, which defines the pointers */
#define mj_addBufferVFS      (*ks_mj_addBufferVFS)
#define mj_defaultVFS        (*ks_mj_defaultVFS)
#define mj_deleteData        (*ks_mj_deleteData)
#define mj_deleteModel       (*ks_mj_deleteModel)
#define mj_deleteVFS         (*ks_mj_deleteVFS)
#define mj_forward           (*ks_mj_forward)
#define mj_getState          (*ks_mj_getState)
#define mj_id2name           (*ks_mj_id2name)
#define mj_loadXML           (*ks_mj_loadXML)
#define mj_makeData          (*ks_mj_makeData)
#define mj_name2id           (*ks_mj_name2id)
#define mj_resetData         (*ks_mj_resetData)
#define mj_resetDataKeyframe (*ks_mj_resetDataKeyframe)
#define mj_rnePostConstraint (*ks_mj_rnePostConstraint)
#define mj_setState          (*ks_mj_setState)
#define mj_stateSize         (*ks_mj_stateSize)
#define mj_step              (*ks_mj_step)
#define mj_step1             (*ks_mj_step1)
#define mj_step2             (*ks_mj_step2)
#define mj_version           (*ks_mj_version)
#define mj_versionString     (*ks_mj_versionString)
#define mju_type2Str         (*ks_mju_type2Str)
#define mju_user_error       (*ks_mju_user_error)
#define mju_user_warning     (*ks_mju_user_warning)
#endif

/* Loads the library, once: the installed one, or the one that the build used. On failure
 * (KS_MISSING, KS_MEMORY) none of the names may be used. */
ks_status ks_mujoco_load(void);

#endif
