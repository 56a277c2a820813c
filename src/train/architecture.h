/* The study's named architectures, {bn, ln, dense} x [wn] x {ce, mse}, as descriptions. */
#ifndef KS_TRAIN_ARCHITECTURE_H
#define KS_TRAIN_ARCHITECTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "net/arch.h"
#include "train/settings.h"

struct ks_architecture {
    const char *name;          /* {bn, ln, dense}[+wn]+{ce, mse} */
    const char *normalization; /* its first word                 */
    bool weight_normalization;
    const char *loss; /* its last word */
};
/* The twelve; a row without a name ends them. */
extern const struct ks_architecture ks_architectures[];
/* The row of that name; NULL: none of the twelve. */
const struct ks_architecture *ks_architecture_find(const char *name);

/* Whether this is a file, which ends in ".arch"; no name does. Runs of it are called by its name
 * without the folder. */
bool ks_architecture_is_file(const char *name);

/* Descriptions of critic and actor, for `actions` actions. `name` is one of the twelve, built to
 * the settings' sizes, or a file: the critic's description is read from it (sizes, atoms and loss
 * are the file's) and the actor has the blocks of the first kind below that the file has a layer
 * of,
 *
 *   batchnorm: bn    layernorm or rmsnorm: ln    none of them: dense
 *
 * with weight normalization where the file has a project=unit. `skip` is of the actor alone then.
 * The caller frees both texts. Fails with KS_USAGE on an unknown name, KS_IO, KS_FORMAT. */
ks_status ks_architecture(const char *name, const struct ks_settings *settings, size_t actions,
                          char **critic, char **actor);

#endif
