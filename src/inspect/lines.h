/* Lines for a person: a name and a value, and paragraphs. Text from files is escaped. */
#ifndef KS_INSPECT_LINES_H
#define KS_INSPECT_LINES_H

#include <stdio.h>

#include "io/attribute.h"

/* "  NAME            VALUE"; the value is printed like printf. Control characters are escaped. */
void ks_line_print(FILE *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A title on its own line, with an empty line before it. */
void ks_title_print(FILE *out, const char *title);
/* Text in lines of at most KS_INSPECT_WIDTH characters, indented by two blanks. */
void ks_paragraph_print(FILE *out, const char *text);
/* An attribute as such a line: a number, a string, or how long a list is and what it begins with.
 */
void ks_attribute_print(FILE *out, const struct ks_attribute *attribute);

#endif
