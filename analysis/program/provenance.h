/* The attributes of spectra and vector files: what was computed, of what, by what. */
#ifndef KS_PROGRAM_PROVENANCE_H
#define KS_PROGRAM_PROVENANCE_H

#include "core/error.h"
#include "io/attribute.h"
#include "io/spectrum.h"
#include "program/options.h"
#include "program/subject.h"

struct ks_certificates;
struct ks_statistics_terms;

/* The root attributes of a spectrum that has its figures, which were made with `summary`, and what
 * can be claimed of it. */
ks_status ks_provenance_spectrum(const struct ks_options *analysis,
                                 const struct ks_subject *subject,
                                 const struct ks_statistics_terms *summary,
                                 struct ks_spectrum *spectrum);
/* The attributes of the groups /lanczos and /certificate, none of an exact spectrum; c is NULL
 * where no vectors were formed. */
ks_status ks_provenance_probes(const struct ks_certificates *c, struct ks_spectrum *spectrum);
/* The attributes of products, or, if `loss` is not NULL, of a gradient. The caller clears the list,
 * also after a failure. */
ks_status ks_provenance_vectors(const struct ks_options *analysis, const struct ks_subject *subject,
                                const double *loss, struct ks_attributes *list);
/* The attributes that a Lanczos step depends on, one "NAME VALUE" per line; the caller frees. */
ks_status ks_provenance_fingerprint(const struct ks_options *analysis,
                                    const struct ks_subject *subject, char **key);

#endif
