/* The attributes of a spectrum about its start vectors (/lanczos) and certificates (/certificate).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "spectrum/provenance.h"
#include "statistics/certificate.h"

/* "random random gradient": one word per probe. */
static ks_status add_start(struct ks_spectrum *s)
{
    char *words = NULL, *next;
    size_t size = s->probes * sizeof "gradient ";
    ks_status status;

    KS_TRY(ks_alloc(size, 1, &words));
    next = words;
    for (size_t i = 0; i < s->probes; i++)
        next += snprintf(next, size - (size_t)(next - words), "%s%s", i > 0 ? " " : "",
                         i < ks_spectrum_random(s) ? "random" : "gradient");
    status = ks_attribute_add_string(&s->lanczos, "start", words);
    free(words);
    return status;
}

static ks_status add_certificate(struct ks_spectrum *s, const char *vector,
                                 const struct ks_certificate *y)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"quotient", y->quotient},  {"size", y->size},
                   {"residual", y->residual},  {"run_quotient", y->run_quotient},
                   {"run_size", y->run_size},  {"run_residual", y->run_residual},
                   {"product_error", y->error}};
    char name[KS_ATTRIBUTE_NAME];

    for (size_t i = 0; y->formed && i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(name, sizeof name, "%s_%s", vector, numbers[i].name);
        KS_TRY(ks_attribute_add_number(&s->certificate, name, numbers[i].value));
    }
    return KS_OK;
}

ks_status ks_provenance_probes(const struct ks_certificates *c, struct ks_spectrum *s)
{
    static const char *const vectors[KS_CERTIFICATES] = {"largest", "smallest", "flat"};

    if (!s->alpha)
        return KS_OK;
    KS_TRY(add_start(s));
    KS_TRY(ks_attribute_add_list(&s->lanczos, "start_norm2", s->probes, s->start_norm2));
    if (!c)
        return KS_OK;
    KS_TRY(ks_attribute_add_list(&s->lanczos, "null_weight", s->probes, c->null_weight));
    for (size_t i = 0; c->certified && i < KS_CERTIFICATES; i++)
        KS_TRY(add_certificate(s, vectors[i], &c->vector[i]));
    return KS_OK;
}
