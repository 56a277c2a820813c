/* The main of test programs that define none: in a library, it is linked only with those. */
#include "test.h"

int main(void)
{
    return run_all_tests();
}
