# SPDX-License-Identifier: Apache-2.0
"""Nothing secret of an input gets into a report, in any format."""
import json

import redact
from tool import data, read, run, scratch, write

# Each of these is put into every place of an input that takes text.
SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "GITHUB_TOKEN": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "HF_TOKEN": "hf_abcdefghijKLMNOP0123",
    "DB_PASSWORD": "hunter2-very-long-and-secret",
    "STRATUS_SECRET": "2b7e151628aed2a6abf7158809cf4f3c",
    "SLURM_JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefg",
    "REGISTRY": "https://robot:s3cr3tpass@registry.example/v2",
    "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
    "MY_PRIVATE": "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXktdjE -----END OPENSSH PRIVATE KEY-----",
}
NEEDLES = ["wJalrXUtn", "IOSFODNN7", "16C7e42F292c", "abcdefghijKLMNOP", "hunter2", "2b7e151628", "eyJzdWIi",
           "s3cr3tpass", "0123456789abcdef01", "b3BlbnNza", "somebody", "letmein", "opensesame"]


def poisoned():
    """nccl-tests' JSON with secrets in its environment, its command line and its other texts."""
    with open(data("nccl-tests-v3.json"), encoding="utf-8") as file:
        value = json.load(file)
    value["env"] += [f"{name}={secret}" for name, secret in SECRETS.items()]
    value["env"] += [f"NCCL_{name}={secret}" for name, secret in SECRETS.items()]
    value["env"] += [f"NCCL_DEBUG_FILE={secret}" for secret in SECRETS.values() if " " not in secret and "hunter" not in secret]
    value["args"] += ["--token", "letmein", "--password=opensesame", "-x", f"GITHUB_TOKEN={SECRETS['GITHUB_TOKEN']}",
                      "-x", f"OTHER={SECRETS['WANDB_API_KEY']}", SECRETS["REGISTRY"], "--auth-header",
                      f"Bearer {SECRETS['SLURM_JWT']}"]
    value["errors"] = [f"cannot reach {SECRETS['REGISTRY']} with token={SECRETS['HF_TOKEN']}"]
    value["config"]["devices"][0]["device_info"] = f"GPU key: {SECRETS['AWS_ACCESS_KEY_ID']}"
    return write("poisoned.json", json.dumps(value))


def clean(text):
    for needle in NEEDLES:
        assert needle not in text, f"{needle} is in the report: ...{text[max(0, text.index(needle) - 200):][:300]}"


def test_no_secret_of_a_json_file_is_in_any_format():
    path = poisoned()
    for name in ("p.html", "p.md", "p.txt"):
        run("report", path, "--output", scratch(name))
        text = read(scratch(name))
        clean(text)
        assert "NCCL_NET_PLUGIN" in text.replace("\\", "") and "STRATUS_FLOWS" in text.replace("\\", ""), "what explains it stays"
        assert "[removed]" in text.replace("\\", "")
    clean("".join(run("report", path, "--json")))
    clean("".join(run("compare", data("nccl-tests-v3.json"), path)))
    run("compare", data("nccl-tests-v3.json"), path, "-o", scratch("c.html"))
    clean(read(scratch("c.html")))


def test_secrets_of_text_logs_stay_out():
    with open(data("job.log"), encoding="utf-8") as file:
        text = file.read()
    secrets = "".join(f"# {name}={secret}\nexport {name}={secret}\n" for name, secret in SECRETS.items())
    text = secrets + text.replace("NVIDIA A100", f"{SECRETS['GITHUB_TOKEN']} A100")
    path = write("job-secret.log", text)
    run("report", path, "-o", scratch("j.html"))
    clean(read(scratch("j.html")))


def test_errors_do_not_tell_secrets():
    _, errors = run("report", write("x.json", json.dumps({"results": [{"size": SECRETS["HF_TOKEN"]}], "nccl_version": 1,
                                                          "version": 3})), status=1)
    clean(errors)
    bad = "# size count type time algbw busbw error\n" + " 8 8 float " + SECRETS["GITHUB_TOKEN"] + " 1 1 0\n"
    clean(run("report", write("all_gather.txt", bad), status=1)[1])


def test_harmless_text_is_left():
    for text in ("node0", "NVIDIA A100-SXM4-40GB", "NCCL_IB_PKEY=0x7fff", "/data/runs/2026-11-21/all_reduce-4nodes.json",
                 "nThread 1 nGpus 4 minBytes 8 maxBytes 268435456 step: 2(factor)", "p4d.24xlarge", "tree ll128 8ch",
                 "calibrated on 4 x p4d.24xlarge in one placement group", "https://example.org/path?x=1"):
        assert redact.text(text) == text, redact.text(text)
    assert redact.command(["all_reduce_perf", "-b", "8", "-e", "1G", "-x", "NCCL_NET_PLUGIN=stratus"]) == [
        "all_reduce_perf", "-b", "8", "-e", "1G", "-x", "NCCL_NET_PLUGIN=stratus"]


def test_terminals_are_not_controlled():
    value = json.loads(read(data("coll-none.1.json")))
    value["label"] = "a\u001b]0;title\u0007\u001b[31mred\u202e\u009b2J"
    text, _ = run("report", write("escape.json", json.dumps(value)))
    assert not any(ord(letter) < 32 and letter != "\n" or letter in "\u202e\u009b" for letter in text), text


def test_very_long_text_loses_its_end():
    for text in ("a-" * 500_000, "token" * 200_000, "A" * 1_000_000, "://" * 300_000, "key=" * 200_000):
        assert len(redact.text(text)) < 2 * redact.LONGEST
        assert len(redact.environment([f"NCCL_X={text}", text])["NCCL_X"]) < 2 * redact.LONGEST
        assert all(len(word) < 2 * redact.LONGEST for word in redact.command([text, f"-x={text}"]))
