#include "io/spectrum.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/h5.h"

static const char FORMAT[] = "kappascope-spectrum";

/* The groups with datasets, in the order of the file, and the datasets, of which those of one group
 * have the shape of its first one. */
enum group { LANCZOS, RITZ, DENSITY, DISTRIBUTION };
static const char *const groups[] = {"/lanczos", "/ritz", "/density", "/distribution"};
static const struct dataset {
    enum group group;
    const char *object;
    size_t offset; /* of the address of its values in struct ks_spectrum */
} datasets[] = {
    {LANCZOS, "/lanczos/alpha", offsetof(struct ks_spectrum, alpha)},
    {LANCZOS, "/lanczos/beta", offsetof(struct ks_spectrum, beta)},
    {RITZ, "/ritz/value", offsetof(struct ks_spectrum, ritz)},
    {RITZ, "/ritz/weight", offsetof(struct ks_spectrum, weight)},
    {RITZ, "/ritz/residual", offsetof(struct ks_spectrum, residual)},
    {DENSITY, "/density/grid", offsetof(struct ks_spectrum, grid)},
    {DENSITY, "/density/value", offsetof(struct ks_spectrum, density)},
    {DENSITY, "/density/symlog_grid", offsetof(struct ks_spectrum, symlog_grid)},
    {DENSITY, "/density/symlog_value", offsetof(struct ks_spectrum, symlog_density)},
    {DISTRIBUTION, "/distribution/eigenvalue", offsetof(struct ks_spectrum, band_at)},
    {DISTRIBUTION, "/distribution/lower", offsetof(struct ks_spectrum, band_lower)},
    {DISTRIBUTION, "/distribution/upper", offsetof(struct ks_spectrum, band_upper)},
};
enum { DATASETS = sizeof datasets / sizeof *datasets };

/* Where the values of a dataset are. */
static double **values_of(const struct ks_spectrum *s, size_t dataset)
{
    return (double **)((char *)s + datasets[dataset].offset);
}

static struct ks_h5_shape shape_of(const struct ks_spectrum *s, enum group group)
{
    if (group <= RITZ)
        return (struct ks_h5_shape){.n_dims = 2, .dims = {s->probes, s->order}};
    return (struct ks_h5_shape){.n_dims = 1, .dims = {group == DENSITY ? s->n_grid : s->n_band}};
}

bool ks_spectrum_dataset(const struct ks_spectrum *s, size_t i, struct ks_spectrum_dataset *dataset)
{
    struct ks_h5_shape shape;

    if (i >= DATASETS)
        return false;
    shape = shape_of(s, datasets[i].group);
    *dataset = (struct ks_spectrum_dataset){.name = datasets[i].object,
                                            .rows = shape.n_dims == 2 ? shape.dims[0] : 0,
                                            .columns = shape.dims[shape.n_dims - 1],
                                            .values = *values_of(s, i)};
    return true;
}

/* The root's attributes, without `format` and `version`, which every file has. */
static ks_status read_root(const struct ks_h5 *h5, struct ks_spectrum *s)
{
    size_t kept = 0;

    KS_TRY(ks_h5_read_attributes(h5, "/", &s->attributes));
    for (size_t i = 0; i < s->attributes.n; i++) {
        struct ks_attribute *a = &s->attributes.list[i];

        if (strcmp(a->name, "format") == 0 || strcmp(a->name, "version") == 0)
            ks_attribute_clear(a);
        else
            s->attributes.list[kept++] = *a;
    }
    s->attributes.n = kept;
    return KS_OK;
}

static ks_status read_steps(const struct ks_h5 *h5, struct ks_spectrum *s)
{
    const struct ks_h5_shape shape = {.n_dims = 1, .dims = {s->probes}};
    KS_OWNED double *steps = NULL;

    KS_TRY(ks_h5_read_new(h5, "/lanczos/steps", &shape, &steps));
    KS_TRY(ks_alloc(s->probes, sizeof *s->steps, &s->steps));
    for (size_t i = 0; i < s->probes; i++) {
        if (!(steps[i] >= 0 && steps[i] <= (double)s->order && steps[i] == floor(steps[i])))
            return ks_fail(KS_FORMAT, "%s: /lanczos/steps: expected 0 to %zu, found %g", h5->path,
                           s->order, steps[i]);
        s->steps[i] = (int64_t)steps[i];
    }
    return KS_OK;
}

/* Reads the datasets of a group. A probe's row holds as many finite numbers as it took steps, then
 * NaN. An exact spectrum has no steps and no padding. */
static ks_status read_group(const struct ks_h5 *h5, enum group group, struct ks_spectrum *s)
{
    const struct ks_h5_shape shape = shape_of(s, group);

    for (size_t k = 0; k < DATASETS; k++) {
        if (datasets[k].group != group)
            continue;
        KS_TRY(ks_h5_read_new(h5, datasets[k].object, &shape, values_of(s, k)));
        for (size_t i = 0; group <= RITZ && i < s->probes; i++)
            KS_TRY(ks_h5_expect_finite(h5, datasets[k].object, ks_spectrum_steps(s, i),
                                       *values_of(s, k) + i * s->order));
    }
    return KS_OK;
}

/* Whether the text ends with this word; then it ends before the word, and *end at its space. */
static bool ends_with(const char *text, size_t *end, const char *word)
{
    const size_t length = strlen(word);

    if (*end < length || strncmp(text + *end - length, word, length) != 0 ||
        (*end > length && text[*end - length - 1] != ' '))
        return false;
    *end -= length + (*end > length);
    return true;
}

/* The attribute `start` has one word per probe: all are "random", but the last ones may be
 * "complement", then "gradient". */
static void read_start(struct ks_spectrum *s)
{
    const char *words = ks_attribute_text(&s->lanczos, "start");
    size_t end = words ? strlen(words) : 0;

    s->gradient = words && ends_with(words, &end, "gradient");
    s->complement = words && s->probes > 1 + (size_t)s->gradient &&
                    ends_with(words, &end, "complement");
}

static ks_status read_probes(const struct ks_h5 *h5, struct ks_spectrum *s)
{
    struct ks_h5_shape shape;
    bool lanczos;

    KS_TRY(ks_h5_shape(h5, "/ritz/value", &shape));
    if (shape.n_dims != 2 || shape.dims[0] == 0 || shape.dims[1] == 0)
        return ks_fail(KS_FORMAT,
                       "%s: /ritz/value: expected at least one number, in 2 dimensions "
                       "[probes, m], found %zu dimensions",
                       h5->path, shape.n_dims);
    s->probes = shape.dims[0];
    s->order = shape.dims[1];
    KS_TRY(ks_h5_has(h5, "/lanczos", &lanczos));
    KS_TRY(ks_h5_read_attributes(h5, "/lanczos", &s->lanczos));
    read_start(s);
    if (lanczos) {
        KS_TRY(read_steps(h5, s));
        KS_TRY(read_group(h5, LANCZOS, s));
    }
    return read_group(h5, RITZ, s);
}

/* Reads an optional group of datasets with one dimension, whose length the first one has. */
static ks_status read_curve(const struct ks_h5 *h5, enum group group, struct ks_spectrum *s)
{
    const char *first = group == DENSITY ? "/density/grid" : "/distribution/eigenvalue";
    struct ks_h5_shape shape;
    bool found;

    KS_TRY(ks_h5_has(h5, groups[group], &found));
    if (!found)
        return KS_OK;
    KS_TRY(ks_h5_shape(h5, first, &shape));
    if (shape.n_dims != 1)
        return ks_fail(KS_FORMAT, "%s: %s: expected 1 dimension%s, found %zu", h5->path, first,
                       group == DENSITY ? " [G]" : "", shape.n_dims);
    *(group == DENSITY ? &s->n_grid : &s->n_band) = shape.dims[0];
    return read_group(h5, group, s);
}

static ks_status read_all(const struct ks_h5 *h5, struct ks_spectrum *s)
{
    bool found;

    KS_TRY(read_root(h5, s));
    KS_TRY(ks_h5_has(h5, "/summary", &found));
    if (!found)
        return ks_fail(KS_FORMAT, "%s: /summary: missing", h5->path);
    KS_TRY(ks_h5_read_attributes(h5, "/summary", &s->statistics));
    KS_TRY(read_probes(h5, s));
    KS_TRY(ks_h5_read_attributes(h5, "/certificate", &s->certificate));
    KS_TRY(read_curve(h5, DENSITY, s));
    return read_curve(h5, DISTRIBUTION, s);
}

ks_status ks_spectrum_read_open(const struct ks_h5 *h5, struct ks_spectrum **out)
{
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *s = NULL;

    *out = NULL;
    KS_TRY(ks_alloc(1, sizeof *s, &s));
    KS_TRY(read_all(h5, s));
    *out = s, s = NULL;
    return KS_OK;
}

ks_status ks_spectrum_read(const char *path, struct ks_spectrum **out)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    *out = NULL;
    KS_TRY(ks_h5_open(path, FORMAT, &h5));
    return ks_spectrum_read_open(h5, out);
}

static void write_group(struct ks_h5 *h5, const struct ks_spectrum *s, enum group group)
{
    const struct ks_h5_shape shape = shape_of(s, group);

    ks_h5_group(h5, groups[group]);
    for (size_t k = 0; k < DATASETS; k++)
        if (datasets[k].group == group)
            ks_h5_write(h5, datasets[k].object, KS_H5_F64, &shape, *values_of(s, k));
}

static void write_lanczos(struct ks_h5 *h5, const struct ks_spectrum *s)
{
    const struct ks_h5_shape row = {.n_dims = 1, .dims = {s->probes}};
    KS_OWNED double *steps = NULL;

    if (h5->status == KS_OK)
        h5->status = ks_alloc(s->probes, sizeof *steps, &steps);
    for (size_t i = 0; steps && i < s->probes; i++)
        steps[i] = (double)s->steps[i];
    ks_h5_group(h5, "/lanczos");
    ks_h5_write_attributes(h5, "/lanczos", &s->lanczos);
    write_group(h5, s, LANCZOS);
    ks_h5_write(h5, "/lanczos/steps", KS_H5_I64, &row, steps);
}

static void write_all(struct ks_h5 *h5, const struct ks_spectrum *s)
{
    ks_h5_write_attributes(h5, "/", &s->attributes);
    if (s->alpha)
        write_lanczos(h5, s);
    write_group(h5, s, RITZ);
    if (s->n_grid > 0)
        write_group(h5, s, DENSITY);
    if (s->n_band > 0)
        write_group(h5, s, DISTRIBUTION);
    ks_h5_write_attributes(h5, "/certificate", &s->certificate);
    ks_h5_group(h5, "/summary");
    ks_h5_write_attributes(h5, "/summary", &s->statistics);
}

ks_status ks_spectrum_write(const char *path, const struct ks_spectrum *s)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    assert(s->ritz && s->weight && s->residual && s->probes > 0 && s->order > 0);
    assert(!s->alpha || (s->beta && s->steps));
    KS_TRY(ks_h5_create(path, FORMAT, KS_H5_VERSION, &h5));
    write_all(h5, s);
    return ks_h5_commit(h5);
}

size_t ks_spectrum_random(const struct ks_spectrum *s)
{
    return s->probes - s->gradient - s->complement;
}

const char *ks_spectrum_start(const struct ks_spectrum *s, size_t probe)
{
    return probe < ks_spectrum_random(s)           ? "random"
           : s->gradient && probe + 1 == s->probes ? "gradient"
                                                   : "complement";
}

size_t ks_spectrum_steps(const struct ks_spectrum *s, size_t probe)
{
    return s->steps ? (size_t)s->steps[probe] : s->order;
}

void ks_spectrum_free(struct ks_spectrum *s)
{
    if (!s)
        return;
    ks_attributes_clear(&s->attributes);
    ks_attributes_clear(&s->statistics);
    ks_attributes_clear(&s->lanczos);
    ks_attributes_clear(&s->certificate);
    for (size_t k = 0; k < DATASETS; k++)
        if (!s->arena.block || datasets[k].group > RITZ)
            free(*values_of(s, k));
    if (!s->arena.block) {
        free(s->steps);
        free(s->start_norm2);
    }
    ks_arena_free(&s->arena);
    free(s);
}
