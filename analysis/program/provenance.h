/* The attributes of spectra and vector files: which operator of which checkpoint, and the versions
 * and the machine that computed it. */
#ifndef KS_PROGRAM_PROVENANCE_H
#define KS_PROGRAM_PROVENANCE_H

#include "core/error.h"
#include "io/attribute.h"
#include "io/spectrum.h"
#include "program/options.h"
#include "program/subject.h"

struct ks_certificates;
struct ks_statistics_terms;

/* The root attributes of a spectrum, with the claim. The spectrum must have its statistics,
 * computed with `terms`. */
ks_status ks_provenance_spectrum(const struct ks_options *options, const struct ks_subject *subject,
                                 const struct ks_statistics_terms *terms,
                                 struct ks_spectrum *spectrum);
/* The attributes of the groups /lanczos and /certificate; an exact spectrum has none. c is NULL
 * if no certificate vectors were formed. */
ks_status ks_provenance_probes(const struct ks_certificates *c, struct ks_spectrum *spectrum);
/* The attributes of a file of products, or, if `loss` is not NULL, of a gradient. The caller clears
 * the list, also after a failure. */
ks_status ks_provenance_vectors(const struct ks_options *options, const struct ks_subject *subject,
                                const double *loss, struct ks_attributes *list);
/* The attributes that the numbers of a Lanczos step depend on, one "NAME VALUE" per line. Stored
 * steps (--keep-basis) are resumed only if their fingerprint is the same. The caller frees
 * *fingerprint. */
ks_status ks_provenance_fingerprint(const struct ks_options *options,
                                    const struct ks_subject *subject, char **fingerprint);

#endif
