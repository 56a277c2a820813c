/* Signals that ask a run to stop. */
#ifndef KS_TRAIN_STOP_REQUEST_H
#define KS_TRAIN_STOP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* From now on SIGINT, SIGTERM and SIGHUP, unless they are ignored, are only recorded. */
void ks_stop_listen(void);
/* Fails with KS_RUN, naming the signal and env_step, if one has been received. */
ks_status ks_stop_check(size_t env_step);
/* Whether ks_stop_check has failed since ks_stop_listen: the run ends because of a signal. */
bool ks_stop_obeyed(void);

#endif
