#include "core/signals.h"

#include <stddef.h>

void ks_signal_catch(int number, void (*handler)(int), struct sigaction *old)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;

    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
    if (old)
        *old = before;
}
