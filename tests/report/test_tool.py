# SPDX-License-Identifier: Apache-2.0
"""The commands: help, wrong use, formats, and what is said where Python or matplotlib is missing."""
import os
import re
import shlex
import stat
import subprocess

from tool import ROOT, TUNE, data, read, run, scratch, write


def test_examples_of_help_run_as_printed():
    for command in ("report", "compare"):
        text, _ = run(command, "-h")
        example = text.split("\nexample:\n  ")[1].split("\n")[0]
        done = subprocess.run(shlex.split(example), cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
                              env={**os.environ, "PATH": f"{os.path.dirname(TUNE)}:{os.environ['PATH']}"})
        assert done.returncode == 0 and done.stderr == "", (example, done)
        output = re.search(r"--output (\S+)", example)
        shown = read(os.path.join(ROOT, output.group(1))) if output else done.stdout
        assert len(shown) > 1000, shown


def test_wrong_use_is_status_2():
    for arguments in (["report"], ["report", "--format", "pdf", "x"], ["report", "--yaml", "x"], ["compare"],
                      ["report", data("all_reduce-2.0.txt"), "--coll", "all_redoce"]):
        _, errors = run(*arguments, status=2)
        assert "stratus-tune: " in errors, errors


def test_the_format_follows_the_name_or_the_option():
    for name, start in (("f.html", "<!DOCTYPE html>"), ("f.md", "# AllReduce"), ("f.txt", "AllReduce")):
        run("report", data("all_reduce-2.0.txt"), "-o", scratch(name))
        assert read(scratch(name)).startswith(start)
    assert run("report", data("all_reduce-2.0.txt"), "-f", "markdown")[0].startswith("# AllReduce")
    assert run("report", data("all_reduce-2.0.txt"), "-f", "html", "-t", "My title")[0].count("My title") == 2
    _, errors = run("report", data("all_reduce-2.0.txt"), "-o", scratch("f.pdf"), status=1)
    assert ".html, .md or .txt" in errors and not os.path.exists(scratch("f.pdf"))


def test_an_output_that_cannot_be_written_is_an_error():
    _, errors = run("report", data("all_reduce-2.0.txt"), "-o", "/nowhere/x.txt", status=1)
    assert errors.startswith("stratus-tune: /nowhere/x.txt: cannot be written: "), errors


def test_a_missing_python_is_named():
    _, errors = run("report", data("all_reduce-2.0.txt"), status=1, environment={"PATH": "/nowhere"})
    assert "no python3 in PATH" in errors and "apt-get install" in errors, errors


def python_without_site():
    """A PATH whose python3 sees no packages, and so no matplotlib."""
    os.makedirs(scratch("bin"), exist_ok=True)
    path = write("bin/python3", '#!/bin/sh\nexec /usr/bin/python3 -I -S "$@"\n')
    os.chmod(path, stat.S_IRWXU)
    return os.path.dirname(path)


def test_a_missing_matplotlib_is_named_and_tables_do_without():
    environment = {"PATH": f"{python_without_site()}:/usr/bin:/bin", "_STRATUS_REPORT_PYTHON": "1"}
    _, errors = run("report", data("all_reduce-2.0.txt"), "-o", scratch("m.html"), status=1, environment=environment)
    assert "plots need matplotlib" in errors and "python3-matplotlib" in errors, errors
    run("report", data("all_reduce-2.0.txt"), "-o", scratch("m.md"), environment=environment)
    run("compare", data("all_reduce-2.0.txt"), data("all_reduce-2.0.txt"), environment=environment)


def test_the_systems_python_is_taken_where_only_that_has_matplotlib():
    path = scratch("system.html")
    run("report", data("all_reduce-2.0.txt"), "-o", path, environment={"PATH": f"{python_without_site()}:/usr/bin:/bin"})
    assert "<svg" in read(path)


def test_installed_it_works_from_anywhere():
    subprocess.run(["make", "-s", "install", f"DESTDIR={scratch('root')}", "PREFIX=/usr"], cwd=ROOT, check=True,
                   capture_output=True, timeout=120)
    path = scratch("installed.html")
    subprocess.run([scratch("root/usr/bin/stratus-tune"), "report", os.path.join(ROOT, data("all_reduce-2.0.txt")), "-o", path],
                   cwd="/", check=True, timeout=60)
    assert "<svg" in read(path)
    assert not any(name.endswith(".pyc") for _, _, names in os.walk(scratch("root")) for name in names)
    os.rename(scratch("root/usr/share"), scratch("root/usr/elsewhere"))
    done = subprocess.run([scratch("root/usr/bin/stratus-tune"), "report", "x"], cwd="/", check=False, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 1 and "the scripts of stratus-tune report are missing" in done.stderr, done


def test_what_is_no_file_is_not_replaced_by_one():
    """As --output /dev/null would be, for root."""
    pipe = scratch("pipe")
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        run("report", data("all_reduce-2.0.txt"), "--output", pipe, "--format", "text")
        shown = reader.communicate(timeout=60)[0]
    assert len(shown) > 100 and stat.S_ISFIFO(os.stat(pipe).st_mode), shown
