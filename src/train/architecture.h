/* The study's named architectures, {bn, ln, dense} x [wn] x {ce, mse}, as descriptions. */
#ifndef KS_TRAIN_ARCHITECTURE_H
#define KS_TRAIN_ARCHITECTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "net/arch.h"
#include "train/settings.h"
#include "train/system.h"

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
 * no such network. `name` is a system (system.h), one of the twelve, built with the sizes in the
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
 * observation and the action, and the observation; or an encoder's embeddings. KS_FORMAT. */
struct ks_widths {
    size_t critic, actor;
    size_t encoder; /* parameters of the encoder, if there is one */
};
ks_status ks_architecture_widths(char *const text[KS_TEXTS], size_t observations, size_t actions,
                                 struct ks_widths *widths);

#endif
