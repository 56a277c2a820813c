/* Lines for a person: a name and a value, and paragraphs. All text is escaped (core/error.h),
 * because it may come from files. */
#ifndef KS_INSPECT_LINES_H
#define KS_INSPECT_LINES_H

#include <stdio.h>

#include "io/attribute.h"

/* The most characters of a printed line, apart from lines with a long path. */
enum { KS_INSPECT_WIDTH = 100 };

/* "  NAME            VALUE"; the value is printed like printf. */
void ks_line_print(FILE *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A title on its own line, with an empty line before it. */
void ks_title_print(FILE *out, const char *title);
/* Text in lines of at most `width` bytes. `first` stands in front of the first line, blanks of its
 * width in front of the others. A longer word is cut between two characters. */
void ks_wrapped_print(FILE *out, const char *first, const char *text, size_t width);
/* Text in lines of KS_INSPECT_WIDTH, indented by two blanks. */
void ks_paragraph_print(FILE *out, const char *text);
/* An attribute as a line: a number; a string, whose end is replaced by ... if it is too long for
 * the line; how many numbers a list has, the first and the last. */
void ks_attribute_print(FILE *out, const struct ks_attribute *attribute);

#endif
