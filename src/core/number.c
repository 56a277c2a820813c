#include "core/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MAX_INTEGER = 0x1p53; /* a double represents all integers up to 2^53 */

/* The characters are checked as strtod also accepts hexadecimal numbers, inf and nan. */
bool ks_parse_number(const char *text, double low, double high, double *value)
{
    double number;
    char *end;

    errno = 0;
    number = strtod(text, &end);
    if (end == text || text[strspn(text, "0123456789.eE+-")] != '\0' || *end || errno != 0 ||
        !(number >= low && number <= high))
        return false;
    *value = number;
    return true;
}

bool ks_parse_integer(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    double number = 0;
    uint64_t integer;

    if (text[strspn(text, "0123456789")] != '\0') {
        if (!ks_parse_number(text, 0, MAX_INTEGER, &number) || number != floor(number))
            return false;
        integer = (uint64_t)number;
    } else {
        errno = 0;
        integer = strtoull(text, NULL, 10);
        if (*text == '\0' || errno != 0)
            return false;
    }
    if (integer < low || integer > high)
        return false;
    *value = integer;
    return true;
}

int ks_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

int ks_ascending_sizes(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

double ks_median(size_t n, double *values)
{
    qsort(values, n, sizeof *values, ks_ascending);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
