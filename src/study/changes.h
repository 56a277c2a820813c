/* How the conditions of a run changed when it was resumed (--resume=any), as its run.json says. */
#ifndef KS_STUDY_CHANGES_H
#define KS_STUDY_CHANGES_H

#include "core/error.h"

/* The changes of the run in dir/folder: 'from environment step 16 on, blas_kernel was "Haswell", is
 * "SkylakeX"; ...'; "" if run.json has none or cannot be read. The caller frees *text. Fails only
 * for lack of memory. */
ks_status ks_changes_read(const char *dir, const char *folder, char **text);

#endif
