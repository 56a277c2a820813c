/* Keys: what the options of a program, the settings of a training or the lines of a study's section
 * may be. A row of a table says a key's name, type, range, default and help, and where its value is
 * kept in a struct; reading, refusing, printing, comparing and --help follow from the rows:
 *
 *     #define AT(member) KS_KEY_AT(struct command, member)
 *     static const struct ks_key keys[] = {
 *         {"order", KS_ROW_COUNT(1, 10000), "90", AT(order), "M", "Lanczos steps"},
 *         {"csv", KS_ROW_FLAG(), NULL, AT(csv), NULL, "print CSV"},
 *         KS_KEYS_END};
 */
#ifndef KS_CORE_KEYS_H
#define KS_CORE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum ks_key_type {
    KS_KEY_COUNT,  /* an integer: a size_t, an uint64_t or an int       */
    KS_KEY_NUMBER, /* a double                                          */
    KS_KEY_FLAG,   /* yes or no: a bool or a size_t                     */
    KS_KEY_OFF,    /* a FLAG "no-NAME", which sets a bool NAME to false */
    KS_KEY_CHOICE, /* one of some words: an enumeration or a bool       */
    KS_KEY_TEXT,   /* a const char *, which points to the text as given */
    KS_KEY_TEXTS,  /* a struct ks_key_texts: the key may be repeated    */
    KS_KEY_OTHER   /* what `read` makes of the text                     */
};

struct ks_key {
    const char *name;
    enum ks_key_type type;
    double low, high; /* COUNT, NUMBER: inclusive, DBL_MAX: no limit; CHOICE, `low`: the value of
                       * the first word                                                         */
    const char *const *choices; /* CHOICE: the words, ended by NULL                             */
    const char *default_text;   /* NULL: the member stays as it is, and `help` says what it means */
    size_t offset, size;        /* of the member: KS_KEY_AT                                     */
    int role;                   /* what the owner of the table makes of it                      */
    const char *argument;       /* --help: the value's name; NULL: none, or the words           */
    const char *help;
    char letter;      /* the short option; 0: none                                              */
    bool automatic;   /* NUMBER, FLAG: kept as a double; accepts "auto", which is kept as NaN   */
    const char *bare; /* the value of an option that is given without one; NULL: it needs one   */
    const char *from; /* where the default is written: "paper", "code"; NULL: not said          */
    /* OTHER: sets the members of `values`, or fails with KS_USAGE. */
    ks_status (*read)(const struct ks_key *key, const char *text, void *values);
};

/* Parts of a row. Integers have no limit with KS_KEY_ANY, up to INT64_MAX, as files store them. */
#define KS_ROW_COUNT(low, high)      KS_KEY_COUNT, low, high, NULL
#define KS_ROW_NUMBER(low, high)     KS_KEY_NUMBER, low, high, NULL
#define KS_ROW_FLAG()                KS_KEY_FLAG, 0, 1, NULL
#define KS_ROW_OFF()                 KS_KEY_OFF, 0, 1, NULL
#define KS_ROW_CHOICE(words)         KS_KEY_CHOICE, 0, 0, words
#define KS_ROW_CHOICE_FROM(n, words) KS_KEY_CHOICE, n, 0, words /* the first word's value is n */
#define KS_ROW_TEXT()                KS_KEY_TEXT, 0, 0, NULL
#define KS_ROW_TEXTS()               KS_KEY_TEXTS, 0, 0, NULL
#define KS_ROW_OTHER()               KS_KEY_OTHER, 0, 0, NULL
#define KS_KEY_ANY                   0x1p63
#define KS_KEY_AT(type, member)                                                                    \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define KS_KEYS_END                                                                                \
    {                                                                                              \
        .name = NULL                                                                               \
    }
/* The digits of a macro, for a default or a help. */
#define KS_DIGITS(macro)   KS_DIGITS_(macro)
#define KS_DIGITS_(digits) #digits

/* The texts of an option that was repeated. */
enum { KS_KEY_MOST_TEXTS = 256 };
struct ks_key_texts {
    size_t n;
    const char *text[KS_KEY_MOST_TEXTS];
};

/* The row of that name, or NULL. */
const struct ks_key *ks_key_find(const struct ks_key *keys, const char *name);
/* Sets the members of all keys that have a default. */
void ks_keys_defaults(const struct ks_key *keys, void *values);
/* Sets a value from text, which must live as long as the values. Fails with KS_USAGE: the key after
 * `dashes` ("--" or ""), what was expected, what was found; then the values are unchanged. */
ks_status ks_key_set(const struct ks_key *key, const char *dashes, const char *text, void *values);
/* Prints a value of any type but TEXT and TEXTS, so that ks_key_set restores it exactly; of a
 * CHOICE below the first word nothing, of OTHER the integer that is kept. */
enum { KS_VALUE_LENGTH = 32 };
void ks_key_print(const struct ks_key *key, const void *values, char text[KS_VALUE_LENGTH]);
/* The value as a number; false if it is a word ("auto" included). Not for texts. */
bool ks_key_number(const struct ks_key *key, const void *values, double *number);
/* Whether both have the same value; not for TEXTS. */
bool ks_key_same(const struct ks_key *key, const void *a, const void *b);

/* --- which keys were given, and which go together --- */

/* Which keys of a table are given: a bit for each row, of at most 64. */
#define KS_KEY_BIT(keys, key) ((uint64_t)1 << ((key) - (keys)))
bool ks_keys_is_given(const struct ks_key *keys, uint64_t given, const char *name);

/* If `option` is given, and not `unless`: none of `excluded` may be, and `needs` has to be. */
struct ks_key_rule {
    const char *option, *message; /* %s: the excluded option that is found              */
    const char *excluded[24];     /* "start gradient": only with this value             */
    const char *needs, *unless;   /* NULL: none                                         */
};
/* Fails with KS_USAGE and the message of the first rule that does not hold; a rule without `option`
 * ends the list. */
ks_status ks_keys_check(const struct ks_key *keys, const struct ks_key_rule *rules,
                        const void *values, uint64_t given);

#endif
