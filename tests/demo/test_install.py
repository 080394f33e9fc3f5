# SPDX-License-Identifier: Apache-2.0
"""scripts/install-deps on a machine that has nothing: a dpkg-query of ours says so."""
import os
import subprocess
import tempfile


def missing(*words):
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in (("dpkg-query", "#!/bin/sh\nexit 1\n"), ("apt-get", "#!/bin/sh\nexit 9\n")):
            path = os.path.join(scratch, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)
        return subprocess.run(["scripts/install-deps", "-n", *words], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": f"{scratch}:{os.environ['PATH']}"})


def test_groups():
    every = missing().stdout.split()
    groups = {name: missing(name).stdout.split() for name in ("build", "nccl", "hosts", "plot", "tests")}
    assert set(every) == set().union(*groups.values()), (every, groups)
    assert len(every) == len(set(every)), every
    demo = missing("build", "nccl", "hosts").stdout.split()
    assert {"gcc", "g++", "iproute2", "python3"} <= set(demo) and len(demo) == len(set(demo)), demo
    assert not {"python3-torch", "qemu-system-x86", "python3-matplotlib"} & set(demo), demo
    assert groups["plot"] == ["python3-matplotlib"], groups


def test_a_group_that_is_none():
    done = missing("everything")
    assert done.returncode == 2 and "no group or option 'everything'; groups: build nccl hosts torch plot tests" in done.stderr, done
