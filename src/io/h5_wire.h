/* The messages between a program and the process that reads a file for it (h5_reader.h). Both run
 * the same executable, so structs travel as they are in memory. */
#ifndef KS_IO_H5_WIRE_H
#define KS_IO_H5_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/attribute.h"
#include "io/h5_file.h"

enum ks_h5_question_kind {
    KS_H5_HAS,
    KS_H5_SHAPE,
    KS_H5_VALUES,
    KS_H5_HAS_ATTRIBUTE,
    KS_H5_ONE_ATTRIBUTE,
    KS_H5_ALL_ATTRIBUTES,
    KS_H5_OBJECT_NAMES,
    KS_H5_ATTRIBUTE_NAMES
};
struct ks_h5_question {
    enum ks_h5_question_kind kind;
    char object[KS_H5_OBJECT], name[KS_ATTRIBUTE_NAME];
    struct ks_h5_shape shape; /* VALUES: the expected shape */
};

/* The reader sends one answer when it has opened the file and one to each question.
 *
 *   HAS, HAS_ATTRIBUTE   count is 0 or 1
 *   SHAPE                the shape, and how the numbers are stored
 *   VALUES               several answers, each followed by its `count` numbers; a single one
 *                        with count 0 if the dataset is empty
 *   ONE_ATTRIBUTE,       `count` attributes follow, each a struct ks_attribute, followed by its
 *   ALL_ATTRIBUTES       list, or by its string, whose length is then in `n`
 *   OBJECT_NAMES,        `count` names of KS_H5_NAME bytes follow
 *   ATTRIBUTE_NAMES */
struct ks_h5_answer {
    ks_status status;
    size_t count;
    struct ks_h5_shape shape;
    enum ks_h5_stored stored;
    char text[1024]; /* the message, if status is not KS_OK */
};

/* Send all bytes; receive exactly `size` bytes. False if the other end is closed, or after
 * `patience` seconds without a byte, with errno ETIMEDOUT; patience 0 waits forever. */
bool ks_h5_send(int socket, const void *bytes, size_t size);
bool ks_h5_receive(int socket, unsigned patience, void *bytes, size_t size);

#endif
