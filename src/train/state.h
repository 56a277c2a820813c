/* The state of a run as bytes: everything that its further course depends on, except for its replay
 * and its options. A run with the same options and replay that takes this state continues bit for
 * bit. Values are in the machine's byte order. */
#ifndef KS_TRAIN_STATE_H
#define KS_TRAIN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "io/file.h"
#include "train/run.h"

/* The file of a resume point: a header, a description in JSON, the state, and the SHA-256 of these.
 * Numbers are in the machine's byte order. */

struct ks_resume_header {
    char magic[24];
    uint64_t version, number;                /* of the format; of the point, from 0   */
    uint64_t description_size, state_size;   /* in bytes                              */
    uint64_t progress_size, rows;            /* bytes of progress.csv; transitions    */
    unsigned char chain[KS_SHA256_BYTES];    /* of the replay log after these rows    */
    unsigned char progress[KS_SHA256_BYTES]; /* checksum of the bytes of progress.csv */
};

/* A file that was read. */
struct ks_resume_file {
    const char *path; /* not owned */
    char *bytes;      /* the caller frees; NULL: it does not exist or is damaged */
    struct ks_resume_header header;
};

size_t ks_state_size(struct ks_run *run);                    /* in bytes */
void ks_state_get(struct ks_run *run, unsigned char *bytes); /* [ks_state_size] */
/* Checks that the run can take the state of a file: KS_USAGE, naming the file and the section in
 * the way, if not. Changes nothing. */
ks_status ks_state_check(struct ks_run *run, const struct ks_resume_file *file);
/* Takes a state that was checked. Fails with KS_FORMAT if the environment's state is impossible. */
ks_status ks_state_set(struct ks_run *run, const struct ks_resume_file *file);

size_t ks_resume_file_size(size_t description_size, size_t state_size);
/* Assembles a file in bytes [ks_resume_file_size], where the caller has written the state (at
 * ks_resume_file_state_offset): adds the header, whose magic and version it sets, the description
 * and the checksum. */
ks_status ks_resume_file_fill(struct ks_resume_header *header, const char *description,
                              unsigned char *bytes);
size_t ks_resume_file_state_offset(size_t description_size);

/* Reads file->path, if it exists. KS_FORMAT if it is damaged or of an unknown version. */
ks_status ks_resume_file_read(struct ks_resume_file *file);
/* Reads the header alone. False: there is none, of a known version. */
bool ks_resume_file_header(const char *path, struct ks_resume_header *header);
/* Whether the evaluation or checkpoint due at the point's step is still missing. False if the file
 * cannot be read.
 */
bool ks_resume_file_is_pending(const char *path);

#endif
