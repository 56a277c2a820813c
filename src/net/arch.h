/* A network's description: the text of an `.arch` file, parsed for a given input width.
 *
 * The grammar is in configs/README.md. Layers are numbered in the order in which a reader meets
 * them once `repeat` is unrolled; the flat parameter vector holds them in that order, inside a
 * layer the arrays in the order of its table, each row-major. */
#ifndef KS_NET_ARCH_H
#define KS_NET_ARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/real.h"
#include "layers/layer.h"
#include "net/loss.h"

/* The last line of an actor's description: a tanh-squashed Gaussian over `actions` actions. */
struct ks_policy {
    size_t actions; /* 0: not an actor. The last dense has 2 * actions columns */
    bool squash;    /* log-std squashed into [min, max] by a tanh, else clipped */
    double log_std_min, log_std_max;
};

struct ks_arch {
    char *text;      /* as given; owned                          */
    const char *end; /* where the line of loss or policy starts */
    size_t in, out;  /* input width, output columns (K, or 2A for an actor) */
    size_t n_layers;
    struct ks_layer
        *layer;          /* [n_layers], in order of execution, a container where it closes; owned */
    size_t parameters;   /* P, of one network                         */
    size_t states;       /* running statistics of one network         */
    bool joint;          /* a layer couples rows, as batchnorm does   */
    struct ks_loss loss; /* kind NULL for an actor */
    struct ks_policy policy;
};

/* Parses `text` for inputs of `in` columns. `source` names it in messages ("FILE:LINE: ..."). The
 * caller frees *arch with ks_arch_free. Fails with KS_FORMAT. */
ks_status KS(arch_parse)(const char *text, const char *source, size_t in, struct ks_arch **arch);
/* Reads the text of a file (at most 1 MiB) into *text, which the caller frees. */
ks_status KS(arch_read)(const char *path, char **text);
void KS(arch_free)(struct ks_arch *arch);

/* Numbers in an array of a layer's table: rows * columns, or columns where it has no rows. */
size_t KS(array_size)(const struct ks_array *a);

/* The layer is the last one. */
bool KS(arch_is_head)(const struct ks_arch *arch, const struct ks_layer *layer);

/* The group of a layer in a checkpoint, "03_dense", into name[32]. */
void KS(arch_group)(const struct ks_layer *layer, char name[32]);

#endif
