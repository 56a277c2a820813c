/* MuJoCo's calls in the order in which dm_control makes them, and the library's messages.
 *
 * Tassa et al., "dm_control: software and tasks for continuous control", Software Impacts 6, 2020,
 * section on stepping; dm_control 1.0.20, mujoco/engine.py. */
#ifndef KS_ENV_PHYSICS_H
#define KS_ENV_PHYSICS_H

#include <stdbool.h>

#include "core/error.h"
#include "env/env.h"
#include "env/mujoco.h"

/* Takes over the library's errors and warnings, which by default end the process and write a log
 * file; fails with KS_MISSING if the library is not the one that the headers describe. */
ks_status ks_physics_start(void);

/* Runs work(argument). An error that the library reports meanwhile ends `work` at once and gives
 * KS_RUN with the library's words; `work` must own nothing then. */
ks_status ks_physics_guard(void (*work)(void *argument), void *argument);

/* Where the address space of this process is limited: does the same in a child process, silently,
 * and fails with KS_MEMORY where that ends by a signal, as it does where MuJoCo has no memory left.
 * `what`: the file that the message starts with. */
ks_status ks_physics_try(void (*work)(void *argument), void *argument, const char *what);
/* Whether the library's words are about an allocation that failed. */
bool ks_physics_lacks_memory(const char *words);
/* Fails with KS_MEMORY: "WHAT: MuJoCo is out of memory: WORDS", and what the limit leaves. */
ks_status ks_physics_no_memory(const char *what, const char *words);

/* The library's last warning in this thread; "" if none. A counter's first rise sets it. */
const char *ks_physics_warning(void);

/* mj_resetData, then a forward pass with the actuators off. */
void ks_physics_reset(mjModel *model, mjData *data);
/* A forward pass with the actuators off: there is no control yet that means anything. */
void ks_physics_forward(mjModel *model, mjData *data);
/* One control step of `substeps` physics steps; data->ctrl is set. */
void ks_physics_step(const mjModel *model, mjData *data, int substeps);

/* Sets the flags; KS_USAGE if this version of the library does not have one that is asked for. */
ks_status ks_physics_set_flags(mjModel *model, const struct ks_env_options *options);
/* "nativeccd=0 multiccd=0" */
void ks_physics_print_flags(const mjModel *model, size_t size, char *text);

#endif
