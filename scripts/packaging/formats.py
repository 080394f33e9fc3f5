# SPDX-License-Identifier: Apache-2.0
"""The packages. Each is a function of a tree below a prefix, the facts about it and a directory for the result; it returns
the path of the package. Names, order, owners, modes and times of what is inside depend on the tree and the facts alone."""
import base64
import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import time
import zipfile

from facts import NAME, ROOT, Problem, directories_below, files_below, fill, is_git_checkout, run

LIBRARIES = "lib/stratus"
DOCUMENTS = f"share/doc/{NAME}"


def mode_of(path):
    """By what it is, not by the umask of the one who built it."""
    return 0o755 if os.path.isdir(path) or os.access(path, os.X_OK) else 0o644


def copy_tree(tree, to, links):
    """A copy with the modes of a package, and with links to the plugins in the directory `links`, if any."""
    shutil.copytree(tree, to, symlinks=True)
    if links:
        os.makedirs(os.path.join(to, links), exist_ok=True)
        for name in sorted(os.listdir(os.path.join(to, LIBRARIES))):
            target = os.path.relpath(os.path.join(LIBRARIES, name), links)
            os.symlink(target, os.path.join(to, links, name))


def set_modes_and_times(directory, epoch):
    for each in [*files_below(directory), *reversed(directories_below(directory)), "."]:
        path = os.path.join(directory, each)
        if not os.path.islink(path):
            os.chmod(path, mode_of(path))
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def write_text(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ---- tarball ----

def write_tar(path, directory, top, epoch):
    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = epoch
        return entry

    with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=epoch) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for each in [".", *sorted([*directories_below(directory), *files_below(directory)])]:
            archive.add(os.path.join(directory, each), os.path.normpath(os.path.join(top, each)), recursive=False, filter=plain)


def tarball(tree, facts, out):
    """A prefix, to be unpacked anywhere."""
    path = os.path.join(out, f"{NAME}-{facts.version}-linux-{facts.machine}.tar.gz")
    with tempfile.TemporaryDirectory() as scratch:
        where = os.path.join(scratch, "tree")
        copy_tree(tree, where, "lib")
        set_modes_and_times(where, facts.epoch)
        write_tar(path, where, f"{NAME}-{facts.version}", facts.epoch)
    return path


def source(_tree, facts, out):
    """What git has; a build of it has the same bits."""
    if not is_git_checkout():
        raise Problem("the source archive is made of a git checkout, and this is none")
    if run("git", "status", "--porcelain", "--untracked-files=no", cwd=ROOT):
        raise Problem("the source archive is made of the last commit, and files differ from it: commit first")
    path = os.path.join(out, f"{NAME}-{facts.version}-source.tar.gz")
    tar = run("git", "archive", "--format=tar", f"--prefix={NAME}-{facts.version}/", "--output=/dev/stdout", "HEAD",
              cwd=ROOT, is_text=False)
    with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=facts.epoch) as packed:
        packed.write(tar)
    return path


# ---- Debian ----

def deb(tree, facts, out):
    """Links where Debian's loader looks: dlopen("libnccl-net-stratus.so") finds the plugin, and so does NCCL."""
    path = os.path.join(out, f"{NAME}_{facts.version}_{facts.debian_machine}.deb")
    with tempfile.TemporaryDirectory() as scratch:
        where = os.path.join(scratch, "deb")
        copy_tree(tree, os.path.join(where, "usr"), f"lib/{facts.triplet}")
        files = files_below(where)
        kib = sum(-(-os.lstat(os.path.join(where, each)).st_size // 1024) for each in files) + len(directories_below(where))
        sums = []
        for each in files:
            if not os.path.islink(os.path.join(where, each)):
                with open(os.path.join(where, each), "rb") as file:
                    sums.append(f"{hashlib.md5(file.read()).hexdigest()}  {each}\n")
        write_text(f"{where}/DEBIAN/control", fill("control.in", {**facts.words(), "KIB": kib}))
        write_text(f"{where}/DEBIAN/md5sums", "".join(sums))
        set_modes_and_times(where, facts.epoch)
        # One thread: the blocks of xz depend on their number.
        run("dpkg-deb", "--root-owner-group", "-Zxz", "-z6", "--build", where, path,
            environment={"SOURCE_DATE_EPOCH": str(facts.epoch), "DPKG_DEB_THREADS_MAX": "1"})
    return path


# ---- RPM ----

def rpm_files(where):
    """What %files lists: each file, and the directories that are ours alone."""
    lines = [f"/{each}" for each in files_below(where)]
    return lines + [f"%dir /{each}" for each in directories_below(where)
                    if each.startswith(("usr/lib/stratus", "usr/share/stratus", f"usr/{DOCUMENTS}"))]


def rpm(tree, facts, out):
    """Links in /usr/lib64, where the loader of RPM distributions looks."""
    with tempfile.TemporaryDirectory() as scratch:
        where = os.path.join(scratch, "tree")
        copy_tree(tree, os.path.join(where, "usr"), "lib64")
        set_modes_and_times(where, facts.epoch)
        spec = os.path.join(scratch, f"{NAME}.spec")
        write_text(spec, fill(f"{NAME}.spec.in", {**facts.words(), "FILES": "\n".join(rpm_files(where))}))
        run("rpmbuild", "-bb", "--quiet", "--target", f"{facts.machine}-linux", "--define", f"_topdir {scratch}/rpm",
            "--define", f"_tree {where}", spec,
            environment={"SOURCE_DATE_EPOCH": str(facts.epoch), "HOME": scratch})
        name = f"{NAME}-{facts.version}-1.{facts.machine}.rpm"
        return shutil.copy(os.path.join(scratch, "rpm/RPMS", facts.machine, name), out)


# ---- Python wheel ----

def wheel_content(tree, facts, stem):
    """[(name in the wheel, path or bytes, mode)]: programs and data of a virtual environment, and no Python code."""
    info, data = f"{stem}.dist-info", f"{stem}.data"
    tag = f"py3-none-manylinux_{facts.glibc.replace('.', '_')}_{facts.machine}"
    entries = [(f"{info}/METADATA", fill("METADATA.in", facts.words()).encode(), 0o644),
               (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: stratus\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644)]
    # pip takes a directory away when a file lies in it and all below is the wheel's; it leaves one that has directories alone.
    special = {f"{DOCUMENTS}/copyright": f"{info}/licenses/LICENSE",
               f"{DOCUMENTS}/changelog.gz": f"{data}/data/share/stratus/changelog.gz"}
    for each in files_below(tree):
        path = os.path.join(tree, each)
        if os.path.islink(path):
            continue  # a wheel has none; plugins are given by their absolute path there
        name = special.get(each, f"{data}/scripts/{each[4:]}" if each.startswith("bin/") else f"{data}/data/{each}")
        entries.append((name, path, mode_of(path)))
    return tag, sorted(entries)


def wheel(tree, facts, out):
    """Unpacks to bin, lib/stratus and share of a virtual environment, where the tools find all beside them."""
    stem = f"{NAME.replace('-', '_')}-{facts.version}"
    tag, entries = wheel_content(tree, facts, stem)
    path = os.path.join(out, f"{stem}-{tag}.whl")
    when, record = time.gmtime(facts.epoch)[:6], []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, content, mode):
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr, entry.compress_type, entry.create_system = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED, 3
            archive.writestr(entry, content)

        for name, content, mode in entries:
            if isinstance(content, str):
                with open(content, "rb") as file:
                    content = file.read()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}\n")
            add(name, content, mode)
        name = f"{stem}.dist-info/RECORD"
        add(name, ("".join(record) + f"{name},,\n").encode(), 0o644)
    return path


FORMATS = {"deb": deb, "rpm": rpm, "tarball": tarball, "wheel": wheel, "source": source}
