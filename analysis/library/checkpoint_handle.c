#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "core/blas.h"
#include "core/memory.h"
#include "io/checkpoint.h"
#include "io/h5.h"
#include "io/scout.h"
#include "library/library.h"

/* Rows and columns of a minibatch, since BLAS counts in int; minibatches and critics. */
enum { MOST_SIDE = 1 << 30, MOST_MINIBATCHES = 1 << 30, MOST_CRITICS = 1 << 20 };

void kappascope_critic_defaults(struct kappascope_critic *critic)
{
    if (critic)
        *critic = (struct kappascope_critic){
            .ensemble = 1, .adam_beta2 = KS_ADAM_BETA2, .adam_eps = KS_ADAM_EPS};
}

static size_t heads_of(const struct KS(arch) *arch)
{
    return arch->loss.n_heads > 0 ? arch->loss.n_heads : arch->loss.kind != NULL;
}

static struct kappascope_sizes sizes_of(const struct KS(arch) *arch)
{
    struct kappascope_sizes sizes = {.parameters = arch->parameters,
                                     .frozen = arch->frozen,
                                     .statistics = arch->states,
                                     .inputs = arch->in,
                                     .outputs = arch->out,
                                     .targets = arch->loss.kind ? arch->loss.targets : 0,
                                     .heads = heads_of(arch)};

    for (size_t i = 0; i < arch->n_layers; i++)
        sizes.layers += !arch->layer[i].kind->uncounted;
    return sizes;
}

static ks_status parse(const char *arch, size_t inputs, struct KS(arch) **parsed)
{
    KS_TRY(ks_library_range("inputs", inputs, 1, MOST_SIDE));
    return KS(arch_parse)(arch, "arch", inputs, parsed);
}

enum kappascope_status kappascope_arch_sizes(const char *arch, size_t inputs,
                                             struct kappascope_sizes *sizes)
{
    KS_POINTS;
    struct KS(arch) *parsed = NULL;

    KS_GIVEN(arch);
    KS_GIVEN(sizes);
    KS_PUBLIC(parse(arch, inputs, &parsed));
    *sizes = sizes_of(parsed);
    KS(arch_free)(parsed);
    return KAPPASCOPE_OK;
}

_Static_assert((int)KAPPASCOPE_LAYER_ARRAYS == (int)KS_LAYER_ARRAYS, "a layer's arrays all fit");

static void copy_shapes(size_t n, const struct ks_array *from, struct kappascope_shape *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (struct kappascope_shape){from[i].name, from[i].rows, from[i].columns};
}

static struct kappascope_layer layer_of(const struct KS(layer) *l)
{
    struct kappascope_layer layer = {.kind = l->kind->name,
                                     .outputs = l->out,
                                     .trainable = l->frozen == 0,
                                     .joint = l->kind->couples_rows};

    KS(arch_group)(l, layer.name);
    copy_shapes(l->n_params, l->param, layer.parameter);
    copy_shapes(l->n_states, l->state, layer.state);
    return layer;
}

enum kappascope_status kappascope_arch_parts(const char *arch, size_t inputs,
                                             struct kappascope_layer *layer,
                                             struct kappascope_head *head)
{
    KS_POINTS;
    struct KS(arch) *parsed = NULL;

    KS_GIVEN(arch);
    KS_GIVEN(layer);
    KS_GIVEN(head);
    KS_PUBLIC(parse(arch, inputs, &parsed));
    for (size_t i = 0; i < parsed->n_layers; i++)
        if (!parsed->layer[i].kind->uncounted)
            *layer++ = layer_of(&parsed->layer[i]);
    for (size_t i = 0; i < heads_of(parsed); i++) {
        const struct KS(loss) *l = parsed->loss.n_heads > 0 ? &parsed->loss.head[i] : &parsed->loss;

        head[i] = (struct kappascope_head){l->kind->name, l->outputs, l->targets, l->min,
                                           l->max,        l->delta,   l->weight};
    }
    KS(arch_free)(parsed);
    return KAPPASCOPE_OK;
}

enum kappascope_status kappascope_checkpoint_sizes(const struct kappascope_checkpoint *checkpoint,
                                                   struct kappascope_sizes *sizes)
{
    KS_GIVEN(checkpoint);
    KS_GIVEN(sizes);
    *sizes = sizes_of(checkpoint->c->critic.arch);
    sizes->ensemble = checkpoint->c->critic.ensemble;
    sizes->minibatches = checkpoint->c->minibatches;
    sizes->rows = checkpoint->c->rows;
    sizes->loss_rows = checkpoint->c->loss_rows;
    return KAPPASCOPE_OK;
}

static ks_status read_checkpoint(const char *path, struct kappascope_checkpoint *k)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;
    double bytes = 0;

    KS_TRY(ks_copy_string(path, &k->path));
    KS_TRY(ks_h5_open(path, "kappascope-checkpoint", &h5));
    KS_TRY(ks_checkpoint_bytes(h5, &bytes));
    KS_TRY(ks_library_fits(path, bytes));
    KS_TRY(ks_checkpoint_read_loss(h5, &k->c));
    KS_TRY(ks_h5_sha256(h5, k->digest));
    return KS_OK;
}

/* Outside of the lock: this computes, and reads no file. */
static ks_status check_references(struct kappascope_checkpoint *k)
{
    double bytes;

    if (!ks_references_exist(&k->c->references))
        return KS_OK;
    KS_TRY(ks_references_bytes(k->c, &k->c->references, &bytes));
    KS_TRY(ks_library_fits(k->path, bytes));
    KS_TRY(ks_blas_reserve((size_t)omp_get_max_threads()));
    KS_TRY(ks_references_compare(k->c, k->path, k->c->minibatches));
    ks_references_clear(&k->c->references);
    return KS_OK;
}

enum kappascope_status kappascope_checkpoint_read(const char *path,
                                                  struct kappascope_checkpoint **checkpoint)
{
    KS_POINTS;
    struct kappascope_checkpoint *k = NULL;
    ks_status status = KS_OK;

    KS_GIVEN(checkpoint);
    *checkpoint = NULL;
    KS_GIVEN(path);
    KS_GO(ks_alloc(1, sizeof *k, &k));
    ks_library_lock();
    status = read_checkpoint(path, k);
    ks_library_unlock();
    KS_GO(status);
    KS_GO(check_references(k));
    *checkpoint = k, k = NULL;
done:
    kappascope_checkpoint_free(k);
    return (enum kappascope_status)status;
}

enum kappascope_status kappascope_scout(const char *path)
{
    KS_POINTS;
    ks_status status;

    KS_GIVEN(path);
    ks_library_lock();
    status = ks_scout(path);
    ks_library_unlock();
    return (enum kappascope_status)status;
}

/* --- from memory --- */

static ks_status check_sizes(const struct kappascope_critic *from)
{
    KS_TRY(ks_library_range("inputs", from->inputs, 1, MOST_SIDE));
    KS_TRY(ks_library_range("ensemble", from->ensemble, 1, MOST_CRITICS));
    KS_TRY(ks_library_range("minibatches", from->minibatches, 1, MOST_MINIBATCHES));
    KS_TRY(ks_library_range("rows", from->rows, 1, MOST_SIDE));
    KS_TRY(ks_library_range("loss_rows", from->loss_rows, 1, from->rows));
    if (from->adam_v && !(from->adam_step > 0 && from->adam_beta2 >= 0 && from->adam_beta2 < 1 &&
                          from->adam_eps >= 0 && from->adam_eps < INFINITY))
        return ks_fail(KS_USAGE,
                       "adam_step, adam_beta2, adam_eps: expected above 0, from 0 to below 1, and "
                       "from 0, found %lld, %g, %g",
                       (long long)from->adam_step, from->adam_beta2, from->adam_eps);
    return KS_OK;
}

/* A copy of a [count, size] array, which is finite. NULL: a required one fails. */
static ks_status copy(const char *name, size_t count, size_t size, const double *from, double **to)
{
    if (!from)
        return ks_fail(KS_USAGE, "%s is NULL", name);
    if (size > 0 && count > SIZE_MAX / size / sizeof **to)
        return ks_fail(KS_USAGE, "%s: %zu times %zu numbers are too many", name, count, size);
    KS_TRY(ks_library_finite(name, count * size, from));
    KS_TRY(ks_alloc(count * size, sizeof **to, to));
    memcpy(*to, from, count * size * sizeof **to);
    return KS_OK;
}

static ks_status copy_critic(const struct kappascope_critic *from, struct ks_networks *critic)
{
    KS_TRY(ks_copy_string(from->arch, &critic->text));
    KS_TRY(ks_arch_parse_f64(from->arch, "arch", from->inputs, &critic->arch));
    if (!critic->arch->loss.kind)
        return ks_fail(KS_FORMAT, "arch: expected a last line with a loss, found a policy");
    critic->ensemble = from->ensemble;
    KS_TRY(
        copy("parameters", from->ensemble, critic->arch->parameters, from->parameters, &critic->w));
    if (critic->arch->frozen > 0)
        KS_TRY(copy("frozen", from->ensemble, critic->arch->frozen, from->frozen, &critic->frozen));
    if (!from->statistics || critic->arch->states == 0)
        return KS_OK;
    KS_TRY(
        copy("statistics", from->ensemble, critic->arch->states, from->statistics, &critic->state));
    return ks_networks_check_variances(critic, "arrays", "statistics");
}

static ks_status copy_all(const struct kappascope_critic *from, struct ks_checkpoint *c)
{
    size_t n = from->minibatches;

    KS_TRY(copy_critic(from, &c->critic));
    c->minibatches = n;
    c->rows = from->rows;
    c->loss_rows = from->loss_rows;
    KS_TRY(copy("input", n * c->rows, from->inputs, from->input, &c->input));
    KS_TRY(
        copy("target", n * c->loss_rows, c->critic.arch->loss.targets, from->target, &c->target));
    KS_TRY(ks_checkpoint_check_targets(c, "arrays", "target", c->target));
    if (from->weight)
        KS_TRY(copy("weight", n, c->loss_rows, from->weight, &c->weight));
    KS_TRY(ks_checkpoint_check_weights(c, "arrays", "weight"));
    c->adam = KS_ADAM_DEFAULTS;
    if (!from->adam_v)
        return KS_OK;
    c->adam_step = from->adam_step;
    c->adam.beta2 = from->adam_beta2;
    c->adam.eps = from->adam_eps;
    KS_TRY(copy("adam_v", from->ensemble, c->critic.arch->parameters, from->adam_v, &c->adam_v));
    return ks_checkpoint_check_squares(c, "arrays", "adam_v");
}

enum kappascope_status kappascope_checkpoint_new(const struct kappascope_critic *critic,
                                                 struct kappascope_checkpoint **checkpoint)
{
    KS_POINTS;
    KS_OWNED_BY(kappascope_checkpoint_free) struct kappascope_checkpoint *k = NULL;

    KS_GIVEN(checkpoint);
    *checkpoint = NULL;
    KS_GIVEN(critic);
    KS_GIVEN(critic->arch);
    KS_PUBLIC(check_sizes(critic));
    KS_PUBLIC(ks_alloc(1, sizeof *k, &k));
    KS_PUBLIC(ks_copy_string("(memory)", &k->path));
    KS_PUBLIC(ks_alloc(1, sizeof *k->c, &k->c));
    KS_PUBLIC(copy_all(critic, k->c));
    *checkpoint = k, k = NULL;
    return KAPPASCOPE_OK;
}

void kappascope_checkpoint_free(struct kappascope_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    ks_checkpoint_free(checkpoint->c);
    free(checkpoint->path);
    free(checkpoint);
}
