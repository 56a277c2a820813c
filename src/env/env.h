/* Environments: tasks of dm_control's suite, Gymnasium, MyoSuite and HumanoidBench, on MuJoCo's C
 * API.
 *
 * Tasks behave as in dm_control 1.0.20 with its default ("legacy") stepping, where the components
 * of an observation are concatenated in alphabetical order of their names; in Gymnasium's v4
 * environments (1.0.0); in MyoSuite 2.5.0; and in HumanoidBench (commit 791405f). A control step,
 * which the training engine calls an environment step, makes several physics steps. There is one
 * file per domain of dm_control, one each for Gymnasium and HumanoidBench, two for MyoSuite, and
 * one row per task in the table of tasks.c. To add a domain see domain.h. */
#ifndef KS_ENV_ENV_H
#define KS_ENV_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/rng.h"

struct ks_env;

struct ks_env_options {
    int nativeccd, multiccd; /* 0: disable, 1: enable, -1: the library's default */
};

/* What is known of a task without loading its model. `name` is "dog-stand", "Ant-v4", ...; `suite`
 * is the Python package that it comes from; `variable` names its folder in the environment; the
 * user gets that folder from `source`, NULL if it is installed with the program; control_step is in
 * seconds; action_repeat is the usual number of control steps of an agent step. */
struct ks_env_about {
    const char *name, *suite, *variable, *source;
    size_t observations, actions, action_repeat;
    double control_step;
};
/* Describes the i-th task; false if there are at most i tasks. */
bool ks_env_about(size_t i, struct ks_env_about *about);
/* Describes the task of this name; false if it is unknown. */
bool ks_env_about_task(const char *name, struct ks_env_about *about);
/* Describes the task in a file, which is loaded; about->name is `path`. Fails as ks_env_new
 * does. */
ks_status ks_env_about_file(const char *path, struct ks_env_about *about);
/* Creates the environment of a task: one of the table, or one of the user's own in a file
 * NAME.so (shared.h). Fails with KS_USAGE on an unknown task or a flag that this version of MuJoCo
 * does not have; with KS_MISSING if the library or the models are not installed (the folder of
 * models is named by DM_CONTROL_DIR, GYMNASIUM_DIR or MYOSUITE_DIR in the environment, or is the
 * installed one, or the build's; HumanoidBench's is named by HUMANOID_BENCH_DIR only); with
 * KS_FORMAT if the model does not fit the task. `options` may be NULL. Every environment has its
 * own model, so environments can run in different threads. The caller frees it with ks_env_free. */
ks_status ks_env_new(const char *task, const struct ks_env_options *options, struct ks_env **env);
void ks_env_free(struct ks_env *env);
KS_OWNER(ks_env_free, struct ks_env *)

const char *ks_env_name(const struct ks_env *env); /* of the task; of a file "NAME.so": NAME */
/* Of a task of the user's own: the SHA-256 of its file, in words; else NULL. */
const char *ks_env_identity(const struct ks_env *env);
bool ks_env_is_file(const char *task);                /* whether a task's name names a file */
size_t ks_env_observations(const struct ks_env *env); /* length of an observation */
/* Whether a task's name ends in "-pixels": a task of dm_control, whose agent sees the last frames
 * of the simulation in place of observations (DrQ-v2: Yarats et al., ICLR 2022; code
 * facebookresearch/drqv2, c0c650b, dmc.py). */
bool ks_env_is_pixels(const char *task);
enum {
    KS_FRAMES = 3,
    KS_FRAME_SIDE = 84,
    KS_FRAME = 3 * KS_FRAME_SIDE * KS_FRAME_SIDE /* bytes */
};
/* A byte of a frame as networks see it. */
static inline float ks_pixel(unsigned char byte)
{
    return (float)byte / 255 - 0.5F;
}
/* The length of what the agent sees: of an observation, or of KS_FRAMES frames. */
size_t ks_env_seen(const struct ks_env *env);
size_t ks_env_actions(const struct ks_env *env); /* length of an action, entries in [-1, 1] */
size_t ks_env_steps(const struct ks_env *env);   /* control steps of an episode, at most */

/* Starts an episode: draws its start state from `rng`, in the suite's order, and sets observation
 * [ks_env_observations]. If the start state is not finite or MuJoCo warns about it, it is counted
 * as a divergence and another one is drawn. KS_NUMBER if 100 start states fail, or if bodies touch
 * in every drawn state; KS_RUN if MuJoCo reports an error. */
ks_status ks_env_reset(struct ks_env *env, struct ks_rng *rng, double *observation);

/* A start state of an episode. */
struct ks_env_start {
    const double *qpos;   /* [nq] of the model; NULL: its default pose */
    const double *qvel;   /* [nv]; NULL: zero                          */
    const double *act;    /* [na]; NULL: zero                          */
    const double *target; /* coordinates of the target that the task would draw (finger-turn: x, z;
                             fish, h1-reach: x, y, z; reacher: x, y; MyoSuite: see its files) or
                             the number of checkpoints reached (h1-maze); other tasks have none.
                             NULL: a fixed position; 0 */
};
/* Starts an episode at `start` (NULL: all of its defaults), for comparison with other programs.
 * KS_NUMBER if the state is not finite or MuJoCo warns about it. */
ks_status ks_env_force(struct ks_env *env, const struct ks_env_start *start, double *observation);

/* Whether an episode has ended, and how. After a terminal state no rewards come, so its value is 0.
 * A time limit only stops the simulation: the last state has a value like any other. */
enum ks_env_end { KS_ENV_GOES_ON = 0, KS_ENV_TRUNCATED, KS_ENV_TERMINATED };

/* Makes one control step; the episode must not be over. action [ks_env_actions]. Sets observation,
 * reward, and how the episode has ended, if it has. If the simulation diverges (a MuJoCo warning
 * counter rises, or a number is not finite), the episode is truncated, with the last finite
 * observation and reward 0, and ks_env_divergence describes why. KS_RUN if MuJoCo reports an error.
 */
ks_status ks_env_step(struct ks_env *env, const double *action, double *observation, double *reward,
                      enum ks_env_end *end);

/* Whether the task has a goal, which a state reaches or not (MyoSuite); whether the present state
 * does. Published scores are the share of episodes in which an agent step ends in such a state. */
bool ks_env_has_goal(const struct ks_env *env);
bool ks_env_solved(const struct ks_env *env);

/* The number of divergences since ks_env_new, and a description of the last one ("" if none). */
size_t ks_env_divergences(const struct ks_env *env);
const char *ks_env_divergence(const struct ks_env *env);
/* Sets the number of divergences, for an environment that replaces an earlier one. */
void ks_env_divergences_set(struct ks_env *env, size_t n);

/* Saves and restores the complete state, including the counters, as ks_env_state_size numbers: a
 * restored environment continues with the same bits. ks_env_state_set fails with KS_FORMAT,
 * changing nothing, if the state is of another task or size, or of another version of MuJoCo unless
 * `any_version`. (States of two versions have the same size unless one of them added to
 * mjSTATE_INTEGRATION.) */
size_t ks_env_state_size(const struct ks_env *env);
void ks_env_state_get(const struct ks_env *env, double *state);
ks_status ks_env_state_set(struct ks_env *env, size_t size, const double *state, bool any_version);

/* The version of the loaded library, "3.1.6"; the flags in use, "nativeccd=0 multiccd=0". */
const char *ks_env_mujoco_version(void);
const char *ks_env_flags(const struct ks_env *env);

/* --- Frames of an environment, drawn by MuJoCo's own renderer as dm_control 1.0.20 draws them
 * (mujoco/engine.py, physics.render): under the same OpenGL library they have the same bytes.
 * OpenGL comes from EGL, without a window and without a card, where Mesa draws in software. It is
 * loaded with dlopen when the first renderer is made, so nothing of it is needed to build. --- */

struct ks_render;

/* A renderer of the states of `env`, which outlives it: its task's camera, frames of `height` x
 * `width` pixels, each at least 1 and at most 4096. Fails with KS_USAGE if the task is not
 * NAME-pixels, with KS_MISSING if there is no EGL or it gives no OpenGL, with KS_RUN if MuJoCo
 * reports an error, KS_MEMORY. The caller frees with ks_render_free, before the environment and in
 * the same thread. */
ks_status ks_render_new(struct ks_env *env, size_t height, size_t width, struct ks_render **render);
void ks_render_free(struct ks_render *render); /* NULL is fine */
KS_OWNER(ks_render_free, struct ks_render *)

/* What draws, and its version, on which the bytes of frames depend. */
const char *ks_render_opengl(const struct ks_render *render);

/* frame [height, width, 3]: the present state in red, green and blue, lines from the top. Several
 * renderers can be used in turn, each in the thread that made it. KS_RUN if MuJoCo reports an
 * error. */
ks_status ks_render_frame(struct ks_render *render, uint8_t *frame);

#endif
