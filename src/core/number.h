/* Numbers as people write them: the whole text is one, with nothing before or behind it. */
#ifndef KS_CORE_NUMBER_H
#define KS_CORE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* A whole number in low..high, as 1000000 or, below 2^53, as 1e6. false: it is none; *value stays.
 */
bool ks_parse_integer(const char *text, uint64_t low, uint64_t high, uint64_t *value);
/* The same for a finite decimal number in [low, high]. */
bool ks_parse_number(const char *text, double low, double high, double *value);

#endif
