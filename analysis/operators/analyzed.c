#include "operators/analyzed.h"

void ks_analyzed_clear(struct ks_analyzed *analyzed)
{
    ks_null_space_free(analyzed->space);
    ks_selection_free(analyzed->selection);
    analyzed->space = NULL, analyzed->selection = NULL;
}
