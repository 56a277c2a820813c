/* HDF5 files are read in a process of their own, for h5*.c only; everyone else uses h5.h.
 *
 * libhdf5 1.10 trusts the files it reads: eight wrong bytes make it crash, loop for ever or ask for
 * all memory. So ks_h5_open forks a reader, which alone gives the file to libhdf5, and the
 * functions of h5.h ask it, over a socket, for what they need. The reader's memory and processor
 * time are limited. If it crashes or hangs, the question fails with one line and the program goes
 * on. Nothing that libhdf5 makes of a damaged file is in the memory of the program itself. */
#ifndef KS_IO_H5_READER_H
#define KS_IO_H5_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/error.h"
#include "io/attribute.h"
#include "io/h5.h"

enum {
    KS_H5_OBJECT = 256,     /* bytes of an object's path, with the 0 at its end       */
    KS_H5_LONGEST = 1 << 20 /* bytes of a string, numbers of a list, of an attribute  */
};

struct ks_h5_reader {
    pid_t pid;  /* 0: ended                  */
    int socket; /* our end of it; -1: closed */
};

/* Both processes run the same program, so structs travel as they are. */
enum ks_h5_wish {
    KS_H5_HAS,
    KS_H5_SHAPE,
    KS_H5_VALUES,
    KS_H5_HAS_ATTRIBUTE,
    KS_H5_ONE_ATTRIBUTE,
    KS_H5_ALL_ATTRIBUTES
};
struct ks_h5_question {
    enum ks_h5_wish wish;
    char object[KS_H5_OBJECT], name[KS_ATTRIBUTE_NAME];
    struct ks_h5_shape shape; /* of VALUES: the one that is expected */
};

/* One answer to the opening and one to each question. HAS and HAS_ATTRIBUTE: `count` is 0 or 1.
 * VALUES: as many answers as it takes, with `count` numbers behind each, 0 of them only where there
 * are none at all. ONE_ATTRIBUTE and ALL_ATTRIBUTES: `count` attributes follow, each a struct
 * ks_attribute with its list behind it, or with its string, whose length is then in `n`. */
struct ks_h5_answer {
    ks_status status;
    size_t count;
    struct ks_h5_shape shape; /* to SHAPE */
    char text[1024];          /* of a failure */
};

/* --- in the program --- */

/* Forks the reader of h5->path, which opens the file. The caller ends it with ks_h5_reader_end,
 * also after a failure. */
ks_status ks_h5_reader_start(struct ks_h5 *h5);
void ks_h5_reader_end(struct ks_h5 *h5);

/* Ask, and receive the answer; receive the next answer; receive what follows one. A failure is that
 * of the answer, or the reader's end. `object`: what the question is about. */
ks_status ks_h5_ask(const struct ks_h5 *h5, const struct ks_h5_question *question,
                    struct ks_h5_answer *answer);
ks_status ks_h5_next_answer(const struct ks_h5 *h5, const char *object,
                            struct ks_h5_answer *answer);
ks_status ks_h5_follow(const struct ks_h5 *h5, const char *object, void *bytes, size_t size);
/* An answer makes no sense: ends the reader and fails. */
ks_status ks_h5_reader_nonsense(const struct ks_h5 *h5, const char *object);

/* The questions, as the functions of h5.h. */
ks_status ks_h5_ask_has(const struct ks_h5 *h5, const char *object, bool *there);
ks_status ks_h5_ask_shape(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape);
ks_status ks_h5_ask_values(const struct ks_h5 *h5, const char *object,
                           const struct ks_h5_shape *shape, double *values);
ks_status ks_h5_ask_has_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                                  bool *there);
ks_status ks_h5_ask_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                              struct ks_attribute *attribute, bool *known);
ks_status ks_h5_ask_attributes(const struct ks_h5 *h5, const char *object,
                               struct ks_attributes *attributes);

/* For tests: the seconds of processor time that one piece of work may take, and the seconds without
 * an answer after which the reader counts as hanging; 0 restores the usual number. */
void ks_h5_reader_limits(unsigned processor, unsigned patience);

/* --- in both --- */

/* Sends all bytes; receives all. False where the other end is closed, or after `patience` seconds
 * without a byte, errno then being ETIMEDOUT; patience 0: waits for ever. */
bool ks_h5_send(int socket, const void *bytes, size_t size);
bool ks_h5_receive(int socket, unsigned patience, void *bytes, size_t size);

/* --- in the reader --- */

/* Answers until the socket is closed. `processor`: seconds of processor time that one piece of work
 * may take before the system ends the process. */
void ks_h5_serve(struct ks_h5 *h5, int socket, unsigned processor) __attribute__((noreturn));

/* Gives the file to libhdf5. */
ks_status ks_h5_open_here(struct ks_h5 *h5);
/* Gives the values of a dataset piece by piece: calls `before` with the piece's bytes before it is
 * read, and `take` after that. */
struct ks_h5_taker {
    void (*before)(size_t bytes, void *context);
    ks_status (*take)(size_t n, const double *values, void *context);
    void *context;
};
ks_status ks_h5_read_pieces(const struct ks_h5 *h5, const char *object,
                            const struct ks_h5_shape *shape, const struct ks_h5_taker *taker);
/* Reads an attribute that is there; *known is false where its type is one that we have no use for.
 */
ks_status ks_h5_read_known(const struct ks_h5 *h5, const char *object, const char *name,
                           struct ks_attribute *attribute, bool *known);

#endif
