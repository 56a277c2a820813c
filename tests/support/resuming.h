/* Short runs in processes of their own, each forked from a run that was built once and never
 * stepped: starting one is cheap, and killing one leaves only its files. Their resume points can be
 * changed, as another version of the program or another machine would have written them. */
#ifndef KS_TEST_RESUMING_H
#define KS_TEST_RESUMING_H

#include <fcntl.h>
#include <time.h>

#include "disk.h"
#include "programs.h"

#include "core/blas.h"
#include "core/memory.h"
#include "env/domain.h"
#include "io/file.h"
#include "train/train.h"

/* 30 steps, 8 of them random, in episodes of 7. Replay holds the last 9 transitions; the replay log
 * has 3 per segment; targets span up to 3. Checkpoints at 8, 15 and 30, evaluations at 0, 15 and
 * 30. */
enum { STEPS = 30, EPISODE = 7, KILLED = -1, TERMINATED = -2 };

/* A run that is built and never stepped: each process forks from it. */
struct unstarted_run {
    struct ks_train_options options;
    struct ks_run *run;
};

/* What runs have besides: another task and architecture, or NULL; settings, as assign_settings
 * takes them. */
extern struct more {
    const char *env, *architecture, *settings;
} more;

void build_run(struct unstarted_run *u, size_t threads);

/* How a process is started. */
struct launch {
    enum ks_resume resume;
    double save_every; /* 0: the default */
    size_t stop_at;    /* 0: nowhere     */
    int fault;
    size_t fault_at;
};

/* Starts a process that trains in `folder`. */
pid_t start_run(struct unstarted_run *u, const char *folder, const struct launch *launch);

/* Waits for the process: its exit status, or KILLED or TERMINATED. */
int await_run(pid_t child);
int run_process(struct unstarted_run *u, const char *folder, struct launch launch);
const char *process_said(const char *folder);
void assert_process_said(const char *folder, const char *words);
void assert_process_runs(struct unstarted_run *u, const char *folder, struct launch launch);
int shell(const char *command, const char *a, const char *b);
void remove_folder(const char *folder);

/* run.json without the clock's times and the command line. */
json_t *described(const char *folder);
void assert_state(const char *folder, const char *state);
void assert_same_file(const char *a, const char *b);

/* The number of files in the folder, hidden ones included. */
size_t count_files(const char *folder);

/* Two finished runs have the same files; checkpoints and progress.csv are equal byte for byte. */
void assert_same_run(const char *folder, const char *reference);

/* Offsets in a point's header, which is followed by description, state and checksum. */
enum {
    AT_DESCRIPTION_SIZE = 40,
    AT_STATE_SIZE = 48,
    AT_PROGRESS_SIZE = 56,
    AT_PROGRESS = 104,
    HEADER = 136
};

struct image {
    unsigned char header[HEADER];
    json_t *description;  /* owned */
    unsigned char *state; /* owned */
    size_t state_size;
};

/* Reads a resume point, and writes it with the right checksum; writing frees what the image holds.
 */
struct image read_point(const char *path);
void write_point(const char *path, struct image *p);

void set_header_number(struct image *p, size_t at, uint64_t number);

/* The state's sections: a name, the value's size, the value. */
enum { SECTION_NAME = 40, SECTION = SECTION_NAME + 8 };

uint64_t section_size(const struct image *p, size_t at);

/* The offset of the section of that name in the state. */
size_t section(const struct image *p, const char *name);

/* A run that was stopped, whose resume point a test changes before the run is resumed. */
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
