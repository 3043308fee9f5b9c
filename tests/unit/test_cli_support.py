"""How a program ends when it is interrupted."""

import subprocess
import sys

TWICE = """
import os, signal, time
from encore.cli_support import run

def main():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    finally:
        os.kill(os.getpid(), signal.SIGINT)

run(main)
"""


def test_a_second_interruption_does_not_cut_the_farewell() -> None:
    ended = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, check=False)
    assert ended.returncode == 130
    assert ended.stderr == "error: interrupted; the same command goes on from here\n"
