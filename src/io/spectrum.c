#include "io/spectrum.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/h5.h"

static const char FORMAT[] = "kappascope-spectrum";

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

static ks_status read_summary(const struct ks_h5 *h5, struct ks_spectrum *s)
{
    bool found;

    KS_TRY(ks_h5_has(h5, "/summary", &found));
    if (!found)
        return ks_fail(KS_FORMAT, "%s: /summary: missing", h5->path);
    return ks_h5_read_attributes(h5, "/summary", &s->statistics);
}

/* Attributes of an optional group. */
static ks_status read_optional(const struct ks_h5 *h5, const char *group,
                               struct ks_attributes *list)
{
    bool found;

    KS_TRY(ks_h5_has(h5, group, &found));
    return found ? ks_h5_read_attributes(h5, group, list) : KS_OK;
}

static ks_status read_steps(const struct ks_h5 *h5, struct ks_spectrum *s)
{
    const struct ks_h5_shape shape = {1, {s->probes}};
    ks_status status = KS_OK;
    double *steps = NULL;

    KS_GO(ks_h5_read_new(h5, "/lanczos/steps", &shape, &steps));
    KS_GO(ks_alloc(s->probes, sizeof *s->steps, &s->steps));
    for (size_t i = 0; i < s->probes; i++) {
        if (!(steps[i] >= 0 && steps[i] <= (double)s->order && steps[i] == floor(steps[i]))) {
            status = ks_fail(KS_FORMAT, "%s: /lanczos/steps: expected 0 to %zu, found %g", h5->path,
                             s->order, steps[i]);
            goto done;
        }
        s->steps[i] = (int64_t)steps[i];
    }
done:
    free(steps);
    return status;
}

/* A probe's row holds as many finite numbers as it took steps, then NaN. An exact spectrum has no
 * steps and no padding. */
static ks_status check_padding(const struct ks_h5 *h5, const char *object,
                               const struct ks_spectrum *s, const double *values)
{
    for (size_t i = 0; i < s->probes; i++) {
        size_t steps = s->steps ? (size_t)s->steps[i] : s->order;

        KS_TRY(ks_h5_expect_finite(h5, object, steps, values + i * s->order));
    }
    return KS_OK;
}

/* The attribute `start` has one word per probe; only the last one can be "gradient". */
static bool starts_at_gradient(const struct ks_attributes *lanczos)
{
    static const char word[] = "gradient";
    const struct ks_attribute *start = ks_attribute_find(lanczos, "start");
    size_t length;

    if (!start || start->type != KS_ATTRIBUTE_STRING)
        return false;
    length = strlen(start->string);
    return length >= strlen(word) && strcmp(start->string + length - strlen(word), word) == 0;
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
    KS_TRY(read_optional(h5, "/lanczos", &s->lanczos));
    s->gradient = starts_at_gradient(&s->lanczos);
    if (lanczos) {
        KS_TRY(read_steps(h5, s));
        KS_TRY(ks_h5_read_new(h5, "/lanczos/alpha", &shape, &s->alpha));
        KS_TRY(check_padding(h5, "/lanczos/alpha", s, s->alpha));
        KS_TRY(ks_h5_read_new(h5, "/lanczos/beta", &shape, &s->beta));
        KS_TRY(check_padding(h5, "/lanczos/beta", s, s->beta));
    }
    KS_TRY(ks_h5_read_new(h5, "/ritz/value", &shape, &s->ritz));
    KS_TRY(check_padding(h5, "/ritz/value", s, s->ritz));
    KS_TRY(ks_h5_read_new(h5, "/ritz/weight", &shape, &s->weight));
    KS_TRY(check_padding(h5, "/ritz/weight", s, s->weight));
    KS_TRY(ks_h5_read_new(h5, "/ritz/residual", &shape, &s->residual));
    return check_padding(h5, "/ritz/residual", s, s->residual);
}

static ks_status read_density(const struct ks_h5 *h5, struct ks_spectrum *s)
{
    struct ks_h5_shape shape;
    bool found;

    KS_TRY(ks_h5_has(h5, "/density", &found));
    if (!found)
        return KS_OK;
    KS_TRY(ks_h5_shape(h5, "/density/grid", &shape));
    if (shape.n_dims != 1)
        return ks_fail(KS_FORMAT, "%s: /density/grid: expected 1 dimension [G], found %zu",
                       h5->path, shape.n_dims);
    s->n_grid = shape.dims[0];
    KS_TRY(ks_h5_read_new(h5, "/density/grid", &shape, &s->grid));
    KS_TRY(ks_h5_read_new(h5, "/density/value", &shape, &s->density));
    KS_TRY(ks_h5_read_new(h5, "/density/symlog_grid", &shape, &s->symlog_grid));
    return ks_h5_read_new(h5, "/density/symlog_value", &shape, &s->symlog_density);
}

static ks_status read_band(const struct ks_h5 *h5, struct ks_spectrum *s)
{
    struct ks_h5_shape shape;
    bool found;

    KS_TRY(ks_h5_has(h5, "/distribution", &found));
    if (!found)
        return KS_OK;
    KS_TRY(ks_h5_shape(h5, "/distribution/eigenvalue", &shape));
    if (shape.n_dims != 1)
        return ks_fail(KS_FORMAT, "%s: /distribution/eigenvalue: expected 1 dimension, found %zu",
                       h5->path, shape.n_dims);
    s->n_band = shape.dims[0];
    KS_TRY(ks_h5_read_new(h5, "/distribution/eigenvalue", &shape, &s->band_at));
    KS_TRY(ks_h5_read_new(h5, "/distribution/lower", &shape, &s->band_lower));
    return ks_h5_read_new(h5, "/distribution/upper", &shape, &s->band_upper);
}

static ks_status read_all(const struct ks_h5 *h5, struct ks_spectrum *s)
{
    KS_TRY(read_root(h5, s));
    KS_TRY(read_summary(h5, s));
    KS_TRY(read_probes(h5, s));
    KS_TRY(read_optional(h5, "/certificate", &s->certificate));
    KS_TRY(read_density(h5, s));
    return read_band(h5, s);
}

ks_status ks_spectrum_read(const char *path, struct ks_spectrum **out)
{
    ks_status status = KS_OK;
    struct ks_spectrum *s = NULL;
    struct ks_h5 *h5 = NULL;

    *out = NULL;
    KS_GO(ks_h5_open(path, FORMAT, &h5));
    KS_GO(ks_alloc(1, sizeof *s, &s));
    KS_GO(read_all(h5, s));
    *out = s, s = NULL;
done:
    ks_spectrum_free(s);
    ks_h5_close(h5);
    return status;
}

static ks_status write_probes(struct ks_h5 *h5, const struct ks_spectrum *s)
{
    const struct ks_h5_shape shape = {2, {s->probes, s->order}}, row = {1, {s->probes}};
    ks_status status = KS_OK;
    double *steps = NULL;

    if (s->alpha) {
        KS_GO(ks_alloc(s->probes, sizeof *steps, &steps));
        for (size_t i = 0; i < s->probes; i++)
            steps[i] = (double)s->steps[i];
        KS_GO(ks_h5_group(h5, "/lanczos"));
        KS_GO(ks_h5_write_attributes(h5, "/lanczos", &s->lanczos));
        KS_GO(ks_h5_write(h5, "/lanczos/alpha", KS_H5_F64, &shape, s->alpha));
        KS_GO(ks_h5_write(h5, "/lanczos/beta", KS_H5_F64, &shape, s->beta));
        KS_GO(ks_h5_write(h5, "/lanczos/steps", KS_H5_I64, &row, steps));
    }
    KS_GO(ks_h5_group(h5, "/ritz"));
    KS_GO(ks_h5_write(h5, "/ritz/value", KS_H5_F64, &shape, s->ritz));
    KS_GO(ks_h5_write(h5, "/ritz/weight", KS_H5_F64, &shape, s->weight));
    KS_GO(ks_h5_write(h5, "/ritz/residual", KS_H5_F64, &shape, s->residual));
done:
    free(steps);
    return status;
}

static ks_status write_density(struct ks_h5 *h5, const struct ks_spectrum *s)
{
    const struct ks_h5_shape shape = {1, {s->n_grid}};

    if (s->n_grid == 0)
        return KS_OK;
    KS_TRY(ks_h5_group(h5, "/density"));
    KS_TRY(ks_h5_write(h5, "/density/grid", KS_H5_F64, &shape, s->grid));
    KS_TRY(ks_h5_write(h5, "/density/value", KS_H5_F64, &shape, s->density));
    KS_TRY(ks_h5_write(h5, "/density/symlog_grid", KS_H5_F64, &shape, s->symlog_grid));
    return ks_h5_write(h5, "/density/symlog_value", KS_H5_F64, &shape, s->symlog_density);
}

static ks_status write_band(struct ks_h5 *h5, const struct ks_spectrum *s)
{
    const struct ks_h5_shape shape = {1, {s->n_band}};

    if (s->n_band == 0)
        return KS_OK;
    KS_TRY(ks_h5_group(h5, "/distribution"));
    KS_TRY(ks_h5_write(h5, "/distribution/eigenvalue", KS_H5_F64, &shape, s->band_at));
    KS_TRY(ks_h5_write(h5, "/distribution/lower", KS_H5_F64, &shape, s->band_lower));
    return ks_h5_write(h5, "/distribution/upper", KS_H5_F64, &shape, s->band_upper);
}

static ks_status write_all(struct ks_h5 *h5, const struct ks_spectrum *s)
{
    KS_TRY(ks_h5_write_attributes(h5, "/", &s->attributes));
    KS_TRY(write_probes(h5, s));
    KS_TRY(write_density(h5, s));
    KS_TRY(write_band(h5, s));
    if (s->certificate.n > 0) {
        KS_TRY(ks_h5_group(h5, "/certificate"));
        KS_TRY(ks_h5_write_attributes(h5, "/certificate", &s->certificate));
    }
    KS_TRY(ks_h5_group(h5, "/summary"));
    return ks_h5_write_attributes(h5, "/summary", &s->statistics);
}

ks_status ks_spectrum_write(const char *path, const struct ks_spectrum *s)
{
    ks_status status = KS_OK;
    struct ks_h5 *h5 = NULL;

    assert(s->ritz && s->weight && s->residual && s->probes > 0 && s->order > 0);
    assert(!s->alpha || (s->beta && s->steps));
    KS_GO(ks_h5_create(path, FORMAT, &h5));
    KS_GO(write_all(h5, s));
    KS_GO(ks_h5_commit(h5));
done:
    ks_h5_close(h5);
    return status;
}

size_t ks_spectrum_random(const struct ks_spectrum *s)
{
    return s->probes - s->gradient;
}

void ks_spectrum_free(struct ks_spectrum *s)
{
    if (!s)
        return;
    ks_attributes_clear(&s->attributes);
    ks_attributes_clear(&s->statistics);
    ks_attributes_clear(&s->lanczos);
    ks_attributes_clear(&s->certificate);
    free(s->alpha);
    free(s->beta);
    free(s->steps);
    free(s->start_norm2);
    free(s->ritz);
    free(s->weight);
    free(s->residual);
    free(s->grid);
    free(s->density);
    free(s->symlog_grid);
    free(s->symlog_density);
    free(s->band_at);
    free(s->band_lower);
    free(s->band_upper);
    free(s);
}
