/* One line of a network description (`*.arch`): a keyword, then arguments, then options name=value.
 *
 * The caller takes the arguments and options that it knows; ks_line_end then fails if any are left,
 * so that an unknown or misspelt option is never ignored. Every message names the file and line. */
#ifndef KS_CORE_LINE_H
#define KS_CORE_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { KS_LINE_WORDS = 16, KS_LINE_LENGTH = 256, KS_LINE_OPTIONS = 12 };

struct ks_line {
    const char *source; /* file name, for messages           */
    size_t number;      /* line number, from 1               */
    size_t n_words;
    bool opens;                /* the line ended in '{', which is not stored as a word */
    char text[KS_LINE_LENGTH]; /* the words, each 0-terminated */
    char *word[KS_LINE_WORDS];
    bool taken[KS_LINE_WORDS];
    /* The options that have been asked for, for the message about an unknown one. */
    const char *option[KS_LINE_OPTIONS + 1]; /* ended by NULL */
    size_t n_options;
};

/* Splits `text` (one line; '#' starts a comment) into words. n_words is 0 for a blank line.
 * A carriage return may only end it. */
ks_status ks_line_split(struct ks_line *line, const char *source, size_t number, const char *text);

/* Takes the next argument: an integer in low..high. `what` names it in messages. */
ks_status ks_line_argument_size(struct ks_line *line, const char *what, size_t low, size_t high,
                                size_t *value);
/* Takes the next argument: a finite number in [low, high]. */
ks_status ks_line_argument_number(struct ks_line *line, const char *what, double low, double high,
                                  double *value);
/* Takes the next argument: a slice NAME[from:to] of `columns` columns, numbered from 0, as in
 * Python. Without `from` it starts at 0, without `to` it ends at `columns`. It must not be empty.
 */
ks_status ks_line_argument_slice(struct ks_line *line, const char *name, size_t columns,
                                 size_t *from, size_t *to);
/* Takes option `name`, a finite number in [low, high]. If it is absent, *value is unchanged. */
ks_status ks_line_option_number(struct ks_line *line, const char *name, double low, double high,
                                double *value);
/* Takes option `name`, one of `choices` (NULL-terminated), and sets *value to its index. If the
 * option is absent, *value is unchanged. */
ks_status ks_line_option_choice(struct ks_line *line, const char *name, const char *const *choices,
                                size_t *value);
/* Takes option `name`, "no" or "yes". If it is absent, *value is unchanged. */
ks_status ks_line_option_flag(struct ks_line *line, const char *name, bool *value);
/* Whether option `name` is present. */
bool ks_line_has_option(const struct ks_line *line, const char *name);
/* Fails if an argument or option has not been taken; the message names the options that could have
 * been, and the nearest of them. */
ks_status ks_line_end(const struct ks_line *line);
/* Fails with "source:number: message". */
ks_status ks_line_fail(const struct ks_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The index of a word among `words` [n], which may end in a NULL before; where they end if it is
 * none of them. */
size_t ks_word_index(const char *word, size_t n, const char *const *words);
/* "a, b or c": words that end in NULL, between `comma` and `last`, truncated to `room`. */
void ks_words_print(const char *const *words, const char *comma, const char *last, size_t room,
                    char *text);

/* --- "Did you mean ...": the known name that a word was probably meant to be --- */

/* Another word for a name, in lower case and without '_' and '-': {"linear", "dense"}; options may
 * follow the name. */
struct ks_near_alias {
    const char *word, *name;
};

/* Fails: "unknown WHAT 'found': did you mean 'NAME'? (known: ...)", with the nearest of the names
 * `known`, which end in NULL; aliases end in {NULL, NULL}; NULL: none. */
ks_status ks_line_unknown(const struct ks_line *line, const char *what, const char *found,
                          const char *const *known, const struct ks_near_alias *aliases);

#endif
