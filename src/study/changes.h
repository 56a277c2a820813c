/* What run.json says of a run that went on under other conditions (--resume=any). */
#ifndef KS_STUDY_CHANGES_H
#define KS_STUDY_CHANGES_H

#include "core/error.h"

/* The changes of the run in dir/folder, in words: "from environment step 16 on, blas_kernel was
 * "Haswell", is "SkylakeX"; ..."; "" where run.json names none or cannot be read. The caller frees
 * *text. Fails for lack of memory alone. */
ks_status ks_changes_read(const char *dir, const char *folder, char **text);

#endif
