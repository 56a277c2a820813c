#include "io/known.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const batch_objects[] = {
    "input",  "target", "target_raw",    /* what is analyzed     */
    "weight",                            /* weights of the rows  */
    "output", "loss",   "gradient_norm", /* reference results, see reference.h */
    NULL};
static const char *const critic_attributes[] = {"arch", "ensemble", NULL};
static const char *const no_attributes[] = {NULL};

enum { LIST = 256 };

static bool contains(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* Prints "input, target, loss", or "none" if the list is empty. */
static void print_list(const char *const *list, char text[LIST])
{
    size_t used = (size_t)snprintf(text, LIST, "%s", *list ? *list : "none");

    for (; *list && *++list && used < LIST;)
        used += (size_t)snprintf(text + used, LIST - used, ", %s", *list);
}

/* Fails unless the names of all attributes of the object, or of all objects in the group, are among
 * `known`. The message ends in `by`. */
static ks_status expect_known(const struct ks_h5 *h5, const char *object, bool attributes,
                              const char *const *known, const char *by)
{
    struct ks_h5_names names = {.n = 0};
    ks_status status = KS_OK;
    char list[LIST];

    KS_GO(ks_h5_read_names(h5, object, attributes, &names));
    print_list(known, list);
    for (size_t i = 0; i < names.n && status == KS_OK; i++)
        if (!contains(known, names.name[i]))
            status = ks_fail(KS_FORMAT, "%s: %s%s%s%s: expected only %s%s", h5->path, object,
                             attributes ? ": unknown attribute " : "/", names.name[i],
                             attributes ? "" : ": unknown object", list, by);
done:
    free(names.name);
    return status;
}

ks_status ks_known_attributes(const struct ks_h5 *h5, const char *object, const char *const *known)
{
    return expect_known(h5, object, true, known, "");
}

ks_status ks_known_batch(const struct ks_h5 *h5)
{
    KS_TRY(ks_known_attributes(h5, "/batch", no_attributes));
    return expect_known(h5, "/batch", false, batch_objects, "");
}

/* Fails unless the layer's group holds only the layer's arrays. */
static ks_status expect_arrays(const struct ks_h5 *h5, const struct ks_layer *layer,
                               const char *name)
{
    const char *known[2 * KS_LAYER_ARRAYS + 1] = {NULL};
    char group[KS_H5_OBJECT];
    size_t n = 0;

    for (size_t i = 0; i < layer->n_params; i++)
        known[n++] = layer->param[i].name;
    for (size_t i = 0; i < layer->n_states; i++)
        known[n++] = layer->state[i].name;
    snprintf(group, sizeof group, "/critic/%s", name);
    KS_TRY(ks_known_attributes(h5, group, no_attributes));
    return expect_known(h5, group, false, known, ", by the description");
}

/* The layer with arrays whose group has this name, or NULL. */
static const struct ks_layer *find_layer(const struct ks_arch *arch, const char *name)
{
    const size_t number = strtoul(name, NULL, 10);

    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct ks_layer *layer = &arch->layer[i];
        char group[32];

        if (layer->number != number || layer->n_params + layer->n_states == 0)
            continue;
        KS(arch_group)(layer, group);
        if (strcmp(group, name) == 0)
            return layer;
    }
    return NULL;
}

ks_status ks_known_critic(const struct ks_h5 *h5, const struct ks_networks *critic)
{
    struct ks_h5_names names = {.n = 0};
    ks_status status = KS_OK;

    KS_TRY(ks_known_attributes(h5, "/critic", critic_attributes));
    KS_GO(ks_h5_read_names(h5, "/critic", false, &names));
    for (size_t i = 0; i < names.n; i++) {
        const struct ks_layer *layer = find_layer(critic->arch, names.name[i]);

        if (!layer) {
            status = ks_fail(KS_FORMAT,
                             "%s: /critic/%s: unknown object: expected groups of the description's "
                             "layers with parameters, named like 00_dense",
                             h5->path, names.name[i]);
            goto done;
        }
        KS_GO(expect_arrays(h5, layer, names.name[i]));
    }
done:
    free(names.name);
    return status;
}
