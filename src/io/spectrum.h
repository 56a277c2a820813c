/* Spectrum files: what the analyzer writes and the study reads. */
#ifndef KS_IO_SPECTRUM_H
#define KS_IO_SPECTRUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/attribute.h"

struct ks_h5;

struct ks_spectrum {
    /* Attributes of the root, of /summary, of /lanczos and of /certificate. */
    struct ks_attributes attributes, statistics, lanczos, certificate;
    size_t probes, order; /* order: the most Lanczos steps of a probe, m                       */
    bool gradient;        /* the last probe starts at the gradient, the others at random vectors */
    bool complement;      /* the last one beside the gradient's is in the complement of the first
                           * one's Krylov space */
    double *alpha, *beta; /* [probes, order]; NULL for an exact spectrum. Owned  */
    int64_t *steps;       /* [probes] steps taken; NULL for an exact spectrum. Owned */
    double *start_norm2;  /* [probes] |start vector|^2 before normalization; NULL: unknown. Owned */
    double *ritz, *weight, *residual; /* [probes, order]; padded with NaN. Owned            */
    size_t n_grid;
    double *grid, *density, *symlog_grid, *symlog_density; /* [n_grid]. Owned               */
    /* Bounds of the cumulative distribution F(x) = (number of eigenvalues <= x) / n at each
     * band_at, with 99.5% confidence at each. n_band is 0 if the spectrum has no intervals. Owned.
     */
    size_t n_band;
    double *band_at, *band_lower, *band_upper; /* [n_band] */
    struct ks_arena arena; /* the arrays of probes where they were made together, by ks_slq_room or
                            * ks_exact. Owned */
};

/* The number of probes with random start vectors in all dimensions, which are the first; the number
 * of Ritz values of a probe. */
size_t ks_spectrum_random(const struct ks_spectrum *spectrum);
/* Where a probe starts: "random", "complement" or "gradient". */
const char *ks_spectrum_start(const struct ks_spectrum *spectrum, size_t probe);
size_t ks_spectrum_steps(const struct ks_spectrum *spectrum, size_t probe);

/* A dataset of a spectrum's file: [rows, columns], or [columns] if `rows` is 0. */
struct ks_spectrum_dataset {
    const char *name; /* "/ritz/value"                         */
    size_t rows, columns;
    const double *values; /* NULL: the spectrum does not have it */
};
/* The i-th dataset of numbers; false if there are no more. */
bool ks_spectrum_dataset(const struct ks_spectrum *spectrum, size_t i,
                         struct ks_spectrum_dataset *dataset);

/* Read, the second one from an open file, and write. Fail with KS_FORMAT or KS_IO as
 * ks_checkpoint_read_loss does; a written file appears complete or not at all. The caller frees
 * *spectrum. */
ks_status ks_spectrum_read(const char *path, struct ks_spectrum **spectrum);
ks_status ks_spectrum_read_open(const struct ks_h5 *h5, struct ks_spectrum **spectrum);
ks_status ks_spectrum_write(const char *path, const struct ks_spectrum *spectrum);
void ks_spectrum_free(struct ks_spectrum *spectrum);
KS_OWNER(ks_spectrum_free, struct ks_spectrum *)

#endif
