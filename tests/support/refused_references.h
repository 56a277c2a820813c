/* What the message about a reference result that differs says. */
#ifndef KS_TEST_REFUSED_REFERENCES_H
#define KS_TEST_REFUSED_REFERENCES_H

#include <stdio.h>
#include <string.h>

#include "test.h"

static const char OUTPUT[] = "/batch/output", LOSS[] = "/batch/loss",
                  NORM[] = "/batch/gradient_norm";

/* The place of the first value that differs, the value in the file and the computed one. */
struct place {
    size_t minibatch, row, critic, output;
    double stored, computed;
};

/* Reads the message "FILE: OBJECT: minibatch ...", and fails the test if it is another one. */
static inline struct place read_place(const char *object, const char *message)
{
    static const char OUTPUT_WORDS[] = ": minibatch %zu, row %zu, critic %zu, output %zu: expected "
                                       "the same as in the file, %lf, found %lf (",
                      WORDS[] =
                          ": minibatch %zu: expected the same as in the file, %lf, found %lf (";
    struct place p = {.row = 0};
    const char *at = strstr(message, object);
    int found = 0;

    if (at && object == OUTPUT)
        found = sscanf(at + strlen(object), OUTPUT_WORDS, &p.minibatch, &p.row, &p.critic,
                       &p.output, &p.stored, &p.computed);
    else if (at)
        found = sscanf(at + strlen(object), WORDS, &p.minibatch, &p.stored, &p.computed);
    if (found != (object == OUTPUT ? 6 : 3))
        fail_msg("'%s' does not name %s, its place and both values", message, object);
    return p;
}

#endif
