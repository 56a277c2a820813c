/* Parsing a study's text: the sections, and the keys that each of them may have. */
#ifndef KS_STUDY_STUDY_PARSE_H
#define KS_STUDY_STUDY_PARSE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/error.h"
#include "study/study_file.h"

/* Parses study->text into `study`, which is empty except for path and text. Fails with KS_FORMAT
 * and the line's number. */
ks_status ks_study_parse(struct ks_study *study, bool check_files);

/* Repeats the last failure with the file, the line (0: none) and the place (NULL: none). */
ks_status ks_study_fail_at(const struct ks_study *study, size_t line, const char *place,
                           ks_status status);

/* --- the keys (study_keys.c) --- */

enum ks_study_section {
    KS_NO_SECTION,
    KS_STUDY_SECTION,
    KS_TRAIN_SECTION,
    KS_VARIANT_SECTION,
    KS_ANALYZE_SECTION
};
enum { KS_STUDY_KEYS = 13 };

struct ks_study_parser {
    struct ks_study *study;
    bool check_files;
    enum ks_study_section section;         /* of the current line                              */
    struct ks_study_analysis *analysis;    /* of the current section [analyze], else NULL */
    struct ks_study_architecture *variant; /* of the current section [variant], else NULL */
    bool seen[KS_STUDY_KEYS]; /* of [study]: so far; of other sections: in the current one */
    const char *key;          /* of the current line                */
    size_t line;              /* the number of the current line     */
    bool indented;            /* it continues the value before it   */
    const char *next;         /* the rest of the text               */
    ks_status status;         /* the first failure                  */
};

/* Leaves the section. */
void ks_study_open_section(struct ks_study_parser *parser);
/* Starts the section [variant NAME], the study's last architecture from then on. This and the next
 * function fail with KS_FORMAT; the message has no file or line, which the caller adds. */
ks_status ks_study_add_variant(struct ks_study_parser *parser, const char *name);
/* Takes a key of the current section, with its value. */
ks_status ks_study_take(struct ks_study_parser *parser, const char *key, const char *value);
/* Adds an architecture whose runs were trained elsewhere. */
ks_status ks_study_add_elsewhere(struct ks_study *study, const char *name);
/* Whether a name is safe as a folder, an option and a make target: letters, digits and +-_. only,
 * and no leading dot or dash. */
bool ks_study_is_plain(const char *name);
/* Applies `family` and `factors` to the names, which are known by now. */
ks_status ks_study_resolve_names(struct ks_study *study);
/* Sets of which architectures the analyses are. Fails with KS_FORMAT, file and line if the study
 * does not have one of them. */
ks_status ks_study_resolve_scopes(struct ks_study *study);

/* --- the options of an analysis (study_parse.c) --- */

/* Takes a key of [analyze], which is checked together with those before it. Fails with KS_FORMAT or
 * KS_USAGE on an unknown option, on one that makes no sense in a study, and on a value that the
 * analyzer refuses; the message has no file or line. `value` must live as long as the analysis. */
ks_status ks_study_set_option(struct ks_study_analysis *analysis, const char *key,
                              const char *value);
/* Prints the options of the analyzer for one analysis, each after a space, quoted for the shell.
 * Whether --memory is among them. */
bool ks_study_print_options(const struct ks_study_analysis *analysis, FILE *out);

#endif
