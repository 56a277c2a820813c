#include "study/study_spectrum.h"

#include <math.h>
#include <string.h>

#include "core/path.h"

/* Architecture, step and seed of the spectrum must be those of the checkpoint: a file that was
 * moved is refused. */
static ks_status check_origin(const struct ks_study *study,
                              const struct ks_study_checkpoint *checkpoint, const char *path,
                              const struct ks_spectrum *s)
{
    /* A run records its network: the name, or the file's name. A variant has another name. */
    const char *name = ks_path_base(study->architecture[checkpoint->architecture].argument);
    const struct ks_attribute *a = ks_attribute_find(&s->attributes, "architecture");
    double step = ks_attribute_number(&s->attributes, "env_step");
    double seed = ks_attribute_number(&s->attributes, "seed");

    if (a && a->type == KS_ATTRIBUTE_STRING && strcmp(a->string, name) != 0)
        return ks_fail(KS_FORMAT, "%s: architecture: expected '%s', found '%s'", path, name,
                       a->string);
    if (!isnan(step) && step != (double)checkpoint->step)
        return ks_fail(KS_FORMAT, "%s: env_step: expected %zu, found %g", path, checkpoint->step,
                       step);
    if (!isnan(seed) && seed != (double)study->seed[checkpoint->seed])
        return ks_fail(KS_FORMAT, "%s: seed: expected %zu, found %g", path,
                       study->seed[checkpoint->seed], seed);
    return KS_OK;
}

ks_status ks_study_read_spectrum(const struct ks_study *study,
                                 const struct ks_study_checkpoint *checkpoint, const char *path,
                                 struct ks_spectrum **spectrum)
{
    ks_status status;

    KS_TRY(ks_spectrum_read(path, spectrum));
    status = check_origin(study, checkpoint, path, *spectrum);
    if (status != KS_OK) {
        ks_spectrum_free(*spectrum);
        *spectrum = NULL;
    }
    return status;
}
