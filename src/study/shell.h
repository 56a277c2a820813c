/* Printing commands for the shell. */
#ifndef KS_STUDY_SHELL_H
#define KS_STUDY_SHELL_H

#include <stdio.h>

#include "core/error.h"

/* Refuses a word with control characters, above all newlines: in a makefile, text after a newline
 * would be another command. Fails with KS_USAGE, naming `what` and showing the word with such
 * characters escaped. */
ks_status ks_shell_check(const char *what, const char *word);

/* Prints a word for the shell, in single quotes if any of its characters is special there. */
void ks_shell_word(FILE *out, const char *word);

/* Prints " --KEY=VALUE", the value quoted like a word. */
void ks_shell_option(FILE *out, const char *key, const char *value);

#endif
