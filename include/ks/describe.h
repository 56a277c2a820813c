/* The attributes of spectra and vector files: what was computed, of what, by what. */
#ifndef KS_DESCRIBE_H
#define KS_DESCRIBE_H

#include "ks/analysis.h"
#include "ks/attribute.h"
#include "ks/error.h"
#include "ks/spectrum.h"

struct ks_certificates;
struct ks_summary_terms;

/* The root attributes of a spectrum that has its figures, which were made with `summary`, and what
 * can be claimed of it. */
ks_status ks_describe(const struct ks_analysis *analysis, const struct ks_subject *subject,
                      const struct ks_summary_terms *summary, struct ks_spectrum *spectrum);
/* The attributes of the groups /lanczos and /certificate, none of an exact spectrum; c is NULL
 * where no vectors were formed. */
ks_status ks_describe_probes(const struct ks_certificates *c, struct ks_spectrum *spectrum);
/* The attributes of products, or, if `loss` is not NULL, of a gradient. The caller clears the list,
 * also after a failure. */
ks_status ks_describe_vectors(const struct ks_analysis *analysis, const struct ks_subject *subject,
                              const double *loss, struct ks_attributes *list);
/* The attributes that a Lanczos step depends on, one "NAME VALUE" per line; the caller frees. */
ks_status ks_describe_key(const struct ks_analysis *analysis, const struct ks_subject *subject,
                          char **key);

#endif
