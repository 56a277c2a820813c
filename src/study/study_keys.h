/* How a study's text is read, and its [analyze] section, whose keys are the analyzer's own options.
 */
#ifndef KS_STUDY_STUDY_KEYS_H
#define KS_STUDY_STUDY_KEYS_H

#include <stdbool.h>

#include "core/error.h"
#include "program/options.h"
#include "study/study_file.h"

/* Fills `study`, empty but for path and text, from the text. Fails with KS_FORMAT and the line's
 * number. */
ks_status ks_study_parse(struct ks_study *study, bool check_files);

/* Adds what one word of a list names, an architecture or "all", a seed or several ("0..4"). Fail
 * with KS_FORMAT, and no file or line in the message. */
ks_status ks_study_add_architectures(struct ks_study *study, const char *word, bool check_files);
ks_status ks_study_add_seeds(struct ks_study *study, const char *word);

/* A whole number from `low` to `high`; KS_FORMAT names `what`. */
ks_status ks_study_parse_size(const char *what, const char *word, size_t low, size_t high,
                              size_t *value);
/* The name may become a folder, an option and a target of make: letters, digits and +-_. */
bool ks_study_is_plain(const char *name);

/* Reads the options of one analysis with the analyzer's own parser. Fails on an unknown option, on
 * one that makes no sense in a study, and on a value that the analyzer refuses; the message has no
 * file or line. */
ks_status ks_study_read_analysis(const struct ks_study_analysis *asked, struct ks_options *options);

/* The option takes no value ("exact"): its value in the study is yes or no. */
bool ks_study_is_flag(const char *key);
bool ks_study_is_yes(const char *value);

#endif
