/* A network's description (architecture): the text of an `.arch` file, parsed for a given input
 * width.
 *
 * The grammar is in configs/README.md. Layers are numbered in the order of the text with every
 * `repeat` unrolled. The flat parameter vector holds their arrays in this order, and within a layer
 * in the order of ks_layer.param; every array is row-major. Layers with trainable=no are left out;
 * their numbers, in the same order, form a second vector. The extended vector is both, one after
 * the other. */
#ifndef KS_NET_ARCH_H
#define KS_NET_ARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/real.h"
#include "layers/layer.h"
#include "net/loss.h"

/* The policy of an actor (policy.c), the last line of its description: a tanh-squashed Gaussian
 * over `actions` actions. The network's outputs are the means and then the log standard deviations;
 * with `shift` they are what an optimistic actor adds to the means of another one; with `fixed` a
 * tanh maps them to the action itself. */
struct ks_policy {
    size_t actions; /* 0: not an actor */
    bool shift, fixed;
    double gain; /* of a shift's last kernel at the start */
    bool squash; /* log-stds are mapped into [min, max] by a tanh; else clipped to it */
    double log_std_min, log_std_max;
};

/* Parses a line `policy ...` for a network with `outputs` columns. KS_FORMAT. */
ks_status KS(policy_parse)(struct ks_line *line, size_t outputs, struct ks_policy *policy);

struct KS(arch) {
    char *text;     /* as given; owned */
    size_t in, out; /* columns of the input and of the output (K; an actor: 2 * actions) */
    size_t n_layers;
    /* [n_layers], in order of execution: a container follows its body. Owned. */
    struct KS(layer) *layer;
    size_t parameters;    /* P, the length of the parameter vector        */
    size_t frozen;        /* the length of the vector of frozen numbers   */
    size_t states;        /* the length of the state vector               */
    bool reads_state;     /* a layer reads its state arrays in training mode */
    bool joint;           /* a layer couples the rows, as batchnorm does  */
    struct KS(loss) loss; /* kind NULL for an actor, and for a network of an encoder, which has
                           * neither loss nor policy */
    struct ks_policy policy;
    enum ks_products products; /* of float32: how layers multiply; set after parsing */
};

/* Parses `text` for inputs of `in` columns. `source` is its file name in messages
 * ("FILE:LINE: ..."). Fails with KS_FORMAT. The caller frees *arch with ks_arch_free. */
ks_status KS(arch_parse)(const char *text, const char *source, size_t in, struct KS(arch) **arch);
/* Reads a text file of at most 1 MiB into *text, which the caller frees. KS_IO, KS_FORMAT. */
ks_status KS(arch_read)(const char *path, char **text);
void KS(arch_free)(struct KS(arch) *arch);

/* The number of elements: rows * columns, or columns for a vector. */
size_t KS(array_size)(const struct ks_array *a);

/* The length of the extended vector. */
static inline size_t ks_arch_extended(const struct KS(arch) *arch)
{
    return arch->parameters + arch->frozen;
}

/* Whether the body of a container starts with layer i: then the container reads its input, too. */
static inline bool ks_arch_opens(const struct KS(arch) *arch, size_t i)
{
    for (size_t c = i + 1; c < arch->n_layers; c++)
        if (arch->layer[c].body == i)
            return true;
    return false;
}

/* Sets what depends on the list of layers: their places in these vectors and in the vector of
 * states, and the sums over all layers. */
void KS(arch_place)(struct KS(arch) *arch);

/* Whether the layer is the network's last one. */
bool KS(arch_is_head)(const struct KS(arch) *arch, const struct KS(layer) *layer);

/* Writes the name of a layer's group in a checkpoint, "03_dense". */
void KS(arch_group)(const struct KS(layer) *layer, char name[32]);

#endif
