/* Reading a checkpoint whose claims are checked against the memory before anything is allocated. */
#ifndef KS_INSPECT_READ_H
#define KS_INSPECT_READ_H

#include "core/error.h"
#include "io/checkpoint.h"

/* Fails with KS_MEMORY if `bytes` are more than half of the free memory. The message starts with
 * `path` and says that `what` take so many bytes. */
ks_status ks_inspect_expect_memory(const char *path, const char *what, double bytes);

/* ks_checkpoint_read_loss, after a check that the arrays which the file claims to have fit. Fails
 * in the same way, and with KS_MEMORY. The caller frees with ks_checkpoint_free. */
ks_status ks_inspect_read(const char *path, struct ks_checkpoint **checkpoint);

#endif
