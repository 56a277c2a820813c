/* One line of a description (`*.arch`): a word, then arguments, then options name=value.
 *
 * The reader of a line takes what it knows; ks_line_end refuses what is left, so that an unknown, a
 * repeated or a misspelt option never passes in silence. Every message names file and line. */
#ifndef KS_CORE_LINE_H
#define KS_CORE_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { KS_LINE_WORDS = 16, KS_LINE_LENGTH = 256 };

struct ks_line {
    const char *source; /* the file's name, for messages      */
    size_t number;      /* the line's number in it, from 1    */
    size_t n_words;
    bool opens;                /* it ended in '{', which is not among the words */
    char text[KS_LINE_LENGTH]; /* the words, each with a 0 at its end */
    char *word[KS_LINE_WORDS];
    bool taken[KS_LINE_WORDS];
};

/* Splits `text` (without its newline; a '#' starts a comment) into words; n_words = 0: blank. */
ks_status ks_line_split(struct ks_line *line, const char *source, size_t number, const char *text);

/* The next argument that is not an option, an integer in low..high; `what` names it in messages. */
ks_status ks_line_size(struct ks_line *line, const char *what, size_t low, size_t high,
                       size_t *value);
/* The same for a finite number in [low, high]. */
ks_status ks_line_value(struct ks_line *line, const char *what, double low, double high,
                        double *value);
/* Option `name`, a finite number in [low, high]; *value stays as it is where the option is absent.
 */
ks_status ks_line_number(struct ks_line *line, const char *name, double low, double high,
                         double *value);
/* Option `name`, one of `choices` (ends in NULL), by its index; *value stays where it is absent. */
ks_status ks_line_choice(struct ks_line *line, const char *name, const char *const *choices,
                         size_t *value);
/* Option `name` is there. */
bool ks_line_has(const struct ks_line *line, const char *name);
/* Fails on the first word that nobody took. */
ks_status ks_line_end(const struct ks_line *line);
/* Fails with "source:number: message". */
ks_status ks_line_fail(const struct ks_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
