/* Spectrum files: what the analyzer writes and the study reads. */
#ifndef KS_IO_SPECTRUM_H
#define KS_IO_SPECTRUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "io/attribute.h"

struct ks_spectrum {
    /* The root's attributes, those of /summary, /lanczos and /certificate. */
    struct ks_attributes attributes, summary, lanczos, certificate;
    size_t probes, order; /* probes: with random start vectors, and behind them one that starts at
                           * the gradient, if there is one */
    bool gradient;        /* the last probe starts at the gradient */
    double *alpha, *beta; /* [probes, order]; NULL for an exact spectrum. Owned  */
    int64_t *steps;       /* [probes]; NULL likewise. Owned                      */
    double *
        start_norm2; /* [probes] |start vector|^2 before it was scaled; NULL where unknown. Owned */
    double *ritz, *weight, *residual; /* [probes, order]; padded with NaN. Owned            */
    size_t n_grid;
    double *grid, *density, *symlog_grid, *symlog_density; /* [n_grid]. Owned               */
};

/* The probes with random start vectors. */
size_t ks_spectrum_random(const struct ks_spectrum *spectrum);

/* Fails with KS_FORMAT or KS_IO as ks_checkpoint_read does; the file appears whole or not at all.
 */
ks_status ks_spectrum_read(const char *path, struct ks_spectrum **spectrum);
ks_status ks_spectrum_write(const char *path, const struct ks_spectrum *spectrum);
void ks_spectrum_free(struct ks_spectrum *spectrum);

#endif
