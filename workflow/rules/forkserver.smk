"""A run on one machine: jobs fork from a process that has imported torch, unless `execution: {fork_jobs: false}`."""

import atexit
import os
import subprocess

SERVER = "ENCORE_FORKSERVER"  # the socket of the process that forks, for workflow/job.py
THREADS = ("OMP_NUM", "GOTO_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")
ONE_THREAD = {f"{name}_THREADS": "1" for name in THREADS}  # a job that Snakemake gives more starts by itself
FEW = 4  # jobs, whose imports take no longer than the server's


def use_forkserver():
    """Have jobs fork where all run here, in this Python, and are enough to pay for the server."""
    here = workflow.executor_plugin.name == "local" and not workflow.deployment_settings.deployment_method
    wanted = [*(made.manifest for made in LOOKED_UP.values()), *records()]
    missing = sum(not Path(manifest).is_file() for manifest in wanted)
    if not here or not EXECUTION.fork_jobs:
        os.environ.pop(SERVER, None)
    elif SERVER not in os.environ and sys.platform == "linux" and missing > FEW:
        start_forkserver()


def start_forkserver():
    """Start the server, which takes some seconds; jobs before that start by themselves. It ends with this process."""
    address = DRAFTS / "fork" / "socket"
    try:
        address.parent.mkdir()
    except OSError as error:
        print(f"warning: each job imports by itself, for seconds ({error}); set TMPDIR to a short path with room")
        return
    server = f"{prefix}exec python {quote(str(WORKFLOW / 'forkserver.py'))} {quote(str(address))}"
    started = subprocess.Popen(["bash", "-c", server], stdin=subprocess.PIPE, env=os.environ | ONE_THREAD)
    atexit.register(started.stdin.close)
    os.environ[SERVER] = str(address)
