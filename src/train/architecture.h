/* What an agent's networks are described by: systems (system.c) and the study's named
 * architectures, {bn, ln, dense} x [wn] x {ce, mse} (architecture.c). */
#ifndef KS_TRAIN_ARCHITECTURE_H
#define KS_TRAIN_ARCHITECTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/encoder.h"
#include "agent/pixels.h"
#include "core/error.h"
#include "train/settings.h"

/* Systems: everything that makes an agent besides its task, in one file NAME.system. It names the
 * descriptions of critic and actor and has the settings that differ from the defaults.
 *
 *   [system]
 *   critic = ../arch/sac.arch      relative to the file's folder
 *   actor = sac-actor.arch         "dense 2A" is its last layer: A is the number of actions
 *   optimist = o.arch              may be missing: of an optimistic actor, with "dense A"
 *   encoder_state = s.arch         may be missing: the modules of an encoder (agent/encoder.h);
 *   encoder_action = a.arch        with them critic and actor see its embeddings, and the actor's
 *   encoder_pair = p.arch          last layer is "dense A"
 *   encoder_model = m.arch
 *   image = i.arch                 may be missing: of an agent that sees images (agent/pixels.h);
 *   trunk = t.arch                 its actor's last layer is "dense A", too
 *   [train]
 *   utd = 1                        settings, as for --set */

/* The networks that an agent is described by; only some systems have those after the actor. */
enum ks_network_text {
    KS_CRITIC_TEXT,
    KS_ACTOR_TEXT,
    KS_OPTIMIST_TEXT,
    KS_ENCODER_TEXT, /* the first module of an encoder; the others follow, all or none */
    KS_PIXELS_TEXT = KS_ENCODER_TEXT + KS_MODULES, /* image, then trunk; both or none */
    KS_TEXTS = KS_PIXELS_TEXT + KS_PIXELS_PARTS
};
/* Their names in files: "critic", ... */
extern const char *const ks_text_names[KS_TEXTS];
void ks_texts_free(char *text[KS_TEXTS]); /* frees the descriptions and sets them to NULL */

/* *path = the file of a system: `name` itself if it ends in .system, or one of those that come with
 * the program (configs/systems); the caller frees it. NULL if `name` is no system. KS_IO. */
ks_status ks_system_find(const char *name, char **path);
extern const char KS_SYSTEM_ENDING[]; /* ".system" */
/* Whether the name has that ending. */
bool ks_system_is_file(const char *name);
/* Sets what [train] has. KS_IO, KS_FORMAT, KS_USAGE, naming the file and the key. */
ks_status ks_system_settings(const char *path, struct ks_settings *settings);
/* Fills text, which is all NULL, with the descriptions for `actions` actions. The caller frees
 * them, also after a failure. KS_IO, KS_FORMAT. */
ks_status ks_system_describe(const char *path, size_t actions, char *text[KS_TEXTS]);

struct ks_architecture {
    const char *name;          /* {bn, ln, dense}[+wn]+{ce, mse} */
    const char *normalization; /* its first word                 */
    bool weight_normalization;
    const char *loss; /* its last word */
};
/* The twelve architectures of the study, ended by a row without a name. */
extern const struct ks_architecture ks_architectures[];
/* The row with that name, or NULL. */
const struct ks_architecture *ks_architecture_find(const char *name);

/* Whether `name` is the path of a description, which ends in ".arch". The name of such a run is the
 * file name without its folder. */
bool ks_architecture_is_file(const char *name);

/* Sets text to the descriptions of an agent's networks, for `actions` actions; NULL: the agent has
 * no such network. `name` is a system, one of the twelve, built with the sizes in the
 * settings, or a file with the critic's description (which then determines sizes, atoms and loss;
 * `skip` applies to the actor only). For a file, the actor's blocks are of the first kind below
 * that the file has a layer of,
 *
 *   batchnorm: bn    layernorm, groupnorm or rmsnorm: ln    none of them: dense
 *
 * with weight normalization if the file contains project=unit. The caller frees the texts; after a
 * failure there are none. Fails with KS_USAGE on an unknown name, KS_IO, KS_FORMAT. */
ks_status ks_architecture(const char *name, const struct ks_settings *settings, size_t actions,
                          char *text[KS_TEXTS]);

/* The columns of the critics' and of the actor's input, for a task with these numbers: the
 * observation and the action, and the observation; or what an encoder, or image and trunk, make of
 * them. KS_FORMAT. */
struct ks_widths {
    size_t critic, actor;
    size_t encoder; /* parameters of the encoder, or of image and trunk, if there are any */
};
ks_status ks_architecture_widths(char *const text[KS_TEXTS], size_t observations, size_t actions,
                                 struct ks_widths *widths);

#endif
