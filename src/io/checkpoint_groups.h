/* Reading and writing groups of a checkpoint, for checkpoint.c only; other callers include
 * checkpoint.h. */
#ifndef KS_IO_CHECKPOINT_GROUPS_H
#define KS_IO_CHECKPOINT_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/h5.h"

/* --- networks (networks.c): the groups /critic, /target and /actor, and Adam's moments, which have
 * the same layout --- */

/* Reads description, parameters and running statistics of networks with `in` inputs. The
 * description of /actor must end in a policy, others in a loss. Fails with KS_FORMAT or KS_IO. The
 * caller ends with ks_networks_clear, also after a failure. */
ks_status ks_networks_read(const struct ks_h5 *h5, const char *group, size_t in,
                           struct ks_networks *networks);
void ks_networks_write(struct ks_h5 *h5, const char *group, const struct ks_networks *networks,
                       bool f32);

/* The first function reads a group of arrays, which have the names and shapes of the parameters of
 * `like`, into a new vector [E, P], which the caller frees. The second one writes such a vector. */
ks_status ks_parameters_read(const struct ks_h5 *h5, const char *group,
                             const struct ks_networks *like, double **w);
void ks_parameters_write(struct ks_h5 *h5, const char *group, const struct ks_networks *like,
                         const double *w, bool f32);
/* Fails with KS_FORMAT unless /critic holds only the arrays of its description, `arch` and
 * `ensemble`. */
ks_status ks_networks_expect_known(const struct ks_h5 *h5, const struct ks_networks *critic);

/* --- the group /batch (checkpoint_batch.c) --- */

/* The most rows or columns of a minibatch, because sizes in BLAS are of type int. */
enum { KS_CHECKPOINT_SIDE = 1 << 30 };

/* Sets *input to the shape [N, R, D] of /batch/input. Fails with KS_FORMAT unless all three numbers
 * are at least 1, R and D are at most KS_CHECKPOINT_SIDE, and the dataset has real numbers. */
ks_status ks_checkpoint_input_shape(const struct ks_h5 *h5, struct ks_h5_shape *input);

/* Reads and checks the whole group into c, whose critics have been read. `input` is the shape of
 * /batch/input. Fails with KS_FORMAT, KS_IO or KS_MEMORY. ks_checkpoint_free frees the arrays, also
 * after a failure. */
ks_status ks_checkpoint_read_batch(const struct ks_h5 *h5, const struct ks_h5_shape *input,
                                   struct ks_checkpoint *c);
void ks_checkpoint_write_batch(struct ks_h5 *h5, const struct ks_checkpoint *c, bool f32);

#endif
