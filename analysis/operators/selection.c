/* Lists the selected coordinates, and applies an operator to vectors that are zero outside them. */
#include "operators/operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/arch.h"

static const struct KS(layer) *find_layer(const struct KS(arch) *arch, size_t number)
{
    for (size_t i = 0; i < arch->n_layers; i++)
        if (arch->layer[i].number == number && !arch->layer[i].kind->uncounted)
            return &arch->layer[i];
    return NULL;
}

/* --- single arrays --- */

/* The length of the first name in a list. */
static size_t name_length(const char *arrays)
{
    return strcspn(arrays, ",");
}

/* Whether the first name in a list names array `i` of the layer: "00_dense/kernel" or "0/kernel".
 */
static bool is_named(const char *arrays, const struct KS(layer) *l, size_t i)
{
    const size_t digits = strspn(arrays, "0123456789"), length = name_length(arrays);
    char kind[48], text[64];

    if (digits == 0 || strtoul(arrays, NULL, 10) != l->number)
        return false;
    snprintf(kind, sizeof kind, "_%s", l->kind->name);
    snprintf(text, sizeof text, "%s/%s", arrays[digits] == '_' ? kind : "", l->param[i].name);
    return length - digits == strlen(text) && strncmp(arrays + digits, text, length - digits) == 0;
}

bool ks_selection_has(int layer, const char *arrays, const struct KS(layer) *l, size_t i)
{
    bool named = !arrays;

    for (const char *name = arrays; name && !named;) {
        named = is_named(name, l, i);
        name += name_length(name);
        name = *name ? name + 1 : NULL;
    }
    return named && l->frozen == 0 && (layer < 0 || l->number == (size_t)layer);
}

static ks_status check_array(const struct KS(arch) *arch, const char *name)
{
    const int length = (int)name_length(name);
    char list[256] = "", group[32];
    size_t used = 0;

    for (size_t k = 0; k < arch->n_layers; k++)
        for (size_t i = 0; i < arch->layer[k].n_params; i++) {
            const struct KS(layer) *l = &arch->layer[k];

            if (is_named(name, l, i))
                return l->frozen == 0
                           ? KS_OK
                           : ks_fail(KS_USAGE,
                                     "--array: expected trained arrays, found %.*s of a layer with "
                                     "trainable=no",
                                     length, name);
            KS(arch_group)(l, group);
            if (l->frozen == 0 && used < sizeof list)
                used += (size_t)snprintf(list + used, sizeof list - used, "%s%s/%s",
                                         used ? ", " : "", group, l->param[i].name);
        }
    return ks_fail(KS_USAGE, "--array: expected some of %s%s; found '%.*s'", list,
                   used >= sizeof list ? "..." : "", length, name);
}

static ks_status check_arrays(const struct KS(arch) *arch, const char *arrays)
{
    for (const char *name = arrays; name;) {
        KS_TRY(check_array(arch, name));
        name += name_length(name);
        name = *name ? name + 1 : NULL;
    }
    return KS_OK;
}

/* --- selections --- */

static ks_status check_layer(const struct KS(arch) *arch, int layer)
{
    const struct KS(layer) *l = find_layer(arch, (size_t)layer);

    if (!l)
        return ks_fail(KS_USAGE, "--layer: expected 0 to %zu, found %d",
                       arch->layer[arch->n_layers - 1].number, layer);
    if (l->frozen > 0)
        return ks_fail(KS_USAGE,
                       "--layer: expected a layer with parameters, found layer %d, a %s "
                       "with trainable=no",
                       layer, l->kind->name);
    if (l->parameters == 0)
        return ks_fail(KS_USAGE,
                       "--layer: expected a layer with parameters, found layer %d, a %s without",
                       layer, l->kind->name);
    return KS_OK;
}

ks_status ks_selection_count(const struct ks_networks *critics, int critic, int layer,
                             const char *arrays, size_t *n)
{
    const struct KS(arch) *arch = critics->arch;

    if (critic >= 0 && (size_t)critic >= critics->ensemble)
        return ks_fail(KS_USAGE, "--critic: expected 0 to %zu, found %d", critics->ensemble - 1,
                       critic);
    if (layer >= 0)
        KS_TRY(check_layer(arch, layer));
    KS_TRY(check_arrays(arch, arrays));
    *n = 0;
    for (size_t k = 0; k < arch->n_layers; k++)
        for (size_t i = 0; i < arch->layer[k].n_params; i++)
            if (ks_selection_has(layer, arrays, &arch->layer[k], i))
                *n += KS(array_size)(&arch->layer[k].param[i]);
    return KS_OK;
}

/* The selected coordinates of critic `e`. */
static void fill_critic(const struct ks_problem *q, bool moving, size_t e, struct ks_selection *s)
{
    const struct KS(arch) *arch = q->checkpoint->critic.arch;
    const double *v = moving ? q->checkpoint->adam_v : NULL;
    size_t at = e * arch->parameters;

    for (size_t k = 0; k < arch->n_layers; k++) {
        const struct KS(layer) *l = &arch->layer[k];

        for (size_t i = 0; l->frozen == 0 && i < l->n_params; i++) {
            const size_t end = at + KS(array_size)(&l->param[i]);
            const bool has = ks_selection_has(q->layer, q->arrays, l, i);

            for (; at < end; at++)
                if (has && !(v && v[at] <= 0))
                    s->index[s->n++] = at;
        }
    }
}

static ks_status fill(const struct ks_problem *q, bool moving, struct ks_selection *s)
{
    KS_TRY(ks_alloc(s->of, sizeof *s->index, &s->index));
    for (size_t e = 0; e < q->checkpoint->critic.ensemble; e++)
        if (q->critic < 0 || (size_t)q->critic == e)
            fill_critic(q, moving, e, s);
    if (s->n == 0)
        return ks_fail(KS_NUMBER, "no parameter is left: Adam's second moment is 0 in all of them");
    return KS_OK;
}

ks_status ks_selection_new(const struct ks_problem *q, bool moving, struct ks_selection **selection)
{
    KS_OWNED_BY(ks_selection_free) struct ks_selection *s = NULL;
    size_t n;

    *selection = NULL;
    KS_TRY(ks_selection_count(&q->checkpoint->critic, q->critic, q->layer, q->arrays, &n));
    KS_TRY(ks_alloc(1, sizeof *s, &s));
    s->of = s->n = ks_networks_parameters(&q->checkpoint->critic);
    if (q->critic >= 0 || q->layer >= 0 || q->arrays || moving) {
        s->n = 0;
        KS_TRY(fill(q, moving, s));
    }
    *selection = s, s = NULL;
    return KS_OK;
}

void ks_selection_free(struct ks_selection *selection)
{
    if (!selection)
        return;
    free(selection->index);
    free(selection);
}

void ks_selection_gather(const struct ks_selection *s, const double *full, double *block)
{
    if (!s->index) {
        memcpy(block, full, s->n * sizeof *block);
        return;
    }
    for (size_t i = 0; i < s->n; i++)
        block[i] = full[s->index[i]];
}

void ks_selection_scatter(const struct ks_selection *s, const double *block, double *full)
{
    if (!s->index) {
        memcpy(full, block, s->n * sizeof *full);
        return;
    }
    memset(full, 0, s->of * sizeof *full);
    for (size_t i = 0; i < s->n; i++)
        full[s->index[i]] = block[i];
}

struct block {
    const struct ks_operator *a; /* of all coordinates */
    const struct ks_selection *selection;
    double *full; /* [2, of]: a vector and its product */
};

static ks_status block_apply(void *self, const double *v, double *out)
{
    struct block *b = self;
    double *product = b->full + b->selection->of;

    ks_selection_scatter(b->selection, v, b->full);
    KS_TRY(ks_operator_apply(b->a, b->full, product));
    ks_selection_gather(b->selection, product, out);
    return KS_OK;
}

ks_status ks_block_new(struct ks_operator *a, const struct ks_selection *selection,
                       struct ks_operator **block)
{
    static const struct ks_operator BLOCK = {.apply = block_apply, .free = free};
    struct block *b;
    double *full;

    *block = a;
    if (selection->n == selection->of)
        return KS_OK;
    KS_TRY(ks_operator_around(&BLOCK, sizeof *b, a, &full, block));
    (*block)->n = selection->n;
    b = (*block)->self;
    b->a = a;
    b->selection = selection;
    b->full = full;
    return KS_OK;
}
