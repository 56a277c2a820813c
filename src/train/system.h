/* Systems: everything that makes an agent besides its task, in one file NAME.system. It names the
 * descriptions of critic and actor and has the settings that differ from the defaults.
 *
 *   [system]
 *   critic = ../arch/sac.arch      relative to the file's folder
 *   actor = sac-actor.arch         "dense 2A" is its last layer: A is the number of actions
 *   optimist = o.arch              may be missing: of an optimistic actor, with "dense A"
 *   encoder_state = s.arch         may be missing: the parts of an encoder (agent/encoder.h); with
 *   encoder_action = a.arch        them critic and actor see its embeddings, and the actor's last
 *   encoder_pair = p.arch          layer is "dense A"
 *   encoder_model = m.arch
 *   [train]
 *   utd = 1                        settings, as for --set
 */
#ifndef KS_TRAIN_SYSTEM_H
#define KS_TRAIN_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/encoder.h"
#include "core/error.h"
#include "train/settings.h"

/* *path = the file of a system: `name` itself if it ends in .system, or a file of the program
 * (configs/systems); the caller frees it. NULL if no system has this name. KS_IO. */
ks_status ks_system_find(const char *name, char **path);
/* Whether the name ends in .system. */
bool ks_system_is_file(const char *name);
/* The names of the systems that come with the program, in alphabetical order, NULL-terminated; the
 * caller frees *names, which is one block. KS_MISSING, KS_MEMORY. */
ks_status ks_system_list(char ***names);
/* Sets what [train] has. KS_IO, KS_FORMAT, KS_USAGE, naming the file and the key. */
ks_status ks_system_settings(const char *path, struct ks_settings *settings);
/* The descriptions of critic and actor for `actions` actions, which the caller frees. KS_IO,
 * KS_FORMAT. */
ks_status ks_system_describe(const char *path, size_t actions, char **critic, char **actor);
/* The description of the optimistic actor; NULL if the system has none. */
ks_status ks_system_describe_optimist(const char *path, size_t actions, char **optimist);
/* The descriptions of the networks of its encoder; NULL if the system has none. */
ks_status ks_system_describe_encoder(const char *path, char *encoder[KS_PARTS]);

#endif
