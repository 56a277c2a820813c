/* The attributes of spectra and vector files: which operator of which checkpoint, and the versions
 * and the machine that computed it. */
#ifndef KS_SPECTRUM_PROVENANCE_H
#define KS_SPECTRUM_PROVENANCE_H

#include "core/error.h"
#include "io/attribute.h"
#include "io/spectrum.h"
#include "operators/analyzed.h"

struct ks_certificates;
struct ks_measurement;
struct ks_statistics_terms;

/* The root attributes of a measured spectrum, with the claim if it is that of a checkpoint. The
 * spectrum must have its statistics, computed with `terms`. */
ks_status ks_provenance_spectrum(const struct ks_measurement *m,
                                 const struct ks_statistics_terms *terms);
/* The attributes of the groups /lanczos and /certificate; an exact spectrum has none. c is NULL
 * if no certificate vectors were formed. */
ks_status ks_provenance_probes(const struct ks_certificates *c, struct ks_spectrum *spectrum);
/* The attributes of a file of products, or, if `loss` is not NULL, of a gradient. The caller clears
 * the list, also after a failure. */
ks_status ks_provenance_vectors(const struct ks_analyzed *analyzed, const double *loss,
                                struct ks_attributes *list);

#endif
