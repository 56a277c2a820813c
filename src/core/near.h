/* "Did you mean ...": the known name that a word was probably meant to be. */
#ifndef KS_CORE_NEAR_H
#define KS_CORE_NEAR_H

#include <stddef.h>

/* Another word for a name, in lower case and without '_' and '-': {"linear", "dense"}. */
struct ks_near_alias {
    const char *word, *name;
};

/* The one of `names` [n] that `word` means, or NULL: in another spelling (upper and lower case,
 * '_',
 * '-', a prefix such as "nn."), by one of `aliases` (which end in {NULL, NULL}; NULL: none) whose
 * name is among them, or with a few wrong letters. Added and replaced letters count more than
 * missing and swapped ones, so that "selu" is not taken for "relu". */
const char *ks_near(const char *word, size_t n, const char *const *names,
                    const struct ks_near_alias *aliases);

#endif
