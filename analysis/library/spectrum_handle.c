#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "library/library.h"
#include "statistics/statistics.h"

ks_status ks_library_spectrum(ks_status status, struct ks_spectrum *s,
                              struct kappascope_spectrum **spectrum)
{
    if (status == KS_OK)
        status = ks_alloc(1, sizeof **spectrum, spectrum);
    if (status == KS_OK)
        (*spectrum)->s = s;
    else
        ks_spectrum_free(s);
    return status;
}

enum kappascope_status kappascope_spectrum_read(const char *path,
                                                struct kappascope_spectrum **spectrum)
{
    struct ks_spectrum *s = NULL;
    ks_status status;

    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(path);
    ks_library_lock();
    status = ks_spectrum_read(path, &s);
    ks_library_unlock();
    return (enum kappascope_status)ks_library_spectrum(status, s, spectrum);
}

enum kappascope_status kappascope_spectrum_write(const struct kappascope_spectrum *spectrum,
                                                 const char *path)
{
    ks_status status;

    KS_GIVEN(spectrum);
    KS_GIVEN(path);
    ks_library_lock();
    status = ks_spectrum_write(path, spectrum->s);
    ks_library_unlock();
    return (enum kappascope_status)status;
}

void kappascope_spectrum_free(struct kappascope_spectrum *spectrum)
{
    if (!spectrum)
        return;
    ks_spectrum_free(spectrum->s);
    free(spectrum);
}

size_t kappascope_spectrum_probes(const struct kappascope_spectrum *spectrum)
{
    return spectrum ? spectrum->s->probes : 0;
}

size_t kappascope_spectrum_steps(const struct kappascope_spectrum *spectrum, size_t probe)
{
    const struct ks_spectrum *s = spectrum ? spectrum->s : NULL;

    if (!s || probe >= s->probes)
        return 0;
    return s->steps ? (size_t)s->steps[probe] : s->order;
}

/* A row of an array [probes, order]. */
static const double *row(const struct kappascope_spectrum *spectrum, const double *array,
                         size_t probe)
{
    return array && probe < spectrum->s->probes ? array + probe * spectrum->s->order : NULL;
}

const double *kappascope_spectrum_ritz(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum ? row(spectrum, spectrum->s->ritz, probe) : NULL;
}

const double *kappascope_spectrum_weight(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum ? row(spectrum, spectrum->s->weight, probe) : NULL;
}

const double *kappascope_spectrum_residual(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum ? row(spectrum, spectrum->s->residual, probe) : NULL;
}

const double *kappascope_spectrum_alpha(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum ? row(spectrum, spectrum->s->alpha, probe) : NULL;
}

const double *kappascope_spectrum_beta(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum ? row(spectrum, spectrum->s->beta, probe) : NULL;
}

double kappascope_spectrum_statistic(const struct kappascope_spectrum *spectrum, const char *name)
{
    return spectrum && name ? ks_statistic(spectrum->s, name) : NAN;
}

const char *kappascope_spectrum_statistic_name(const struct kappascope_spectrum *spectrum, size_t i)
{
    return spectrum && i < spectrum->s->statistics.n ? spectrum->s->statistics.list[i].name : NULL;
}

double kappascope_spectrum_certificate(const struct kappascope_spectrum *spectrum, const char *name)
{
    return spectrum && name ? ks_attribute_number(&spectrum->s->certificate, name) : NAN;
}

const char *kappascope_spectrum_certificate_name(const struct kappascope_spectrum *spectrum,
                                                 size_t i)
{
    return spectrum && i < spectrum->s->certificate.n ? spectrum->s->certificate.list[i].name
                                                      : NULL;
}

const char *kappascope_spectrum_claim(const struct kappascope_spectrum *spectrum)
{
    const struct ks_attribute *claim = spectrum
                                           ? ks_attribute_find(&spectrum->s->attributes, "claim")
                                           : NULL;

    return claim && claim->type == KS_ATTRIBUTE_STRING ? claim->string : NULL;
}

enum kappascope_status kappascope_spectrum_density(const struct kappascope_spectrum *spectrum,
                                                   struct kappascope_density *density)
{
    const struct ks_spectrum *s;

    KS_GIVEN(spectrum);
    KS_GIVEN(density);
    s = spectrum->s;
    *density = (struct kappascope_density){.points = s->n_grid,
                                           .grid = s->grid,
                                           .density = s->density,
                                           .symlog_grid = s->symlog_grid,
                                           .symlog_density = s->symlog_density};
    return KAPPASCOPE_OK;
}
