/* The types of real numbers in files of other programs, and their conversion to double. A double
 * can represent every number of these types, so nothing is rounded. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "import/weights.h"

static const struct {
    const char *name;
    size_t bytes;
} types[] = {[KS_NOT_REAL] = {"", 0},
             [KS_FLOAT16] = {"float16", 2},
             [KS_BFLOAT16] = {"bfloat16", 2},
             [KS_FLOAT32] = {"float32", 4},
             [KS_FLOAT64] = {"float64", 8}};
enum { TYPES = sizeof types / sizeof *types };

size_t ks_real_bytes(enum ks_real_type type)
{
    return types[type].bytes;
}

void ks_stored_set_type(struct ks_stored *s, const char *name)
{
    s->real = KS_NOT_REAL;
    for (int i = KS_FLOAT16; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            s->real = (enum ks_real_type)i;
    snprintf(s->type, sizeof s->type, "%s", name);
}

/* IEEE 754 binary16 has a sign, 5 bits of exponent and 10 bits of fraction. */
static double from_float16(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size;

    if (exponent == 31)
        size = fraction == 0 ? (double)INFINITY : (double)NAN;
    else if (exponent == 0)
        size = ldexp(fraction, -24);
    else
        size = ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -size : size;
}

static double from_float32(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

void ks_real_widen(const struct ks_stored *s, size_t n, const unsigned char *bytes, double *values)
{
    const size_t size = types[s->real].bytes;

    for (size_t i = 0; i < n; i++, bytes += size) {
        uint64_t bits = 0;

        for (size_t k = 0; k < size; k++)
            bits = bits << 8 | bytes[s->big_endian ? k : size - 1 - k];
        switch (s->real) {
        case KS_FLOAT16:
            values[i] = from_float16((uint16_t)bits);
            break;
        case KS_BFLOAT16: /* the upper half of a float32 */
            values[i] = from_float32((uint32_t)bits << 16);
            break;
        case KS_FLOAT32:
            values[i] = from_float32((uint32_t)bits);
            break;
        default:
            memcpy(&values[i], &bits, sizeof *values);
        }
    }
}
