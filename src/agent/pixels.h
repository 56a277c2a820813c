/* What an agent that sees images has in front of its critics and its actor: the encoder of DrQ-v2
 * (Yarats et al., "Mastering Visual Continuous Control: Improved Data-Augmented Reinforcement
 * Learning", ICLR 2022; code facebookresearch/drqv2, c0c650b, drqv2.py). ' marks a target:
 *
 *   e = image(s)   features of the images, by convolutions; the actor's input, as constants
 *   h = trunk(e)   what the critics share; their input is x = [h; a], or x' = [h'; a]
 *
 * The critics' loss trains image and trunk, but the image only through e(s): e(s') is a constant.
 * Critics with batchnorm see (s, a) and (s', a') together, so that the trunk's gradient then comes
 * from both. */
#ifndef KS_AGENT_PIXELS_H
#define KS_AGENT_PIXELS_H

#include <stddef.h>

#include "agent/optim.h"
#include "core/error.h"
#include "core/real.h"
#include "net/net.h"

struct KS(agent);

enum ks_pixels_part {
    KS_IMAGE,
    KS_TRUNK,
    KS_PIXELS_PARTS
}; /* in the order of their descriptions */

struct KS(pixels) {
    struct KS(arch) *arch[KS_PIXELS_PARTS];
    struct KS(trained) part[KS_PIXELS_PARTS]; /* the trunk has a target                     */
    /* The image's passes are made on a few rows at a time, whose activations stay in the cache. */
    size_t chunks;
    struct KS(net) *image, *one;  /* of batch/chunks rows; of one row      */
    struct KS(net) *trunk, *both; /* of a minibatch; of s and s' together */
    struct ks_adam adam;          /* of the image; the trunk's is the critics' */
    /* Work space. F: columns of e. */
    real *primals;     /* [chunks]: blocks of the image's passes on s */
    real *s, *actions; /* [batch, observations], [batch, actions] */
    real *e_bar;       /* [2 batch, F]: dL/d e of s and s'        */
};

/* Creates the networks of an agent, of which only `config` is read, without their arrays. KS_FORMAT
 * if the descriptions do not fit each other, KS_MEMORY. The caller frees, also after a failure. */
ks_status KS(pixels_new)(const struct KS(agent) *agent, struct KS(pixels) **pixels);
void KS(pixels_free)(struct KS(pixels) *pixels);
/* Takes the arrays from the agent's arena. */
void KS(pixels_lay_out)(struct ks_arena *arena, const struct KS(agent) *agent);
/* Sets parameters and moments to their start, the target to a copy. The gain of the image's kernels
 * is sqrt(2) whatever config->starts says, as in the published code. */
ks_status KS(pixels_init)(struct KS(agent) *agent);

/* The actor's loss -mean(Q) on the features in a->s, with the noise in a->policy; its gradient goes
 * to actor.g. For tests also. */
double KS(pixels_actor_gradient)(struct KS(agent) *agent);
/* After the critics' gradients: those of trunk and image, in part[].g. For tests also. */
void KS(pixels_gradient)(struct KS(agent) *agent);

#endif
