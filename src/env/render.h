/* Frames of an environment, drawn by MuJoCo's own renderer as dm_control 1.0.20 draws them
 * (mujoco/engine.py, physics.render): under the same OpenGL library they have the same bytes.
 * OpenGL comes from EGL, without a window and without a card, where Mesa draws in software. It is
 * loaded with dlopen when the first renderer is made, so nothing of it is needed to build. */
#ifndef KS_ENV_RENDER_H
#define KS_ENV_RENDER_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/memory.h"
#include "env/env.h"

struct ks_render;

/* A renderer of the states of `env`, which outlives it: its task's camera, frames of `height` x
 * `width` pixels, each at least 1 and at most 4096. Fails with KS_USAGE if MuJoCo does not simulate
 * the task, with KS_MISSING if there is no EGL or it gives no OpenGL, with KS_RUN if MuJoCo reports
 * an error, KS_MEMORY. The caller frees with ks_render_free, before the environment
 * and in the same thread. */
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
