#include "layers/copy.h"

#include <string.h>

void KS(copy_columns)(const struct KS(column_copy) *copy)
{
    size_t bytes = copy->columns * sizeof(real);

    for (size_t i = 0; i < copy->rows && copy->to; i++)
        if (copy->from)
            memcpy(copy->to + i * copy->to_width, copy->from + i * copy->from_width, bytes);
        else
            memset(copy->to + i * copy->to_width, 0, bytes);
}
