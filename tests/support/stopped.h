/* A run that was stopped, whose resume point a test changes before the run is resumed. */
#ifndef KS_TEST_STOPPED_H
#define KS_TEST_STOPPED_H

#include "resuming.h"

extern struct unstarted_run unstarted[2]; /* one thread, two */

static const char STOPPED_RUN[] = "stopped", REFERENCE[] = "reference", RUN[] = "run";

enum { STOPPED = 16 };

int set_up(void **state);
int tear_down(void **state);
const char *in_run(const char *file);

/* Copies the stopped run to RUN; and reads its resume point. in_run: a path in the copy. */
void copy_stopped_run(void);
struct image open_stopped_run(void);
void write_stopped_run(struct image *p);
int resume(enum ks_resume how);
void assert_resumes(enum ks_resume how);

/* Refused with one line and exit status 2; the run is not changed. */
void assert_refused(enum ks_resume how, const char *words);

#endif
