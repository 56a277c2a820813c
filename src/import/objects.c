#include "import/objects.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"

/* Appends the arrays of a layer: its parameters, or its states. */
static void append(struct ks_objects *objects, const struct KS(layer) *layer, bool state)
{
    const size_t n = state ? layer->n_states : layer->n_params;
    size_t offset = state ? layer->state_offset : layer->offset;
    char group[32];

    KS(arch_group)(layer, group);
    for (size_t i = 0; i < n; i++) {
        const struct ks_array *array = state ? &layer->state[i] : &layer->param[i];
        struct ks_object *o = &objects->list[objects->n++];

        snprintf(o->name, sizeof o->name, "%s/%s", group, array->name);
        if (array->rows > 0)
            o->dims[o->n_dims++] = array->rows;
        o->dims[o->n_dims++] = array->columns;
        o->state = state;
        o->variance = state && strcmp(array->name, "var") == 0;
        o->offset = offset;
        offset += KS(array_size)(array);
    }
}

ks_status ks_objects_of(const struct KS(arch) *arch, struct ks_objects *objects)
{
    *objects = (struct ks_objects){.read_states = arch->reads_state};
    KS_TRY(ks_alloc(arch->n_layers * 2 * KS_LAYER_ARRAYS, sizeof *objects->list, &objects->list));
    for (size_t i = 0; i < arch->n_layers; i++) {
        append(objects, &arch->layer[i], false);
        append(objects, &arch->layer[i], true);
    }
    return KS_OK;
}
