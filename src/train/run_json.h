/* run.json: what a run is, under which conditions it is computed, and in which state it is. */
#ifndef KS_TRAIN_RUN_JSON_H
#define KS_TRAIN_RUN_JSON_H

#include "core/error.h"
#include "train/run.h"

/* FAILED_PERMANENTLY: the failure is deterministic, so the run cannot be resumed. */
enum ks_run_state { KS_RUNNING, KS_STOPPED, KS_FINISHED, KS_FAILED, KS_FAILED_PERMANENTLY };
extern const char *const ks_run_states[]; /* their names in run.json */

/* Writes the file. `reason`: why the run stopped or failed; NULL: it did not. */
ks_status ks_run_write_json(const struct ks_run *run, enum ks_run_state state, const char *reason);
/* The current time, UTC, ISO 8601. */
void ks_run_time(char text[32]);

#endif
