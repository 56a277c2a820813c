/* What identifies a run: all that decides what it computes. In JSON: env, architecture, seed,
 * steps, settings (all but `threads`), critic and actor (their descriptions), and `task` for a task
 * of the user's own (its file). It is part of run.json and of every resume point. */
#ifndef KS_TRAIN_FINGERPRINT_H
#define KS_TRAIN_FINGERPRINT_H

#include "core/error.h"
#include "train/plan.h"

struct json_t; /* of jansson */

/* The caller frees it; NULL if a name is not valid UTF-8 or memory runs out. */
struct json_t *ks_fingerprint(const struct ks_plan *plan);
/* Compares with `found`, read from the file `path`. A setting that `found` lacks, because an older
 * version wrote it, is added to it with its default. Fails with KS_USAGE: "PATH: WHAT: expected
 * NAME X, found Y". */
ks_status ks_fingerprint_compare(const struct ks_plan *plan, const char *path, const char *what,
                                 struct json_t *found);
/* The same for a single value; `found` NULL: it is missing. */
ks_status ks_fingerprint_compare_value(const char *path, const char *what, const char *name,
                                       const struct json_t *found, const struct json_t *want);

#endif
