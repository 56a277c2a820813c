/* Checkpoints and vectors: the HDF5 files that the programs share.
 *
 * Everything is double in memory; a file written with `f32` holds float32. Files appear complete
 * or not at all. checkpoints/README.md documents the layout. A flat vector has the parameters of
 * one critic after the other, each in the canonical order of arch.h. */
#ifndef KS_IO_CHECKPOINT_H
#define KS_IO_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/adam.h"
#include "io/attribute.h"
#include "io/reference.h"
#include "net/arch.h"

struct ks_h5;
struct ks_arch_f64; /* of net/arch.h, which code in float32 includes as ks_arch_f32 */

/* `ensemble` networks of the same description, with their parameters. */
struct ks_networks {
    char *text;               /* the description; owned. NULL: the group is absent   */
    struct ks_arch_f64 *arch; /* parsed from it; owned                               */
    size_t ensemble;          /* E                                                   */
    double *w;                /* [E, P] parameters; owned                            */
    double *frozen;           /* [E, arch->frozen] numbers of layers with trainable=no; owned */
    double *state; /* [E, arch->states] running statistics; owned. NULL if the file lacks some */
};

/* E P: the parameters of all of them. */
size_t ks_networks_parameters(const struct ks_networks *networks);

struct ks_checkpoint {
    struct ks_networks critic;
    /* The batch, required in every file. */
    size_t minibatches, rows, loss_rows; /* N, R, B */
    double *input;                       /* [N, R, D], D = critic.arch->in; owned */
    /* [N, B, T] if all critics have the same targets, else [N, E, B, T]; T =
     * critic.arch->loss.targets. Owned. In a file the latter is [N, B, E, T]. */
    double *target;
    bool targets_differ;
    double *weight; /* [N, B] weights of the rows, which multiply l; owned. NULL if all are 1 */
    /* Optional: the targets from rewards before normalization, in the order of `target`. NULL if
     * the file does not have them. Owned. */
    double *target_raw;
    /* Optional: what the exporting program computed from all this. Reading does not compare it, but
     * ks_references_compare does. */
    struct ks_references references;
    /* Written by the training engine; NULL or 0 in other files. */
    struct ks_networks target_critic, actor;            /* groups /target, /actor                */
    double *adam_m, *adam_v;                            /* [E, P]; owned                         */
    int64_t adam_step;                                  /* steps taken                           */
    struct ks_adam_constants adam;                      /* the defaults if the file has none     */
    struct ks_attributes attributes, metrics, settings; /* the root's, /metrics, /settings */
};

/* Reads from an open file what the critic's loss and its operators depend on: /critic, /batch,
 * /optimizer, and the root attributes. The other groups are not read; their fields are NULL or 0.
 * Checks shapes and types, that numbers are finite, and that targets of a ce loss are distributions
 * (no negative entry, sums within 1e-3 of 1). Reference results are not compared.
 *
 * Objects under /critic and /batch that the format does not define are refused, and so are such
 * attributes of /optimizer. Other objects and root attributes that it does not define are ignored.
 * Root attributes that it defines must have their type (`seed` INTEGER, `gamma` NUMBER, `returns`
 * LIST, `env` STRING, ...).
 *
 * Fails with KS_FORMAT or KS_IO. The message names the file, the object, what was expected and what
 * was found. The caller frees the checkpoint with ks_checkpoint_free. */
ks_status ks_checkpoint_read_loss(const struct ks_h5 *h5, struct ks_checkpoint **checkpoint);
/* Writes a file, which appears complete or not at all (file.h): datasets of float32 if `f32`,
 * else float64, chunked, shuffled, compressed, with Fletcher-32 checksums. */
ks_status ks_checkpoint_write(const char *path, const struct ks_checkpoint *checkpoint, bool f32);
/* Sets *bytes to the memory that the arrays of ks_checkpoint_read_loss take. It reads shapes and no
 * values, so a small file that declares huge datasets can be refused. Fails as
 * ks_checkpoint_read_loss does, but does not check the values. */
ks_status ks_checkpoint_bytes(struct ks_h5 *h5, double *bytes);
/* Sets *bytes as ks_checkpoint_bytes does, and *checkpoint to a checkpoint whose arrays are NULL.
 */
ks_status ks_checkpoint_shapes(struct ks_h5 *h5, double *bytes, struct ks_checkpoint **checkpoint);
void ks_checkpoint_free(struct ks_checkpoint *checkpoint); /* and the struct itself; NULL is fine */
KS_OWNER(ks_checkpoint_free, struct ks_checkpoint *)
/* Parses a description of networks with `in` inputs and allocates `ensemble` such networks, all
 * numbers zero: parameters, and running statistics if `states`. KS_FORMAT, KS_MEMORY. The caller
 * ends with ks_networks_clear, also after a failure. */
ks_status ks_networks_allocate(const char *text, size_t in, size_t ensemble, bool states,
                               struct ks_networks *networks);
void ks_networks_clear(struct ks_networks *networks); /* frees what it holds */

/* Minibatch n alone, without reference results. The copy borrows all arrays; do not free it. */
struct ks_checkpoint ks_checkpoint_minibatch(const struct ks_checkpoint *checkpoint, size_t n);
/* The arrays of the critic's loss and of its operators: where the checkpoint points to them (to
 * NULL if it has none), and how many numbers they have, in all or for each minibatch. */
struct ks_checkpoint_array {
    double **at;
    size_t size;
    bool of_minibatches;
};
enum { KS_CHECKPOINT_ARRAYS = 7 };
void ks_checkpoint_arrays(struct ks_checkpoint *checkpoint,
                          struct ks_checkpoint_array list[KS_CHECKPOINT_ARRAYS]);
/* The numbers in the targets of a minibatch. */
size_t ks_checkpoint_target_size(const struct ks_checkpoint *checkpoint);
/* The targets [B, T] of a critic in minibatch n. */
const double *ks_checkpoint_target(const struct ks_checkpoint *checkpoint, size_t critic, size_t n);
/* The weights [B] of the rows of minibatch n; NULL if all are 1. */
const double *ks_checkpoint_weight(const struct ks_checkpoint *checkpoint, size_t n);

/* Checks beyond finiteness, with messages that start with "PATH: NAME: "; they fail with KS_FORMAT.
 * Targets must be distributions if the loss needs them (no negative entry, sums within
 * 1e-3 of 1); weights of rows, Adam's second moments and running variances must not be negative.
 * The last ones are in arrays NAME/NN_kind/var. */
ks_status ks_checkpoint_check_targets(const struct ks_checkpoint *checkpoint, const char *path,
                                      const char *name, const double *target);
ks_status ks_checkpoint_check_weights(const struct ks_checkpoint *checkpoint, const char *path,
                                      const char *name);
ks_status ks_checkpoint_check_squares(const struct ks_checkpoint *checkpoint, const char *path,
                                      const char *name);
ks_status ks_networks_check_variances(const struct ks_networks *networks, const char *path,
                                      const char *name);
/* KS_FORMAT if a layer reads its state arrays in training mode and the networks hold none. `path`,
 * which may be NULL, starts the message. */
ks_status ks_networks_check_state(const struct ks_networks *networks, const char *path);

/* Numbers beside the k vectors of a file: [k] if columns is 0, else [k, columns]. */
struct ks_vectors_table {
    const char *name; /* "/eigenvalue" */
    size_t columns;
    const double *values;
};

/* The contents of a vector file. Nothing is owned. */
struct ks_vectors {
    size_t k, n;
    const double *values;                   /* [k, n]                                     */
    const struct ks_attributes *attributes; /* of the root; NULL: none                    */
    const struct ks_vectors_table *tables;  /* the last one has no name; NULL: none       */
};

/* A vector file: k vectors of n numbers. Root attributes and other tables are written but not read;
 * attributes that `kappascope analyze` does not write are refused. ks_vectors_read_open reads k and
 * all vectors from an open file into *vectors [k, n], which the caller frees, also after a failure;
 * only k if `vectors` is NULL. ks_vectors_read_eigenvalues reads their eigenvalues into
 * *eigenvalues [k], which the caller frees; of vectors that have none it leaves it as it is. */
ks_status ks_vectors_read_open(const struct ks_h5 *h5, size_t n, size_t *k, double **vectors);
ks_status ks_vectors_read_eigenvalues(const struct ks_h5 *h5, size_t k, double **eigenvalues);
ks_status ks_vectors_write(const char *path, const struct ks_vectors *vectors);

#endif
