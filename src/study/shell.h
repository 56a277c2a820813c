/* Commands for the shell, as the study prints them. */
#ifndef KS_STUDY_SHELL_H
#define KS_STUDY_SHELL_H

#include <stdio.h>

#include "core/error.h"

/* Refuses a word with control characters, newlines above all: in a makefile what stands behind one
 * would be a command of its own. KS_USAGE names `what` and shows the word with such characters
 * escaped. */
ks_status ks_shell_check(const char *what, const char *word);

/* Prints one word for the shell: in single quotes, unless no character of it is special there. */
void ks_shell_word(FILE *out, const char *word);

/* Prints " --KEY=VALUE", the value as a word. */
void ks_shell_option(FILE *out, const char *key, const char *value);

#endif
