#include "inspect/lines.h"

#include <stdarg.h>
#include <string.h>

#include "core/say.h"
#include "inspect/inspect.h"

enum { NAME = 20, INDENT = 2, LONGEST = 4096 };

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

void ks_paragraph_print(FILE *out, const char *text)
{
    char escaped[LONGEST];
    const char *next = ks_escape(text, sizeof escaped, escaped);

    while (*(next += strspn(next, " "))) {
        size_t length = strlen(next);
        const size_t room = KS_INSPECT_WIDTH - INDENT;

        if (length > room) {
            for (length = room; length > 0 && next[length] != ' '; length--)
                ;
            if (length == 0)
                length = room;
        }
        fprintf(out, "%*s%.*s\n", INDENT, "", (int)length, next);
        next += length;
    }
}

void ks_attribute_print(FILE *out, const struct ks_attribute *a)
{
    if (a->type == KS_ATTRIBUTE_STRING)
        ks_line_print(out, a->name, "%.*s", KS_INSPECT_WIDTH - NAME - INDENT - 1, a->string);
    else if (a->type == KS_ATTRIBUTE_INTEGER)
        ks_line_print(out, a->name, "%lld", (long long)a->integer);
    else if (a->type == KS_ATTRIBUTE_NUMBER)
        ks_line_print(out, a->name, "%.6g", a->number);
    else if (a->n > 0)
        ks_line_print(out, a->name, "%zu numbers, from %.6g to %.6g", a->n, a->list[0],
                      a->list[a->n - 1]);
    else
        ks_line_print(out, a->name, "no numbers");
}
