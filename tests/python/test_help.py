"""The program's help, its man page and what shells complete say the same, since all are made of its options."""

from __future__ import annotations

import pathlib
import re
import shlex
import shutil
import subprocess

import pytest
from conftest import ROOT, USAGE

COMMANDS = ("run", "check", "info", "infer", "show", "explain", "bench", "profile", "convert", "diff", "extract", "merge",
            "rename", "edit", "pack", "opset", "make-trainable", "train", "help", "completion")
OLD_NAMES = ("--set", "--plain", "--pack-early")  # retired-word
SHARED = ROOT / "docs" / "cli.md", ROOT / "docs" / "training.md", ROOT / "docs" / "profiling.md"


def options_in(text: str) -> set[str]:
    """The options that a --help lists, with short names."""
    names: set[str] = set()
    for line in re.findall(r"^  (-.*)$", text, re.M):
        names |= set(re.findall(r"(?:^|(?<=,))(--?[A-Za-z][\w-]*)", re.split(r" {2,}| (?=[A-Z{:])", line)[0]))
    return names


@pytest.fixture(scope="module")
def listed(sardonyx) -> dict[str, set[str]]:
    found = {command: options_in(sardonyx(command, "--help").stdout) for command in COMMANDS}
    assert {"--output", "-o", "--threads"} <= found["run"] and "--no-shuffle" in found["train"]
    return found


def test_help_is_what_the_option_prints(sardonyx):
    assert sardonyx("help").stdout == sardonyx("--help").stdout
    for command in COMMANDS:
        assert sardonyx("help", command).stdout == sardonyx(command, "--help").stdout


def test_the_list_of_commands_is_whole(sardonyx):
    commands = re.findall(r"^  ([a-z-]+) ", sardonyx("help").stdout.partition("Subcommands:")[2], re.M)
    assert sorted(commands) == sorted(COMMANDS)


def test_what_is_no_command_or_shell(sardonyx):
    sardonyx.fails(USAGE, "help", "rnu", mentions=["no command 'rnu'", "did you mean 'run'"])
    sardonyx.fails(USAGE, "help", "run", "--man")
    sardonyx.fails(USAGE, "completion", "tcsh", mentions=["bash, zsh, fish", "tcsh"])
    sardonyx.fails(USAGE, "completion", mentions=["SHELL is required"])


# --- man ----------------------------------------------------------------------------------------


def test_every_option_is_in_the_man_page(sardonyx, listed):
    page = sardonyx("help", "--man").stdout.replace("\\-", "-")
    for command, options in listed.items():
        section = re.search(rf'^\.SS "{command}"\n(.*?)(?=^\.S[SH])', page, re.S | re.M)[1]
        assert options - set(re.findall(r"\\fB(-[\w-]+)\\fR", section)) == set()
    assert not any(rf"\fB{old}\fR" in page for old in OLD_NAMES)


def test_the_man_page_has_no_mistakes(sardonyx, tmp_path):
    if shutil.which("man") is None:
        pytest.skip("there is no man")
    page = tmp_path / "sardonyx.1"
    page.write_text(sardonyx("help", "--man").stdout)
    assert page.read_text().isascii()
    made = subprocess.run(["man", "--warnings=all", "-E", "UTF-8", "-l", "-Tutf8", page], text=True, capture_output=True,
                          env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
    assert made.returncode == 0 and made.stderr == ""
    text = re.sub("\x1b\\[[\\d;]*m|.\b", "", made.stdout)
    assert "NAME\n       sardonyx - read, check" in text and "--image-layout {NCHW,NHWC}" in text
    assert "output_0.npy, …" in text and "EXIT STATUS" in text


def test_the_build_makes_what_an_installation_copies(sardonyx):
    folder = pathlib.Path(sardonyx.path).resolve().parents[1] / "help"
    if not folder.exists():
        pytest.skip("the program does not lie in a build tree")
    for name, command in (("sardonyx.1", ("help", "--man")), ("sardonyx.bash", ("completion", "bash")),
                          ("_sardonyx", ("completion", "zsh")), ("sardonyx.fish", ("completion", "fish"))):
        assert (folder / name).read_text() == sardonyx(*command).stdout


# --- bash ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def complete(sardonyx, tmp_path_factory):
    """complete("run", "--im"): what bash would offer for the last word, as readline has cut the words."""
    script = tmp_path_factory.mktemp("completion") / "sardonyx.bash"
    script.write_text(sardonyx("completion", "bash").stdout)

    def offered(*words, folder=None, breaks=" \"'><=;|&(:", cut=True):
        parts = ["sardonyx"]
        for word in words:
            parts += [part for part in re.split(r"([=:]+)", word) if part] or [""] if cut else [word]
            if cut and re.search(r"[=:]$", word):
                parts.append("")
        lines = [f"source {shlex.quote(str(script))}", f"COMP_WORDBREAKS={shlex.quote(breaks)}",
                 f"COMP_WORDS=({' '.join(shlex.quote(part) for part in parts)})", f"COMP_CWORD={len(parts) - 1}",
                 "complete -p sardonyx >&2", "_sardonyx", 'printf "%s\\n" "${COMPREPLY[@]}"']
        made = subprocess.run(["bash", "--norc", "-c", "\n".join(lines)], text=True, capture_output=True, cwd=folder, check=True)
        assert made.stderr == "complete -F _sardonyx sardonyx\n"
        return [line for line in made.stdout.splitlines() if line]

    return offered


@pytest.fixture
def folder(tmp_path):
    for name in ("model.onnx", "image one.npy", "other.txt"):
        (tmp_path / name).touch()
    (tmp_path / "data").mkdir()
    return tmp_path


def test_bash_completes_commands(complete):
    assert sorted(word for word in complete("") if word[0] != "-") == sorted(COMMANDS)
    assert complete("ma") == ["make-trainable"] and complete("--v") == ["--version"]
    assert complete("no-such", "--") == []


def test_bash_completes_all_options(complete, listed):
    for command, options in listed.items():
        assert set(complete(command, "-")) == options
    assert complete("run", "model.onnx", "--all") == ["--all-outputs"]


def test_bash_completes_values(complete):
    assert complete("run", "--image-layout", "") == ["NCHW", "NHWC"]
    assert complete("run", "--image-layout=NH") == ["NHWC"]
    assert complete("run", "--image-layout=NH", breaks=" ", cut=False) == ["--image-layout=NHWC"]
    assert complete("train", "--bad-loss", "s") == ["stop", "skip"]
    assert complete("make-trainable", "--loss", "bce") == ["bce", "bce-with-logits"]
    assert "fold-constants" in complete("explain", "--stop-after", "fold")
    assert complete("help", "in") == ["info", "infer"]
    assert complete("completion", "") == ["bash", "zsh", "fish"]
    assert complete("run", "--threads", "") == []


def test_bash_completes_file_names(complete, folder):
    everything = ["data", "image one.npy", "model.onnx", "other.txt"]
    assert sorted(complete("run", "", folder=folder)) == everything
    assert complete("run", "mo", folder=folder) == ["model.onnx"]
    assert complete("convert", "model.onnx", "ot", folder=folder) == ["other.txt"]
    assert complete("run", "--trust-folder", "", folder=folder) == ["data"]
    assert complete("run", "model.onnx", "--exact", "im", folder=folder) == ["image one.npy"]
    assert complete("run", "model.onnx", "--input", "image=im", folder=folder) == ["image one.npy"]
    assert set(complete("run", "model.onnx", "--input", "image=", folder=folder)) == {"random", "ones", *everything}
    assert complete("run", "--input", "image=im", folder=folder, breaks=" ", cut=False) == ["image=image one.npy"]
    assert complete("run", "--input", "im", folder=folder) == []
    assert complete("run", "--output=da", folder=folder) == ["data"]
    assert complete("run", "--input", "x=random:0:1", "mod", folder=folder) == ["model.onnx"]


# --- other shells -------------------------------------------------------------------------------


def test_fish_completes(sardonyx, listed, folder):
    if shutil.which("fish") is None:
        pytest.skip("there is no fish")
    (folder / "s.fish").write_text(sardonyx("completion", "fish").stdout)

    def offered(line):
        made = subprocess.run(["fish", "--no-config", "-c", f"source s.fish; complete -C {shlex.quote(line)}"], cwd=folder, text=True,
                              capture_output=True, check=True)
        assert made.stderr == ""
        return [one.partition("\t")[0] for one in made.stdout.splitlines()]

    assert set(COMMANDS) <= set(offered("sardonyx "))
    for command in ("run", "train", "help"):
        assert set(offered(f"sardonyx {command} --")) == {name for name in listed[command] if name.startswith("--")}
    assert offered("sardonyx train --bad-loss ") == ["skip", "stop"]
    assert offered("sardonyx run --trust-folder d") == ["data/"]
    assert "model.onnx" in offered("sardonyx run m") and "run" not in offered("sardonyx run m")
    assert set(offered("sardonyx completion ")) >= {"bash", "zsh", "fish"}


# What is typed does not hold the word that is waited for.
ZSH = r"""
zmodload zsh/zpty
zpty -b shell zsh -f -i
zpty -w shell 'PS1=; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -D -u; source s.zsh'
zpty -w shell 'show() { compadd() { local -a found; local tag; builtin compadd -A found "$@"; print -rl -- "<"${^found}">"; builtin compadd "$@" }; "_main_complete"; }'
zpty -w shell 'zle -C show complete-word show; bindkey "^I" show; print RE""ADY'
integer waited=0
local text= part=
until [[ $text == *READY* ]]; do zpty -r -t shell part && text+=$part || { sleep 0.05; (( waited++ > 2000 )) && exit 3 }; done
zpty -w -n shell "$1"$'\t'
text= waited=0
integer idle=0
while (( waited++ < 600 )); do
  if zpty -r -t shell part; then text+=$part idle=0; else sleep 0.05; (( idle++ )); fi
  [[ $text == *'>'* ]] && (( idle > 40 )) && break
done
print -r -- "$text"
zpty -d shell
"""


def test_zsh_completes(sardonyx, folder):
    if shutil.which("zsh") is None:
        pytest.skip("there is no zsh")
    (folder / "s.zsh").write_text(sardonyx("completion", "zsh").stdout)
    (folder / "ask.zsh").write_text(ZSH)
    subprocess.run(["zsh", "-n", "s.zsh"], cwd=folder, check=True)

    def offered(line):
        made = subprocess.run(["zsh", "-f", "ask.zsh", line], cwd=folder, text=True, capture_output=True, check=True)
        return set(re.findall(r"<([^<>\r\n]+)>", made.stdout))

    assert set(COMMANDS) <= offered("sardonyx ")
    assert {"--all-outputs", "--image-layout", "--input"} <= offered("sardonyx run --")
    assert {"stop", "skip"} == offered("sardonyx train --bad-loss ")


# --- docs ---------------------------------------------------------------------------------------


def test_the_docs_name_every_option(listed):
    text = "\n".join(page.read_text() for page in SHARED)
    known = set(re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", text))
    missing = {command: names for command, options in listed.items()
               if (names := {one for one in options if one.startswith("--")} - known - {"--help"})}
    assert missing == {}


def test_the_docs_name_no_other_option(listed):
    """In blocks and tables of docs/cli.md, where a line begins with the program or an option."""
    every = set().union(*listed.values()) | {"--version", *OLD_NAMES}
    text = SHARED[0].read_text()
    assert set(re.findall(r"(?<![\w-])(--[a-z][\w-]*)", text)) - every == set()
