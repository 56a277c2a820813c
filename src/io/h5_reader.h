/* HDF5 files are read in a separate process. For h5*.c; callers outside src/io include h5.h.
 *
 * libhdf5 1.10 trusts the files that it reads: eight wrong bytes can make it crash, loop forever
 * or allocate all memory. So ks_h5_open forks a reader process. Only the reader opens the file with
 * libhdf5, and the functions of h5_read.h send it questions over a socket. Its memory and processor
 * time are limited. If it crashes or hangs, the question fails with one line and the program goes
 * on. No data structure that libhdf5 builds from a damaged file is in the program's own memory. */
#ifndef KS_IO_H5_READER_H
#define KS_IO_H5_READER_H

#include <stddef.h>
#include <sys/types.h>

#include "core/error.h"
#include "io/h5_file.h"
#include "io/h5_wire.h"

struct ks_h5_reader {
    pid_t pid;  /* 0: ended                        */
    int socket; /* the program's end; -1: closed   */
};

/* Forks the reader of h5->path, which opens the file. The caller ends it with ks_h5_reader_end,
 * also after a failure. */
ks_status ks_h5_reader_start(struct ks_h5 *h5);
void ks_h5_reader_end(struct ks_h5 *h5);

/* Sends a question and receives its answer; receives the next answer to the same question; receives
 * the bytes that follow an answer. Fail if the answer is a failure or the reader has ended.
 * `object` is named in the message. */
ks_status ks_h5_ask(const struct ks_h5 *h5, const struct ks_h5_question *question,
                    struct ks_h5_answer *answer);
ks_status ks_h5_next_answer(const struct ks_h5 *h5, const char *object,
                            struct ks_h5_answer *answer);
ks_status ks_h5_follow(const struct ks_h5 *h5, const char *object, void *bytes, size_t size);
/* For an invalid answer: ends the reader and fails. */
ks_status ks_h5_reader_invalid(const struct ks_h5 *h5, const char *object);

/* For tests: the seconds of processor time that one piece of work may take, and the seconds without
 * an answer after which the reader counts as hanging; 0 restores the default. */
void ks_h5_reader_limits(unsigned processor, unsigned patience);

#endif
