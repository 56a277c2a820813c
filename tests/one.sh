#!/bin/sh
# Runs one test program. Several of them run side by side, so what a program prints is kept until it
# is done, and shown in one piece. The name of a program that fails is added to the file $FAILED.
"$1" >"$1.log" 2>&1 || echo "$1" >>"$FAILED"
exec flock "$FAILED" cat "$1.log"
