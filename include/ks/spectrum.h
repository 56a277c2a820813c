/* Spectrum files: what the analyzer writes and the study reads. */
#ifndef KS_SPECTRUM_H
#define KS_SPECTRUM_H

#include <stddef.h>
#include <stdint.h>

#include "ks/attribute.h"
#include "ks/error.h"

struct ks_spectrum {
    struct ks_attributes attributes, summary; /* the root's, those of /summary */
    size_t probes, order;
    double *alpha, *beta;             /* [probes, order]; NULL for an exact spectrum. Owned  */
    int64_t *steps;                   /* [probes]; NULL likewise. Owned                      */
    double *ritz, *weight, *residual; /* [probes, order]; padded with NaN. Owned            */
    size_t n_grid;
    double *grid, *density, *symlog_grid, *symlog_density; /* [n_grid]. Owned               */
};

/* Fails with KS_FORMAT or KS_IO as ks_checkpoint_read does; the file appears whole or not at all.
 */
ks_status ks_spectrum_read(const char *path, struct ks_spectrum **spectrum);
ks_status ks_spectrum_write(const char *path, const struct ks_spectrum *spectrum);
void ks_spectrum_free(struct ks_spectrum *spectrum);

#endif
