/* The study's named architectures, {bn, ln, dense} x [wn] x {ce, mse}, as descriptions. */
#ifndef KS_TRAIN_ARCHITECTURE_H
#define KS_TRAIN_ARCHITECTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/encoder.h"
#include "core/error.h"
#include "net/arch.h"
#include "train/settings.h"

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

/* The descriptions of critic and actor, for `actions` actions. `name` is a system (system.h), one
 * of the twelve, built with the sizes in the settings, or a file with the critic's description
 * (which then determines sizes, atoms and loss; `skip` applies to the actor only). For a file, the
 * actor's blocks are of the first kind below that the file has a layer of,
 *
 *   batchnorm: bn    layernorm, groupnorm or rmsnorm: ln    none of them: dense
 *
 * with weight normalization if the file contains project=unit. The caller frees both texts. Fails
 * with KS_USAGE on an unknown name, KS_IO, KS_FORMAT. */
ks_status ks_architecture(const char *name, const struct ks_settings *settings, size_t actions,
                          char **critic, char **actor);
/* The description of a system's optimistic actor, which the caller frees; NULL if there is none. */
ks_status ks_architecture_optimist(const char *name, size_t actions, char **optimist);
/* The descriptions of the networks of a system's encoder; NULL if there is none. The caller frees
 * them, also after a failure. */
ks_status ks_architecture_encoder(const char *name, char *encoder[KS_PARTS]);

/* The columns of the critics' and of the actor's input, for a task with these numbers: the
 * observation and the action, and the observation; or an encoder's embeddings. Fails as these
 * functions do. */
struct ks_widths {
    size_t critic, actor;
    size_t encoder; /* parameters of the encoder, if there is one */
};
ks_status ks_architecture_widths(const char *name, size_t observations, size_t actions,
                                 struct ks_widths *widths);

#endif
