/* The folded network (fold.h): a dense with a bias in place of the first two layers of a critic.
 *
 * Layers are bound to a precision: the table of kinds and the settings of a layer are compiled for
 * float32 and for float64. So the critic's own description is parsed in this precision first; the
 * fold then changes the list of layers. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/real.h"
#include "net/arch.h"
#include "operators/fold.h"

/* A dense of `in` inputs with a bias and without projection. */
static ks_status make_dense(size_t in, size_t out, struct KS(layer) *l)
{
    struct ks_line line;
    char text[32];

    snprintf(text, sizeof text, "dense %zu", out);
    *l = (struct KS(layer)){.kind = &KS(dense), .in = in};
    KS_TRY(ks_line_split(&line, "folded dense", 1, text));
    return KS(layer_configure)(l, &line);
}

/* Replaces layers 0 and 1 by `dense`, whose settings the network then owns. No container starts
 * there, so every body moves down by one layer. */
static void replace_two(struct KS(arch) *arch, const struct KS(layer) *dense)
{
    free(arch->layer[0].settings);
    free(arch->layer[1].settings);
    arch->layer[0] = *dense;
    memmove(arch->layer + 1, arch->layer + 2, (arch->n_layers - 2) * sizeof *arch->layer);
    arch->n_layers--;
    for (size_t i = 1; i < arch->n_layers; i++) {
        arch->layer[i].number--;
        arch->layer[i].body--;
    }
    KS(arch_place)(arch);
}

ks_status KS(fold_arch)(const struct ks_fold *fold, struct KS(arch) **arch)
{
    struct KS(layer) dense = {.kind = NULL};
    struct KS(arch) *folded = NULL;
    ks_status status = KS_OK;

    *arch = NULL;
    KS_GO(KS(arch_parse)(fold->text, "/critic", fold->inputs, &folded));
    folded->loss.targets = fold->targets; /* the description does not have it */
    if (fold->folded) {
        assert(folded->n_layers > 1 && folded->layer[1].in == fold->in);
        KS_GO(make_dense(fold->in, fold->out, &dense));
        for (size_t i = 0; i < dense.n_params; i++)
            dense.parameters += KS(array_size)(&dense.param[i]);
        replace_two(folded, &dense);
        dense.settings = NULL;
    }
    *arch = folded, folded = NULL;
done:
    free(dense.settings);
    KS(arch_free)(folded);
    return status;
}
