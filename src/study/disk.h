/* The disk space that a study takes. */
#ifndef KS_STUDY_DISK_H
#define KS_STUDY_DISK_H

#include "core/error.h"
#include "study/study_file.h"

/* In bytes, for the whole study; by the shapes of the arrays in float32, before their compression,
 * which saves a tenth to a fifth. */
struct ks_disk {
    double checkpoints; /* all of them, in the end                              */
    double resume;      /* resume points and replay of one unfinished run; the largest */
    double basis;       /* Lanczos vectors kept by keep-basis                   */
};

/* For a task of these widths. Fails with KS_USAGE, KS_FORMAT, KS_IO or KS_MEMORY. */
ks_status ks_study_disk(const struct ks_study *study, size_t observations, size_t actions,
                        struct ks_disk *disk);

#endif
