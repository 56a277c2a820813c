#include "inspect/layers.h"

#include <math.h>
#include <string.h>

#include "inspect/lines.h"

enum { CRITICS = 4 }; /* norms of up to so many critics are printed, else their range */
enum { SHAPE = 48 };  /* the longest text of a shape                                  */

void ks_loss_print(FILE *out, const struct ks_loss *l)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%s, %zu output%s", l->kind->name, l->outputs,
                        l->outputs == 1 ? "" : "s");

    for (size_t h = 0; h < l->n_heads; h++)
        ks_loss_print(out, &l->head[h]);
    if (l->n_heads > 0)
        return;
    if (strcmp(l->kind->name, "ce") == 0)
        used += snprintf(text + used, sizeof text - (size_t)used, ", atoms from %g to %g", l->min,
                         l->max);
    else if (strcmp(l->kind->name, "huber") == 0 || strcmp(l->kind->name, "quantile") == 0)
        used += snprintf(text + used, sizeof text - (size_t)used, ", threshold %g", l->delta);
    if (l->weight != 1)
        snprintf(text + used, sizeof text - (size_t)used, ", weight %g", l->weight);
    ks_line_print(out, "loss", "%s", text);
}

/* "[512, 101]", or "[512]" for a vector. */
static const char *shape_text(const struct ks_array *a, char text[SHAPE])
{
    if (a->rows > 0)
        snprintf(text, SHAPE, "[%zu, %zu]", a->rows, a->columns);
    else
        snprintf(text, SHAPE, "[%zu]", a->columns);
    return text;
}

static double norm(size_t n, const double *x)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* The numbers of an array of one critic, at `offset` of the extended vector (arch.h). */
static const double *numbers_of(const struct ks_networks *c, size_t critic, size_t offset)
{
    const size_t n = c->arch->parameters;

    return offset < n ? c->w + critic * n + offset
                      : c->frozen + critic * c->arch->frozen + (offset - n);
}

static void print_norms(FILE *out, const struct ks_networks *c, size_t offset, size_t n)
{
    double low = INFINITY, high = 0;

    for (size_t e = 0; e < c->ensemble; e++) {
        double one = norm(n, numbers_of(c, e, offset));

        low = fmin(low, one);
        high = fmax(high, one);
        if (c->ensemble <= CRITICS)
            fprintf(out, " %10.4g", one);
    }
    if (c->ensemble > CRITICS)
        fprintf(out, " %10.4g to %.4g", low, high);
}

/* Each direction is counted in the array of its first parameter. */
static size_t count_null(const struct ks_null_space *space, size_t offset, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < space->n_families; i++)
        if (space->family[i].offset >= offset && space->family[i].offset < offset + n)
            count += space->family[i].count;
    return count;
}

static void print_heading(FILE *out, const struct ks_networks *c, const struct ks_null_space *space)
{
    fprintf(out, "  %-16s %-9s %-14s %10s", "layer", "array", "shape", "parameters");
    if (space)
        fprintf(out, " %6s", "null");
    for (size_t e = 0; c->w && e < c->ensemble && c->ensemble <= CRITICS; e++)
        fprintf(out, "   critic %zu", e);
    if (c->w && c->ensemble > CRITICS)
        fprintf(out, " %10s", "critics");
    fputc('\n', out);
}

void ks_layers_print(FILE *out, const struct ks_networks *c, const struct ks_null_space *space)
{
    const struct ks_arch *arch = c->arch;

    print_heading(out, c, space);
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct ks_layer *l = &arch->layer[i];
        size_t offset = l->offset;
        char name[32], shape[SHAPE];

        if (l->n_params == 0 && !l->kind->uncounted)
            fprintf(out, "  %02zu %s\n", l->number, l->kind->name);
        for (size_t k = 0; k < l->n_params; k++) {
            size_t n = KS(array_size)(&l->param[k]);

            snprintf(name, sizeof name, "%02zu %s%s", l->number, l->kind->name,
                     l->frozen > 0 ? " frozen" : "");
            fprintf(out, "  %-16s %-9s %-14s %10zu", k ? "" : name, l->param[k].name,
                    shape_text(&l->param[k], shape), n);
            if (space)
                fprintf(out, " %6zu", count_null(space, offset, n));
            if (c->w)
                print_norms(out, c, offset, n);
            fputc('\n', out);
            offset += n;
        }
    }
}
