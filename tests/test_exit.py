"""Exit of a process whose background work is not done."""

import signal
import subprocess
import sys

import pytest

START = """
import os, signal, sys, time
from pymoo_gpuaco.runtime.background import BackgroundTask, ProcessExits, at_exit
begun = []

def work():
    begun.append(1)
    try:
        while True:
            time.sleep(0.001)
    finally:
        print("ended", flush=True)
"""


def run(code):
    return subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True, timeout=120)


def test_background_work_ends_before_the_interpreter():
    """A thread that comes back from LLVM into an interpreter that is gone aborts the process."""
    done = run("task = BackgroundTask(work)\nwhile not begun: time.sleep(0.001)\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_an_interrupted_wait_leaves_no_work_at_exit():
    code = """
from pymoo_gpuaco.runtime.background import interruptible
def strike():
    while not begun: time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
other = BackgroundTask(strike)
try:
    interruptible(work)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\nended\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_during_the_exit_changes_nothing():
    """The result is written; `at_exit` functions and the end of tasks are not left half done."""
    code = """
import atexit

@at_exit
def strike():
    os.kill(os.getpid(), signal.SIGINT)
    print("struck", flush=True)

task = BackgroundTask(work)
while not begun: time.sleep(0.001)
"""
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "struck\nended\n", "")
    assert done.returncode != -signal.SIGINT
