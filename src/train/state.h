/* The state of a run as bytes: everything that its further course depends on, except for its replay
 * and its options. A run with the same options and replay that takes this state continues bit for
 * bit. Values are in the machine's byte order. */
#ifndef KS_TRAIN_STATE_H
#define KS_TRAIN_STATE_H

#include <stddef.h>

#include "core/error.h"
#include "train/run.h"

struct ks_saved_state {
    const unsigned char *bytes; /* [size]; not owned */
    size_t size;
};

size_t ks_state_size(struct ks_run *run);                    /* in bytes */
void ks_state_get(struct ks_run *run, unsigned char *bytes); /* [ks_state_size] */
/* Checks that the run can take a state: KS_USAGE, naming the file `path` and the section in the
 * way, if not. Changes nothing. */
ks_status ks_state_check(struct ks_run *run, const char *path, const struct ks_saved_state *state);
/* Takes a state that was checked. Fails with KS_FORMAT if the environment's state is impossible. */
ks_status ks_state_set(struct ks_run *run, const struct ks_saved_state *state);

#endif
