/* Lists the selected coordinates, and applies an operator to vectors that are zero outside them. */
#include "operators/operator.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

static const struct KS(layer) *find_layer(const struct KS(arch) *arch, size_t number)
{
    for (size_t i = 0; i < arch->n_layers; i++)
        if (arch->layer[i].number == number && !arch->layer[i].kind->uncounted)
            return &arch->layer[i];
    return NULL;
}

ks_status ks_selection_range(const struct ks_networks *critics, int critic, int layer, size_t *low,
                             size_t *high)
{
    const struct KS(layer) *l;

    *low = 0;
    *high = critics->arch->parameters;
    if (critic >= (int)critics->ensemble)
        return ks_fail(KS_USAGE, "--critic: expected 0 to %zu, found %d", critics->ensemble - 1,
                       critic);
    if (layer < 0)
        return KS_OK;
    l = find_layer(critics->arch, (size_t)layer);
    if (!l)
        return ks_fail(KS_USAGE, "--layer: expected 0 to %zu, found %d",
                       critics->arch->layer[critics->arch->n_layers - 1].number, layer);
    if (l->frozen > 0)
        return ks_fail(KS_USAGE,
                       "--layer: expected a layer with parameters, found layer %d, a %s "
                       "with trainable=no",
                       layer, l->kind->name);
    if (l->parameters == 0)
        return ks_fail(KS_USAGE,
                       "--layer: expected a layer with parameters, found layer %d, a %s without",
                       layer, l->kind->name);
    *low = l->offset;
    *high = l->offset + l->parameters;
    return KS_OK;
}

static ks_status fill(const struct ks_problem *q, bool moving, size_t low, size_t high,
                      struct ks_selection *s)
{
    const struct ks_networks *critics = &q->checkpoint->critic;
    size_t parameters = critics->arch->parameters;

    KS_TRY(ks_alloc(s->of, sizeof *s->index, &s->index));
    for (size_t i = 0; i < s->of; i++) {
        size_t e = i / parameters, at = i % parameters;
        bool in = (q->critic < 0 || (size_t)q->critic == e) && at >= low && at < high;

        if (in && !(moving && q->checkpoint->adam_v && q->checkpoint->adam_v[i] <= 0))
            s->index[s->n++] = i;
    }
    if (s->n == 0)
        return ks_fail(KS_NUMBER, "no parameter is left: Adam's second moment is 0 in all of them");
    return KS_OK;
}

ks_status ks_selection_new(const struct ks_problem *q, bool moving, struct ks_selection **selection)
{
    ks_status status = KS_OK;
    struct ks_selection *s = NULL;
    size_t low, high;

    *selection = NULL;
    KS_GO(ks_selection_range(&q->checkpoint->critic, q->critic, q->layer, &low, &high));
    KS_GO(ks_alloc(1, sizeof *s, &s));
    s->of = s->n = ks_networks_parameters(&q->checkpoint->critic);
    if (q->critic >= 0 || q->layer >= 0 || moving) {
        s->n = 0;
        KS_GO(fill(q, moving, low, high, s));
    }
    *selection = s, s = NULL;
done:
    ks_selection_free(s);
    return status;
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
    double full[]; /* [2, of]: a vector and its product */
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

    *block = a;
    if (!selection->index)
        return KS_OK;
    KS_TRY(ks_operator_around(&BLOCK, sizeof *b + 2 * selection->of * sizeof *b->full, a, block));
    (*block)->n = selection->n;
    b = (*block)->self;
    b->a = a;
    b->selection = selection;
    return KS_OK;
}
