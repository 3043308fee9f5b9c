"""``python -m encore``: the command ``encore``, also where a shell does not find it."""

import runpy

if __name__ == "__main__":  # and not where it is only imported, as by the process that jobs fork from
    runpy.run_module("encore.commands", run_name="__main__", alter_sys=True)
