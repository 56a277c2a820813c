#include "core/products.h"

#include "core/split.h"

const char *const ks_products_names[] = {"blas", "split3", "auto", NULL};

enum ks_products ks_products_choose(enum ks_products wish)
{
    if (wish != KS_PRODUCTS_AUTO)
        return wish;
    return ks_split_has_amx() ? KS_PRODUCTS_SPLIT3 : KS_PRODUCTS_BLAS;
}

const char *ks_products_warning(enum ks_products products)
{
    return products == KS_PRODUCTS_BLAS || ks_split_has_amx()
               ? NULL
               : "this processor has no AMX for bfloat16: products in bfloat16 parts are many "
                 "times slower than products = blas";
}
