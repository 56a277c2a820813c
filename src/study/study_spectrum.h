/* Spectra in a study's folder. */
#ifndef KS_STUDY_STUDY_SPECTRUM_H
#define KS_STUDY_STUDY_SPECTRUM_H

#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "study/study_file.h"

/* A checkpoint of a study. */
struct ks_study_checkpoint {
    size_t architecture, seed; /* indices in the study */
    size_t step;               /* environment step     */
};

/* Reads the spectrum of a checkpoint; refuses one whose attributes name another checkpoint. Fails
 * with KS_FORMAT or KS_IO; the caller frees. */
ks_status ks_study_read_spectrum(const struct ks_study *study,
                                 const struct ks_study_checkpoint *checkpoint, const char *path,
                                 struct ks_spectrum **spectrum);

#endif
