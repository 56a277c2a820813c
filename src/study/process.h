/* Other programs: start one, read what it prints, wait for it. */
#ifndef KS_STUDY_PROCESS_H
#define KS_STUDY_PROCESS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/error.h"

struct ks_process {
    pid_t pid;    /* 0: none */
    FILE *output; /* what it prints; owned */
};

/* Runs argv[0] (a path; argv ends in NULL) in `folder`, its standard input empty. `errors` names
 * the file for its standard error; NULL: that goes where the output goes. With `group` it leads a
 * process group of its own, so that it can be stopped with all that it starts, and is told to stop
 * when this process dies. The caller ends with ks_process_end. */
ks_status ks_process_start(const char *folder, const char *const *argv, const char *errors,
                           bool group, struct ks_process *process);
/* Waits; *code is the exit status, 128 + the number of the signal that ended it otherwise. */
ks_status ks_process_end(struct ks_process *process, int *code);

#endif
