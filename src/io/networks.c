/* The networks of a group. A file has the datasets GROUP/NN_kind/ARRAY, each [E, ...]. In memory
 * each network is a flat vector, and one network follows the other. */
#include "io/checkpoint_groups.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum { OBJECT_LENGTH = 160, GROUP_LENGTH = 96, LAYER_LENGTH = 32 };

/* The kinds of arrays, of which a cursor visits one: parameters, parameters of layers with
 * trainable=no, or running statistics. */
enum kind { PARAMETERS, FROZEN, STATES };

/* Walks over the arrays of a description in the canonical order. */
struct cursor {
    const struct KS(arch) *arch;
    const char *group;
    size_t ensemble;
    enum kind kind;
    size_t layer, array; /* where the next array is in the description             */
    size_t next;         /* its offset in one network's flat vector                */
    /* The current array: */
    size_t offset, size; /* its offset in that vector, its numbers in one network  */
    char layer_group[GROUP_LENGTH], object[OBJECT_LENGTH];
    struct ks_h5_shape shape;
};

static struct cursor start(const char *group, const struct ks_networks *networks, enum kind kind)
{
    return (struct cursor){
        .arch = networks->arch, .group = group, .ensemble = networks->ensemble, .kind = kind};
}

static size_t length(const struct cursor *c) /* numbers in one network's flat vector */
{
    return c->kind == STATES   ? c->arch->states
           : c->kind == FROZEN ? c->arch->frozen
                               : c->arch->parameters;
}

/* The number of the layer's arrays of the kind that the cursor visits. */
static size_t count_arrays(const struct cursor *c, const struct KS(layer) *layer)
{
    if (c->kind == STATES)
        return layer->n_states;
    return (layer->frozen > 0) == (c->kind == FROZEN) ? layer->n_params : 0;
}

/* Moves to the next array; false if there are no more. */
static bool advance(struct cursor *c)
{
    const struct KS(layer) *layer = c->arch->layer;
    const struct ks_array *array;
    char name[LAYER_LENGTH];

    for (; c->layer < c->arch->n_layers; c->layer++, c->array = 0)
        if (c->array < count_arrays(c, &layer[c->layer]))
            break;
    if (c->layer == c->arch->n_layers)
        return false;
    layer += c->layer;
    array = &(c->kind == STATES ? layer->state : layer->param)[c->array++];
    KS(arch_group)(layer, name);
    snprintf(c->layer_group, sizeof c->layer_group, "%s/%s", c->group, name);
    snprintf(c->object, sizeof c->object, "%s/%s", c->layer_group, array->name);
    c->shape = (struct ks_h5_shape){.n_dims = 2, .dims = {c->ensemble, array->columns}};
    if (array->rows > 0)
        c->shape = (struct ks_h5_shape){.n_dims = 3,
                                        .dims = {c->ensemble, array->rows, array->columns}};
    c->size = (array->rows > 0 ? array->rows : 1) * array->columns;
    c->offset = c->next;
    c->next += c->size;
    assert(c->next <= length(c));
    return true;
}

/* Checks that every array has its shape and real numbers. A missing array makes *complete false if
 * the arrays are `optional`, and is a failure otherwise. *largest is the number of numbers that one
 * network has in the largest array. */
static ks_status check_shapes(const struct ks_h5 *h5, struct cursor c, bool optional,
                              bool *complete, size_t *largest)
{
    *complete = true;
    *largest = 0;
    while (advance(&c)) {
        bool found = true;

        if (optional)
            KS_TRY(ks_h5_has(h5, c.object, &found));
        if (found)
            KS_TRY(ks_h5_expect_reals(h5, c.object, &c.shape));
        *complete = *complete && found;
        *largest = c.size > *largest ? c.size : *largest;
    }
    return KS_OK;
}

/* Shapes are checked before memory is allocated, so the sizes in the description cannot ask for
 * more memory than the datasets of the file declare. */
static ks_status read_flat(const struct ks_h5 *h5, struct cursor c, bool optional, double **out)
{
    KS_OWNED double *array = NULL, *flat = NULL;
    size_t largest, n = length(&c);
    bool complete;

    *out = NULL;
    KS_TRY(check_shapes(h5, c, optional, &complete, &largest));
    if (!complete || (optional && n == 0))
        return KS_OK;
    if (h5->declared) {
        *h5->declared += (double)c.ensemble * ((double)n + (double)largest) * sizeof *flat;
        return KS_OK;
    }
    if (n > 0 && c.ensemble > SIZE_MAX / sizeof *flat / n)
        return ks_fail(KS_FORMAT, "%s: %s: %zu networks of %zu numbers do not fit into memory",
                       h5->path, c.group, c.ensemble, n);
    KS_TRY(ks_alloc(c.ensemble * n, sizeof *flat, &flat));
    KS_TRY(ks_alloc(c.ensemble * largest, sizeof *array, &array));
    while (advance(&c)) {
        KS_TRY(ks_h5_read(h5, c.object, &c.shape, array));
        KS_TRY(ks_h5_expect_finite(h5, c.object, c.ensemble * c.size, array));
        for (size_t e = 0; e < c.ensemble; e++)
            memcpy(flat + e * n + c.offset, array + e * c.size, c.size * sizeof *flat);
    }
    *out = flat, flat = NULL;
    return KS_OK;
}

static void write_flat(struct ks_h5 *h5, struct cursor c, const double *flat, bool f32)
{
    KS_OWNED double *array = NULL;
    size_t n = length(&c);

    if (h5->status == KS_OK)
        h5->status = ks_alloc(c.ensemble * n, sizeof *array, &array);
    while (h5->status == KS_OK && advance(&c)) {
        ks_h5_group(h5, c.layer_group);
        for (size_t e = 0; e < c.ensemble; e++)
            memcpy(array + e * c.size, flat + e * n + c.offset, c.size * sizeof *flat);
        ks_h5_write_finite(h5, c.object, f32 ? KS_H5_F32 : KS_H5_F64, &c.shape, array);
    }
}

ks_status ks_parameters_read(const struct ks_h5 *h5, const char *group,
                             const struct ks_networks *like, double **w)
{
    return read_flat(h5, start(group, like, PARAMETERS), false, w);
}

void ks_parameters_write(struct ks_h5 *h5, const char *group, const struct ks_networks *like,
                         const double *w, bool f32)
{
    ks_h5_group(h5, group);
    write_flat(h5, start(group, like, PARAMETERS), w, f32);
}

static ks_status read_description(const struct ks_h5 *h5, const char *group, size_t in,
                                  struct ks_networks *networks)
{
    KS_OWNED char *source = NULL;
    int64_t ensemble;

    KS_TRY(ks_h5_read_string(h5, group, "arch", &networks->text));
    KS_TRY(ks_h5_read_integer(h5, group, "ensemble", 1, &ensemble));
    networks->ensemble = (size_t)ensemble;
    KS_TRY(ks_print_string(&source, "%s: %s: arch", h5->path, group));
    return KS(arch_parse)(networks->text, source, in, &networks->arch);
}

ks_status ks_networks_read(const struct ks_h5 *h5, const char *group, size_t in,
                           struct ks_networks *networks)
{
    const bool actor = strcmp(group, "/actor") == 0;
    const struct KS(arch) *arch;

    *networks = (struct ks_networks){.text = NULL};
    KS_TRY(read_description(h5, group, in, networks));
    arch = networks->arch;
    if (actor ? arch->policy.actions == 0 : !arch->loss.kind)
        return ks_fail(KS_FORMAT,
                       "%s: %s: arch: expected a description that ends in a %s, found %s", h5->path,
                       group, actor ? "policy" : "loss",
                       arch->loss.kind            ? "a loss"
                       : arch->policy.actions > 0 ? "a policy"
                                                  : "outputs");
    KS_TRY(ks_parameters_read(h5, group, networks, &networks->w));
    if (networks->arch->frozen > 0)
        KS_TRY(read_flat(h5, start(group, networks, FROZEN), false, &networks->frozen));
    KS_TRY(read_flat(h5, start(group, networks, STATES), true, &networks->state));
    return ks_networks_check_variances(networks, h5->path, group);
}

void ks_networks_write(struct ks_h5 *h5, const char *group, const struct ks_networks *networks,
                       bool f32)
{
    ks_h5_group(h5, group);
    ks_h5_write_string(h5, group, "arch", networks->text);
    ks_h5_write_integer(h5, group, "ensemble", (int64_t)networks->ensemble);
    write_flat(h5, start(group, networks, PARAMETERS), networks->w, f32);
    if (networks->frozen)
        write_flat(h5, start(group, networks, FROZEN), networks->frozen, f32);
    if (networks->state)
        write_flat(h5, start(group, networks, STATES), networks->state, f32);
}

size_t ks_networks_parameters(const struct ks_networks *networks)
{
    return networks->ensemble * networks->arch->parameters;
}

ks_status ks_networks_allocate(const char *text, size_t in, size_t ensemble, bool states,
                               struct ks_networks *networks)
{
    networks->ensemble = ensemble;
    KS_TRY(ks_copy_string(text, &networks->text));
    KS_TRY(KS(arch_parse)(text, "description", in, &networks->arch));
    KS_TRY(ks_alloc(ks_networks_parameters(networks), sizeof *networks->w, &networks->w));
    if (states && networks->arch->states > 0)
        KS_TRY(
            ks_alloc(ensemble * networks->arch->states, sizeof *networks->state, &networks->state));
    return KS_OK;
}

void ks_networks_clear(struct ks_networks *networks)
{
    KS(arch_free)(networks->arch);
    free(networks->text);
    free(networks->w);
    free(networks->frozen);
    free(networks->state);
    *networks = (struct ks_networks){.text = NULL};
}

ks_status ks_networks_check_state(const struct ks_networks *networks, const char *path)
{
    if (!networks->arch->reads_state || networks->state)
        return KS_OK;
    return ks_fail(KS_FORMAT,
                   "%s%sbatchrenorm and dense norm=spectral need their state arrays, and the "
                   "checkpoint does not have those of all layers (/critic/NN_KIND/mean, var; u, v)",
                   path ? path : "", path ? ": " : "");
}

ks_status ks_networks_check_variances(const struct ks_networks *networks, const char *path,
                                      const char *name)
{
    struct cursor c = start(name, networks, STATES);

    while (networks->state && advance(&c))
        for (size_t i = 0; ks_path_ends(c.object, "/var") && i < c.ensemble * c.size; i++) {
            const double value = networks->state[i / c.size * length(&c) + c.offset + i % c.size];

            if (value < 0)
                return ks_fail(KS_FORMAT, "%s: %s: expected variances, found %g at element %zu",
                               path, c.object, value, i);
        }
    return KS_OK;
}

/* --- what a group may contain --- */

/* Fails unless `name` is the group of a layer in /critic, and holds only the layer's arrays. */
static ks_status expect_layer(const struct ks_h5 *h5, const struct KS(arch) *arch, const char *name)
{
    const char *known[2 * KS_LAYER_ARRAYS + 1] = {NULL};
    char group[KS_H5_OBJECT], own[LAYER_LENGTH] = "";
    const struct KS(layer) *layer = arch->layer;
    size_t n = 0;

    for (; layer < arch->layer + arch->n_layers; layer++) {
        KS(arch_group)(layer, own);
        if (layer->n_params + layer->n_states > 0 && strcmp(own, name) == 0)
            break;
    }
    if (layer == arch->layer + arch->n_layers)
        return ks_fail(KS_FORMAT,
                       "%s: /critic/%s: unknown object: expected groups of the description's "
                       "layers with parameters, named like 00_dense",
                       h5->path, name);
    for (size_t i = 0; i < layer->n_params; i++)
        known[n++] = layer->param[i].name;
    for (size_t i = 0; i < layer->n_states; i++)
        known[n++] = layer->state[i].name;
    snprintf(group, sizeof group, "/critic/%s", name);
    KS_TRY(ks_h5_expect_known(h5, group, true, (const char *const[]){NULL}, ""));
    return ks_h5_expect_known(h5, group, false, known, ", by the description");
}

ks_status ks_networks_expect_known(const struct ks_h5 *h5, const struct ks_networks *critic)
{
    KS_CLEARED_BY(ks_h5_names_clear) struct ks_h5_names names = {.n = 0};

    KS_TRY(ks_h5_expect_known(h5, "/critic", true, (const char *const[]){"arch", "ensemble", NULL},
                              ""));
    KS_TRY(ks_h5_read_names(h5, "/critic", false, &names));
    for (size_t i = 0; i < names.n; i++)
        KS_TRY(expect_layer(h5, critic->arch, names.name[i]));
    return KS_OK;
}
