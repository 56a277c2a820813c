#include "report/html.h"

static const char *reference(unsigned char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f ? "&#xFFFD;" : NULL;
    }
}

void ks_html_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        const char *escaped = reference((unsigned char)*text);

        if (escaped)
            fputs(escaped, out);
        else
            putc(*text, out);
    }
}
