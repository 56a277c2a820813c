/* MuJoCo's library: loads it, calls it in the same order as dm_control, Gymnasium and MyoSuite do,
 * and handles its errors and warnings. It is loaded with dlopen when the first environment is
 * created, so a program starts without it, and can say what to install: mj_step is called as
 * ks_mj.step.
 *
 * Tassa et al., "dm_control: software and tasks for continuous control", Software Impacts 6, 2020,
 * section on stepping; dm_control 1.0.20, mujoco/engine.py; Gymnasium 1.0.0,
 * envs/mujoco/mujoco_env.py; MyoSuite 2.5.0, envs/env_base.py, envs/myo/base_v0.py, robot/robot.py,
 * physics/mj_sim_scene.py. */
#ifndef KS_ENV_PHYSICS_H
#define KS_ENV_PHYSICS_H

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
    X(mjr_, defaultContext)                                                                        \
    X(mjr_, freeContext)                                                                           \
    X(mjr_, makeContext)                                                                           \
    X(mjr_, readPixels)                                                                            \
    X(mjr_, render)                                                                                \
    X(mjr_, setBuffer)                                                                             \
    X(mju_, type2Str)                                                                              \
    X(mju_, user_error)                                                                            \
    X(mju_, user_warning)                                                                          \
    X(mjv_, defaultOption)                                                                         \
    X(mjv_, defaultPerturb)                                                                        \
    X(mjv_, defaultScene)                                                                          \
    X(mjv_, freeScene)                                                                             \
    X(mjv_, makeScene)                                                                             \
    X(mjv_, updateScene)

#define KS_MUJOCO_FIELD(prefix, name) __typeof__(prefix##name) *name;
extern struct ks_mujoco {
    KS_MUJOCO_NAMES(KS_MUJOCO_FIELD)
} ks_mj;

/* Loads the library, once: the installed one, or the one that the build used. On failure
 * (KS_MISSING, KS_MEMORY) none of ks_mj may be used. */
ks_status ks_mujoco_load(void);

/* Installs handlers for the library's errors and warnings, which by default end the process and
 * write a log file. KS_MISSING if the library and the headers are of different versions. */
ks_status ks_physics_start(void);

/* Runs work(argument). If the library reports an error, `work` is left by longjmp, so it must own
 * no resources, and KS_RUN is returned with the library's message. */
ks_status ks_physics_guard(void (*work)(void *argument), void *argument);

/* The library's last warning in this thread, "" if none. MuJoCo calls the handler only when a
 * warning counter rises from 0. */
const char *ks_physics_warning(void);

/* mj_resetData, then a forward pass with the actuators off. */
void ks_physics_reset(mjModel *model, mjData *data);
/* A forward pass with the actuators off, as no control has been set yet. */
void ks_physics_forward(mjModel *model, mjData *data);
/* One control step: `substeps` physics steps with the controls data->ctrl. */
void ks_physics_step(const mjModel *model, mjData *data, int substeps);

/* Sets the flags to 0 or 1 (-1: leaves them); KS_USAGE if this version of the library does not have
 * a flag that is to be 1. */
ks_status ks_physics_set_flags(mjModel *model, int nativeccd, int multiccd);
/* Prints the flags in use: "nativeccd=0 multiccd=0". */
void ks_physics_print_flags(const mjModel *model, size_t size, char *text);

#endif
