#include "inspect/inspect.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

enum { NAME = 20, INDENT = 2, LONGEST = 8192 };

void ks_line_print(FILE *out, const char *name, const char *format, ...)
{
    char text[LONGEST], escaped[LONGEST], left[64];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fprintf(out, "%*s%-*s %s\n", INDENT, "", NAME, ks_escape(name, sizeof left, left),
            ks_escape(text, sizeof escaped, escaped));
}

void ks_title_print(FILE *out, const char *title)
{
    fprintf(out, "\n%s\n", title);
}

static bool continues_character(char byte) /* in UTF-8 */
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* How many bytes of the text fill a line. */
static size_t line_length(const char *text, size_t room)
{
    size_t length = strlen(text);

    if (length <= room)
        return length;
    for (length = room; length > 0 && text[length] != ' '; length--)
        ;
    if (length > 0)
        return length;
    for (length = room; length > 1 && continues_character(text[length]); length--)
        ;
    return length;
}

void ks_wrapped_print(FILE *out, const char *first, const char *text, size_t width)
{
    char escaped[LONGEST];
    const char *next = ks_escape(text, sizeof escaped, escaped);
    const size_t indent = strlen(first);

    for (bool more = false; *(next += strspn(next, " ")); more = true) {
        const size_t length = line_length(next, width - indent);

        fprintf(out, "%*s%.*s\n", (int)indent, more ? "" : first, (int)length, next);
        next += length;
    }
}

void ks_paragraph_print(FILE *out, const char *text)
{
    ks_wrapped_print(out, "  ", text, KS_INSPECT_WIDTH);
}

static void print_string(FILE *out, const char *name, const char *string)
{
    const size_t left = INDENT + 1 + (strlen(name) > NAME ? strlen(name) : (size_t)NAME);
    const size_t room = KS_INSPECT_WIDTH - left;
    char escaped[LONGEST];
    size_t length = strlen(ks_escape(string, sizeof escaped, escaped));

    if (length <= room) {
        ks_line_print(out, name, "%s", escaped);
        return;
    }
    for (length = room - strlen("..."); length > 0 && continues_character(escaped[length]);
         length--)
        ;
    ks_line_print(out, name, "%.*s...", (int)length, escaped);
}

void ks_attribute_print(FILE *out, const struct ks_attribute *a)
{
    if (a->type == KS_ATTRIBUTE_STRING)
        print_string(out, a->name, a->string);
    else if (a->type == KS_ATTRIBUTE_INTEGER)
        ks_line_print(out, a->name, "%lld", (long long)a->integer);
    else if (a->type == KS_ATTRIBUTE_NUMBER)
        ks_line_print(out, a->name, "%.6g", a->number);
    else if (a->n > 0)
        ks_line_print(out, a->name, "%zu numbers, the first %.6g, the last %.6g", a->n, a->list[0],
                      a->list[a->n - 1]);
    else
        ks_line_print(out, a->name, "no numbers");
}
