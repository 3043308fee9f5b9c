"""``python -m encore``: the command ``encore``, also where a shell does not find it."""

import runpy

runpy.run_module("encore.commands", run_name="__main__", alter_sys=True)
