/* Parsing a study's text: the sections [study] and [train], and [analyze], whose keys are the
 * options of the analyzer. */
#ifndef KS_STUDY_STUDY_PARSE_H
#define KS_STUDY_STUDY_PARSE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/error.h"
#include "pipeline/pipeline.h"
#include "study/study_file.h"

/* Parses study->text into `study`, which is empty except for path and text. Fails with KS_FORMAT
 * and the line's number. */
ks_status ks_study_parse(struct ks_study *study, bool check_files);

/* Adds one word of a list: an architecture or "all"; a seed or a range of seeds ("0..4"). Fail with
 * KS_FORMAT; the message has no file or line, which the caller adds. */
ks_status ks_study_add_architectures(struct ks_study *study, const char *word, bool check_files);
ks_status ks_study_add_seeds(struct ks_study *study, const char *word);
/* Sets the task: a name, or a file of the user's own. Fails in the same way. */
ks_status ks_study_set_env(struct ks_study *study, const char *word, bool check_files);
/* Starts the section [variant NAME], the last architecture from then on; sets that architecture's
 * network from the value of the section's key `architecture`. */
ks_status ks_study_add_variant(struct ks_study *study, const char *name, size_t line);
ks_status ks_study_set_network(struct ks_study *study, const char *word, bool check_files);

/* Parses an integer from `low` to `high`; the message of KS_FORMAT names `what`. */
ks_status ks_study_parse_size(const char *what, const char *word, size_t low, size_t high,
                              size_t *value);

/* Reads the options of one analysis with the analyzer's own parser. Fails on an unknown option, on
 * one that makes no sense in a study, and on a value that the analyzer refuses; the message has no
 * file or line. */
ks_status ks_study_read_analysis(const struct ks_study_analysis *asked,
                                 struct ks_spectrum_options *options);

/* Whether a key of [analyze NAME] says what the analysis is of, instead of being an option of the
 * analyzer. Sets it: a list of architectures may continue on further lines. Both fail with
 * KS_FORMAT; ks_study_check_scopes names file and line, the other message the caller completes. */
bool ks_study_is_scope(const char *key);
ks_status ks_study_set_scope(struct ks_study_analysis *analysis, const char *key, const char *value,
                             size_t line);
/* Checks that the names are architectures of the study. */
ks_status ks_study_check_scopes(const struct ks_study *study);

/* Prints the options of the analyzer for one analysis, each after a space, quoted for the shell.
 * Whether --memory is among them. */
bool ks_study_print_options(const struct ks_study_analysis *analysis, FILE *out);

#endif
