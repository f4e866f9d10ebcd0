"""`python -m stepscope.app` is the `stepscope` command."""

from __future__ import annotations

import sys

from stepscope.app.cli import main

sys.exit(main())
