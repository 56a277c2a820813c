"""The package kappascope (analysis/python) under its former name, found relative to this file."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

from kappascope import *  # noqa: E402, F403
from kappascope import __all__ as __all__  # noqa: E402
